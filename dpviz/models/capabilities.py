"""Capabilities of models beside training: derivatives, line search, noise on features.

A capability that a model lacks is None there. Mechanisms declare what they need (`Mechanism.needs`), so that one that needs
more than a model has refuses it before anything is computed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows

#: noise (n, d) on rows, or (1, d) where all share it
Noise = NDArray[np.floating]

_BLOCK_ELEMENTS = 1 << 18  # entries of score gradients worked on at once


class Ability(StrEnum):
    """The capabilities by name; the texts end the sentence "needs ..."."""

    DERIVATIVES = "the derivatives of scores by the parameters"
    LINE_LOSSES = "losses along a line"
    FEATURE_NOISE = "gradients at rows with noise on their features"


class Curvature(Protocol):
    """An approximate Hessian H of the regularised objective, positive definite, whose inverse is cheap."""

    def solve(self, vectors: Floats) -> Floats:
        """(k, m) H^{-1} v for k vectors (k, m)."""
        ...

    def quadratic(self, rows: Rows) -> tuple[Floats, Floats]:
        """(n,) |H^{-1} J_i| and (n,) J_i' H^{-1} J_i for the rows' score gradients J_i."""
        ...


class Derivatives(ABC):
    """Derivatives of the rows' scores and losses by the m parameters: what influence is computed from.

    With J_i the derivative of row i's score and m_i its margin, the row's data gradient is y_i phi'(m_i) J_i, and its
    (Gauss-Newton) curvature phi''(m_i) J_i J_i'. A model gives `row_scores` and `score_gradients`.

    Attributes:
        loss: the model's loss.
        exact: whether `hessian` is exact; otherwise it is the Gauss-Newton matrix, which leaves out the score's curvature.
        factored: whether there is a `curvature`.
    """

    loss: Loss
    exact: bool
    factored: bool = False

    @abstractmethod
    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n,) scores.

        Args:
            theta: (m,) for all rows, or (n, m) for row i at theta[i].
        """

    @abstractmethod
    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        """(n, m) derivatives J_i of the rows' scores by the parameters; theta as in `row_scores`."""

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """(n,) first and (n,) second derivative of each row's loss by its margin; theta as in `row_scores`."""
        margin = rows.y * self.row_scores(theta, rows)
        return np.asarray(self.loss.slope(margin), float), np.asarray(self.loss.curvature(margin), float)

    def score_products(self, theta: Floats, rows: Rows, vectors: Floats) -> Floats:
        """(n, k) products <J_i, v> of the rows' score gradients at theta (m,) with k vectors (k, m)."""
        return self.score_gradients(theta, rows) @ vectors.T

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        """(m, m) mean of phi''(m_i) J_i J_i' over rows, plus lam I, at theta (m,)."""
        _, weight = self.slopes(theta, rows)
        total = lam * np.eye(len(theta))
        size = max(16, _BLOCK_ELEMENTS // len(theta))
        for start in range(0, len(rows), size):
            block = slice(start, min(start + size, len(rows)))
            part = self.score_gradients(theta, rows.take(block)) * np.sqrt(weight[block] / len(rows))[:, None]
            total += part.T @ part
        return total

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        """(k, m) products of `hessian` with k vectors (k, m), without forming it."""
        _, weight = self.slopes(theta, rows)
        along = self.score_products(theta, rows, vectors) * (weight / len(rows))[:, None]
        return along.T @ self.score_gradients(theta, rows) + lam * vectors

    def curvature(self, theta: Floats, rows: Rows, lam: float) -> Curvature:
        """An approximate Hessian at theta (m,), for models with too many parameters for `hessian`."""
        raise NotImplementedError("this model has no factored curvature")


class FeatureNoise(ABC):
    """Training on rows with noise on their features."""

    @abstractmethod
    def noisy_gradient(self, theta: Floats, rows: Rows, noise: Sequence[Noise], scale: Floats) -> Floats:
        """(R, m) sum over rows of the data gradient at x_i + scale_r noise_i; labels stay.

        The R perturbed copies of the rows are made block by block.

        Args:
            theta: (R, m); a model may compute in its precision.
            noise: S draws; the first is for the first R/S replicas, and so on.
            scale: (R,) noise scales.
        """

    def over_batches(
        self, theta: Floats, rows: Rows, batches: NDArray[np.intp], noise: Sequence[NDArray[np.floating]], scale: Floats
    ) -> Floats:
        """(S, E, m) `noisy_gradient` at theta (S, E, m), seed by seed over the rows batches[s] of `rows`.

        Args:
            batches: (S, b) positions.
            noise: S draws (n, d) for all rows.
            scale: (E,) noise scales.
        """
        found = []
        for at, index, draw in zip(theta, batches, noise, strict=True):
            batch = rows.batch(index)
            found.append(self.noisy_gradient(at, batch, [draw[index]], scale))
        return np.stack(found)

    @abstractmethod
    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        """(n,) spectral norm of the derivative by x of each row's loss gradient (w in Kang-DBDP).

        Args:
            theta: (m,) for all rows, or (n, m) for row i at theta[i].
        """


class LineLosses(Protocol):
    """Line search."""

    def __call__(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        """(R, count) sums over rows of min(loss, clip) at evenly spaced points of lines, to single precision.

        Args:
            direction: (R, m).
            reach: (R,) the lines go from theta_r to theta_r - reach_r direction_r.
        """
        ...
