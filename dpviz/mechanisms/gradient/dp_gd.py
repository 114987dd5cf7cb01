"""Full-batch gradient descent with Gaussian noise on every gradient."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import generator
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import AllRows, by_seeds, rounding
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import (
    BoundsSensitivity,
    HasExcessTheory,
    IndividualBudget,
    ProtectsQuery,
    PublicSteps,
    ReleasesGaussians,
)
from dpviz.mechanisms.gradient.clip_count import ClipCount, ClipsRows
from dpviz.mechanisms.individual import gradients_epsilon
from dpviz.mechanisms.knobs import clip_norm_knob, step_size_knob
from dpviz.mechanisms.published import open_constant_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.sensitivity.bounds import Bound
from dpviz.privacy.utility_bounds import descent_excess, descent_excess_near_minimum


@dataclass(frozen=True)
class DPGD(ClipsRows, ProtectsQuery, BoundsSensitivity, ReleasesGaussians, HasExcessTheory, IndividualBudget, PublicSteps):
    """theta <- theta - eta (mean clipped gradient + lam theta + N(0, sigma^2 I)), T steps, every iterate public."""

    id = "dp-gd"
    open_constant = "c"
    label = "DP-GD"
    automatic_from = 0.0
    weighted = True
    joins_members = True
    citation = "Wang, Ye, Xu, NIPS 2017, section 6 (Theorem 6.2); exact composition: Balle, Wang, ICML 2018"
    noise_enters = "Every full-batch gradient: each step adds one Gaussian draw to the mean gradient of all rows."
    guarantee = "(ε, δ)-DP, proved: T Gaussian releases compose exactly to one, and every iterate may be published."
    rate = r"O\!\left(\frac{G^2 p\log n\,\log(1/\delta)}{n^2\varepsilon^2}\right)"
    published_form: ClassVar = {"noise": "published"}
    forgets_start: ClassVar = {"steps": 100, "step_size": 1.0, "clip_norm": 1.0}

    steps: int = knob(
        0,
        "Steps",
        "Full passes over the data; the noise grows with its square root.",
        low=1,
        high=10_000,
        log=True,
        automatic=rules.FULL_STEPS,
    )
    step_size: float = step_size_knob("Size of a step; below 2/L descent is certain.", rules.STEP_SIZE)
    clip_norm: float = clip_norm_knob(0.0, rules.CLIP_NORM)
    noise: str = knob(
        "exact", "Noise", "Exact composition, or the published formula with its open constant c.", options=("exact", "published")
    )
    c: float = open_constant_knob(" (published noise only)", high=100.0)

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "steps":
            return rules.full_steps(setting)
        return self._step_size(setting, 0.0 if budget is None else self._sigma(setting, budget))

    def _step_size(self, setting: Setting, sigma: float) -> float:
        """Step size in units of 1/L, as set or by the rule for this noise."""
        return self.step_size or rules.step_size(setting, self.step_count(setting), sigma, clip=self.clip(setting))

    def stopped_after(self, steps: int) -> Self:
        return replace(self, steps=steps)

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        bound = self.bound(setting)
        return (Bound("clipped gradients", 2 * bound / setting.n, r"\frac{2\min(C,G)}{n}", "one row in a mean of n gradients"),)

    def releases(self, setting: Setting) -> Event:
        return Repeated(Gaussian.of_rows(self.bound(setting) / setting.n), self.step_count(setting))

    def _exact(self, setting: Setting, budget: Budget) -> float:
        """Noise with which T Gaussian releases of this sensitivity meet the budget: they compose to mu_total = sqrt(T) mu."""
        return self.sensitivity_bounds(setting)[0].value * math.sqrt(self.step_count(setting)) / gaussian_mu(budget)

    def _sigma(self, setting: Setting, budget: Budget) -> float:
        """Noise per coordinate of the mean gradient."""
        if self.noise == "exact":
            return self._exact(setting, budget)
        # Wang, Ye, Xu 2017, Theorem 6.2: sigma^2 = c G^2 T ln(1/delta)/(n^2 eps^2), c not given
        bound, steps = self.bound(setting), self.step_count(setting)
        return bound * math.sqrt(self.c * steps * math.log(1 / budget.delta)) / (setting.n * budget.epsilon)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        # replace-one; the regulariser cancels in the difference, so lam does not enter
        sensitivity = self.sensitivity_bounds(setting)[0].value
        steps, exact, sigma, proved = self.step_count(setting), self._exact(setting, budget), self._sigma(setting, budget), budget
        step_size = self._step_size(setting, sigma)
        notes: tuple[str, ...] = rounding(setting)
        if self.noise == "published":
            reached = float(gaussian_epsilon(budget.delta, sensitivity * math.sqrt(steps) / sigma))
            # within rounding of the exact noise the budget is met exactly
            proved = budget if sigma >= exact * (1 - 1e-12) else Budget(reached, budget.delta)
            notes += (
                f"The publication leaves c open; at c = {self.c:g} this noise gives ε = {reached:.3g} "
                f"where ε = {budget.epsilon:.3g} is claimed.",
            )
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the mean gradient of one step",
            sensitivity_source="one replaced row moves the mean of clipped gradients by at most 2 min(C, G)/n",
            noise_scale=sigma,
            proves=proved,
            accountant="exact composition of Gaussian mechanisms",
            conversion="μ-GDP to (ε, δ), Balle & Wang 2018, Theorem 8",
            notes=notes,
            for_training=StepSize(step_size),
            mu=sensitivity * math.sqrt(steps) / sigma,
            details={"exact_noise_scale": exact, "exact_c": self.exact_c(budget), "steps": float(steps)},
        )

    @staticmethod
    def exact_c(budget: Budget) -> float:
        """The value of the open constant at which the published noise is exactly enough, 4 eps^2/(mu*^2 ln(1/delta))."""
        return 4 * budget.epsilon**2 / (gaussian_mu(budget) ** 2 * math.log(1 / budget.delta))

    def fit(self, training: Training) -> Fit:
        problem, alike = training.problem, self._alike(training)
        theta, energy, clipped = by_seeds(training, partial(self._train, training), [slice(0, 1)] if alike else None)
        if alike:
            theta = np.repeat(theta, len(training.streams), axis=1)
        visits = np.full((1, 1, problem.n), float(self.step_count(problem.setting)))
        if not training.record:
            return Fit(theta, NoiseRecord(self.noise_enters, visits=visits))
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, gradient_energy=energy, clipped=clipped))

    @staticmethod
    def _alike(training: Training) -> bool:
        """True where all seeds train the same model: there is no noise, each step uses all rows, and all start at one point."""
        if training.record or training.members is not None or training.scales.any():
            return False
        return not np.ptp(training.problem.model.initial(training.problem.m, training.streams), axis=0).any()

    def _train(self, training: Training, part: slice, tick: Monitor) -> tuple[Floats, NDArray[np.float32], NDArray[np.float32]]:
        """(E, S', m) parameters, (E, S', n) sums of the rows' squared clipped gradient norms, and shares of clipped gradients.

        For a part of the seeds.
        """
        problem, streams, record = training.problem, training.streams[part], training.record
        n, m, e, s = problem.n, problem.m, len(training.calibrations), len(streams)
        sigma = np.repeat(training.scales, s)[:, None]
        generators = [generator(stream) for stream in streams]
        theta = np.tile(problem.model.initial(m, streams), (e, 1))
        step_sizes = np.repeat(training.step_sizes, s)[:, None]
        steps = self.step_count(problem.setting)
        energy = np.zeros((n if record else 0, e * s), np.float32).T
        clip = self.clip(problem.setting)
        clips = ClipCount(problem.setting, clip, e * s)

        def keep(block: slice, norms: np.ndarray) -> np.ndarray:
            clips.see(block, norms)
            energy[:, block] += np.square(norms, out=norms)
            return np.ones(1)

        own = None if training.members is None else np.ascontiguousarray(np.tile(training.members[:, part], e))
        with AllRows(problem, e * s) as rows:
            for t in range(steps):
                tick(t / steps)
                draw = np.tile(np.stack([g.standard_normal(m) for g in generators]), (e, 1))
                total = rows.gradient(theta, clip, keep if record else None, own)
                theta -= step_sizes * (total / n + sigma * draw + problem.lam * theta)  # Wang, Ye, Xu 2017, section 6
        shares = clips.share(np.full((e * s, n), float(steps))) if record else np.zeros((e * s, 0), np.float32)
        if problem.rows.weights is not None:
            shares[:] = np.nan  # norms are known after weighting only
        return theta.reshape(e, s, m), energy.reshape(e, s, -1), shares.reshape(e, s, -1)

    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: np.ndarray) -> dict[str, float]:
        steps, step = self.step_count(setting), self._step_size(setting, noise_scale) * setting.unit_step
        if setting.mu <= 0 or self.clip(setting) < setting.G or step >= 2 / setting.L:
            return {}
        bound = descent_excess(start, steps, noise_scale, setting.m, setting.mu, setting.L, step)
        left = descent_excess(start, steps, 0.0, setting.m, setting.mu, setting.L, step)
        near = descent_excess_near_minimum(eigenvalues, steps, noise_scale, step)
        return {"bound": bound, "near the minimum": near, "of the bound, start not yet forgotten": left}

    def individual(
        self, problem: Problem, calibration: Calibration, theta: np.ndarray, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        return gradients_epsilon(problem, calibration, record, self.step_count(problem.setting), self.bound(problem.setting))
