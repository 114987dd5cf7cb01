"""Losses of the margin m = y<theta, x>: value, slope and curvature, with the constants that privacy proofs use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Loss(Protocol):
    """A convex margin loss phi(m). All methods are element-wise on arrays of any shape.

    Attributes:
        name: short id.
        slope_bound: sup |phi'| (1 for both losses here).
        curvature_bound: sup phi'', called c or beta_0 in the papers.
        third_bound: sup |phi'''|, infinite where the second derivative jumps.
        centre: the margin in the middle of the largest curvature, where a quadratic stands in for the loss best.
    """

    @property
    def name(self) -> str: ...

    @property
    def slope_bound(self) -> float: ...

    @property
    def curvature_bound(self) -> float: ...

    @property
    def third_bound(self) -> float: ...

    @property
    def centre(self) -> float: ...

    def value(self, margin: Array) -> Array: ...

    def slope(self, margin: Array) -> Array: ...

    def slope_inplace(self, margin: Array) -> Array: ...

    def curvature(self, margin: Array) -> Array: ...

    def sum_clipped(self, margin: Array, clip: float) -> Array:
        """Sums over the first axis of min(phi, clip), in double precision; `margin` is overwritten."""
        ...


@dataclass(frozen=True)
class Logistic:
    """phi(m) = ln(1 + e^-m); slope in (-1, 0), curvature at most 1/4, third derivative at most 1/(6 sqrt 3)."""

    name: str = "logistic"
    slope_bound: float = 1.0
    curvature_bound: float = 0.25
    third_bound: float = 1.0 / (6.0 * 3.0**0.5)
    centre: float = 0.0

    def value(self, margin: Array) -> Array:
        return np.logaddexp(0.0, -margin)

    def slope(self, margin: Array) -> Array:
        return self.slope_inplace(np.array(margin, copy=True))

    def slope_inplace(self, margin: Array) -> Array:
        """phi'(m) = -1/(1 + e^m), written over `margin`; three passes, several times faster than expit."""
        with np.errstate(over="ignore"):  # e^m = inf gives the right slope, 0
            np.exp(margin, out=margin)
        margin += 1.0
        return np.divide(-1.0, margin, out=margin)

    def curvature(self, margin: Array) -> Array:
        slope = self.slope(margin)
        return -slope * (1.0 + slope)

    def sum_clipped(self, margin: Array, clip: float) -> Array:
        # the log of a product costs one log per group instead of one per row: groups stay below e^64, and eight of
        # them in double below e^512; rows far from each other form a group, which keeps the inner loops long
        top = min(clip, 64.0)
        group = max(1, min(16, int(64 / max(clip, 1.0))))
        np.negative(margin, out=margin)
        np.minimum(margin, math.log(math.expm1(top)), out=margin)  # phi is clip where e^-m is e^clip - 1
        np.exp(margin, out=margin)
        margin += 1.0
        size = len(margin) // (8 * group)
        rest = np.log(margin[8 * group * size :], dtype=float).sum(axis=0)
        columns = margin.shape[1:]
        product = np.multiply.reduce(margin[: 8 * group * size].reshape(group, 8 * size, *columns), axis=0)
        product = np.multiply.reduce(product.reshape(8, size, *columns), axis=0, dtype=float)
        return np.asarray(np.log(product).sum(axis=0) + rest)


@dataclass(frozen=True)
class HuberHinge:
    """The hinge smoothed over |1 - m| <= h (Chapelle 2007; Chen et al. 2019, section 5.1); curvature at most 1/(2h).

    The curvature jumps at m = 1 - h and m = 1 + h, so there is no third-derivative bound.
    """

    h: float = 0.5
    name: str = "huber"
    slope_bound: float = 1.0
    third_bound: float = float("inf")
    centre: float = 1.0

    @property
    def curvature_bound(self) -> float:
        return 1.0 / (2.0 * self.h)

    def value(self, margin: Array) -> Array:
        gap = 1.0 + self.h - margin
        return np.where(margin > 1.0 + self.h, 0.0, np.where(margin < 1.0 - self.h, 1.0 - margin, gap**2 / (4 * self.h)))

    def slope(self, margin: Array) -> Array:
        return self.slope_inplace(np.array(margin, copy=True))

    def slope_inplace(self, margin: Array) -> Array:
        """phi'(m) = clip((m - 1 - h)/(2h), -1, 0), written over `margin`."""
        margin -= 1.0 + self.h
        margin /= 2.0 * self.h
        return np.clip(margin, -1.0, 0.0, out=margin)

    def curvature(self, margin: Array) -> Array:
        return np.where(np.abs(1.0 - margin) <= self.h, 1.0 / (2.0 * self.h), 0.0)

    def sum_clipped(self, margin: Array, clip: float) -> Array:
        # with u = max(0, 1 + h - m) and v = min(u, 2h): phi = v^2/(4h) + (u - v)
        np.subtract(1.0 + self.h, margin, out=margin)
        np.maximum(margin, 0.0, out=margin)
        quadratic = np.minimum(margin, 2.0 * self.h)
        margin -= quadratic
        quadratic *= quadratic
        quadratic /= 4.0 * self.h
        margin += quadratic
        np.minimum(margin, clip, out=margin)
        size = len(margin) // 16  # long inner loops, as above
        parts = np.add.reduce(margin[: 16 * size].reshape(16, size, *margin.shape[1:]), axis=0, dtype=float)
        return np.asarray(parts.sum(axis=0) + margin[16 * size :].sum(axis=0, dtype=float))
