"""Tables of tests, most of whose entries are 0, and the same rows as a dense table."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from dpviz.models import Rows
from dpviz.models.losses import Loss


@dataclass(frozen=True)
class PseudoHuber(Loss):
    """phi(m) = sqrt(w^2 + (1 - m)^2) - w, a loss of another package: squares for small errors, absolute error for large ones."""

    name: str = "pseudo-huber"
    slope_bound: float = 1.0
    curvature_bound: float = 1.0
    third_bound: float = 1.5 * 1.25**-2.5  # for w = 1: 3u (1 + u^2)^(-5/2) is largest at u = 1/2
    centre: float = 1.0
    width: float = 1.0

    @property
    def constants(self) -> tuple[float, ...]:
        return (self.width,)

    @staticmethod
    def slope_at(margin: Any, one: Any, width: Any) -> Any:
        return (margin - one) / np.sqrt(width * width + (one - margin) * (one - margin))

    def value(self, margin: Any) -> Any:
        return np.sqrt(self.width**2 + (1 - margin) ** 2) - self.width

    def curvature(self, margin: Any) -> Any:
        return self.width**2 * (self.width**2 + (1 - margin) ** 2) ** -1.5


N, D = 2500, 20  # three blocks of rows, the last one not full


def thin(n: int = N, d: int = D, seed: int = 0) -> np.ndarray:
    """(n, d) rows in the unit ball: two categories of which the second often follows from the first, numbers, and a constant."""
    rng = np.random.default_rng(seed)
    first, number = rng.integers(4, size=n), rng.standard_normal(n) * (rng.random(n) < 0.3)
    second = np.where(rng.random(n) < 0.9, first, rng.integers(4, size=n))
    x = np.zeros((n, d))
    x[np.arange(n), first] = x[np.arange(n), 4 + second] = x[:, -1] = 0.5
    x[:, 8] = 0.3 * number
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]


def labels(n: int = N) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(n) < 0.4, 1.0, -1.0)


def pair(n: int = N, d: int = D) -> tuple[Rows, Rows]:
    """Rows that kernels multiply where numba is installed, and the same rows for numpy."""
    rows, dense = Rows(thin(n, d), labels(n)), Rows(thin(n, d), labels(n))
    rows.compute_once("sparse", lambda: True), dense.compute_once("sparse", lambda: False)
    return rows, dense


needs_kernels = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
