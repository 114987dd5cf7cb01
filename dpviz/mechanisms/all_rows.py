"""Sums over all rows for replicas that train in step: their precision, and the threads that share the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor
from dpviz.common.threads import MOST_GROUPS, THREADS_FROM, Team, groups, map_streams, parallel_sum
from dpviz.mechanisms.base import Training
from dpviz.models import Noise, Rule, Setting, feature_noise_of, line_losses_of
from dpviz.models.problem import Problem
from dpviz.models.row_budget import rule_of_part

_SINGLE_FROM = 1 << 20  # entries of a table from which on full gradients are summed in single precision
_PART = 1 << 22  # multiplications of a part of the rows from which it is worth a thread of its own
FULL_ROUNDING: str = (
    "Tables of this size are summed in single precision, in which every contribution is scaled down by 1e-6 so that "
    "rounding lets no row add more than the clip norm; the rounding of the sum is outside the proof, as it is in double."
)


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


def by_seeds(
    training: Training, train: Callable[[slice, Monitor], tuple[NDArray[Any], ...]], parts: list[slice] | None = None
) -> tuple[NDArray[Any], ...]:
    """Arrays (E, S, ...) of all seeds, from those that `train` gives for some seeds; several threads train where it takes long.

    Args:
        parts: of the seeds, those of `seeds_together` by default.
    """
    problem, of = training.problem, seeds_together(training) if parts is None else parts
    problem.model.prepare(problem.rows, precision(problem.setting))

    def work(g: int, tick: Monitor) -> tuple[NDArray[Any], ...]:
        return train(of[g], tick)

    trained = map_streams(work, len(of), training.monitor, parallel=problem.n * problem.m >= THREADS_FROM)
    return tuple(np.concatenate(each, axis=1) for each in zip(*trained, strict=True))


class AllRows(Team):
    """Sums over all rows for replicas that train in step. Threads share the rows of linear models where these are many.

    The number of parts depends on sizes alone, so that the bits of a result do not depend on the machine.
    """

    def __init__(self, problem: Problem, replicas: int) -> None:
        self._model, self._precision = problem.model, precision(problem.setting)
        self._parts = problem.rows.parts(_parts_of(problem, replicas))
        super().__init__(len(self._parts))

    @staticmethod
    def shares_rows(problem: Problem, replicas: int) -> bool:
        """True where threads share the rows."""
        return _parts_of(problem, replicas) > 1

    def gradient(self, theta: Floats, clip_norm: float, rule: Rule | None = None, weights: NDArray[Any] | None = None) -> Floats:
        """`Model.sum_gradient` of all rows in their `precision`. The rule is called by several threads, with other rows each."""
        at = theta.astype(self._precision, copy=False)

        def part(k: int) -> Floats:
            first, rows = self._parts[k]
            own = None if weights is None else weights[first : first + len(rows)]
            return self._model.sum_gradient(at, rows, clip_norm=clip_norm, weights=own, rule=rule_of_part(rule, first))

        return parallel_sum(self.each, part, len(self._parts))

    def noisy_gradients(self, noise: Sequence[Noise], scale: Floats) -> Callable[[Floats], Floats]:
        """`FeatureNoise.noisy_gradient` of all rows in their `precision`, as a function of theta."""
        shared = len(noise[0]) == 1
        parts = [(rows, noise if shared else [draw[first : first + len(rows)] for draw in noise]) for first, rows in self._parts]
        noisy = feature_noise_of(self._model)

        def gradient(theta: Floats) -> Floats:
            at = theta.astype(self._precision, copy=False)
            return parallel_sum(self.each, lambda k: noisy.noisy_gradient(at, *parts[k], scale), len(parts))

        return gradient

    def line_losses(self, theta: Floats, direction: Floats, reach: Floats, count: int, clip: float) -> Floats:
        """`LineLosses` of all rows."""
        losses = line_losses_of(self._model)
        parts = [rows for _, rows in self._parts]
        return parallel_sum(self.each, lambda k: losses(theta, direction, reach, count, parts[k], clip=clip), len(parts))


def _parts_of(problem: Problem, replicas: int) -> int:
    """Parts in which threads share the rows."""
    return max(1, min(MOST_GROUPS, problem.n * problem.m * replicas // _PART)) if problem.setting.linear else 1


def rounding(setting: Setting) -> tuple[str, ...]:
    """A note on `precision`."""
    return (FULL_ROUNDING,) if precision(setting) is np.float32 else ()
