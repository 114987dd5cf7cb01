"""Noisy gradient descent: the training loop of noisy SGD, its Poisson-sampled base class, and what full-batch methods share.

A reader of DP-SGD, DP-LSSGD or Bassily SGD needs this file, theirs and `base.py`; `Plan` says how they differ.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import Batches, generator, poisson_batches, substreams
from dpviz.common.threads import THREADS_FROM, map_streams, seed_groups
from dpviz.common.validate import InvalidInput
from dpviz.common.words import Words
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import BoundsSensitivity, CountsSteps, IndividualBudget, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.individual import along_path, room_for_path
from dpviz.mechanisms.knobs import clip_norm_knob
from dpviz.models import Setting
from dpviz.models.base import Rule
from dpviz.models.many_batches import ManyBatches
from dpviz.models.problem import Problem
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.accountants.registry import get_accountant, list_accountants
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, Sampled
from dpviz.privacy.accounting.methods import Method
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon, PoissonPath
from dpviz.privacy.sensitivity.bound import Bound

MOST_STEPS = 200_000
_ACCOUNTANTS = tuple(name for name, known in reversed(list_accountants().items()) if "poisson" in known.samplings)
LONGEST_STEP = 10.0  # that may be set, in units of 1/L
SINGLE_ROWS = 10_000  # largest batch summed in single precision: its rounding stays near 1e-4 of the sensitivity
ROUNDING: Words = (
    f"Batches of at most {SINGLE_ROWS:,} rows are summed in single precision; rounding (about 1e-4 of the sensitivity at "
    "4,000 rows) is outside the proof, as it is in double precision."
)
MOST_IN_STEP = 64  # replicas trained in step: their margins in a block of rows stay in the processor's cache
_SINGLE_FROM = 1 << 20  # entries of a table from which on full gradients are summed in single precision
FULL_ROUNDING: Words = (
    "Tables of this size are summed in single precision, in which every contribution is shortened by 1e-6 of it so that "
    "rounding lets no row add more than the clip norm; the rounding of the sum is outside the proof, as it is in double."
)


@dataclass(frozen=True)
class Plan:
    """One way of noisy SGD over T steps.

    Attributes:
        batches: generator -> (t -> row positions of batch t, each at most once), asked for in order.
        divisor: (T,) what the sum of a batch is divided by; public, so never the size of a Poisson batch.
        lengths: (T,) or (E, T) step lengths.
        draw: (generator, m) -> a standard noise draw.
        noise_factor: (T,) what multiplies the calibration's noise scale.
        clip_norm: longest contribution of a row.
        smooth: what is done to the noisy gradient of the whole objective, (E, m) -> (E, m).
        radius: the iterates are projected to the ball of this radius.
        averaged: how many of the last iterates the result is the mean of, at least 1.
    """

    batches: Batches
    divisor: Floats
    lengths: Floats
    draw: Callable[[np.random.Generator, int], Floats]
    noise_factor: Floats
    clip_norm: float
    smooth: Callable[[Floats], Floats] | None = None
    radius: float = np.inf
    averaged: int = 1

    @property
    def steps(self) -> int:
        """T."""
        return len(self.divisor)


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

    def of(self, theta: Floats, batches: list[NDArray[np.intp]], group: slice) -> Floats:
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
    groups = _groups(len(streams), e) if precision is np.float32 else []
    together = problem.model.many_batches
    if together is None or not groups or not together.pays(problem.rows, plan.divisor.mean() / n, groups[0].stop, e):
        together, groups = None, [slice(s, s + 1) for s in range(len(streams))]

    sums = _Sums(problem, plan.clip_norm, precision, together, clips)

    def work(g: int, tick: Monitor) -> Floats:
        group = groups[g]
        seeds = range(len(streams))[group]
        parts = [[generator(part) for part in substreams(streams[s], 2)] for s in seeds]
        draws = [plan.batches(sampling) for sampling, _ in parts]
        theta = np.repeat(problem.model.initial(m, streams[group])[:, None], e, axis=1)
        total = np.zeros_like(theta)
        for t in range(plan.steps):
            tick(t / plan.steps)
            if path is not None:
                path[:, group, t] = theta[: max(0, path.shape[1] - group.start)].transpose(1, 0, 2)
            batches = [draw(t) for draw in draws]
            gradient = sums.of(theta, batches, group) / plan.divisor[t]
            draw = np.stack([plan.draw(noise, m) for _, noise in parts])[:, None]
            direction = gradient + (plan.noise_factor[t] * scale)[:, None] * draw + problem.lam * theta
            if plan.smooth is not None:
                direction = plan.smooth(direction.reshape(-1, m)).reshape(theta.shape)
            theta -= lengths[:, t, None] * direction
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


def _groups(seeds: int, budgets: int) -> list[slice]:
    """Seeds that are trained in step, in groups of about equal size and an even number of groups, the largest first."""
    count = -(-seeds * budgets // MOST_IN_STEP)
    count = min(seeds, count + count % 2 if count > 1 else 1)
    ends = [-(-seeds * k // count) for k in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]


def gaussian_draw(rng: np.random.Generator, m: int) -> Floats:
    """A standard Gaussian vector."""
    return rng.standard_normal(m)


@dataclass(frozen=True)
class PoissonSGD(ProtectsQuery, BoundsSensitivity, ReleasesGaussians, IndividualBudget, CountsSteps):
    """What the Poisson-sampled forms share: knobs, calibration and the protected query."""

    family = "gradient"
    noise_enters = (
        "The mean gradient of every mini-batch: each step adds one Gaussian draw to it. "
        "No noise is put on a row of its own, so rows count as visited and not as receiving noise."
    )

    sampling_rate: float = knob(
        0.1,
        "Sampling rate",
        "Chance of a row to be in a batch; the mean batch is this times the number of rows.",
        low=1e-4,
        high=1.0,
        log=True,
    )
    epochs: float = knob(
        20.0, "Epochs", "Steps times sampling rate: how often a row is visited on average.", low=0.1, high=1000.0, log=True
    )
    clip_norm: float = clip_norm_knob()
    accountant: str = knob("pld", "Accountant", "How the steps are added up; pld is tighter than rdp.", options=_ACCOUNTANTS)
    relation: str = knob(
        Neighbouring.REPLACE_ONE.value,
        "Neighbouring",
        "replace-one follows from add-remove by two hops and needs more noise.",
        options=tuple(r.value for r in Neighbouring),
    )

    @property
    def steps(self) -> int:
        """T, the number of steps that is nearest to the epochs asked for."""
        return max(1, round(self.epochs / self.sampling_rate))

    @property
    def batch_share(self) -> float:
        """q, the share of the rows that a batch holds on average."""
        return self.sampling_rate

    def drawing(self, n: int) -> Batches:
        """How the batches are drawn from n rows."""
        return poisson_batches(n, self.batch_share)

    def noise_multiplier(self, budget: Budget) -> float:
        """z, the noise on a batch's sum over what one row contributes to it."""
        return account.noise_for(self.noisy_sums(1.0), self.method, budget)

    def noise_scale(self, setting: Setting, budget: Budget) -> float:
        """Standard deviation per coordinate of the noise on a batch's mean gradient."""
        return self.noise_multiplier(budget) * min(self.clip_norm, setting.G) / (self.batch_share * setting.n)

    @property
    def method(self) -> Method:
        """How the steps are accounted for."""
        relation = Neighbouring(self.relation)
        return Method(self.accountant, relation, "two-hop" if relation is Neighbouring.REPLACE_ONE else "none")

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        if self.steps > MOST_STEPS:
            raise InvalidInput(
                "epochs",
                f"{self.epochs:g} epochs at sampling rate {self.sampling_rate:g} are {self.steps:,} steps",
                f"At most {MOST_STEPS:,} steps: lower the epochs or raise the sampling rate.",
            )
        bound = min(self.clip_norm, setting.G)
        sigma = self.noise_scale(setting, budget)
        replace_one = self.method.relation is Neighbouring.REPLACE_ONE
        one_row = bound / (self.batch_share * setting.n)  # Abadi et al. 2016, Algorithm 1, with the public q n
        full = self.batch_share == 1
        how = "the whole batch counts twice a removal, exactly" if full else "two hops: remove one row, add another"
        return Calibration.proved(
            budget,
            sensitivity=(2 if replace_one else 1) * one_row,
            query="the sum of clipped gradients of one Poisson batch, divided by qn",
            sensitivity_source=(
                "a row contributes at most min(C, G)/(qn), a replaced one moves the sum by at most twice that"
                if replace_one
                else "a row contributes at most min(C, G)/(qn)"
            ),
            noise_scale=sigma,
            neighbouring=self.method.relation,
            accountant=self.method.words,
            conversion=get_accountant(self.accountant).conversion_words,
            notes=(
                *((f"Replace-one: {how}.",) if replace_one else ("Add-remove: the divisor qn stays at its public value.",)),
                "Every iterate may be published.",
                ROUNDING,
            ),
            details={
                "noise_multiplier": sigma / one_row,
                "sampling_rate": self.batch_share,
                "steps": float(self.steps),
                "mean_batch": self.batch_share * setting.n,
            },
        )

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        bound = min(self.clip_norm, setting.G)
        value = 2 * bound / (self.batch_share * setting.n)
        return (Bound("2 min(C, G)/(qn)", value, r"\frac{2\min(C,G)}{qn}", "one row, if its batch is drawn at all"),)

    def noisy_sums(self, contribution: float, sigma: float = 1.0) -> Event:
        """All steps: noisy sums of Poisson batches to which one row contributes at most `contribution`."""
        return Repeated(Sampled(Gaussian.of_rows(contribution, sigma), self.batch_share), self.steps)

    def releases(self, setting: Setting) -> Event | None:
        if self.method.relation is not Neighbouring.REPLACE_ONE:
            return None
        return self.noisy_sums(self.sensitivity_bounds(setting)[0].value / 2)

    def released(self, setting: Setting, calibration: Calibration) -> Event | None:
        if calibration.noise_scale <= 0:
            return None
        contribution = min(self.clip_norm, setting.G) / (self.batch_share * setting.n)
        return self.noisy_sums(contribution, calibration.noise_scale)

    def step_count(self, setting: Setting) -> int:
        return self.steps

    @abstractmethod
    def plan(self, training: Training) -> Plan:
        """How this method trains."""

    def batch_plan(self, problem: Problem, lengths: Floats, **more: object) -> Plan:
        """A plan with this method's batches and the given step lengths."""
        return Plan(
            batches=self.drawing(problem.n),
            divisor=np.full(self.steps, self.batch_share * problem.n),
            lengths=lengths,
            draw=gaussian_draw,
            noise_factor=np.ones(self.steps),
            clip_norm=self.clip_norm,
            **more,  # type: ignore[arg-type]
        )

    def fit(self, training: Training) -> Fit:
        plan = self.plan(training)
        path = room_for_path(training, plan.steps) if training.record else None
        theta, visits, clipped = train(training, plan, path)
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, clipped=clipped, path=path))

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        if record.path is None or calibration.noise_scale <= 0:
            return None
        bound = min(self.clip_norm, problem.setting.G)
        z = calibration.noise_scale * self.batch_share * problem.n / bound
        one_row = PoissonPath(Sampled(Gaussian.of_rows(1.0, z), self.batch_share))

        def divergence(norms: Floats, path: Floats) -> Floats:
            return one_row.divergence(np.minimum(norms, bound) / bound)

        worst = account.epsilon(self.noisy_sums(1.0, z), Method(self.accountant), calibration.budget.delta)
        return along_path(problem, calibration, record.path, len(theta), divergence, worst)

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        draw = self.drawing(problem.n)
        out = np.empty_like(theta)
        for r, stream in enumerate(streams):
            batch = problem.rows.batch(draw(generator(substreams(stream, 2)[0]))(0))
            out[r] = problem.model.sum_gradient(theta[r : r + 1], batch, clip_norm=self.clip_norm)[0]
        return out / (self.batch_share * problem.n)


@dataclass(frozen=True)
class EqualSteps(PoissonSGD):
    """Poisson-sampled SGD whose steps all have one length, which follows from the noise where it is automatic."""

    step_size: float = knob(
        0.0, "Step size", "Length of a step.", low=0.01, high=LONGEST_STEP, log=True, unit="1/L", automatic=rules.STEP_SIZE
    )

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return self.by_noise(setting, 0.0 if budget is None else self.noise_scale(setting, budget))

    def by_noise(self, setting: Setting, noise_scale: float) -> float:
        """The rule's step size for this noise, in units of 1/L."""
        return rules.step_size(setting, self.steps, noise_scale)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        return replace(base, for_training=StepSize(self.step_size or self.by_noise(setting, base.noise_scale)))

    def equal_lengths(self, training: Training) -> Floats:
        """(E, T) step lengths."""
        return np.repeat(training.step_lengths[:, None], self.steps, axis=1)


def precision(setting: Setting) -> type[np.floating]:
    """In which precision gradients over all rows are summed, from public facts."""
    return np.float32 if setting.n * setting.d > _SINGLE_FROM else np.float64


def seeds_together(problem: Problem, seeds: int) -> list[slice]:
    """Seeds whose gradients over all rows are computed together."""
    # BLAS rounds by the number of replicas in a product; products without zeros add up each replica for itself
    return seed_groups(seeds, same_bits=problem.rows.sparse and problem.setting.linear)


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
