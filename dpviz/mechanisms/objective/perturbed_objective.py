"""Objective perturbation: a random linear term joins the objective, which is then minimised.

Noise and regularisation are given in the scale of the sum over rows, as the publications do: the objective is
F(theta) + <b, theta>/n + Delta/(2n) |theta|^2, its total regularisation Lam = n lam + Delta.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training
from dpviz.mechanisms.calibration import BOUNDED_ROWS, EXACT_MINIMUM, PUBLIC_N, STRONGLY_CONVEX, TrainingValues
from dpviz.mechanisms.capabilities import IndividualBudget, ProtectsQuery
from dpviz.mechanisms.individual import after_objective_noise
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import minimise_many
from dpviz.privacy.accounting.distance import distance_by_profile
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.objective import PerturbedObjective

GRADIENT_NORM = 1e-12
EXACT: tuple[str, ...] = (
    "the released point is the exact minimiser; here its gradient norm is at most 1e-12, or as small as double precision "
    "can tell from 0 where the noise is very large (Approximate Minima Perturbation covers what is left)",
)
KINKS: str = "The loss has kinks in its slope: the density argument then holds almost everywhere, which is enough."
QUERY: str = "the sum of the rows' gradients at the released parameters"


@dataclass(frozen=True)
class Regularised(TrainingValues):
    """The regularisation with which the perturbed objective is minimised.

    Attributes:
        Lam: n lam + Delta, beside the sum over rows.
    """

    Lam: float


@dataclass(frozen=True)
class ObjectivePerturbation(ProtectsQuery):
    """Base: `noise_scale` of a calibration is that of b, its `Regularised` the total regularisation, both for the sum."""

    family = "objective"
    supposes: ClassVar[tuple[str, ...]] = (STRONGLY_CONVEX, BOUNDED_ROWS, EXACT_MINIMUM, PUBLIC_N)
    weighted = True
    joins_lams = True
    noise_enters = "The objective: one random linear term is added to it before it is minimised."
    needs_strong_convexity = True
    needs_linear = True

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        # the larger lambda, the less curvature costs and the less noise there is: the least lambda that is enough for its own
        for lam in (lam for lam in rules.LAMS if lam >= setting.lam):
            chosen = replace(setting, lam=lam)
            if rules.against_objective_noise(chosen, self.calibrate(chosen, budget).rms_noise(setting.m)) == lam:
                return lam
        return setting.lam

    def fit(self, training: Training) -> Fit:
        theta = minimise(training, GRADIENT_NORM)
        return Fit(theta, NoiseRecord(self.noise_enters))

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return problem.model.sum_gradient(theta, problem.rows)


@dataclass(frozen=True)
class GaussianObjective(ObjectivePerturbation, IndividualBudget):
    """Gaussian linear term and an exact minimiser: the privacy loss at the released model is known row by row."""

    def individual(
        self, problem: Problem, calibration: Calibration, theta: np.ndarray, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        return after_objective_noise(problem, theta, calibration.values(Regularised).Lam, calibration.noise_scale)


def minimise(training: Training, tolerance: float, *, strict: bool = False) -> Floats:
    """(E, S, m) minimisers of the perturbed objectives, each with its gradient norm within `tolerance`."""
    problem, calibrations, streams = training.problem, training.calibrations, training.streams
    n, m = len(problem.rows), problem.m  # of the mean loss: Lam and b stay those of the sum
    draws = calibrations[0].noise_family.sample(streams, m)
    linear = training.scales[:, None, None] * draws / n
    lam = np.repeat([c.values(Regularised).Lam / n for c in calibrations], len(streams))
    theta = minimise_many(
        problem.rows, problem.model.loss, lam, linear.reshape(-1, m), tolerance=tolerance, strict=strict, monitor=training.monitor
    )
    return theta.reshape(len(calibrations), len(streams), m)


def distance_by_density(setting: Setting, calibration: Calibration, bound: str) -> float:
    """Total variation between the exact minimisers of two neighbours, from the whole profile of the proof by density.

    Args:
        bound: one of `objective.BOUNDS`.
    """
    proof = proof_of(setting, calibration.values(Regularised).Lam, calibration.neighbouring, bound)
    return distance_by_profile(lambda epsilon: proof.log_delta(epsilon, calibration.noise_scale), calibration.budget.epsilon)


def proof_of(
    setting: Setting, Lam: float, relation: Neighbouring = Neighbouring.REPLACE_ONE, bound: str = "two-sided"
) -> PerturbedObjective:
    """The proof by density for the loss of a setting."""
    return PerturbedObjective(setting.G, setting.beta, Lam, relation, bound)


def gradient_bound(setting: Setting, relation: Neighbouring) -> float:
    """The sensitivity of the sum of gradients at a fixed point: 2G when a row is replaced, G when one is added or removed."""
    return (2 if relation is Neighbouring.REPLACE_ONE else 1) * setting.G


def kink_notes(setting: Setting) -> tuple[str, ...]:
    """Notes where the loss is not twice differentiable."""
    return () if np.isfinite(setting.third) else (KINKS,)


def cap_epsilon(budget: Budget, epsilon: float) -> Budget:
    """The budget where `epsilon` stays within it (up to rounding), else what holds instead."""
    return budget if epsilon <= budget.epsilon * (1 + 1e-9) else Budget(epsilon, budget.delta)


def regularisation(setting: Setting, epsilon: float, share: float) -> float:
    """Lam, raised where the curvature term ln(1 + beta/Lam) would cost more than share x epsilon."""
    return max(setting.n * setting.lam, setting.beta / math.expm1(min(share * epsilon, 700.0)))
