"""Output perturbation: parameters plus noise, and the sensitivity of the minimiser."""

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, OutputNoise, Streams, Training, knob
from dpviz.mechanisms.calibration import ACCURATE_MINIMUM, BOUNDED_ROWS, PUBLIC_N, STRONGLY_CONVEX
from dpviz.mechanisms.capabilities import BoundsSensitivity, HasExcessTheory, IndividualBudget, ProtectsQuery
from dpviz.mechanisms.individual import minimiser_epsilon
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import TOLERANCE
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.noise import GAMMA_SPHERE, GAUSSIAN
from dpviz.privacy.sensitivity.bounds import Bound, cms, cms_refined, minimiser_radius

INEXACT: str = (
    f"The solver stops at gradient norm {TOLERANCE:.0e}, at most {TOLERANCE:.0e}/λ away from the exact minimiser; "
    "twice that is added to the sensitivity."
)
ROUNDING: str = "Training runs in double precision; its rounding, far below the noise, is not part of the proof."


def release(training: Training, centre: Floats, record: NoiseRecord, *, apart: bool = False) -> Fit:
    """centre + scale x standard draw, for every calibration and stream.

    Args:
        centre: (m,) or (S, m) parameters before noise; with E in front where `apart`.
    """
    family, scale = training.calibrations[0].noise_family, training.scales
    noise = family.sample(training.streams, centre.shape[-1])
    theta = (centre[:, None] if apart and centre.ndim == 2 else centre) + scale[:, None, None] * noise
    return Fit(np.ascontiguousarray(theta), record, distribution=OutputNoise(centre, scale, family, apart))


def step_sizes_of(budgets: Floats) -> tuple[Floats, bool]:
    """From (E, T) step sizes of the budgets: these and True, or (T,) and False where all budgets take the same steps."""
    return (budgets, True) if (budgets != budgets[0]).any() else (budgets[0], False)


def minimiser_sensitivity(setting: Setting, refined: bool) -> tuple[float, str, tuple[str, ...]]:
    """Sensitivity of the minimiser that is released, its source and notes: 2G/(n lam), or D(r)/(n lam) where that is smaller.

    The solver stops at gradient norm tau, which in a lam-strongly convex objective is at most tau/lam away from the
    exact minimiser, on either neighbour: 2 tau/lam is added [ours].
    """
    plain, inexact = cms(setting.n, setting.lam, setting.G), 2 * TOLERANCE / setting.lam
    source = "CMS 2011, Corollary 8: the minimiser moves by at most 2G/(nλ)"
    if not refined:
        return plain + inexact, source, (INEXACT,)
    if setting.model != "logistic":
        nothing: str = "The refinement gains nothing here: two gradients of this loss can differ by 2G at any |θ|."
        return plain + inexact, source, (INEXACT, nothing)
    tight, radius = cms_refined(setting.n, setting.lam), minimiser_radius(setting.lam)
    source = f"the minimiser moves by at most D(r)/(nλ), D(r) the diameter of all gradients at |θ| ≤ r = {radius:.4g} [ours]"
    return tight + inexact, source, (INEXACT, f"The refinement lowers the sensitivity by {100 * (1 - tight / plain):.2g} %.")


@dataclass(frozen=True)
class MinimiserNoise(ProtectsQuery, BoundsSensitivity, HasExcessTheory, IndividualBudget):
    """Base: noise on the exact minimiser of a strongly convex objective."""

    individual_noise = (GAUSSIAN, GAMMA_SPHERE)

    weighted = True
    family = "output"
    supposes = (STRONGLY_CONVEX, BOUNDED_ROWS, ACCURATE_MINIMUM, PUBLIC_N)
    needs_strong_convexity = True

    # off: 2G/(n lam) is the published number and the one that others compare with; at lam = 1e-3 the gain is 1.5 %
    refined: bool = knob(
        False,
        "Refined bound",
        "Every minimiser has norm at most r, where two gradients differ by at most D(r) ≤ 2G: less noise (logistic only).",
    )

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        inexact, left = 2 * TOLERANCE / setting.lam, r"+\frac{2\tau}{\lambda}"
        source = "Chaudhuri, Monteleoni, Sarwate 2011, Corollary 8; τ is the gradient norm at which the solver stops"
        plain = Bound("published", cms(setting.n, setting.lam, setting.G) + inexact, r"\frac{2G}{n\lambda}" + left, source)
        if setting.model != "logistic":
            return (plain,)
        formula = r"\frac{D(r)}{n\lambda}" + left + r",\ |\theta^*|\le r"
        return plain, Bound("refined", cms_refined(setting.n, setting.lam) + inexact, formula, "[ours]")

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        return rules.against_output_noise(setting, budget, self.calibrate)

    def fit(self, training: Training) -> Fit:
        return release(training, training.problem.optimum, NoiseRecord(self.noise_enters))

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        return minimiser_epsilon(problem, calibration)

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        return np.broadcast_to(problem.optimum, (len(streams), problem.m))


def proved_budget(budget: Budget, sigma: float, needed: float, sensitivity: float) -> Budget:
    """The budget that Gaussian noise `sigma` proves: the given one from `needed` on, otherwise the epsilon it reaches."""
    if sigma >= needed * (1 - 1e-12):
        return budget
    return Budget(float(gaussian_epsilon(budget.delta, sensitivity / sigma)), budget.delta)


def check_finite(sensitivity: float) -> None:
    """Refuses settings whose sensitivity is beyond what any noise can hide."""
    if not math.isfinite(sensitivity):
        raise InvalidInput(
            "step_size",
            "the steps expand differences so often that the sensitivity overflows",
            "Choose a step size below 2/L, fewer passes or larger batches.",
        )
