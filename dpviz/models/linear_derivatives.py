"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, row_blocks

_SINGLE_FROM = 1 << 20  # entries of a table from which on training on noisy rows uses single precision


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
        return np.asarray(self.loss.slope(margin), float), np.asarray(self.loss.curvature(margin), float)

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * np.eye(len(theta))
        for block in row_blocks(len(rows), len(theta)):
            active = weight[block] > 0
            part = rows.X[block] if active.all() else rows.X[block][active]
            part = part * np.sqrt(weight[block][active] / len(rows))[:, None]
            total += part.T @ part  # one buffer on both sides: numpy calls syrk, half the work of a product
        return total

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

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        total = np.zeros_like(theta)
        # long rows make descent expansive, so that rounding grows: single precision only where time asks for it
        everything: NDArray[np.floating] = rows.signed32 if rows.X.size > _SINGLE_FROM else rows.signed
        kind = everything.dtype
        plain, scaled = theta.astype(kind), (theta * scale[:, None]).astype(kind)
        labels = rows.y.astype(kind)
        common = len(noise) == 1
        for block in row_blocks(len(rows), max(theta.shape)):  # rows and noise both stay in the cache between the two products
            signed, label = everything[block], labels[block]
            draw = (noise if common else noise[block]).astype(kind, copy=False)
            moved = scaled @ draw.T
            moved = np.multiply(moved, label, out=None if common else moved)
            moved += plain @ signed.T
            slope = self.loss.slope_inplace(moved)
            total += slope @ signed
            slope *= label
            total += scale[:, None] * (slope.sum(axis=1)[:, None] * draw if common else slope @ draw)
        return total

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral
