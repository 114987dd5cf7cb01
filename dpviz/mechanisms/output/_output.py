"""What output perturbation has in common: train once without noise, then add one scaled draw per replica."""

from __future__ import annotations

import math

import numpy as np

from dpviz.common.random import STANDARD
from dpviz.common.validate import InvalidInput
from dpviz.common.words import Words
from dpviz.mechanisms.base import Fit, Floats, NoiseRecord, OutputNoise, Training
from dpviz.models import Setting
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.releases import Bound
from dpviz.privacy.budget import Budget
from dpviz.privacy.sensitivity.bounds import cms, cms_refined, minimiser_radius

ROUNDING: Words = "Training runs in double precision; its rounding, far below the noise, is not part of the proof."


def release(training: Training, centre: Floats, record: NoiseRecord) -> Fit:
    """centre + scale x standard draw, for every calibration and stream.

    Args:
        centre: (m,) or (S, m) parameters before noise.
    """
    family, scale = training.calibrations[0].noise_family, training.scales
    noise = STANDARD[family](training.streams, centre.shape[-1])
    theta = centre + scale[:, None, None] * noise
    return Fit(np.ascontiguousarray(theta), record, law=OutputNoise(centre, scale, family))


def minimiser_sensitivity(setting: Setting, refined: bool) -> tuple[float, str, tuple[str, ...]]:
    """Sensitivity of the exact minimiser, its source and notes: 2G/(n lam), or D(r)/(n lam) where that is smaller."""
    plain = cms(setting.n, setting.lam, setting.G)
    source = "CMS 2011, Corollary 8: the minimiser moves by at most 2G/(nλ)"
    if not refined:
        return plain, source, ()
    if setting.model != "logistic":
        return plain, source, ("The refinement gains nothing here: two gradients of this loss can differ by 2G at any length.",)
    tight, radius = cms_refined(setting.n, setting.lam), minimiser_radius(setting.lam)
    source = f"the minimiser moves by at most D(r)/(nλ), D(r) the diameter of all gradients at |θ| ≤ r = {radius:.4g} [ours]"
    return tight, source, (f"The refinement lowers the sensitivity by {100 * (1 - tight / plain):.2g} %.",)


def minimiser_bounds(setting: Setting) -> tuple[Bound, ...]:
    """2G/(n lam), and D(r)/(n lam) for the logistic loss."""
    plain = Bound(
        "2G/(nλ)",
        cms(setting.n, setting.lam, setting.G),
        r"\frac{2G}{n\lambda}",
        "Chaudhuri, Monteleoni, Sarwate 2011, Corollary 8",
    )
    if setting.model != "logistic":
        return (plain,)
    tight = Bound("D(r)/(nλ)", cms_refined(setting.n, setting.lam), r"\frac{D(r)}{n\lambda},\ |\theta^*|\le r", "[ours]")
    return plain, tight


def proved_by_gaussian(budget: Budget, sigma: float, needed: float, sensitivity: float) -> Budget:
    """What Gaussian noise `sigma` proves: the budget where it is at least `needed`, otherwise the epsilon it reaches."""
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
