"""The training loop of noisy SGD; `Plan` says how its methods differ."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import Batches, BatchIndices, generator, lockstep, substreams
from dpviz.common.threads import THREADS_FROM, map_streams, processors
from dpviz.common.threads import groups as parts_of_seeds
from dpviz.mechanisms.base import Floats, Training
from dpviz.mechanisms.gradient.clip_count import ClipCount
from dpviz.models.problem import Problem

SINGLE_ROWS = 10_000  # largest batch summed in single precision: its rounding stays below 1e-3 of the sensitivity
ROUNDING: str = (
    f"Batches of at most {SINGLE_ROWS:,} rows are summed in single precision; rounding (some 1e-4 of the sensitivity at "
    "4,000 rows) is outside the proof, as it is in double precision."
)


@dataclass(frozen=True)
class Plan:
    """One way of noisy SGD over T steps.

    Attributes:
        batches: as of `common.random.lockstep`.
        divisor: (T,) what the sum of a batch is divided by; public, so never the size of a Poisson batch.
        step_sizes: (T,) or (E, T).
        noise_factor: (T,) what multiplies the calibration's noise scale.
        clip_norm: longest contribution of a row.
        smooth: what is done to the noisy gradient of the whole objective, (E, m) -> (E, m).
        radius: the iterates are projected to the ball of this radius.
        averaged: how many of the last iterates the result is the mean of, at least 1.
        draw: (generator, m) -> (m,) standard noise of one step.
    """

    batches: Batches
    divisor: Floats
    step_sizes: Floats
    noise_factor: Floats
    clip_norm: float
    smooth: Callable[[Floats], Floats] | None = None
    radius: float = np.inf
    averaged: int = 1
    draw: Callable[[np.random.Generator, int], Floats] = np.random.Generator.standard_normal

    @property
    def steps(self) -> int:
        """T."""
        return len(self.divisor)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of clipped gradients over mini-batches.

    Attributes:
        precision: of the products.
        clips: counts of each seed's clipped gradients; empty where nothing is recorded.
    """

    problem: Problem
    clip_norm: float
    precision: type[np.floating]
    clips: list[ClipCount]

    def compute(self, theta: Floats, batches: BatchIndices, group: slice) -> Floats:
        """(S, E, m) sums over the batch of each seed of the group, at its parameters theta, (S, E, m)."""
        rows, clips = self.problem.rows, self.clips[group]
        if not clips or not clips[0].possible:
            return self.problem.model.sum_batches(theta, rows, batches, clip_norm=self.clip_norm, precision=self.precision)
        found = []
        for at, index, count in zip(theta.astype(self.precision, copy=False), batches, clips, strict=True):
            batch = rows if len(index) == len(rows) else rows.batch(index)
            rule = count.rule(index)
            found.append(self.problem.model.sum_gradient(at, batch, clip_norm=self.clip_norm, rule=rule))
        return np.stack(found)


def train(
    training: Training, plan: Plan, path: Floats | None = None
) -> tuple[Floats, NDArray[np.int32] | None, NDArray[np.float32] | None]:
    """(E, S, m) parameters, and where they are recorded (1, S, n) visits and (E, S, n) shares of clipped gradients.

    `path` (E, S', T, m) is filled with the iterates of the first S' seeds.

    The replicas of a seed share batches and standard draws, so each batch is read once for the parameters of all budgets;
    seeds are trained in step. Products of small batches run in single precision; parameters, noise and updates stay in double.
    """
    problem, streams, scale = training.problem, training.streams, training.scales
    n, m, e = problem.n, problem.m, len(scale)
    step_sizes = np.broadcast_to(plan.step_sizes, (e, plan.steps))
    visits = np.zeros((1, len(streams), n), np.int32) if training.record else None
    clips = [ClipCount(problem.setting, plan.clip_norm, e) for _ in streams] if training.record else []
    precision = np.float32 if plan.divisor.max() <= SINGLE_ROWS else np.float64
    problem.model.prepare(problem.rows, precision)
    sums = _Sums(problem, plan.clip_norm, precision, clips)
    groups = parts_of_seeds(len(streams), processors())  # the bits of a seed do not depend on the others

    def work(g: int, tick: Monitor) -> Floats:
        group = groups[g]
        seeds = range(len(streams))[group]
        samplers, sources = zip(*([generator(part) for part in substreams(streams[s], 2)] for s in seeds), strict=True)
        batch = lockstep(plan.batches, samplers)
        theta = np.repeat(problem.model.initial(m, streams[group])[:, None], e, axis=1)
        total = np.zeros_like(theta)
        for t in range(plan.steps):
            tick(t / plan.steps)
            if path is not None:
                path[:, group, t] = theta[: max(0, path.shape[1] - group.start)].transpose(1, 0, 2)
            batches = batch(t)
            noise = np.stack([plan.draw(source, m) for source in sources])
            direction = (plan.noise_factor[t] * scale)[:, None] * noise[:, None]
            gradient = sums.compute(theta, batches, group)
            gradient /= plan.divisor[t]
            direction += gradient
            direction += problem.lam * theta
            if plan.smooth is not None:
                direction = plan.smooth(direction)
            direction *= step_sizes[:, t, None]
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
