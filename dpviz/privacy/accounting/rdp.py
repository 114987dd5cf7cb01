"""Rényi differential privacy and zCDP: curves, and what they give as (epsilon, delta). Curves of one run add up.

Moments of the Poisson-subsampled Gaussian at fractional Rényi orders, by quadrature without cancellation.

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
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice, check_range, positive
from dpviz.privacy.budget import Budget

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
    moments = (_closed_bounds if noise_multiplier < _SMALLEST else _trapezoid)(rate, noise_multiplier, orders)
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


#: whole orders: 2..256, then sparse for small budgets
WHOLE_ORDERS: tuple[int, ...] = (*range(2, 257), *(int(256 * 2 ** (k / 4)) for k in range(1, 17)))

#: fractional orders: large budgets have their best order near 1, rare and large losses theirs below about 10. Steps of 8 %
#: of a - 1 up to 2, then of 0.1
FRACTIONAL_ORDERS: tuple[float, ...] = (*(1 + 0.01 * 1.08**k for k in range(60)), *(k / 10 for k in range(11, 110) if k % 10))

ORDERS: tuple[float, ...] = tuple(sorted({*WHOLE_ORDERS, *FRACTIONAL_ORDERS}))

#: conversions to (epsilon, delta): Canonne, Kamath, Steinke 2020, and Mironov 2017
CONVERSIONS = ("improved", "mironov")

_LARGEST_SHIFT = 4.0
_ROUNDING = 1e-12  # of ln of an integral by the trapezoid rule


def gaussian(mu: float, orders: tuple[float, ...] = ORDERS) -> Floats:
    """R(a) = a mu^2/2 of the Gaussian mechanism with mu = sensitivity/sigma (Mironov 2017, Proposition 7)."""
    return np.asarray(orders, float) * positive("mu", mu) ** 2 / 2


def sampled_gaussian(rate: float, noise_multiplier: float, orders: tuple[float, ...] = ORDERS) -> Floats:
    """R(a) of one step of the Poisson-subsampled Gaussian under add/remove (Mironov, Talwar, Zhang 2019, section 3.3).

    Whole orders by their finite sum ln(sum_k C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2)))/(a-1), fractional orders by
    quadrature, rounded up (`log_excess_moments`).

    Args:
        rate: q, chance of a row to be in the batch, in (0, 1].
        noise_multiplier: z, standard deviation over the largest contribution of a row, > 0.
        orders: real numbers above 1; fractional ones from 1.001 to 20.

    Returns:
        (orders,) divergences, >= 0.

    Raises:
        InvalidInput: rate, noise multiplier or orders out of range.
    """
    q = check_range("rate", rate, 1e-12, 1.0)
    z = positive("noise_multiplier", noise_multiplier)
    whole, fractional, is_whole = _split(orders)
    if q == 1:
        return gaussian(1 / z, orders)
    curve = np.empty(len(orders))
    if whole:
        curve[is_whole] = _whole_orders(q, z, whole)
    if fractional:
        a = np.asarray(fractional)
        curve[~is_whole] = np.logaddexp(0.0, log_excess_moments(q, z, a)) / (a - 1)
    return curve


def opposite_rows(rate: float, shift: float, orders: tuple[float, ...] = ORDERS) -> Floats:
    """R(a) of one Gaussian on a Poisson batch under replace-one, from (1-q)N(0) + qN(s) against (1-q)N(0) + qN(-s).

    That pair dominates every replacement [ours]. A row joins the batch with chance q and then moves the sum by u, the one that
    replaces it by v, |u|, |v| <= s, in any dimension. The others' batch is common, so by joint convexity it may be fixed. For
    g >= 1 the divergence of (1-q)N(0) + qN(u) from (1-q)N(0) + qN(v) is q E[(1 - g X - b Y)_+] over z ~ N(u), where
    b = (1-q)(g-1)/q, X = N(v)/N(u) and Y = N(0)/N(u) at z. ln X and ln Y are jointly Gaussian with E X = E Y = 1, variances
    |u - v|^2 <= 4 s^2 and |u|^2 <= s^2, and covariance <u - v, u> <= 2 s^2. The function is convex, so that independent factors
    of mean 1, which raise the variances to 4 s^2 and s^2, raise the mean (Jensen); its mixed derivative in ln X and ln Y is
    g b X Y delta(1 - g X - b Y) >= 0, so that a larger covariance does too (Plackett 1954). At the largest, u = -v. For g < 1
    exchange the two. A Rényi divergence is an integral of such divergences with positive weights.

    By the trapezoid rule, whose error is below e^-35 at this step for an integrand that is analytic up to pi/s beside the line.

    Args:
        rate: q, in (0, 1].
        shift: s = what a row contributes over sigma, > 0. Beyond 4 the smaller of two bounds: R of a full batch, and R of a
            removal - ln(1 - q), because the second distribution is at least (1-q)N(0).
    """
    s, a = positive("shift", shift), np.asarray(orders, float)
    full = gaussian(2 * s, orders)
    if rate == 1:
        return full
    if s > _LARGEST_SHIFT:
        return np.minimum(full, sampled_gaussian(rate, 1 / s, orders) - math.log1p(-rate))
    step = min(0.25, 0.5 / s)
    y = np.arange(-s - 13, (2 * a.max() + 1) * s + 13, step)
    stays, joins = math.log1p(-rate) - y**2 / 2, math.log(rate) - s * s / 2
    p, q = (np.logaddexp(stays, joins + sign * s * y - y**2 / 2) for sign in (1, -1))
    ends = np.searchsorted(y, (2 * a + 1) * s + 12)
    totals = np.empty(len(a))
    for k, end in enumerate(ends):
        powers = p[:end] + (a[k] - 1) * (p[:end] - q[:end])
        top = powers.max()
        totals[k] = top + math.log(float(np.exp(powers - top).sum()) * step / math.sqrt(2 * math.pi))
    return np.minimum(full, (np.maximum(totals, 0.0) + _ROUNDING) / (a - 1))


def _whole_orders(q: float, z: float, orders: tuple[int, ...]) -> Floats:
    table, power, left, owner, starts = _binomials(orders)
    alpha, k = np.asarray(orders, float), np.arange(max(orders) + 1.0)
    exponent = k * (k - 1) / (2 * z * z)
    # the binomial weights sum to 1, so the sum is 1 + sum_k C(a,k) (1-q)^(a-k) q^k (e^(k(k-1)/(2 z^2)) - 1): small
    # divergences keep their digits
    with np.errstate(divide="ignore"):
        above = exponent + np.log(-np.expm1(-exponent)) + k * math.log(q)
    terms = left * math.log1p(-q)
    terms += table
    terms += above[power]
    largest = np.maximum(np.maximum.reduceat(terms, starts), -1e300)  # all terms are 0 where z^2 overflows
    terms -= largest[owner]
    total = np.add.reduceat(np.exp(terms, out=terms), starts)
    return np.logaddexp(0.0, largest + np.log(np.maximum(total, 1e-300))) / (alpha - 1)


@cache
def _split(orders: tuple[float, ...]) -> tuple[tuple[int, ...], tuple[float, ...], NDArray[np.bool_]]:
    """Whole orders, fractional orders, and (orders,) which are whole."""
    is_whole = np.array([a % 1 == 0 for a in orders])
    fractional = tuple(float(a) for a in orders if a % 1 != 0)
    if not (min(orders) >= 1.001 and max(fractional, default=2.0) <= 20):
        raise InvalidInput(
            "orders", "must be at least 1.001, and at most 20 where fractional", "Give orders such as 1.5, 2 or 128."
        )
    return tuple(int(a) for a in orders if a % 1 == 0), fractional, is_whole


@cache
def _binomials(orders: tuple[int, ...]) -> tuple[Floats, NDArray[np.intp], Floats, NDArray[np.intp], NDArray[np.intp]]:
    """ln C(a, k) for all k = 0..a of all orders a, one after the other, with k, a - k and the index of a; where each a begins."""
    lengths = [a + 1 for a in orders]
    k, owner = np.concatenate([np.arange(length) for length in lengths]), np.repeat(np.arange(len(orders)), lengths)
    a = np.asarray(orders, float)[owner]
    return gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1), k, a - k, owner, np.cumsum([0, *lengths[:-1]])


def epsilon(curve: Floats, delta: float, conversion: str = "improved", orders: tuple[float, ...] = ORDERS) -> tuple[float, float]:
    """(epsilon, order that gives it) at which an RDP curve is (epsilon, delta)-DP.

    "mironov": R(a) + ln(1/delta)/(a-1)  (Mironov 2017, Proposition 3).
    "improved": R(a) + ln((a-1)/a) - (ln delta + ln a)/(a-1)  (Canonne, Kamath, Steinke 2020, Proposition 12).
    """
    a = np.asarray(orders, float)
    values = convert(_checked(curve, a), a, delta, conversion)
    best = int(np.argmin(values))
    return float(values[best]), float(a[best])


def epsilons(curves: Floats, delta: float, orders: tuple[float, ...] = ORDERS) -> Floats:
    """(...) epsilon of many curves (..., orders) at once, by the "improved" conversion; 0 where nothing is released."""
    values = convert(curves, np.asarray(orders, float), delta, "improved").min(axis=-1)
    return np.where(curves.max(axis=-1) == 0, 0.0, values)


def convert(curve: Floats, a: Floats, delta: float, conversion: str) -> Floats:
    """epsilon >= 0 that a curve gives at each of the orders a, before the minimum over them; see `epsilon`."""
    log_delta = math.log(check_range("delta", delta, 1e-300, 1.0))
    if check_choice("conversion", conversion, CONVERSIONS) == "mironov":
        return curve - log_delta / (a - 1)
    return np.maximum(curve + np.log1p(-1 / a) - (log_delta + np.log(a)) / (a - 1), 0.0)


def log_delta(curve: Floats, epsilon: float, conversion: str = "improved", orders: tuple[float, ...] = ORDERS) -> float:
    """ln delta at which an RDP curve is (epsilon, delta)-DP: `epsilon` solved for delta, at the best order."""
    check_choice("conversion", conversion, CONVERSIONS)
    a = np.asarray(orders, float)
    values = (a - 1) * (_checked(curve, a) - epsilon)
    if conversion == "improved":
        values += (a - 1) * np.log1p(-1 / a) - np.log(a)
    return min(0.0, float(values.min()))


def _checked(curve: Floats, orders: Floats) -> Floats:
    rdp = np.asarray(curve, float)
    if rdp.shape != orders.shape or np.isnan(rdp).any() or (rdp < 0).any():
        raise InvalidInput("curve", "must hold one value >= 0 per order and no NaN", "Check the noise multiplier.")
    return rdp


def gaussian_sigma(budget: Budget, sensitivity: float) -> float:
    """Standard deviation that one Gaussian needs by Mironov's conversion at its best real order, in closed form.

    sens/(sqrt(2 ln(1/delta) + 2 eps) - sqrt(2 ln(1/delta))): always more than the exact Gaussian needs.
    """
    budget.need_delta()
    return positive("sensitivity", sensitivity) / math.sqrt(2 * zcdp_rho(budget))


def zcdp_rho(budget: Budget) -> float:
    """The largest rho for which rho-zCDP gives the budget: eps = rho + 2 sqrt(rho ln(1/delta)) (Bun, Steinke 2016, Prop. 1.3)."""
    budget.need_delta("zCDP cannot give delta = 0")
    log_inverse = -math.log(budget.delta)
    root = budget.epsilon / (math.sqrt(log_inverse + budget.epsilon) + math.sqrt(log_inverse))
    return root * root


def zcdp_epsilon(rho: float, delta: float) -> float:
    """epsilon at which rho-zCDP is (epsilon, delta)-DP: the conversion "improved" of R(a) = rho a over all real orders a > 1.

    Never more than rho + 2 sqrt(rho ln(1/delta)) (Bun, Steinke 2016, Proposition 1.3).
    """
    rho = positive("rho", rho)
    log_inverse = -math.log(check_range("delta", delta, 1e-300, 1.0))
    plain = rho + 2 * math.sqrt(rho * log_inverse)

    def value(log_order: float) -> float:  # a = 1 + e^log_order
        above = math.exp(log_order)
        a = 1 + above
        return rho * a + math.log(above / a) + (log_inverse - math.log(a)) / above

    centre = 0.5 * math.log(max(log_inverse, 1e-3) / rho)
    minimum = minimize_scalar(value, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-10})
    return max(0.0, min(plain, float(minimum.fun)))
