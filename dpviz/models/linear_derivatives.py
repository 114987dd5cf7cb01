"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats, Noise
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.products import products
from dpviz.models.rows import Rows, gram, row_blocks


@dataclass(frozen=True)
class LinearDerivatives(Derivatives):
    """J_i = x_i."""

    loss: Loss
    exact = True

    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.X, theta)

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        margin = rows.signed @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.signed, theta)
        weights = 1.0 if rows.weights is None else rows.weights
        return np.asarray(weights * self.loss.slope(margin), float), np.asarray(weights * self.loss.curvature(margin), float)

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        return gram(rows.X, weight / len(rows)) + lam * np.eye(len(theta))

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * vectors
        for block in row_blocks(len(rows), len(vectors)):
            total += ((rows.X[block] @ vectors.T) * (weight[block, None] / len(rows))).T @ rows.X[block]
        return total


@dataclass(frozen=True)
class LinearFeatureNoise(FeatureNoise):
    """The noise of a row enters its score through theta alone: <theta, x + s e> = <theta, x> + s <theta, e>."""

    loss: Loss

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: Noise, scale: Floats) -> Floats:
        common, own = products(rows, theta.dtype.type).noisy_gradient(theta, theta * scale[:, None], noise, self.loss)
        return common + scale[:, None] * own

    def over_batches(
        self, theta: Floats, rows: Rows, batches: NDArray[np.intp], noise: Sequence[NDArray[np.floating]], scale: Floats
    ) -> Floats:
        # batches are short: products of all seeds at once cost less than leaving out zeros seed by seed
        kind, total, own = theta.dtype.type, np.zeros(theta.shape), np.zeros(theta.shape)
        signed = rows.signed32 if kind is np.float32 else rows.signed
        plain = theta.transpose(0, 2, 1)
        along = plain * scale.astype(kind)
        for block in row_blocks(batches.shape[1], theta.shape[0] * theta.shape[1]):
            index = batches[:, block]
            x, y = signed.take(index, axis=0), rows.y.take(index).astype(kind)
            z = np.stack([draw.take(which, axis=0) for draw, which in zip(noise, index, strict=True)]).astype(kind, copy=False)
            z *= y[:, :, None]
            margin = x @ plain
            margin += z @ along
            slope = self.loss.slope_inplace(margin).transpose(0, 2, 1)
            total += slope @ x
            own += slope @ z
        return total + scale[:, None] * own

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta)
