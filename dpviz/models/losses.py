"""Losses of the margin m = y<theta, x>: value, slope and curvature, with the constants that privacy proofs use.

Functions that formulas of losses are written with: numpy on arrays, and SIMD instructions inside kernels.

A formula takes its constants as numbers of the margin's precision and uses nothing but arithmetic and these functions, so that
one text serves both (`models.kernels` has what they are there).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


def exponential(x: Any) -> Any:
    """e^x, element by element.

    >>> float(exponential(0.0))
    1.0
    """
    return np.exp(x)


def limited(x: Any, low: Any, high: Any) -> Any:
    """x where it is between `low` and `high`, else the nearer of both.

    >>> float(limited(3.0, -1.0, 1.0))
    1.0
    """
    return np.clip(x, low, high)


Array = NDArray[np.floating]
Single = NDArray[np.float32]

MOST_CLIP = 64.0  # e^clip must be far from what single precision holds, about e^88
FAR = 80.0
_DEEP = 40.0  # 16 factors e^40 are within double precision, which ends at about e^709


class Loss(ABC):
    """A convex margin loss phi(m). All methods are element-wise on arrays of any shape.

    A new loss gives its bounds, `value`, `slope_at` and `curvature`; the other methods follow from these, and are
    overridden where a loss can be faster.

    Attributes:
        name: short id.
        constants: what `slope_at` takes beside the margin.
        slope_bound: sup |phi'|, infinite where there is none.
        curvature_bound: sup phi'', called c or beta_0 in the papers.
        third_bound: sup |phi'''|, infinite where the second derivative jumps.
        centre: the margin in the middle of the largest curvature, where a quadratic stands in for the loss best.
        sigmoid_slope: whether phi'' is at most 4 t (1 - t) of its bound where the slope is t of its own: steep rows are flat.
        probabilities: whether a model with this loss gives the probability 1/(1 + e^-m) to the label on whose side m is.
    """

    name: str
    third_bound: float
    centre: float
    sigmoid_slope: ClassVar[bool] = False
    probabilities: ClassVar[bool] = False

    @property
    def constants(self) -> tuple[float, ...]:
        return ()

    @property
    @abstractmethod
    def slope_bound(self) -> float: ...

    @property
    @abstractmethod
    def curvature_bound(self) -> float: ...

    @abstractmethod
    def value(self, margin: Array) -> Array: ...

    @staticmethod
    @abstractmethod
    def slope_at(margin: Any, one: Any, *constants: Any) -> Any:
        """phi'(m), the one formula that numpy evaluates on arrays and kernels are compiled with (see `exponential`).

        Args:
            one: the number 1 in the precision of the margin, and so are the constants.
        """

    def slope(self, margin: Array) -> Array:
        """phi'(m)."""
        kind = margin.dtype.type
        with np.errstate(over="ignore"):  # e^m = inf gives the right slope
            return np.asarray(self.slope_at(margin, kind(1), *(kind(constant) for constant in self.constants)))

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
        """(R,) sums of phi over margins (R, rows), which are overwritten; the bits of one do not depend on the others."""
        return np.asarray(self.value(margin).sum(axis=1))

    def line_sums(self, start: Single, step: Single, count: int, clip: float) -> Array:
        """(count, R) sums of min(phi, clip) over rows whose margins go in equal steps: start - k step, k < count.

        Each row's loss counts with at most `clip`; the sums are precise to single precision.

        Args:
            start, step: (rows, R).
        """
        most = clip * (1 - 2.0**-22)  # less, so that rounding lets no row count for more
        return np.array([np.minimum(self.value(start - k * step), most).sum(axis=0, dtype=float) for k in range(count)])


def group_size(clip: float) -> int:
    """The number of factors e^loss, each at most e^clip, whose product single precision holds."""
    return max(1, min(16, int(64 / max(clip, 1.0))))


@dataclass(frozen=True)
class Logistic(Loss):
    """phi(m) = ln(1 + e^-m); slope in (-1, 0), curvature at most 1/4, third derivative at most 1/(6 sqrt 3)."""

    name: str = "logistic"
    slope_bound: float = 1.0
    curvature_bound: float = 0.25
    third_bound: float = 1.0 / (6.0 * 3.0**0.5)
    centre: float = 0.0
    sigmoid_slope: ClassVar[bool] = True  # phi'' = |phi'| (1 - |phi'|)
    probabilities: ClassVar[bool] = True

    def value(self, margin: Array) -> Array:
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)  # four times faster than logaddexp

    @staticmethod
    def slope_at(margin: Any, one: Any) -> Any:
        """-1/(1 + e^m)."""
        return -one / (one + exponential(margin))

    def probability(self, margin: Array) -> Array:
        """Probability 1/(1 + e^-m) that the model gives to the label on whose side a margin is."""
        return -self.slope(-margin)

    def curvature(self, margin: Array) -> Array:
        slope = self.slope(margin)
        return -slope * (1.0 + slope)

    def total(self, margin: Array) -> Array:
        far = margin.min(axis=1, initial=0.0) < -_DEEP
        if far.any():
            total = np.empty(len(margin))
            total[far] = super().total(margin[far])
            if not far.all():
                total[~far] = self.total(margin[~far])
            return total
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
        top, groups, rest = self.most_odds(clip), group_size(clip), len(start) % group_size(clip)
        products = np.empty((count, rest + len(start) // groups, start.shape[1]), start.dtype)
        far = np.abs(start).max(initial=0.0) + count * np.abs(step).max(initial=0.0)
        # in equal steps e^-m goes by equal factors, so that two exponentials serve all points of a line that stays near
        odds, factor, most = (np.exp(-start), np.exp(step), np.full_like(start, top)) if far < FAR else (start, start, start)
        for k in range(count):
            if far < FAR:
                grown = np.minimum(odds, most)  # with an array `minimum` is five times faster
                odds *= factor
            else:
                grown = np.minimum(np.exp(np.minimum(np.float32(k) * step - start, np.log(top))), top)
            grown += 1
            products[k, :rest] = grown[:rest]
            np.multiply.reduce(grown[rest:].reshape(groups, -1, start.shape[1]), axis=0, out=products[k, rest:])
        return np.log(products).sum(axis=1, dtype=float)


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

    @property
    def constants(self) -> tuple[float, ...]:
        return (self.h,)

    @staticmethod
    def slope_at(margin: Any, one: Any, h: Any) -> Any:
        """(m - 1 - h)/(2h) between -1 and 0."""
        return limited((margin - (one + h)) / (h + h), -one, one - one)

    def curvature(self, margin: Array) -> Array:
        return np.where(np.abs(1.0 - margin) <= self.h, 1.0 / (2.0 * self.h), 0.0)
