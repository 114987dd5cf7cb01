"""Pairs of Gaussian mixtures that dominate one step of a sampled mechanism: densities, privacy loss, masses of intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import log_ndtr

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
