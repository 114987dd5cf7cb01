"""Moments of the Poisson-subsampled Gaussian at fractional Rényi orders, by quadrature without cancellation.

The moment is A(a) = E[(1 - q + q r)^a] with r = e^(u/z - 1/(2 z^2)), u standard normal (Mironov, Talwar, Zhang 2019,
section 3.3). Its series of signed complementary error functions cancels for small divergences. Here the same number is
a sum of positive terms: E[q (r - 1)] = 0, so A - 1 = E[g(t)] with t = q (r - 1) and g(t) = (1 + t)^a - 1 - a t >= 0.

The trapezoidal rule has a relative error of order e^(-2 pi b/h + b^2/2) for the step h and every b up to pi z/2: g(t)
is analytic for |Im u| <= b, and there |t|^2 = q^2 ((r - 1)^2 + 2 r (1 - cos(b/z))) is on average at most 1 + b^2 times
its value on the line (because E (r - 1)^2 >= 1/z^2). The step makes that error e^-50 before constants.

The sum ends 12 standard deviations away from 0 and from max(a, 2)/z. g(t) is at most a constant times t^2 + |t|^a, and
under the normal density 1, r^2 and r^a peak at u = 0, 2/z and a/z. So less than 1e-25 (2^a z^2) of the whole is left out.
"""

import math

import numpy as np

from dpviz.common.arrays import Floats

_REACH = 12.0  # standard deviations on both sides
_DIGITS = 50.0  # -ln of the relative error of the trapezoidal rule, before constants
_SMALLEST = 0.05  # noise multiplier below which steps would be too many, and closed forms are tight
_SMALL, _TERMS = 0.1, 18  # binomial series of g for |t| below, up to this power of t
_TINY = 5e-324  # the smallest number: what underflows counts as this, never as nothing
_BLOCK = 400_000  # numbers at once
_UP = 1e-10  # added to ln(A - 1): far above rounding and truncation, so that the result is an upper bound


def log_excess_moments(rate: float, noise_multiplier: float, orders: Floats) -> Floats:
    """ln(A(a) - 1), rounded up by a relative 1e-10.

    Args:
        rate: q in (0, 1).
        noise_multiplier: z > 0.
        orders: (k,) real orders a, 1.001 to 20.
    """
    if noise_multiplier < _SMALLEST:
        moments = _closed_bounds(rate, noise_multiplier, orders)
    else:
        moments = _trapezoid(rate, noise_multiplier, orders)
    return moments + _UP + 1e-14 * np.abs(moments)


def _trapezoid(q: float, z: float, orders: Floats) -> Floats:
    strip = min(math.pi * z / 2, math.sqrt(2 * _DIGITS))
    h = 2 * math.pi * strip / (_DIGITS + strip**2 / 2)
    u = np.arange(-_REACH, max(float(orders.max()), 2.0) / z + _REACH + h, h)
    log_r = u / z - 1 / (2 * z * z)
    t = q * np.expm1(np.minimum(log_r, 700.0))
    near = np.abs(t) < _SMALL
    u, log_r, small, rest = u[~near], log_r[~near], (t[near], u[near]), t[~near]
    log_1t = np.where(log_r > 30, np.logaddexp(math.log1p(-q), math.log(q) + log_r), np.log1p(rest))
    half = -u * u / 2
    # the sum of e^(-u^2/2) (1 + a t), where r e^(-u^2/2) is the density around 1/z: neither factor overflows
    ones, line = np.exp(half).sum(), q * (np.exp(-((u - 1 / z) ** 2) / 2) - np.exp(half)).sum()
    log_near = _log_near(*small, orders)
    if len(u) == 0:
        return log_near + math.log(h) - 0.5 * math.log(2 * math.pi)
    out = np.empty(len(orders))
    size = max(1, _BLOCK // max(len(u), 1))
    for start in range(0, len(orders), size):
        a, here = orders[start : start + size], log_near[start : start + size]
        power = a[:, None] * log_1t + half
        peak = np.maximum(power.max(axis=1), here)
        above = np.exp(power - peak[:, None]).sum(axis=1) - (ones + a * line) * np.exp(-peak)
        out[start : start + size] = peak + np.log(above + np.exp(here - peak))
    return out + math.log(h) - 0.5 * math.log(2 * math.pi)


def _log_near(t: Floats, u: Floats, orders: Floats) -> Floats:
    """(k,) ln of the sum of e^(-u^2/2) g(t) over small t, by the binomial series of g from its square term on."""
    unit = max(float(np.abs(t).max(initial=0.0)), _TINY)
    scaled, weight = t / unit, np.exp(-u * u / 2)
    coefficient, total = orders * (orders - 1) / 2, np.zeros(len(orders))
    for k in range(2, _TERMS):  # t^2 may underflow, so the unit is kept apart
        total += coefficient * unit ** (k - 2) * float(weight @ scaled**k)
        coefficient = coefficient * (orders - k) / (k + 1)
    return 2 * math.log(unit) + np.log(np.maximum(total, _TINY))


def _closed_bounds(q: float, z: float, orders: Floats) -> Floats:
    """Upper bounds of ln(A - 1) that are tight for small z.

    Minkowski: A <= (1 - q + q e^((a-1)/(2 z^2)))^a. For a < 2 also A - 1 <= q^2 + q^a e^(a(a-1)/(2 z^2)), because
    g(t) <= t^a for t > 0 and g(t) <= t^2 <= q^2 for t < 0.
    """
    a, square = orders, max(z * z, 1e-290)
    inside = a * np.logaddexp(math.log1p(-q), math.log(q) + (a - 1) / (2 * square))
    with np.errstate(divide="ignore"):
        minkowski = inside + np.log(-np.expm1(-inside))
    split = np.logaddexp(2 * math.log(q), a * math.log(q) + a * (a - 1) / (2 * square))
    return np.where(a < 2, np.minimum(minkowski, split), minkowski)
