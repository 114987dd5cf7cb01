"""Distributions of noise: how it is drawn, its size, the chance of a score's sign, and what it proves about one row.

A method states its noise as one of these values (`Calibration.noise_family`). What is not known of a distribution is None or an
error, never that of another one: a family of a package's own derives from `Noise`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaincinv, ndtr, roots_genlaguerre

from dpviz.common.arrays import Floats
from dpviz.common.random import standard_gamma_sphere, standard_gaussian
from dpviz.common.validate import InvalidInput
from dpviz.privacy.individual import gamma_output, gaussian_output

_LAGUERRE = range(20, 301)  # dimensions of noise for which Gauss-Laguerre nodes are few and exact


@dataclass(frozen=True)
class Noise:
    """A distribution of noise of which only the name is known.

    Attributes:
        id: short name, in answers and files.
        name: as sentences name it.
        density: in words, where few know the distribution by its name; else "".
        closed_form: whether everything below is known.
        pure: whether what it proves about one output has delta 0.
    """

    id: str
    name: str
    density: str = ""
    closed_form: bool = False
    pure: bool = False

    def __str__(self) -> str:
        return self.id

    def sample(self, streams: Sequence[np.random.SeedSequence], m: int) -> Floats:
        """(S, m) draws at scale 1."""
        raise self._unknown("draws")

    def mean_square(self, m: int) -> float:
        """Mean squared norm of m coordinates at scale 1; m where the scale is each coordinate's standard deviation."""
        return float(m)

    def prob_positive(self, scale: float, margin: Floats, norm: Floats, m: int) -> Floats:
        """P(margin + <b, x> >= 0) for noise b on m parameters, without drawing any.

        Args:
            scale: noise scale, >= 0; 0 means no noise.
            margin: noiseless margins, any shape.
            norm: |x|_2, same shape.
        """
        spread = scale * np.asarray(norm, float)
        still = spread <= 0
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(still, np.where(np.asarray(margin) >= 0, np.inf, -np.inf), margin / spread)
        return self._below(z, m)

    def individual(
        self, change: Floats, scale: float, delta: float, reach: float, cap: float
    ) -> tuple[Floats, Floats | None] | None:
        """Epsilon of each row where the noise is on an output that the row changes by `change`; see `gaussian_output`.

        None where this distribution proves nothing about a row that is not the worst one.
        """
        return None

    def _below(self, z: Floats, m: int) -> Floats:
        """P(b_1 <= z) of one coordinate of m."""
        raise self._unknown("a closed form")

    def _unknown(self, what: str) -> InvalidInput:
        return InvalidInput("noise_family", f"there is no way to {what} of {self.name} noise", "Choose another method.")


class _Gaussian(Noise):
    def sample(self, streams: Sequence[np.random.SeedSequence], m: int) -> Floats:
        return standard_gaussian(streams, m)

    def individual(
        self, change: Floats, scale: float, delta: float, reach: float, cap: float
    ) -> tuple[Floats, Floats | None] | None:
        return gaussian_output(change, scale, delta, reach, cap)

    def _below(self, z: Floats, m: int) -> Floats:
        return ndtr(z)


class _GammaSphere(Noise):
    """b = sqrt(V) g with g ~ N(0, I) and V ~ Gamma((m + 1)/2, scale 2 scale^2) [ours; the mixture gives exp(-|b|) because
    |b|^(1/2) K_(1/2)(|b|) is proportional to it]."""

    def sample(self, streams: Sequence[np.random.SeedSequence], m: int) -> Floats:
        return standard_gamma_sphere(streams, m)

    def mean_square(self, m: int) -> float:
        return float(m * (m + 1))

    def individual(
        self, change: Floats, scale: float, delta: float, reach: float, cap: float
    ) -> tuple[Floats, Floats | None] | None:
        return gamma_output(change, scale, reach, cap)

    def _below(self, z: Floats, m: int) -> Floats:
        return sum((w * ndtr(z / np.sqrt(v)) for v, w in zip(*_mixture(m), strict=True)), np.zeros_like(z))


GAUSSIAN: Noise = _Gaussian("gaussian", "Gaussian", closed_form=True)
GAMMA_SPHERE: Noise = _GammaSphere("gamma-sphere", "gamma-sphere", "density ∝ exp(−‖b‖/scale)", closed_form=True, pure=True)
LAPLACE = Noise("laplace", "Laplace")
HALF_SPHERE = Noise("duchi-sphere", "half-sphere")
NO_NOISE = Noise("none", "none")


@cache
def _mixture(m: int) -> tuple[Floats, Floats]:
    """Nodes and weights of means over V/scale^2 for V as in `_GammaSphere`.

    Errors of those means are below 1e-10 for dimensions from 20 to 300, where V seldom is near 0 and Gauss-Laguerre nodes serve,
    and below 2e-8 for others.
    """
    if m in _LAGUERRE:
        nodes, weights = roots_genlaguerre(24, (m + 1) / 2 - 1)
        return 2.0 * nodes, weights / weights.sum()
    nodes, weights = np.polynomial.legendre.leggauss(96)
    # an even, smooth map of (0, 1) that flattens both ends of the quantile function
    u = 0.5 * (nodes + 1.0)
    return 2.0 * gammaincinv((m + 1) / 2, u * u * (3 - 2 * u)), 0.5 * weights * 6 * u * (1 - u)
