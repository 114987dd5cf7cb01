"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, row_blocks
from dpviz.models.sparse import short_sums

_SINGLE_FROM = 1 << 20  # entries of a table from which on training on noisy rows uses single precision
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
        total = np.zeros_like(theta)
        # long rows make descent expansive, so that rounding grows: single precision only where time asks for it
        single = len(rows) * theta.shape[1] > _SINGLE_FROM
        kind: type[np.floating] = np.float32 if single else np.float64
        plain = np.ascontiguousarray(theta.T.astype(kind))
        draws = noise.reshape(-1, *noise.shape[-2:])
        common, each = draws.shape[1] == 1, len(theta) // len(draws)
        parts = [slice(each * s, each * (s + 1)) for s in range(len(draws))]
        scaled = [np.ascontiguousarray((theta[part] * scale[part, None]).T.astype(kind)) for part in parts]
        blocks = row_blocks(len(rows), max(theta.shape))  # rows and noise both stay in the cache between the two products
        own, moved = np.zeros_like(theta), np.empty((blocks[0].stop, len(theta)), kind)
        for block in blocks:
            sparse = rows.signed_part(kind, block)
            label = rows.part("y", block)[:, None].astype(kind) if common else None
            here = [(draw if common else draw[block]).astype(kind, copy=False) for draw in draws]
            if sparse is None:
                signed = rows.part("signed32" if single else "signed", block)
                margin = signed @ plain  # (rows, R)
            else:
                margin = sparse.margins(plain.T).T
            for part, draw, at in zip(parts, here, scaled, strict=True):
                _products(draw, at, moved[: len(margin), part])
            margin += moved[: len(margin)] if label is None else moved[:1] * label
            slope = self.loss.slope_inplace(margin)
            total += short_sums(slope.T, signed, _GROUP) if sparse is None else sparse.sum(slope.T, _GROUP)
            if label is not None:
                slope *= label
            for part, draw in zip(parts, here, strict=True):
                weights = slope[:, part].T
                own[part] += weights.sum(axis=1)[:, None] * draw if common else short_sums(weights, draw, _GROUP)
        return total + scale[:, None] * own

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral


def _products(rows: NDArray[np.floating], columns: NDArray[np.floating], out: NDArray[np.floating]) -> None:
    """rows (b, d) times columns (d, R), written to the first b of `out`.

    In groups: below a million multiplications BLAS takes the rows as they lie, above it copies them first.
    """
    whole = len(rows) - len(rows) % _GROUP
    grouped = rows[:whole].reshape(-1, _GROUP, rows.shape[1])
    np.matmul(grouped, columns, out=out[:whole].reshape(-1, _GROUP, out.shape[1]))
    np.matmul(rows[whole:], columns, out=out[whole : len(rows)])
