"""Output perturbation of full-batch gradient descent."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N, SMOOTH, STRONGLY_CONVEX, TrainingValues
from dpviz.mechanisms.capabilities import CountsSteps, HasTrace, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.output.minimiser_noise import ROUNDING, check_finite, proved_budget, release
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.solvers.minibatch import minibatch_descent
from dpviz.privacy.accounting.events import Event, Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.sensitivity.algorithm2 import Trace
from dpviz.privacy.sensitivity.bounds import Bound, gradient_descent, proposition2, step_trace, zhang

SOURCES = {
    "exact": "T contracting steps, each adding 2ηG/n: (2ηG/n)(1-ρ^T)/(1-ρ) [ours, from Chen et al. 2019, Lemma 2]",
    "proposition-2": "Chen et al. 2019, Proposition 2 with one batch: 2ηG/(n(1-ρ)), for any number of steps",
    "published": "Zhang et al. 2017, as quoted by Chen et al. 2019: 5G(L+μ)/(nμL)",
}


@dataclass(frozen=True)
class StepCount(TrainingValues):
    """The number of steps that the budget's noise allows, at least 1."""

    steps: int


@dataclass(frozen=True)
class OutPertGD(ProtectsQuery, HasTrace, ReleasesGaussians, CountsSteps):
    """The T-th iterate of gradient descent + N(0, sigma^2 I)."""

    id = "outpert-gd"
    label = "OutPert-GD"
    family = "output"
    citation = "Zhang, Zheng, Mou, Wang, IJCAI 2017; sensitivity: Chen, Lee, Kifer, AISTATS 2019, Lemma 2 and Proposition 2"
    noise_enters = "The finished parameters: one Gaussian draw is added to the last iterate of gradient descent."
    guarantee = "(ε, δ)-DP, proved; no exact minimiser is needed."
    supposes = (STRONGLY_CONVEX, SMOOTH, BOUNDED_ROWS, PUBLIC_N)
    rate = r"O\!\left(\frac{L G^2 p\log(1/\delta)}{n^2\varepsilon^2\mu^2}\right)"
    needs_strong_convexity = True
    needs_linear = True

    published_form: ClassVar = {"calibration": "published"}

    steps: int = knob(0, "Steps", "Full passes over the data.", low=1, high=10_000, log=True, automatic="follows from the noise")
    step_size: float = knob(
        1.0,
        "Step size",
        "Size of a step. Above 2/(L+μ) the effect of one row shrinks more slowly.",
        low=0.01,
        high=1.0,
        log=True,
        unit="2/(L+μ)",
    )
    calibration: str = knob(
        "exact",
        "Calibration",
        "Sensitivity after exactly T steps, after any number, or sensitivity and noise as published.",
        options=tuple(SOURCES),
    )

    def _step(self, setting: Setting) -> float:
        return self.step_size * 2 / (setting.L + setting.mu)  # Chen 2019, Proposition 2

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return max(1, math.ceil(rules.time_before_release(setting, budget) / self._step(setting)))

    def _exact(self, setting: Setting, steps: int) -> float:
        return gradient_descent(setting.n, steps, self._step(setting), setting.mu, setting.L, setting.G)

    def _loose(self, setting: Setting) -> float:
        return proposition2(self._step(setting), setting.n, 1, setting.mu, setting.L, setting.G)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        mu_star, steps = gaussian_mu(budget), int(self.value("steps", setting, budget))
        exact, published = self._exact(setting, steps), zhang(setting.n, setting.mu, setting.L, setting.G)
        check_finite(exact)
        sensitivity, notes = exact, [ROUNDING]
        accountant = "exact Gaussian mechanism (Balle & Wang 2018)"
        if self.calibration == "proposition-2":
            sensitivity = self._loose(setting)
        sigma = sensitivity / mu_star
        if self.calibration == "published":
            sensitivity = published
            sigma = math.sqrt(2 * math.log(2 / budget.delta)) * sensitivity / budget.epsilon  # Zhang et al. 2017
            accountant = "sqrt(2 ln(2/δ)) Δ/ε as published"
            notes.append(
                f"The published bound is {sensitivity / exact:.3g} times what {steps} steps of this "
                "size can do; it was stated for the step 1/(L+μ)."
            )
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the last iterate",
            sensitivity_source=SOURCES[self.calibration],
            noise_scale=sigma,
            proves=proved_budget(budget, sigma, exact / mu_star, exact),
            accountant=accountant,
            notes=tuple(notes),
            for_training=StepCount(steps),
            mu=exact / sigma,
            details={"exact_sensitivity": exact, "published_sensitivity": published},
        )

    def sensitivity_trace(self, setting: Setting) -> Trace:
        return step_trace(np.full(self.step_count(setting), self._step(setting)), 1, setting.n, setting.mu, setting.L, setting.G)

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        return (
            Bound(
                "T steps",
                self._exact(setting, self.step_count(setting)),
                r"\frac{2\eta G}{n}\cdot\frac{1-\rho^T}{1-\rho}",
                "Chen, Lee, Kifer 2019, Lemma 2, unrolled [ours]",
            ),
            Bound(
                "Any number of steps", self._loose(setting), r"\frac{2\eta G}{n(1-\rho)}", "Chen, Lee, Kifer 2019, Proposition 2"
            ),
            Bound(
                "Zhang et al.",
                zhang(setting.n, setting.mu, setting.L, setting.G),
                r"\frac{5G(L+\mu)}{n\mu L}",
                "Zhang et al. 2017, for the step 1/(L+μ)",
                proved=False,
            ),
        )

    def releases(self, setting: Setting) -> Event:
        exact = self._exact(setting, self.step_count(setting))
        return Gaussian(self._loose(setting) if self.calibration == "proposition-2" else exact)

    def fit(self, training: Training) -> Fit:
        problem, steps = training.problem, np.array([c.values(StepCount).steps for c in training.calibrations])
        step_sizes = np.full(steps.max(), self._step(problem.setting))
        ends = minibatch_descent(problem, step_sizes, 1, stops=steps.tolist(), monitor=training.monitor)[:, 0]
        apart = bool((steps != steps[0]).any())
        centre = ends if apart else ends[0]
        visits = np.broadcast_to(steps[:, None, None].astype(float), (len(steps), 1, problem.n))
        return release(training, centre, NoiseRecord(self.noise_enters, visits=visits), apart=apart)

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        steps = np.full(self.step_count(problem.setting), self._step(problem.setting))
        return np.broadcast_to(minibatch_descent(problem, steps, 1)[0], (len(streams), problem.m))
