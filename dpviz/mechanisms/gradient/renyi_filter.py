"""Gradient descent in which every row has its own privacy budget and leaves when that is spent."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import generator, substreams
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import AllRows, by_seeds, precision, rounding
from dpviz.mechanisms.base import Calibration, Fit, NoiseRecord, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import CountsSteps, DeclaresEvent, IndividualBudget, ProtectsQuery
from dpviz.mechanisms.gradient.clip_count import ClipCount, ClipsRows
from dpviz.mechanisms.individual import gradients_epsilon
from dpviz.mechanisms.knobs import clip_norm_knob, step_size_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.row_budget import RowBudget
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon

MOST_STEPS = 100_000


@dataclass(frozen=True)
class RenyiFilter(ClipsRows, ProtectsQuery, DeclaresEvent, IndividualBudget, CountsSteps):
    """DP-GD in which a row takes part while the squares of its gradients sum to at most B = T0 C^2.

    Why this is (epsilon, delta)-DP under replace-one [ours; zCDP form: Feldman, Zrnic 2021; Gaussian form: Koskela,
    Tobaben, Honkela 2023]. Whether a row is active depends on that row and on earlier outputs only. Given those,
    replacing a row moves step t's sum by at most a_t + b_t, the norms that the old and the new row contribute, and
    along every path sum a_t^2 <= B, sum b_t^2 <= B, so sum (a_t + b_t)^2 <= 4B. Let step t have mu_t = (a_t + b_t)/s,
    predictable from the past, and release once more with what is left of mu^2 = 4B/s^2. The privacy loss is then
    mu^2/2 + S with S = sum mu_t Z_t, and E exp(x S - x^2 mu^2/2) = 1 for every x, so S is exactly N(0, mu^2): the
    whole run is a post-processing of one Gaussian mechanism with parameter mu, however many steps it takes.
    """

    id = "renyi-filter"
    label = "Individually filtered DP-GD"
    citation = (
        "Feldman, Zrnic, NeurIPS 2021 (gradient descent with a filter); Gaussian form: Koskela, Tobaben, Honkela, ICLR 2023"
    )
    noise_enters = "Every full-batch gradient of the rows that still have budget: one Gaussian draw per step."
    guarantee = (
        "(ε, δ)-DP, proved: no row ever spends more than its budget, which costs exactly what DP-GD costs with one step for "
        "each gradient at the clip norm that it pays for."
    )

    row_rule = (
        "A rule decides who takes part: a row is in the sum until the squares of its gradients have used up its budget. "
        "Rows that the model keeps getting wrong have long gradients and leave first."
    )

    full_steps: int = knob(
        0,
        "Budget per row",
        "How many gradients at the clip norm a row's budget pays for; sets the noise.",
        low=1,
        high=10_000,
        log=True,
        unit="gradients at the clip norm",
        automatic=f"{rules.FULL_STEPS}, divided by the steps taken for each",
    )
    stretch: float = knob(
        0.35,
        "Stretch",
        "Number of steps, relative to what a row can pay for whose gradients stay as long as at the start; at least "
        "the budget per row.",
        low=0.01,
        high=100.0,
        log=True,
    )
    step_size: float = step_size_knob("Size of a step; below 2/L descent is certain.", rules.STEP_SIZE)
    clip_norm: float = clip_norm_knob()

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "full_steps":
            return max(1, round(rules.full_steps(setting) / max(1.0, self._stretched(setting))))
        return self._step_size(setting, 0.0 if budget is None else self._sigma(setting, budget))

    def paid_steps(self, setting: Setting) -> int:
        """T0, the gradients at the clip norm that every row can afford."""
        return int(self.value("full_steps", setting))

    def step_count(self, setting: Setting) -> int:
        """Steps taken, from public facts."""
        paid = self.paid_steps(setting)
        return min(MOST_STEPS, max(paid, round(paid * self._stretched(setting))))

    def _stretched(self, setting: Setting) -> float:
        """Steps that such a gradient pays for: the square of the clip norm against the loss's slope at 0, times the stretch."""
        bound = self.bound(setting)
        return self.stretch * (bound / min(bound, setting.slope_at_zero)) ** 2

    def _sigma(self, setting: Setting, budget: Budget) -> float:
        # mu = 2 sqrt(B)/(n sigma), B = T0 C^2: the noise of DP-GD with T0 steps
        return 2 * self.bound(setting) * math.sqrt(self.paid_steps(setting)) / (setting.n * gaussian_mu(budget))

    def _step_size(self, setting: Setting, sigma: float) -> float:
        return self.step_size or rules.step_size(setting, self.step_count(setting), sigma)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        bound = self.bound(setting)
        mu, sigma = gaussian_mu(budget), self._sigma(setting, budget)
        paid, steps = self.paid_steps(setting), self.step_count(setting)
        step_size = self._step_size(setting, sigma)
        notes: tuple[str, ...] = (
            "Each row's own spending depends on private data: the table of rows is for the data owner, not for release.",
            f"{steps} steps at the price of {paid}. Rows that leave are the ones that the model "
            "gets wrong, so long runs forget the hard rows: watch how many are left, and stretch less where they go.",
        )
        return Calibration.proved(
            budget,
            sensitivity=2 * bound / setting.n,
            query="the mean gradient of the active rows in one step",
            sensitivity_source="one replaced row moves the mean by at most 2 min(C, G)/n, active or not",
            noise_scale=sigma,
            accountant="individual Gaussian privacy filter",
            conversion="μ-GDP to (ε, δ), Balle & Wang 2018, Theorem 8",
            notes=notes + rounding(setting),
            for_training=StepSize(step_size),
            mu=mu,
            details={
                "row_budget": paid * bound**2,
                "rho_add_remove": paid * bound**2 / (2 * (setting.n * sigma) ** 2),  # Feldman & Zrnic 2021
                "rho_replace_one": mu**2 / 2,
                "steps": float(steps),
            },
        )

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        # no row spends more than it would in so many full steps
        contribution = self.bound(setting) / setting.n
        return Repeated(Gaussian.of_rows(contribution, calibration.noise_scale), self.paid_steps(setting))

    def fit(self, training: Training) -> Fit:
        record = training.record
        theta, timeline, visits, margin, energy, clipped = by_seeds(training, partial(self._train, training))
        return Fit(
            theta,
            NoiseRecord(
                self.noise_enters + " The margin is a row's demand over its budget, minus 1; above 0 the row was stopped.",
                visits=visits if record else None,
                rule_margin=margin if record else None,
                timeline=timeline,
                timeline_counts="rows that took part",
                gradient_energy=energy if record else None,
                clipped=clipped if record else None,
            ),
        )

    def individual(
        self, problem: Problem, calibration: Calibration, theta: np.ndarray, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        # a row in the place of another one spends B = T0 C^2 at most, in however many steps
        return gradients_epsilon(problem, calibration, record, self.paid_steps(problem.setting), self.bound(problem.setting))

    def _train(self, training: Training, part: slice, tick: Monitor) -> tuple[NDArray[Any], ...]:
        """(E, S', m) parameters, (E, S', T) active rows, and (E, S', n) visits, margins, spent squares, clipped shares."""
        problem, streams, record = training.problem, training.streams[part], training.record
        n, m, e, s = problem.n, problem.m, len(training.calibrations), len(streams)
        sigma = np.repeat(training.scales, s)[:, None]
        sources = [substreams(stream, 2) for stream in streams]
        generators = [generator(noise) for _, noise in sources]
        theta = np.tile(problem.model.initial(m, [start for start, _ in sources]), (e, 1))
        kind, paid, steps = precision(problem.setting), self.paid_steps(problem.setting), self.step_count(problem.setting)
        budget = paid * self.bound(problem.setting) ** 2
        # a sum that is B exactly may be above it by rounding: by a hair that is far below the noise in double precision, and in
        # single by less than half of what all contributions are scaled down by
        spending = RowBudget(n, e * s, budget, slack=1e-12 if kind is np.float64 else 1e-6, free=paid, precision=kind)
        step_sizes = np.repeat(training.step_sizes, s)[:, None]
        timeline, kept = np.zeros((e * s, steps)), (n if record else 0, e * s)
        visits, spent = np.zeros(kept, np.int32).T, np.zeros(kept).T
        clips = ClipCount(problem.setting, self.clip_norm, e * s)

        def keep(block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
            clips.see(block, norms)
            weights = spending(block, norms)
            visits[:, block] += weights > 0
            spent[:, block] += norms * norms * weights
            return weights

        with AllRows(problem, e * s) as rows:
            for t in range(steps):
                tick(t / steps)
                draw = np.tile(np.stack([g.standard_normal(m) for g in generators]), (e, 1))
                total = rows.gradient(theta, self.clip_norm, keep if record else spending)
                theta -= step_sizes * (total / n + sigma * draw + problem.lam * theta)  # Feldman & Zrnic 2021
                timeline[:, t] = spending.end_step()
        margin = spending.spent.T / budget - 1 if record else np.zeros((e * s, 0))
        return (
            theta.reshape(e, s, m),
            timeline.reshape(e, s, steps),
            visits.reshape(e, s, -1),
            margin.reshape(e, s, -1),
            spent.reshape(e, s, -1),
            clips.share(np.full((e * s, n), float(steps))).reshape(e, s, -1) if record else margin.reshape(e, s, -1),
        )
