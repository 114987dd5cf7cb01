"""One pass of SGD over disjoint batches, each gradient protected by pure-epsilon noise."""

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.progress import track
from dpviz.common.random import gamma_sphere, generator, shuffled_batches, substreams
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import BoundsDistance, ProtectsQuery
from dpviz.mechanisms.gradient.clip_count import ClipsRows
from dpviz.mechanisms.gradient.noisy_sgd import ROUNDING, Plan, train
from dpviz.mechanisms.knobs import clip_norm_knob, step_size_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.distance import gamma_sphere_distance
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE

_FIRST = 10.0  # of the longest stable step: as steps fall, the first ones may be longer
_LAST = 2.0  # times the longest stable step that the last one may be: averages bear more than single iterates
_REACH = 10.0  # R below, by trials on Adult, a synthetic census and the bundled sets
_AT_EPSILON = 2.0  # for which an automatic value is shown where no budget is known


@dataclass(frozen=True)
class Batching(StepSize):
    """The first step size, and how many batches a pass has.

    Attributes:
        batches: number of batches of one pass.
    """

    batches: int


@dataclass(frozen=True)
class SongSGD(ClipsRows, ProtectsQuery, BoundsDistance):
    """w <- w - eta_t (lam w + (sum of batch gradients + Z_t)/b), Z_t with density ~ exp(-eps |z|/2), eta_t = eta_0/sqrt t.

    The mean of the last half of the iterates is released (Shamir and Zhang 2013, suffix averaging), as post-processing.
    """

    id = "song-sgd"
    label = "Song SGD"
    citation = "Song, Chaudhuri, Sarwate, GlobalSIP 2013, mini-batch SGD with pure-ε noise"
    noise_enters = (
        "The mean gradient of every mini-batch: each step adds one draw of density proportional to exp(-β|z|) to it. "
        "No noise is added to single rows, so rows count as visited and not as receiving noise."
    )
    guarantee = "ε-DP, proved: each row is in one batch of a pass, and the budgets of the passes add up."
    pure = True

    batch: int = knob(
        0,
        "Batch size",
        "Rows per step, at most all rows; larger batches need less noise and make fewer steps.",
        low=1,
        high=100_000,
        log=True,
        unit="rows",
        share_of_rows=True,
        automatic="1, 2, 4, 8 … batches, by the noise and the longest stable step",
    )
    passes: int = knob(1, "Passes", "Passes over the data; each one gets an equal share of the budget.", low=1, high=50)
    step_size: float = step_size_knob(
        "First step; step t is this over the root of t.", "follows from the noise, at most 19 (SVM: 40, network: 1)", high=100.0
    )
    average: bool = knob(
        True,
        "Averaging",
        "Release the mean of the second half of the iterates, in which noise and the choice of batches weigh less; off: the "
        "last iterate, as published. The mean is computed from what is protected already, so it costs no budget.",
    )
    clip_norm: float = clip_norm_knob(0.0, rules.CLIP_NORM)

    def edges(self, setting: Setting, budget: Budget | None = None) -> np.ndarray:
        """Ends of the batches of a pass: floor(n/b) batches whose sizes differ by at most 1, so none is short."""
        return _divided(setting.n, max(1, setting.n // self.value("batch", setting, budget)))

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "batch":
            # few different numbers of batches: budgets that have the same one are trained together
            epsilon = _AT_EPSILON if budget is None else budget.epsilon
            counts = 2 ** np.arange(max(1, math.floor(math.log2(max(2, setting.n // 10)))) + 1)
            best = max(counts.tolist(), key=lambda count: self._time(setting, self.passes * count, epsilon))
            return min(100_000, max(1, setting.n // best))
        steps = float(self.passes * (len(self.edges(setting, budget)) - 1))
        return self._step_size(setting, steps, math.inf if budget is None else budget.epsilon)

    def _time(self, setting: Setting, steps: float, epsilon: float) -> float:
        """Training time, the sum of all step sizes: by the noise, at most what the longest stable first step gives.

        Steps eta_0/sqrt(t) give the released model the time s = eta_0 A. The noise of a step has standard deviation
        sigma = 2 C T sqrt(m + 1)/(n eps) per coordinate, and what is released eta_0 B sigma; A and B are those of `_weights`.
        """
        time, noise = self._weights(round(steps))
        per_time = 2 * self.bound(setting) * steps * math.sqrt(setting.m + 1) / (setting.n * epsilon) * noise / time
        return min(_time(setting, per_time), self._longest(setting, steps) * setting.unit_step * time)

    def _averaged(self, steps: int) -> int:
        """The number of last iterates that are averaged."""
        return (steps + 1) // 2 if self.average else 1

    def _weights(self, steps: int) -> tuple[float, float]:
        """A and B for eta_0 = 1: mean training time of the averaged iterates, and the norm of the weights of the draws.

        The draw of step t is in those of the k averaged iterates that come after it: its weight is their share over sqrt t.
        """
        sizes, kept = 1 / np.sqrt(np.arange(1, steps + 1)), self._averaged(steps)
        share = np.minimum(1.0, np.arange(steps, 0, -1) / kept)
        return float(np.cumsum(sizes)[-kept:].mean()), float(np.linalg.norm(share * sizes))

    @staticmethod
    def _longest(setting: Setting, steps: float) -> float:
        # the last step, the first one over the root of T, is at most twice as long as is stable for a single row
        return min(_FIRST if setting.linear else 1.0, _LAST * math.sqrt(steps)) * rules.longest_step(setting)

    def _step_size(self, setting: Setting, steps: float, epsilon: float) -> float:
        time = self._time(setting, steps, epsilon)
        return self.step_size or max(0.01, time / (self._weights(round(steps))[0] * setting.unit_step))

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        bound = self.bound(setting)
        edges = self.edges(setting, budget)
        smallest, steps = int(np.diff(edges).min()), float(self.passes * (len(edges) - 1))
        sensitivity = 2 * bound / smallest
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the mean gradient of one batch",
            sensitivity_source="one replaced row moves the sum of a batch by at most 2 min(C, G); b is the smallest batch",
            noise_scale=sensitivity * self.passes / budget.epsilon,  # Song et al. 2013: density ~ exp(-eps |z|/2) on the sum
            noise_family=GAMMA_SPHERE,
            claims=Budget(budget.epsilon),
            proves=Budget(budget.epsilon),
            accountant="parallel composition over the disjoint batches of a pass, sum over passes",
            notes=(
                "A short last batch would break the bound; batches differ by at most one row, and each step's noise is "
                "scaled to its own batch.",
                "The division into batches is random and does not depend on the data.",
                ROUNDING,
            ),
            for_training=Batching(self._step_size(setting, steps, budget.epsilon), batches=len(edges) - 1),
            details={"smallest_batch": float(smallest), "steps": steps},
        )

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        # a row is in one batch of every pass, and the noise of each is in proportion to what the row can move there
        return min(1.0, self.passes * gamma_sphere_distance(calibration.sensitivity, calibration.noise_scale, setting.m))

    def fit(self, training: Training) -> Fit:
        problem, calibrations = training.problem, training.calibrations
        counts = np.array([c.values(Batching).batches for c in calibrations])
        theta = np.empty((len(calibrations), len(training.streams), problem.m))
        visits, clipped = None, np.empty((*theta.shape[:2], problem.n), np.float32) if training.record else None
        for count, inside in track(training.monitor, np.unique(counts).tolist()):
            chosen = np.flatnonzero(counts == count).tolist()
            part = replace(training, calibrations=[calibrations[e] for e in chosen], monitor=inside)
            # a pass visits every row once, however many batches it has
            theta[chosen], visits, shares = train(part, self._plan(part, _divided(problem.n, count)))
            if clipped is not None:
                clipped[chosen] = shares
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, clipped=clipped))

    def _plan(self, training: Training, edges: np.ndarray) -> Plan:
        sizes = np.tile(np.diff(edges), self.passes).astype(float)
        return Plan(
            batches=shuffled_batches(edges),
            divisor=sizes,
            step_sizes=training.step_sizes[:, None] / np.sqrt(np.arange(1, len(sizes) + 1)),
            draw=gamma_sphere,
            noise_factor=sizes.min() / sizes,
            clip_norm=self.clip(training.problem.setting),
            averaged=self._averaged(len(sizes)),
        )

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        draw = shuffled_batches(self.edges(problem.setting))
        batches = [draw(generator(substreams(stream, 2)[0]))(0) for stream in streams]
        return self.sums_over(problem, theta, batches) / np.array([[len(batch)] for batch in batches])


def _time(setting: Setting, noise_per_time: float) -> float:
    """Training time s that balances what training and noise lose, where curvature shrinks the noise of early steps [ours].

    Noise of the rate s nu^2 in each of m directions of curvature k has the variance s nu^2 (1 - e^(-2 k s))/(2k) after the
    time s. With all curvature beta spread evenly, k = beta/m, it loses m s nu^2 (1 - e^(-2 beta s/m))/4: beta s^2 nu^2/2 as in
    `rules` where s is short, and less where it is long. Training loses at most R^2/(2s).

    Args:
        noise_per_time: nu.
    """
    reach, beta = (
        min(_REACH if setting.linear else _REACH / 2, math.sqrt(2 / setting.lam)),
        min(setting.beta, 1 / setting.unit_step),
    )
    s = np.geomspace(1e-3, 3 / setting.lam, 400)
    lost = setting.m * s * noise_per_time**2 * -np.expm1(-2 * beta * s / setting.m) / 4
    return float(s[np.argmin(reach**2 / (2 * s) + lost)])


def _divided(n: int, count: int) -> np.ndarray:
    """(count + 1,) ends of `count` batches of n rows, whose sizes differ by at most 1."""
    return np.linspace(0, n, count + 1).astype(np.intp)
