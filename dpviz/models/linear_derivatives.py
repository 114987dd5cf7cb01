"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, row_blocks
from dpviz.models.sparse import products, short_sums

_GROUP = 256  # rows in a product in single precision; what is released is claimed for the noisy rows, whatever is made of them


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

    def prepared(self, rows: Rows, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        """Noise of each row times its label, as in the margins y <theta, x>, so that no step multiplies by labels."""
        if len(noise) > 1:
            np.multiply(noise, rows.y.astype(noise.dtype)[:, None], out=noise)
        return noise

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        kind: type[np.floating] = theta.dtype.type
        draws = noise.reshape(-1, *noise.shape[-2:])
        each = len(theta) // len(draws)
        parts = [slice(each * s, each * (s + 1)) for s in range(len(draws))]
        plain, moved = (np.ascontiguousarray(at.T, kind) for at in (theta, theta * scale[:, None]))
        columns = [np.ascontiguousarray(moved[:, part]) for part in parts]
        blocks = row_blocks(len(rows), max(theta.shape))
        total, own = np.zeros((2, *theta.shape))
        for block in blocks:
            sparse = rows.signed_part(kind, block)
            if sparse is None:
                signed = rows.part("signed32" if kind is np.float32 else "signed", block)
                margin = signed @ plain  # (rows, R)
            else:
                margin = sparse.margins(plain.T).T
            for part, draw, at in zip(parts, draws, columns, strict=True):
                # a block of noise stays in the cache between its two products
                if draw.shape[0] == 1:
                    margin[:, part] = slope = self.loss.slope_inplace(
                        margin[:, part] + rows.part("y", block)[:, None] * (draw @ at)
                    )
                    own[part] += (rows.part("y", block) @ slope)[:, None] * draw
                else:
                    here = draw[block].astype(kind, copy=False)
                    along = products(here, at)
                    along += margin[:, part]
                    margin[:, part] = slope = self.loss.slope_inplace(along)
                    own[part] += short_sums(slope.T, here, _GROUP)
            total += short_sums(margin.T, signed, _GROUP) if sparse is None else sparse.sum(margin.T, _GROUP)
        return total + scale[:, None] * own

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral
