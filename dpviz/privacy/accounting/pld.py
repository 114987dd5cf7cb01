"""Privacy loss distributions of composed subsampled Gaussians, by an exponentially tilted FFT.

A step is a pair of distributions (P, Q) that dominates all neighbouring runs. Its privacy loss ln P/Q is put on a
grid so that delta never falls below the truth, composed by one FFT, and read off as
delta(eps) = E_P[(1 - e^(eps - loss))_+]. The distribution is tilted by e^(theta loss) first, with theta at the
saddle point of the tail that is asked for; the result then has full relative precision however small delta is.

Pairs of Gaussian mixtures that dominate one step of a sampled mechanism: densities, privacy loss, masses of intervals.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import log_ndtr, logsumexp

from dpviz.common.arrays import Floats


@dataclass(frozen=True)
class Pair:
    """Two mixtures of unit-variance Gaussians on the line whose likelihood ratio P/Q increases.

    Attributes:
        kind: "remove" P = (1-q)N(0) + qN(s), Q = N(0): the run with the record against the run without;
            "add" the same two exchanged and mirrored;
            "opposite" P = (1-q)N(0) + qN(s), Q = (1-q)N(0) + qN(-s): a record and its opposite;
            "symmetric" the profile q delta_G(ln(1 + (e^eps - 1)/q), s) for eps >= 0, and its dual below 0.
        rate: sampling rate q in (0, 1].
        shift: s = sensitivity / standard deviation, > 0.
    """

    kind: str
    rate: float
    shift: float

    @property
    def _mixture(self) -> tuple[tuple[float, float], ...]:
        mixture = ((1 - self.rate, 0.0), (self.rate, self.shift))
        return mixture if self.rate < 1 else mixture[1:]

    @property
    def p(self) -> tuple[tuple[float, float], ...]:
        """(weight, mean) of the parts of P."""
        return ((1.0, 0.0),) if self.kind == "add" else self._mixture

    @property
    def q(self) -> tuple[tuple[float, float], ...]:
        """(weight, mean) of the parts of Q."""
        if self.kind in ("remove", "symmetric"):
            return ((1.0, 0.0),)
        return tuple((weight, -mean) for weight, mean in self._mixture)

    def loss(self, y: Floats) -> Floats:
        """ln P/Q at y, increasing."""
        return log_mixture(self.p, y) - log_mixture(self.q, y)

    def threshold(self, loss: Floats) -> Floats:
        """The y above which ln P/Q exceeds `loss`; -inf or inf where all or no y do."""
        q, s = self.rate, self.shift
        if self.kind in ("remove", "symmetric"):
            return _log_ratio(loss, q) / s + s / 2
        if self.kind == "add":
            return -_log_ratio(-loss, q) / s - s / 2
        # "opposite": u = e^(sy) solves k u^2 - (1-q)(e^loss - 1) u - k e^loss = 0 with k = q e^(-s^2/2)
        half = loss / 2
        if q == 1:
            return half / s
        with np.errstate(divide="ignore"):
            log_sinh = np.abs(half) + np.log(-np.expm1(-2 * np.abs(half))) - math.log(2)
        log_w = math.log1p(-q) + log_sinh - math.log(q) + s * s / 2
        asinh = np.where(log_w > 20, log_w + math.log(2), np.arcsinh(np.exp(np.minimum(log_w, 21.0))))
        return (half + np.sign(half) * asinh) / s


def _log_ratio(loss: Floats, q: float) -> Floats:
    """ln((e^loss - 1 + q)/q), -inf where the number in brackets is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.log(np.maximum(np.expm1(np.minimum(loss, 1.0)) + q, 0.0))
        large = loss + np.log1p(-(1 - q) * np.exp(-np.maximum(loss, 1.0)))
    return np.where(loss > 1, large, small) - math.log(q)


def log_mixture(parts: Sequence[tuple[float, float]], y: Floats) -> Floats:
    """Log density up to the constant that all parts share."""
    return np.asarray(reduce(np.logaddexp, [math.log(w) - 0.5 * (y - m) ** 2 for w, m in parts]))


def log_bins(parts: Sequence[tuple[float, float]], y: Floats) -> Floats:
    """ln of the mass of a mixture between neighbouring points of y, precise in both tails."""
    out: Floats | None = None
    for weight, mean in parts:
        side = y - mean
        tail = log_ndtr(-np.abs(side))
        left, right = tail[:-1], tail[1:]
        high, low = np.maximum(left, right), np.minimum(left, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = high + np.log(-np.expm1(np.where(low == -np.inf, -np.inf, low - high)))
            across = (side[:-1] < 0) & (side[1:] > 0)
            mass[across] = np.log1p(-np.exp(left[across]) - np.exp(right[across]))
        mass = np.where(high == -np.inf, -np.inf, mass) + math.log(weight)
        out = mass if out is None else np.logaddexp(out, mass)
    assert out is not None
    return out


#: theta -> ln of the moment of the loss, its tilted mean and variance
Moments = Callable[[float], tuple[float, float, float]]

_TAIL = 30.0  # -ln of what windows may leave out, relative to what is computed
_FINE = 36.0  # grid cells per (spread / root of steps), with which most grids are fine enough at once
_MOVED = 1.5e-4  # how far the cells may move epsilon, as a share of it, or ...
_RAISED = 1e-5  # ... raise delta, as a share of it
#: standard deviations; beyond, the points of `_saddle` are too far apart to place windows, and delta <= 1 is all that is said
_LARGEST_SHIFT = 4000.0
_FINEST_GRID, _LARGEST_GRID = 1 << 20, 1 << 22  # for accuracy, and where windows are wide


def log_delta(pair: Pair, steps: int, epsilon: float, floor: float) -> float:
    """An upper bound on ln delta(epsilon) of `steps` adaptive repetitions of a pair, tight to about 2e-4 of epsilon.

    Where few large losses make up delta (rates below 1e-3) that ends near delta = 1e-12: rounding is added.

    Every approximation errs upwards: losses are spread to the ends of their grid cell with P- and Q-mass kept
    (connect the dots, Doroshenko et al. 2022), mass below the grid moves up to it, and mass that the grid and the
    FFT window leave out is added to delta.

    Args:
        pair: one step.
        steps: repetitions, >= 1.
        epsilon: > 0.
        floor: ln of the smallest delta of interest; where delta is far below it the answer is `floor` - 1.
    """
    if pair.shift > _LARGEST_SHIFT:
        return 0.0
    saddle = _saddle(pair, steps, epsilon, floor)
    if saddle is None:
        return floor - 1.0
    _, spread, low, high, _ = saddle
    size = (high - low) / spread * math.sqrt(steps) * _FINE
    ends = _ends(pair, floor - math.log(steps) - _TAIL)
    while True:
        size = next_fast_len(int(min(max(size, 1 << 12), _LARGEST_GRID)), real=True)
        h = max((high - low) / (size - 4), (ends[1] - ends[0]) / _LARGEST_GRID)
        result, slope, blur = _composed(pair, steps, epsilon, h, size, ends, saddle)
        # Spreading widens the distribution of the sum by steps x blur, and the few large losses that matter at low rates by h^2/6
        # each; where ln delta falls by `slope` per unit of epsilon this moves epsilon by about:
        moved = (1 + slope) / 2 * (steps * blur + 10 * h * h / 6)
        excess = moved * min(1 / (_MOVED * epsilon), slope / _RAISED)
        if result < floor or excess <= 1 or size >= _FINEST_GRID:
            return result
        # the steps' spread does not say how fine the grid must be where a loss is nearly always near 0
        size = min(size * min(8.0, 1.1 * math.sqrt(excess)), _FINEST_GRID)


def _composed(
    pair: Pair,
    steps: int,
    epsilon: float,
    h: float,
    size: int,
    ends: tuple[float, float],
    window: tuple[float, float, float, float, float],
) -> tuple[float, float, float]:
    """ln delta(epsilon) on a grid of `size` losses h apart, -d ln delta/d epsilon there, and `_cells`' blur."""
    theta, _, low, _, rate = window
    first, mass, log_scale, lost, blur = _cells(pair, h, theta, ends)
    total = mass.sum()
    log_scale += math.log(total)
    mass = mass / total

    index = first + np.arange(len(mass))
    folded = np.bincount(index % size, weights=mass, minlength=size)
    composed = irfft(_power(rfft(folded), steps), size)
    start = math.floor(low / h)
    sums = h * (start + np.arange(size))
    composed = np.roll(composed, -(start % size))
    beyond = sums > epsilon
    gap = sums[beyond] - epsilon
    weight = np.exp(-theta * gap) * np.maximum(composed[beyond], 0.0)
    inside, decay = float(weight @ -np.expm1(-gap)), float(weight @ np.exp(-gap))
    inside += steps * math.sqrt(size) * 2e-16  # rounding of the FFT
    # what the FFT wraps round only adds; what lies above the window is bounded (Chernoff) and added
    end = h * (start + size)
    powers = rate * h * (index - index[-1])
    moment = float(mass @ np.exp(powers))
    if moment > 1e-200:
        log_moment = math.log(moment)
    else:  # with few large losses all but the last powers may underflow
        with np.errstate(divide="ignore"):
            log_moment = float(logsumexp(powers + np.log(mass)))
    exponent = steps * log_moment + rate * (steps * h * index[-1] - end)
    outside = math.exp(min(exponent, 0.0) - theta * max(end - epsilon, 0.0))
    result = steps * log_scale - theta * epsilon + math.log(inside + outside)
    return min(0.0, float(np.logaddexp(result, math.log(steps) + lost))), decay / inside, blur


def _ends(pair: Pair, floor: float) -> tuple[float, float]:
    """The losses between which a step is resolved: above them P-mass is below e^floor."""
    wide = pair.shift if pair.kind == "opposite" else 0.0
    y = np.array([-math.sqrt(2 * _TAIL) - wide, pair.shift + math.sqrt(2 * max(_TAIL, -floor))])
    low, high = pair.loss(y)
    return float(low), float(high)


def _saddle(pair: Pair, steps: int, epsilon: float, floor: float) -> tuple[float, float, float, float, float] | None:
    """(theta, spread, window's low and high end, Chernoff rate) of the composed tilted loss.

    By quadrature: it only places windows, whose error is bounded later from the masses themselves. None where
    Chernoff's bound lies e^20 below the floor, a margin far above the error of the quadrature.
    """
    top = pair.shift + math.sqrt(2 * max(_TAIL, math.log(steps) + _TAIL - floor))
    y = np.linspace(-12.0 - (pair.shift if pair.kind == "opposite" else 0), top, 1500)
    base = log_mixture(pair.p, y)
    base -= base.max() + math.log(np.exp(base - base.max()).sum())
    loss = pair.loss(y)
    if pair.kind == "symmetric":
        keep = loss > 0
        sides = np.concatenate([base[keep], (base - loss)[keep]])
        base = np.append(sides, math.log(max(1 - np.exp(sides).sum(), 1e-300)))
        loss = np.concatenate([loss[keep], -loss[keep], [0.0]])

    def moments(theta: float) -> tuple[float, float, float]:
        w = base + theta * loss
        peak = w.max()
        np.exp(w - peak, out=w)
        total = w.sum()
        m = w @ loss / total
        return float(peak + math.log(total)), float(m), float(w @ (loss - m) ** 2 / total)

    theta = _tilt(moments, steps, epsilon, floor)
    if theta is None:
        return None
    k = moments(theta)[0]
    best = None
    # at low rates the saddle tilts towards losses far above those that make up delta, which the window then has to hold
    for share in (1.0, 0.6, 0.35):
        less, (at, m, v) = share * theta, moments(share * theta)
        if best is not None and (best[3] - best[2] < 12 * best[1] or steps * (at - k) + (theta - less) * epsilon > 3):
            break
        mean, spread = steps * m, math.sqrt(steps * v)
        below = above = math.inf
        chosen = 0.0
        for multiple in (0.5, 1.5, 4, 8):
            lam = multiple / spread
            below = min(below, (steps * (moments(less - lam)[0] - at + lam * m) + _TAIL) / lam)
            # the weight e^(-theta (loss - epsilon)) above epsilon does not count: what the FFT wraps round loses it
            bound = (steps * (moments(less + lam)[0] - at - lam * m) + _TAIL) / lam
            if bound < above:
                above, chosen = bound, lam
        if best is None or max(mean, epsilon) + above - mean + below < best[3] - best[2]:
            best = less, spread, mean - below, max(mean, epsilon) + above, chosen
    return best


def _tilt(moments: Moments, steps: int, epsilon: float, floor: float) -> float | None:
    """theta at which the tilted mean of the composed loss is about epsilon; None far below the floor (see `_saddle`)."""
    low, high = 0.0, 1.0
    while True:
        k, m, _ = moments(high)
        if steps * k - high * epsilon < floor - 20:
            return None
        if steps * m >= epsilon:
            break
        low, high = high, 2 * high
    theta = high
    for _ in range(60):  # Newton, kept inside a bracket
        k, m, v = moments(theta)
        error = steps * m - epsilon
        if abs(error) <= 0.05 * math.sqrt(steps * v) or high - low < 1e-3 * (high + 1e-3):
            break
        low, high = (low, theta) if error > 0 else (theta, high)
        step = theta - error / (steps * v) if v > 0 else math.inf
        theta = step if low < step < high else 0.5 * (low + high)
    return theta


def _cells(pair: Pair, h: float, theta: float, ends: tuple[float, float]) -> tuple[int, Floats, float, float, float]:
    """One step on the grid of losses j h, tilted by e^(theta loss).

    Returns:
        first j, tilted masses, ln of the factor taken out of them, ln of the untilted mass above the grid, and the most
        that spreading a cell's mass to its two ends adds to the variance of the loss under P.
    """
    j0 = 0 if pair.kind == "symmetric" else math.floor(ends[0] / h)
    j1 = max(math.ceil(ends[1] / h), j0 + 1)
    losses: Floats = h * np.arange(j0, j1 + 1, dtype=float)
    y = pair.threshold(losses)
    log_p, log_q = log_bins(pair.p, y), log_bins(pair.q, y)
    tilt = theta * losses[:-1]
    log_scale = float(np.max(log_p + tilt))
    p = np.exp(log_p + tilt - log_scale)
    # the two ends of a cell share its mass so that P- and Q-mass are kept
    up = (p - np.exp(log_q + losses[:-1] + tilt - log_scale)) / -math.expm1(-h)
    with np.errstate(invalid="ignore"):
        rounding = 1e-15 * (1 + np.where(p > 0, np.abs(log_p), 0.0)) / h  # the cancellation above, made to err upwards
    up = np.clip(up + rounding * p, 0.0, p)
    blur = h * h * float(np.exp(log_p) @ (up * (p - up) / np.maximum(p * p, 1e-300)))
    mass = np.zeros(len(losses))
    mass[:-1] += p - up
    mass[1:] += up * math.exp(theta * h)
    lost = _log_total([math.log(w) + log_ndtr(m - y[-1]) for w, m in pair.p])
    if pair.kind == "symmetric":
        # P{-loss} = e^-loss P{loss}; what is left sits at loss 0
        mirrored = mass * np.exp(-(1 + 2 * theta) * losses)
        plain = mass * np.exp(-theta * losses)
        rest = max(0.0, math.exp(-log_scale) - float((plain * (1 + np.exp(-losses)))[1:].sum()) - plain[0])
        mass[0] += rest
        return -(len(mass) - 1), np.concatenate([mirrored[:0:-1], mass]), log_scale, lost, 2 * blur
    below = _log_total([math.log(w) + log_ndtr(y[0] - m) for w, m in pair.p])
    mass[0] += math.exp(below + theta * losses[0] - log_scale)
    return j0, mass, log_scale, lost, blur


def _log_total(logs: list[float]) -> float:
    """ln of the sum of a few numbers given as logarithms; `logsumexp` takes a hundred times the time for so few."""
    return float(np.logaddexp.reduce(logs))


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """values^exponent by repeated squaring."""
    result: NDArray[np.complex128] | None = None
    while exponent:
        if exponent & 1:
            result = values.copy() if result is None else result * values
        exponent >>= 1
        if exponent:
            values = values * values
    assert result is not None
    return result
