"""The training loop of noisy SGD; `Plan` says how its methods differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import Batches, Drawn, generator, in_step, substreams
from dpviz.common.threads import THREADS_FROM, map_streams, processors
from dpviz.common.threads import groups as parts_of_seeds
from dpviz.mechanisms.base import Floats, Training
from dpviz.mechanisms.gradient.clip_count import ClipCount
from dpviz.models.many_batches import ManyBatches
from dpviz.models.problem import Problem

SINGLE_ROWS = 10_000  # largest batch summed in single precision: its rounding stays near 1e-4 of the sensitivity
ROUNDING: str = (
    f"Batches of at most {SINGLE_ROWS:,} rows are summed in single precision; rounding (about 1e-4 of the sensitivity at "
    "4,000 rows) is outside the proof, as it is in double precision."
)
MOST_IN_STEP = 64  # replicas trained in step: their margins in a block of rows stay in the processor's cache


@dataclass(frozen=True)
class Plan:
    """One way of noisy SGD over T steps.

    Attributes:
        batches: as of `common.random.in_step`.
        divisor: (T,) what the sum of a batch is divided by; public, so never the size of a Poisson batch.
        lengths: (T,) or (E, T) step lengths.
        draw: (S generators, m) -> (() -> (S, m) standard noise draws of one step).
        noise_factor: (T,) what multiplies the calibration's noise scale.
        clip_norm: longest contribution of a row.
        smooth: what is done to the noisy gradient of the whole objective, (E, m) -> (E, m).
        radius: the iterates are projected to the ball of this radius.
        averaged: how many of the last iterates the result is the mean of, at least 1.
    """

    batches: Batches
    divisor: Floats
    lengths: Floats
    draw: Callable[[Sequence[np.random.Generator], int], Callable[[], Floats]]
    noise_factor: Floats
    clip_norm: float
    smooth: Callable[[Floats], Floats] | None = None
    radius: float = np.inf
    averaged: int = 1

    @property
    def steps(self) -> int:
        """T."""
        return len(self.divisor)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of clipped gradients over mini-batches.

    Attributes:
        precision: of a seed's own products.
        together: trains seeds in step; None where each seed's batch is gathered.
        clips: counts of each seed's clipped gradients; empty where nothing is recorded.
    """

    problem: Problem
    clip_norm: float
    precision: type[np.floating]
    together: ManyBatches | None
    clips: list[ClipCount]

    def of(self, theta: Floats, batches: Drawn, group: slice) -> Floats:
        """(S, E, m) sums over the batch of each seed of the group, at its parameters theta, (S, E, m)."""
        rows, clips = self.problem.rows, self.clips[group]
        if self.together is not None:
            seen = clips if clips and clips[0].possible else []
            norms: list[list[NDArray[np.float32]]] = [[] for _ in seen]
            total = self.together.sums(theta, rows, batches, self.clip_norm, norms if seen else None)
            for count, index, parts in zip(seen, batches, norms, strict=False):
                count.see(index, np.concatenate(parts, axis=1))
            return total
        index = batches[0]
        batch = rows if len(index) == len(rows) else rows.batch(index)
        at: Floats = theta[0].astype(self.precision, copy=False)
        rule = clips[0].of_batch(np.arange(len(rows)) if batch is rows else index) if clips else None
        return self.problem.model.sum_gradient(at, batch, clip_norm=self.clip_norm, rule=rule)[None]


def train(
    training: Training, plan: Plan, path: Floats | None = None
) -> tuple[Floats, NDArray[np.int32] | None, NDArray[np.float32] | None]:
    """(E, S, m) parameters, and where they are recorded (1, S, n) visits and (E, S, n) shares of clipped gradients.

    `path` (E, S', T, m) is filled with the iterates of the first S' seeds.

    The replicas of a seed share batches and standard draws, so each batch is gathered once and multiplied with the
    parameters of all budgets; or all rows are multiplied with the replicas of many seeds, which are trained in step, where
    that is faster. Products of small batches run in single precision; parameters, noise and updates stay in double.
    """
    problem, streams, scale = training.problem, training.streams, training.scales
    n, m, e = problem.n, problem.m, len(scale)
    lengths = np.broadcast_to(plan.lengths, (e, plan.steps))
    visits = np.zeros((1, len(streams), n), np.int32) if training.record else None
    clips = [ClipCount(problem.setting, plan.clip_norm, e) for _ in streams] if training.record else []
    precision = np.float32 if plan.divisor.max() <= SINGLE_ROWS else np.float64
    problem.model.prepare(problem.rows, precision)
    together, groups = _ways(problem, plan, len(streams), e, precision, seen=bool(clips) and clips[0].possible)
    sums = _Sums(problem, plan.clip_norm, precision, together, clips)

    def work(g: int, tick: Monitor) -> Floats:
        group = groups[g]
        seeds = range(len(streams))[group]
        samplers, sources = zip(*([generator(part) for part in substreams(streams[s], 2)] for s in seeds), strict=True)
        batch, noise = in_step(plan.batches, samplers), plan.draw(sources, m)
        theta = np.repeat(problem.model.initial(m, streams[group])[:, None], e, axis=1)
        total = np.zeros_like(theta)
        for t in range(plan.steps):
            tick(t / plan.steps)
            if path is not None:
                path[:, group, t] = theta[: max(0, path.shape[1] - group.start)].transpose(1, 0, 2)
            batches = batch(t)
            direction = (plan.noise_factor[t] * scale)[:, None] * noise()[:, None]
            gradient = sums.of(theta, batches, group)
            gradient /= plan.divisor[t]
            direction += gradient
            direction += problem.lam * theta
            if plan.smooth is not None:
                direction = plan.smooth(direction)
            direction *= lengths[:, t, None]
            theta -= direction
            if plan.radius < np.inf:
                theta *= plan.radius / np.maximum(np.linalg.norm(theta, axis=2, keepdims=True), plan.radius)
            if t >= plan.steps - plan.averaged:
                total += theta
            if visits is not None:
                for s, index in zip(seeds, batches, strict=True):
                    visits[0, s, index] += 1
        return total / plan.averaged

    heavy = plan.divisor.mean() * e * m >= THREADS_FROM
    trained = np.concatenate(map_streams(work, len(groups), training.monitor, parallel=bool(heavy)))
    theta = np.ascontiguousarray(trained.transpose(1, 0, 2))
    if visits is None:
        return theta, None, None
    shares = [count.share(np.broadcast_to(visits[:, s], (e, n))) for s, count in enumerate(clips)]
    return theta, visits, np.stack(shares, axis=1)


def _ways(
    problem: Problem, plan: Plan, seeds: int, budgets: int, precision: type[np.floating], *, seen: bool
) -> tuple[ManyBatches | None, list[slice]]:
    """What trains seeds in step, None where each gathers its batches, and the groups of seeds that are trained together.

    Args:
        seen: whether the lengths of single gradients are recorded.
    """
    together, one_by_one = problem.model.many_batches, [slice(s, s + 1) for s in range(seeds)]
    if together is None or precision is not np.float32:
        return None, one_by_one
    if together.compiled(problem.rows):
        # the bits of a seed do not depend on its company
        return (None, one_by_one) if seen else (together, parts_of_seeds(seeds, processors()))
    groups = _groups(seeds, budgets)
    pays = together.pays(problem.rows, plan.divisor.mean() / problem.n, groups[0].stop, budgets)
    return (together, groups) if pays else (None, one_by_one)


def _groups(seeds: int, budgets: int) -> list[slice]:
    """Seeds that are trained in step, in groups of about equal size and an even number of groups, the largest first."""
    count = -(-seeds * budgets // MOST_IN_STEP)
    count = min(seeds, count + count % 2 if count > 1 else 1)
    ends = [-(-seeds * k // count) for k in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]
