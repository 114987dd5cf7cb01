"""Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.threads import Each, one_by_one
from dpviz.models.capabilities import Derivatives, FeatureNoise, Floats, Noise
from dpviz.models.compiled.noise import NoisySums, Strips
from dpviz.models.compiled.rows import aligned, loss_of
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, gram, row_blocks
from dpviz.models.sparse import Array, products, short_sums

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

    def prepared(self, rows: Rows, noise: NDArray[np.floating], precision: type[np.floating] = np.float64) -> Noise:
        # times each row's label, as in the margins y <theta, x>, so that no step multiplies by labels
        if len(noise) > 1:
            np.multiply(noise, rows.y.astype(noise.dtype)[:, None], out=noise)
        loops_know = (rows.compiled or rows.many) and loss_of(self.loss) is not None
        return Strips.of(noise) if loops_know and precision is np.float32 and len(noise) > 1 else noise

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: Sequence[Noise], scale: Floats) -> Floats:
        draws = [draw for draw in noise if not isinstance(draw, Strips)]
        if not draws:
            return self.of_parts([(rows, noise)], scale)(theta, one_by_one)
        common, noisy = self._sums(theta, theta * scale[:, None].astype(theta.dtype), rows, draws)
        return common + scale[:, None] * noisy

    def of_parts(self, parts: Sequence[tuple[Rows, Sequence[Noise]]], scale: Floats) -> Callable[[Floats, Each], Floats]:
        known = [(rows, [draw for draw in noise if isinstance(draw, Strips)]) for rows, noise in parts]
        if not known[0][1]:
            return super().of_parts(parts, scale)
        kept = [(rows.for_loops(np.float32)[0] if rows.compiled else rows.strips, draws) for rows, draws in known]
        sums = NoisySums(kept, len(scale), parts[0][0].X.shape[1], self.loss, _GROUP)

        def gradient(theta: Floats, each: Each) -> Floats:
            common, noisy = sums(theta, theta * scale[:, None].astype(np.float32), each)
            noisy *= scale[:, None]
            noisy += common
            return noisy

        return gradient

    def _sums(self, theta: Array, moved: Array, rows: Rows, draws: Sequence[NDArray[np.floating]]) -> tuple[Floats, Floats]:
        """Sums of rows times slopes, and of their noise times slopes, (R, d) each."""
        kind, each, shared = theta.dtype.type, len(theta) // len(draws), draws[0].shape[0] == 1
        plain = rows.columns(theta)
        parts = [slice(each * s, each * (s + 1)) for s in range(len(draws))]
        along = [np.ascontiguousarray(moved[part].T) for part in parts]
        blocks = row_blocks(len(rows), plain.shape[1])
        total, own = aligned(plain.shape, np.float64), np.zeros((theta.shape[1], len(theta)))
        buffer = aligned((blocks[0].stop if blocks else 0, plain.shape[1]), kind)
        for block in blocks:
            products_of = rows.products(kind, block)
            margin = products_of.margins(plain, buffer[: block.stop - block.start])
            for part, draw, by in zip(parts, draws, along, strict=True):
                # a block of noise stays in the cache between its two products
                if shared:
                    y = rows.part("y", block)
                    margin[:, part] = slope = self.loss.slope_inplace(margin[:, part] + y[:, None] * (draw @ by))
                    own[:, part] += draw.T * (y @ slope)
                else:
                    here = draw[block].astype(kind, copy=False)
                    margin[:, part] = slope = self.loss.slope_inplace(products(here, by) + margin[:, part])
                    own[:, part] += short_sums(slope.T, here, _GROUP).T
            products_of.add(margin, total, _GROUP)
        return total[:, : len(theta)].T, own.T

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
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral
