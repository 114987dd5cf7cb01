"""What is said, and seen, about PIDP-SGD's rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpviz.common.words import Words
from dpviz.influence.functions import error_bound
from dpviz.mechanisms.base import Calibration, Floats
from dpviz.models import Setting

INTENDED: tuple[Words, ...] = (
    "This is the publication's idea and not its algorithm: no noise is spent on the decision, and rows that pass move the "
    "model by their exact gradient. It protects nobody: a model that only one dataset can reach gives that dataset away.",
)


def chance(log10: float) -> str:
    """A probability in words people can read."""
    return f"{10**log10:.2g}" if log10 > -4 else f"10^{log10:.0f}"


def literal_notes(threshold: float, sigma_c: float, error: float, log10_pass: float, setting: Setting) -> tuple[str, ...]:
    """What lines 9 and 10 come to at these numbers."""
    return (
        f"Lines 9 and 10 let a row pass where all {setting.m} entries of |2c + b| are at most "
        f"2rδ₁(1 + e^-ε₁) = {threshold:.3g}. The entries of b alone have standard deviation {sigma_c:.3g}: whatever its "
        f"influence, a row passes with probability at most {chance(log10_pass)}.",
        "The threshold falls as ε grows, from 4rδ₁ to 2rδ₁, where the paper says that more budget means less noise; only the "
        "noise b becomes smaller.",
        f"Theorem 4's E = {error:.2g} is added to every |c| before it is doubled; the bound is loose."
        if math.isfinite(error)
        else "Theorem 4 gives no E for a loss whose second derivative jumps; nothing is added for it.",
        "The noise b is calibrated to the sensitivity of c, but 2c is used; the Hessian and the model inside c depend on the "
        "other rows too, which is not counted.",
        "The case for passing rows without noise assumes a uniformly distributed model and proves one event instead of all.",
    )


def visible_note(sigma: float, lipschitz: float, steps: int, used: float, delta: float) -> tuple[str, ...]:
    """Said where a single noisy step shows which row it used."""
    if sigma > 0.1 * lipschitz:
        return ()
    return (
        f"The gradient noise is {sigma:.2g} per coordinate on a single row's gradient of length up to {lipschitz:g}. Where every "
        f"model is public, as the paper allows, such a step can show the row it used; T = {steps} steps use a given row with "
        f"probability {used:.2g}, which would all have to fit into δ = {delta:.2g}.",
    )


def log10_pass(doubled: Floats, threshold: float, sigma_c: float) -> Floats:
    """(n,) log10 P(all |2c + b| <= threshold), b ~ N(0, sigma_c^2 I), for 2c (n, m).

    The product over coordinates of Phi((t - 2|c|)/s) - Phi((-t - 2|c|)/s), in log space.
    """
    size = np.abs(doubled)
    upper, lower = log_ndtr((threshold - size) / sigma_c), log_ndtr((-threshold - size) / sigma_c)
    return (upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))).sum(axis=1) / math.log(10)


def refused(gradients: Floats, calibrations: Sequence[Calibration], draw: Floats, setting: Setting) -> NDArray[np.bool_]:
    """(E S,) replicas whose row meets noise whatever its contribution is, so that no Hessian need be made for them.

    The Hessian is at least lam I, so |c_i| <= |c| <= |g|/(n lam), and an entry of 2 sign(c)(|c| + E) + b is at least
    |b_i| - 2(|g|/(n lam) + E) long [ours].

    Args:
        gradients: (E S, m) g, the drawn rows' gradients with the regulariser.
        draw: (S, m) standard draws of b.
    """
    count, out = len(draw), np.zeros(len(gradients), bool)
    error = error_bound(setting)
    reach = 2 * (np.linalg.norm(gradients, axis=1) / (setting.n * setting.lam) + (error if math.isfinite(error) else 0.0))
    largest = np.abs(draw).max(axis=1)
    for e, cal in enumerate(calibrations):
        if cal.noise_scale > 0:
            part = slice(e * count, (e + 1) * count)
            # rounding is far below this margin
            out[part] = cal.details["sigma_c"] * largest > (reach[part] + cal.details["threshold"]) * (1 + 1e-6)
    return out
