"""What gradient methods share: how often rows are clipped, and sums over all rows, their precision and their parts."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.common.threads import MOST_GROUPS, Team, groups
from dpviz.common.words import Words
from dpviz.mechanisms.base import Floats, Training
from dpviz.models import Setting, line_losses_of
from dpviz.models.base import Rule
from dpviz.models.problem import Problem

_SINGLE_FROM = 1 << 20  # entries of a table from which on full gradients are summed in single precision
_PART = 1 << 22  # multiplications of a part of the rows from which it is worth a thread of its own
FULL_ROUNDING: Words = (
    "Tables of this size are summed in single precision, in which every contribution is shortened by 1e-6 of it so that "
    "rounding lets no row add more than the clip norm; the rounding of the sum is outside the proof, as it is in double."
)


class ClipCount:
    """Counts how often each row's gradient is shortened to the clip norm, from the lengths that `Model.sum_gradient` sees.

    Attributes:
        possible: whether a gradient can be longer than the clip norm at all; nothing is counted where none can.
        count: (R, n) int32, without columns where that is impossible.
    """

    def __init__(self, setting: Setting, clip_norm: float, replicas: int) -> None:
        self.possible = clip_norm * (1 + 1e-9) < setting.G
        self.count = np.zeros((setting.n if self.possible else 0, replicas), np.int32).T
        self._from = clip_norm * (1 - 1e-5)  # a shortened gradient has the clip norm's length up to rounding in single precision

    def see(self, rows: slice | NDArray[np.integer], norms: NDArray[np.floating]) -> None:
        """Counts the shortened among (R, b) clipped lengths of these rows, each of which is there once."""
        if self.possible:
            self.count[:, rows] += norms >= self._from

    def of_replicas(self, replicas: NDArray[np.integer]) -> Rule | None:
        """A rule that counts all rows for some of the replicas and changes nothing; None where there is nothing to count."""
        if not self.possible:
            return None

        def rule(block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
            self.count[replicas, block] += norms >= self._from
            return np.ones(1, norms.dtype)

        return rule

    def of_batch(self, index: NDArray[np.integer]) -> Rule | None:
        """A rule that counts the rows of a batch and changes nothing; None where there is nothing to count."""
        if not self.possible:
            return None

        def rule(block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
            self.see(index[block], norms)
            return np.ones(1, norms.dtype)

        return rule

    def share(self, looks: NDArray[Any] | float) -> NDArray[np.float32]:
        """(R, n) shares of `looks` gradients of each row that were shortened; NaN where there was none."""
        taken = np.asarray(looks, np.float32)
        with np.errstate(invalid="ignore", divide="ignore"):
            times = self.count.astype(np.float32) if self.possible else np.zeros_like(taken)
            return np.asarray(times / np.where(taken > 0, taken, np.nan), np.float32)


def precision(setting: Setting) -> type[np.floating]:
    """In which precision gradients over all rows are summed, from public facts."""
    return np.float32 if setting.n * setting.d > _SINGLE_FROM else np.float64


def seeds_together(training: Training) -> list[slice]:
    """Seeds whose gradients over all rows are computed together.

    Those of linear models all at once, in wide and fast products, by threads that share the rows (`AllRows`). Networks
    need so much memory for each replica that threads share the seeds instead.
    """
    seeds = len(training.streams)
    return [slice(0, seeds)] if training.problem.setting.linear else groups(seeds)


class AllRows:
    """Sums over all rows for replicas that train in step. Threads share the rows of linear models where these are many.

    The number of parts depends on sizes alone, so that the bits of a result do not depend on the machine.
    """

    def __init__(self, problem: Problem, replicas: int) -> None:
        self._model, self._precision = problem.model, precision(problem.setting)
        enough = problem.n * problem.m * replicas // _PART if problem.setting.linear else 1
        self._parts = problem.rows.parts(min(MOST_GROUPS, enough))
        self._team = Team(len(self._parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._team.__exit__(*error)

    def gradient(self, theta: Floats, clip_norm: float, rule: Rule | None = None) -> Floats:
        """`Model.sum_gradient` of all rows in their `precision`. The rule is called by several threads, with other rows each."""
        at = theta.astype(self._precision, copy=False)

        def part(k: int) -> Floats:
            first, rows = self._parts[k]
            return self._model.sum_gradient(at, rows, clip_norm=clip_norm, rule=_moved(rule, first))

        return np.sum(self._team.each(part), axis=0)

    def line_losses(self, theta: Floats, direction: Floats, reach: Floats, count: int, clip: float) -> Floats:
        """`LineLosses` of all rows."""
        losses = line_losses_of(self._model)
        return np.sum(self._team.each(lambda k: losses(theta, direction, reach, count, self._parts[k][1], clip=clip)), axis=0)


def _moved(rule: Rule | None, first: int) -> Rule | None:
    """A rule of all rows as one of those from `first` on."""
    if rule is None or first == 0:
        return rule
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)


def rounding(setting: Setting) -> tuple[Words, ...]:
    """What is to be said about `precision`."""
    return (FULL_ROUNDING,) if precision(setting) is np.float32 else ()


def unfinished(setting: Setting, step: float, steps: int) -> tuple[Words, ...]:
    """A note where gradient descent stops before it has fitted the flattest directions.

    From 0, T steps of size eta bring the error along a direction of curvature k to (1 - eta k)^T, which is still above
    1/e for k < 1/(eta T). Every curvature is at least mu = lam, so nothing is left where eta T mu >= 1.

    Args:
        step: eta, absolute.
        steps: T.
    """
    path = step * steps
    if not math.isfinite(path) or path * setting.mu >= 1:
        return ()
    return (
        f"{steps:,} steps of {step:.3g} do not yet fit directions of curvature below {1 / path:.2g}; on rows with many small "
        "features the model can stay near the majority however large ε is. More steps cost more noise.",
    )
