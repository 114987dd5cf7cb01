"""Output perturbation with exact Gaussian noise."""

from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms.base import Calibration, Fit, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.capabilities import BoundsSensitivity, HasExcessTheory, IndividualBudget, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.conditions import ACCURATE_MINIMUM, BOUNDED_ROWS, PUBLIC_N, STRONGLY_CONVEX
from dpviz.mechanisms.individual import around_minimiser
from dpviz.mechanisms.output.cms_output import REFINED
from dpviz.mechanisms.output.minimiser_noise import lam_for, minimiser_bounds, minimiser_sensitivity, release
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.sensitivity.bound import Bound
from dpviz.privacy.utility_bounds import output_excess, output_excess_near_minimum


@dataclass(frozen=True)
class OutputGaussian(ProtectsQuery, BoundsSensitivity, ReleasesGaussians, HasExcessTheory, IndividualBudget):
    """Minimiser + N(0, sigma^2 I), sigma = 2G/(n lam mu*(eps, delta))."""

    id = "output-gaussian"
    label = "Output perturbation (Gaussian)"
    weighted = True
    family = "output"
    citation = (
        "Sensitivity: Chaudhuri, Monteleoni, Sarwate, JMLR 12 (2011), Corollary 8; noise: Balle, Wang, ICML 2018, Theorem 8"
    )
    noise_enters = "The finished parameters: one Gaussian draw is added to the minimiser."
    guarantee = "(ε, δ)-DP, proved: replacing one row moves the minimiser by a bounded distance."
    supposes = (STRONGLY_CONVEX, BOUNDED_ROWS, ACCURATE_MINIMUM, PUBLIC_N)
    needs_strong_convexity = True

    # off for the reason given at cms-output: 2G/(n lam) is the number that readers know
    refined: bool = knob(False, "Refined bound", REFINED)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        sensitivity, source, notes = minimiser_sensitivity(setting, self.refined)  # CMS11 Corollary 8
        mu = gaussian_mu(budget)
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the minimiser",
            sensitivity_source=source,
            noise_scale=sensitivity / mu,  # Balle & Wang 2018, Theorem 8
            noise_family="gaussian",
            accountant="exact Gaussian mechanism (Balle & Wang 2018)",
            notes=notes,
            mu=mu,
        )

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        return minimiser_bounds(setting)

    def releases(self, setting: Setting) -> Event:
        return Gaussian(minimiser_sensitivity(setting, self.refined)[0])

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        return lam_for(setting, self.calibrate(setting, budget))

    def fit(self, training: Training) -> Fit:
        return release(training, training.problem.optimum, NoiseRecord(self.noise_enters))

    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: np.ndarray) -> dict[str, float]:
        bound = output_excess(noise_scale, setting.m, setting.L)
        return {"bound": bound, "near the minimum": output_excess_near_minimum(eigenvalues, noise_scale)}

    def individual(
        self, problem: Problem, calibration: Calibration, theta: np.ndarray, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        return around_minimiser(problem, calibration)

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return np.broadcast_to(problem.optimum, (len(streams), problem.m))
