"""Losses of the margin m = y<theta, x>: value, slope and curvature, with the constants that privacy proofs use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Single = NDArray[np.float32]

MOST_CLIP = 64.0  # e^clip must be far from what single precision holds, about e^88
FAR = 80.0
_DEEP = 40.0  # 16 factors e^40 are within double precision, which ends at about e^709


class Loss(ABC):
    """A convex margin loss phi(m). All methods are element-wise on arrays of any shape.

    A new loss gives its bounds, `value`, `slope` and `curvature`; the other methods follow from these, and are
    overridden where a loss can be faster.

    Attributes:
        name: short id.
        slope_bound: sup |phi'|, infinite where there is none.
        curvature_bound: sup phi'', called c or beta_0 in the papers.
        third_bound: sup |phi'''|, infinite where the second derivative jumps.
        centre: the margin in the middle of the largest curvature, where a quadratic stands in for the loss best.
        probabilities: whether a model with this loss gives the probability 1/(1 + e^-m) to the label on whose side m is.
    """

    name: str
    third_bound: float
    centre: float
    probabilities: ClassVar[bool] = False

    @property
    @abstractmethod
    def slope_bound(self) -> float: ...

    @property
    @abstractmethod
    def curvature_bound(self) -> float: ...

    @abstractmethod
    def value(self, margin: Array) -> Array: ...

    @abstractmethod
    def slope(self, margin: Array) -> Array: ...

    @abstractmethod
    def curvature(self, margin: Array) -> Array: ...

    def probability(self, margin: Array) -> Array | None:
        """Probability that the model gives to the label on whose side a margin is; None where it gives none."""
        return None

    def slope_inplace(self, margin: Array) -> Array:
        """phi'(m), written over `margin`."""
        margin[...] = self.slope(margin)
        return margin

    def total(self, margin: Array) -> Array:
        """(R,) sums of phi over margins (R, rows), which are overwritten."""
        return np.asarray(self.value(margin).sum(axis=1))

    def line_sums(self, start: Single, step: Single, count: int, clip: float) -> Array:
        """(count, R) sums of min(phi, clip) over rows whose margins go in equal steps: start - k step, k < count.

        Each row's loss counts with at most `clip`; the sums are precise to single precision.

        Args:
            start, step: (groups, R, rows), both overwritten; at most `group_size(clip)` groups.
        """
        most = clip * (1 - 2.0**-22)  # less, so that rounding lets no row count for more
        return np.array([np.minimum(self.value(start - k * step), most).sum(axis=(0, 2), dtype=float) for k in range(count)])


def group_size(clip: float) -> int:
    """How many factors e^loss, each at most e^clip, have a product that single precision holds."""
    return max(1, min(16, int(64 / max(clip, 1.0))))


@dataclass(frozen=True)
class Logistic(Loss):
    """phi(m) = ln(1 + e^-m); slope in (-1, 0), curvature at most 1/4, third derivative at most 1/(6 sqrt 3)."""

    name: str = "logistic"
    slope_bound: float = 1.0
    curvature_bound: float = 0.25
    third_bound: float = 1.0 / (6.0 * 3.0**0.5)
    centre: float = 0.0
    probabilities: ClassVar[bool] = True

    def value(self, margin: Array) -> Array:
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)  # four times faster than logaddexp

    def slope(self, margin: Array) -> Array:
        return self.slope_inplace(np.array(margin, copy=True))

    def slope_inplace(self, margin: Array) -> Array:
        """phi'(m) = -1/(1 + e^m), written over `margin`; three passes, several times faster than expit."""
        with np.errstate(over="ignore"):  # e^m = inf gives the right slope, 0
            np.exp(margin, out=margin)
        margin += 1.0
        return np.divide(-1.0, margin, out=margin)

    def probability(self, margin: Array) -> Array:
        """Probability 1/(1 + e^-m) that the model gives to the label on whose side a margin is."""
        return -self.slope(-margin)

    def curvature(self, margin: Array) -> Array:
        slope = self.slope(margin)
        return -slope * (1.0 + slope)

    def total(self, margin: Array) -> Array:
        if margin.min(initial=0.0) < -_DEEP:
            return np.asarray(self.value(margin).sum(axis=1))
        # phi = ln(1 + e^-m): the log of a product costs one log per group instead of one per row
        np.negative(margin, out=margin)
        np.exp(margin, out=margin)
        margin += 1.0
        size = margin.shape[1] // 16
        product = np.multiply.reduce(margin[:, : 16 * size].reshape(len(margin), 16, size), axis=1)
        return np.asarray(np.log(product).sum(axis=1) + np.log(margin[:, 16 * size :]).sum(axis=1))

    @staticmethod
    def most_odds(clip: float) -> np.float32:
        """e^-m where phi is `clip`, which is e^clip - 1; 2^-22 less, so that rounding lets no row count for more."""
        return np.float32(math.expm1(clip) - math.exp(clip) * 2.0**-22)

    def line_sums(self, start: Single, step: Single, count: int, clip: float) -> Array:
        if clip > MOST_CLIP:
            return super().line_sums(start, step, count, clip)
        product = [np.empty_like(start[0]) for _ in range(count)]  # in the order in which `start` lies in memory
        top = self.most_odds(clip)
        far = max(start.max(initial=0.0), -start.min(initial=0.0)) + count * max(step.max(initial=0.0), -step.min(initial=0.0))
        if not far < FAR:
            return self._far_line_sums(start, step, top, product)
        # in equal steps e^-m goes by equal factors, so that two exponentials serve all points of the line
        np.negative(start, out=start)
        odds, factor = np.exp(start, out=start), np.exp(step, out=step)
        buffer, most = np.empty_like(odds), np.full_like(odds, top)  # with an array `minimum` is five times faster
        for k in range(count):
            np.minimum(odds, most, out=buffer)
            buffer += 1.0
            np.multiply.reduce(buffer, axis=0, out=product[k])
            odds *= factor
        return np.array([np.log(each, out=each).sum(axis=1, dtype=float) for each in product])

    def _far_line_sums(self, start: Single, step: Single, top: np.float32, product: list[Single]) -> Array:
        """`line_sums` where e^-m leaves the range of single precision on the way."""
        buffer, most = np.empty_like(start), np.log(top)
        for k in range(len(product)):
            np.multiply(step, np.float32(k), out=buffer)
            buffer -= start
            np.minimum(buffer, most, out=buffer)
            np.exp(buffer, out=buffer)
            np.minimum(buffer, top, out=buffer)  # once more, for the rounding of the two before
            buffer += 1.0
            np.multiply.reduce(buffer, axis=0, out=product[k])
        return np.array([np.log(each, out=each).sum(axis=1, dtype=float) for each in product])


@dataclass(frozen=True)
class HuberHinge(Loss):
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

    def line_sums(self, start: Single, step: Single, count: int, clip: float) -> Array:
        # with u = max(0, 1 + h - m) and v = min(u, 2h): phi = v^2/(4h) + (u - v)
        gap, quadratic = np.empty_like(start), np.empty_like(start)
        total = np.empty((count, start.shape[1]))
        np.subtract(1.0 + self.h, start, out=start)
        for k in range(count):
            np.multiply(step, np.float32(k), out=gap)
            gap += start
            np.maximum(gap, 0.0, out=gap)
            np.minimum(gap, 2.0 * self.h, out=quadratic)
            gap -= quadratic
            quadratic *= quadratic
            quadratic /= 4.0 * self.h
            gap += quadratic
            np.minimum(gap, clip * (1 - 2.0**-22), out=gap)  # less, so that rounding lets no row count for more
            total[k] = np.add.reduce(gap, axis=0).sum(axis=1, dtype=float)
        return total
