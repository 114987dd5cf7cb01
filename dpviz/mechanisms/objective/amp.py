"""Objective perturbation whose minimiser need not be exact."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.common.random import standard_gaussian, substreams
from dpviz.mechanisms.base import Calibration, Fit, NoiseRecord, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N, STRONGLY_CONVEX
from dpviz.mechanisms.capabilities import BoundsDistance
from dpviz.mechanisms.objective.perturbed_objective import (
    QUERY,
    ObjectivePerturbation,
    Regularised,
    cap_epsilon,
    distance_by_density,
    gradient_bound,
    kink_notes,
    minimise,
    proof_of,
    regularisation,
)
from dpviz.models import Setting
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_sigma, total_variation
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.objective import curvature_term

_RANK = 2  # r in Algorithm 1: a replacement changes the Hessian of a margin loss by rank two


@dataclass(frozen=True)
class WithOutput(Regularised):
    """The regularisation, and the noise on the finished parameters.

    Attributes:
        sigma_output: its standard deviation per coordinate.
    """

    sigma_output: float


@dataclass(frozen=True)
class AMP(ObjectivePerturbation, BoundsDistance):
    """Approximate minimiser of the perturbed objective, gradient norm <= gamma, + N(0, sigma_2^2 I)."""

    id = "amp"
    label = "Approximate minima perturbation"
    citation = "Iyengar, Near, Song, Thakkar, Thakurta, Wang, IEEE S&P 2019, Algorithm 1; output noise corrected here"
    noise_enters = "The objective, by one random linear term, and the finished parameters, by a little Gaussian noise."
    guarantee = "(ε, δ)-DP, proved for margin losses; the minimiser may be approximate."
    supposes = (STRONGLY_CONVEX, BOUNDED_ROWS, PUBLIC_N)

    published_form: ClassVar = {"noise": "published"}

    noise: str = knob(
        "exact", "Noise", "Exact calibration of both parts, or the published formulas.", options=("exact", "published")
    )
    output_share: float = knob(
        0.01, "Output share", "Part of ε and δ that covers the inexact minimiser.", low=0.001, high=0.5, log=True
    )
    stop_power: float = knob(
        2.0,
        "Stopping power",
        "The solver stops at a gradient norm of n to the power of minus this, a bound that no row decides.",
        low=1.0,
        high=2.5,
    )
    curvature_share: float = knob(
        0.1, "Curvature share", "Largest share of ε for the change of curvature (exact noise only).", low=0.01, high=0.9
    )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        budget.need_delta(fix="Choose delta > 0 or cms-objective.")
        G, beta, share = setting.G, setting.beta, self.output_share
        for_objective = Budget((1 - share) * budget.epsilon, (1 - share) * budget.delta)
        for_output = Budget(share * budget.epsilon, share * budget.delta)
        gamma = self.stopping_norm(setting.n)
        if self.noise == "exact":
            total = regularisation(setting, for_objective.epsilon, self.curvature_share)
            sigma = proof_of(setting, total).sigma(for_objective)
            moved = 2 * setting.n * gamma / total
            sigma_output = gaussian_sigma(for_output, moved)
            proved, details = budget, {}
        else:
            eps1, eps3 = for_objective.epsilon, split(budget.epsilon) * for_objective.epsilon
            total = max(setting.n * setting.lam, _RANK * beta / (eps1 - eps3))  # Algorithm 1, line 2
            # Algorithm 1, line 3, times n: the publication's b_1 stands beside the mean
            sigma = 2 * G * (1 + math.sqrt(-2 * math.log(for_objective.delta))) / eps3
            # Algorithm 1, line 6, has n gamma/Lam: that bounds one approximation error, and two of them differ by twice it
            moved = 2 * setting.n * gamma / total
            sigma_output = moved * (1 + math.sqrt(-2 * math.log(for_output.delta))) / for_output.epsilon
            reached = proof_of(setting, total, bound="one-sided").epsilon(for_objective.delta, sigma)
            reached += float(gaussian_epsilon(for_output.delta, moved / sigma_output))
            proved, details = cap_epsilon(budget, reached), {"certified_epsilon": reached, "eps3": eps3}
        notes: tuple[str, ...] = (
            "The publication's output noise covers one approximation error; two neighbours' errors differ by up to twice as "
            "much, and the noise here is for that.",
            *kink_notes(setting),
        )
        if proved != budget:
            notes += (f"The published formulas are for small ε: here they give ε = {proved.epsilon:.4g}.",)
        return Calibration.proved(
            budget,
            sensitivity=gradient_bound(setting, Neighbouring.REPLACE_ONE),
            query=QUERY,
            sensitivity_source="one replaced row moves the sum of gradients by at most 2G, at every point",
            noise_scale=sigma,
            proves=proved,
            accountant="density of the minimiser for the objective part, Gaussian mechanism for the output part",
            conversion="ε and δ of the two parts add up",
            notes=notes,
            for_training=WithOutput(total, sigma_output),
            details={
                "Delta": total - setting.n * setting.lam,
                "J": curvature_term(beta, total),
                "gamma": gamma,
                "output_sensitivity": moved,
                **details,
            },
        )

    def stopping_norm(self, n: int) -> float:
        """gamma: a function of n alone, and never loosened when a solver fails."""
        return float(n) ** -self.stop_power  # the publication recommends 1/n^2

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        # two releases one after the other: their distances add up
        declared = calibration.values(WithOutput)
        moved = 2 * setting.n * self.stopping_norm(setting.n) / declared.Lam
        bound = "two-sided" if self.noise == "exact" else "one-sided"
        return min(1.0, distance_by_density(setting, calibration, bound) + total_variation(moved / declared.sigma_output))

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        theta = minimise(training, self.stopping_norm(problem.n), strict=True)
        output = np.array([c.values(WithOutput).sigma_output if c.noise_scale > 0 else 0.0 for c in training.calibrations])
        draws = standard_gaussian([substreams(stream, 1)[0] for stream in training.streams], problem.m)
        return Fit(theta + output[:, None, None] * draws, NoiseRecord(self.noise_enters))


def split(epsilon: float) -> float:
    """eps_3/eps_1 as in the authors' public code, kept so that eps_1 - eps_3 < 1, which Algorithm 1 requires.

    The public code keeps it by max(f, 1 - 1/eps + 0.001), which passes 1 at eps = 1000; the margin here is relative.
    """
    return max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 0.999 / epsilon)
