"""Utility bounds with all constants, for one noise scale [ours, elementary]. F is L-smooth and mu-strongly convex.

They hold for what a calibration actually adds, so they stand beside the published rates, whose constants are open.
"""

import math

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_integer, number, positive
from dpviz.privacy.noise import GAUSSIAN, Noise


def output_excess(scale: float, d: int, L: float, family: Noise = GAUSSIAN) -> float:
    """E F(theta* + b) - F* <= (L/2) E|b|^2, since the gradient at theta* is 0.

    Args:
        scale: standard deviation per coordinate (gaussian: E|b|^2 = d scale^2) or 1/beta (gamma-sphere: d (d+1) scale^2).
        d: parameters.
    """
    s, dims = positive("scale", scale), check_integer("d", d, 1, 10**12)
    return positive("L", L) / 2 * s * s * family.mean_square(dims)


def descent_excess(start: float, steps: int, scale: float, d: int, mu: float, L: float, step: float | None) -> float:
    """E F(theta_T) - F* of full-batch descent whose every gradient gets N(0, scale^2 I).

    One step: E F(theta+) <= F - eta (1 - L eta/2) |grad F|^2 + (L eta^2/2) d scale^2, and |grad F|^2 >= 2 mu (F - F*), so
    with c = 1 - mu eta (2 - L eta) the bound is c^T start + (L eta^2 d scale^2/2)(1 - c^T)/(1 - c). At eta = 1/L this is
    (1 - mu/L)^T start + (d scale^2/(2 mu))(1 - (1 - mu/L)^T).

    Args:
        start: F(theta_0) - F*, or a bound on it, >= 0.
        steps: T.
        scale: noise standard deviation per coordinate of a gradient, >= 0.
        step: eta in (0, 2/L); 1/L where not given.
    """
    eta = 1 / positive("L", L) if step is None else positive("step", step)
    if not 0 < mu <= L:
        raise InvalidInput("mu", f"must lie in (0, L = {L:g}], got {mu!r}", "Use a strongly convex objective.")
    if eta >= 2 / L:
        raise InvalidInput("step", f"{eta:g} does not contract: it must lie below 2/L = {2 / L:.4g}", "Choose a smaller step.")
    count = check_integer("steps", steps, 1, 10**12)
    shrink = mu * eta * (2 - L * eta)  # 1 - c
    left = math.exp(count * math.log1p(-shrink)) if shrink < 1 else 0.0
    noise = L * eta**2 * check_integer("d", d, 1, 10**12) * number("scale", scale) ** 2 / 2
    return left * number("start", start) + noise * (1 - left) / shrink


def descent_excess_near_minimum(eigenvalues: Floats, steps: int, scale: float, step: float) -> float:
    """The excess risk of full-batch descent's noise where F is its quadratic at the minimum; exact for a quadratic F.

    Along a curvature h the noise adds up to variance eta^2 scale^2 (1 - r^(2T))/(1 - r^2), r = 1 - eta h, and costs
    h/2 times that. A prediction and not a bound; it needs the data's curvature.

    Args:
        eigenvalues: (d,) of the Hessian at the minimum, regulariser included, > 0.
    """
    h = np.asarray(eigenvalues, float)
    r = 1 - step * h
    with np.errstate(divide="ignore"):
        log_left = 2 * steps * np.log(np.abs(r))
    total = -np.expm1(log_left) / (step * h * (2 - step * h))  # (1 - r^(2T))/(1 - r^2)
    return float(np.sum(h * (step * scale) ** 2 * total) / 2)


def output_excess_near_minimum(eigenvalues: Floats, scale: float) -> float:
    """(scale^2/2) trace H: what Gaussian output noise costs where F is its quadratic at the minimum.

    For rows in the unit ball trace H <= sup phi'' + d lam, so the cost grows with d only through the regulariser.
    """
    return float(scale**2 / 2 * np.sum(np.asarray(eigenvalues, float)))
