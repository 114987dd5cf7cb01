"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats
from dpviz.models.compiled.rows import add_noise, in_lanes, loss_of
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, row_blocks
from dpviz.models.sparse import Array, products, short_sums

_GROUP = 256  # rows in a product in single precision; what is released is claimed for the noisy rows, whatever is made of them
_FEW = 4  # replicas of a draw from which on filling 16 lanes pays


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
        each, shared = len(theta) // len(draws), draws.shape[1] == 1
        # compiled loops want the replicas of each draw in whole lanes
        compiled = kind is np.float32 and each >= _FEW and not shared and loss_of(self.loss) is not None
        lanes = in_lanes(each) if compiled else each
        plain, moved = (
            rows.columns(_in_lanes(at.astype(kind, copy=False), len(draws), lanes)) for at in (theta, theta * scale[:, None])
        )
        width = plain.shape[1]
        parts = [slice(lanes * s, lanes * (s + 1)) for s in range(len(draws))]
        blocks = row_blocks(len(rows), max(width, len(plain)))
        total, own = np.zeros((2, *plain.shape))
        buffer = np.empty((blocks[0].stop if blocks else 0, width), kind)
        for block in blocks:
            products_of = rows.products(kind, block)
            margin = products_of.margins(plain, buffer[: block.stop - block.start])
            for part, draw in zip(parts, draws, strict=True):
                # a block of noise stays in the cache between its two products
                if shared:
                    y = rows.part("y", block)
                    margin[:, part] = slope = self.loss.slope_inplace(margin[:, part] + y[:, None] * (draw @ moved[:, part]))
                    own[:, part] += draw.T * (y @ slope)
                elif compiled:
                    here = np.ascontiguousarray(draw[block], kind)
                    add_noise(here, moved, part.start, lanes, self.loss, margin, own, _GROUP)
                else:
                    here = draw[block].astype(kind, copy=False)
                    along = products(here, np.ascontiguousarray(moved[:, part]))
                    along += margin[:, part]
                    margin[:, part] = slope = self.loss.slope_inplace(along)
                    own[:, part] += short_sums(slope.T, here, _GROUP).T
            products_of.add(margin, total, _GROUP)
        common, noisy = (_of_replicas(of, len(draws), lanes, each) for of in (total, own))
        return common + scale[:, None] * noisy

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral


def _in_lanes(theta: Array, draws: int, lanes: int) -> Array:
    """Parameters (R, d) of the replicas of some draws with zeros behind those of each, so that they fill so many lanes."""
    out = np.zeros((draws, lanes, theta.shape[1]), theta.dtype)
    out[:, : len(theta) // draws] = theta.reshape(draws, -1, theta.shape[1])
    return out.reshape(draws * lanes, -1)


def _of_replicas(total: Floats, draws: int, lanes: int, each: int) -> Floats:
    """(R, d) sums of the replicas out of those of all lanes, (d, W)."""
    return total[:, : draws * lanes].T.reshape(draws, lanes, -1)[:, :each].reshape(draws * each, -1)
