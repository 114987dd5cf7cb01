"""Shared parts of gradient methods: the clip norm, and shares of clipped rows."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.common.random import Index
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Floats, Mechanism, Streams
from dpviz.mechanisms.calibration import CLIPPED_OR_BOUNDED, PUBLIC_N, SINGLE_PRECISION
from dpviz.models import Rule, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget


class ClipsRows(Mechanism):
    """A method that clips each row's gradient to a clip norm, which follows from the loss where it is automatic."""

    family = "gradient"
    supposes: ClassVar[tuple[str, ...]] = (CLIPPED_OR_BOUNDED, PUBLIC_N, SINGLE_PRECISION)

    clip_norm: float  # a knob of each method

    def value(self, knob: str, setting: Setting, budget: Budget | None = None) -> Any:
        if knob == "clip_norm" and not self.clip_norm:
            return self.clip_by_rule(setting)
        return super().value(knob, setting, budget)

    def clip_by_rule(self, setting: Setting) -> float:
        """The clip norm where it is automatic."""
        return rules.clip_norm(setting)

    def clip(self, setting: Setting) -> float:
        """The clip norm, as set or by the rule."""
        return float(self.value("clip_norm", setting))

    def bound(self, setting: Setting) -> float:
        """min(C, G): the longest gradient that a row contributes."""
        return min(self.clip(setting), setting.G)

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        """(R, m) the mean of all rows' clipped gradients."""
        return problem.model.sum_gradient(theta, problem.rows, clip_norm=self.clip(problem.setting)) / problem.n

    def sums_over(self, problem: Problem, theta: Floats, batches: Iterable[NDArray[np.intp]]) -> Floats:
        """(R, m) sums of clipped gradients over a batch for each point."""
        clip = self.clip(problem.setting)
        pairs = zip(theta, map(problem.rows.batch, batches), strict=True)
        return np.concatenate([problem.model.sum_gradient(point[None], batch, clip_norm=clip) for point, batch in pairs])


class ClipCount:
    """Counts how often each row's gradient is clipped, from the norms that `Model.sum_gradient` sees.

    Attributes:
        possible: whether a gradient can be longer than the clip norm at all; nothing is counted where none can.
        count: (R, n) int32, without columns where that is impossible.
    """

    def __init__(self, setting: Setting, clip_norm: float, replicas: int) -> None:
        self.possible = clip_norm * (1 + 1e-9) < setting.G
        self.count = np.zeros((setting.n * self.possible, replicas), np.int32).T
        self._from = clip_norm * (1 - 1e-5)  # a clipped gradient has the clip norm up to rounding in single precision

    def see(self, rows: slice | Index, norms: NDArray[np.floating], replicas: slice | Index = slice(None)) -> None:
        """Counts the clipped among (R, b) clipped norms of these rows, each of which is there once."""
        if self.possible:
            self.count[replicas, rows] += norms >= self._from

    def rule(self, batch: Index | None = None, replicas: slice | Index = slice(None)) -> Rule | None:
        """A rule that counts rows for some of the replicas and changes nothing; None where there is nothing to count.

        Args:
            batch: positions of the rows that the rule is called for; None for all rows.
        """

        def count(block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
            self.see(block if batch is None else batch[block], norms, replicas)
            return np.ones(1, norms.dtype)

        return count if self.possible else None

    def share(self, looks: NDArray[Any] | float) -> NDArray[np.float32]:
        """(R, n) shares of `looks` gradients of each row that were clipped; NaN where there was none."""
        taken = np.asarray(looks, np.float32)
        with np.errstate(invalid="ignore", divide="ignore"):
            times = self.count.astype(np.float32) if self.possible else np.zeros_like(taken)
            return np.asarray(times / np.where(taken > 0, taken, np.nan), np.float32)
