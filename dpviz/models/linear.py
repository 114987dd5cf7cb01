"""Linear models: the score is <theta, x>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.words import Words
from dpviz.models.base import Floats, Rule, Setting, right
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.kronecker import Curvature
from dpviz.models.losses import Loss, group_size
from dpviz.models.rows import Rows
from dpviz.models.solvers.many import newton

_SINGLE_FROM = 1 << 20  # entries of a table from which on stochastic training may use single precision
_BLOCK_ELEMENTS = 1 << 18  # rows x replicas worked on at once: small enough to stay in the processor's cache
_BLOCK_ROWS = 2048  # at once, for the same reason
_SINGLE_ROWS = 64  # rows summed in single precision before the sum goes on in double
_SHORTER = 1 - 2.0**-20  # of a sum in single precision: what rounding may add to a row's contribution, some 2^-22, is taken off
_LINE_ELEMENTS = 3 << 14  # the same for a line search, which works on more arrays at once


@dataclass(frozen=True)
class LinearModel:
    """Score <theta, x> under a convex margin loss with rows in the unit ball."""

    id: str
    label: Words
    loss: Loss
    formula: Words = r"\langle\theta,x\rangle"
    convex: bool = True
    exact_curvature: bool = True
    factored: bool = False
    width: None = None

    def setting(self, n: int, d: int, lam: float) -> Setting:
        beta = self.loss.curvature_bound
        at = np.array(self.loss.centre)
        slope, curvature = float(self.loss.slope(at)), float(self.loss.curvature(at))
        return Setting(
            n=n,
            d=d,
            m=d,
            lam=lam,
            model=self.id,
            G=self.loss.slope_bound,
            beta=beta,
            third=self.loss.third_bound,
            convex=True,
            unit_step=1.0 / (beta + lam),
            slope_at_zero=abs(float(self.loss.slope(np.zeros(())))),
            quadratic=(curvature * self.loss.centre - slope, curvature),
        )

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        return np.zeros((len(streams), m))

    def from_one_start(self, seed: int) -> LinearModel:
        return self  # 0 is the only one

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        _ = rows.signed32 if precision is np.float32 else rows.signed, rows.longest

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X @ theta.T

    def margins(self, theta: Floats, rows: Rows) -> Floats:
        return rows.signed @ theta.T

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        loss, hits = np.zeros((2, len(theta)))
        for block in _blocks(len(rows), len(theta)):
            margin = theta @ rows.X[block].T
            margin *= rows.y[block]
            hits += right(margin, rows.y[block])
            loss += self.loss.total(margin)
        return loss / len(rows), hits / len(rows)

    def sum_gradient(
        self,
        theta: Floats,
        rows: Rows,
        *,
        clip_norm: float = np.inf,
        weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:
        total = np.zeros(theta.shape)
        # rows of unit length are often 1 + 1e-16 long, which is not worth a pass over the data
        clips = clip_norm * (1 + 1e-9) < self.loss.slope_bound * rows.longest
        single = theta.dtype == np.float32
        blocks = _blocks(len(rows), len(theta))
        # one buffer for all blocks: fresh memory for each would cost more than the product itself
        buffer = np.empty(blocks[0].stop * len(theta) if blocks else 0, theta.dtype)
        for block in blocks:
            signed = rows.part("signed32" if single else "signed", block)
            margin = buffer[: len(theta) * len(signed)].reshape(len(theta), len(signed))
            slope = self.loss.slope_inplace(np.matmul(theta, signed.T, out=margin))
            if clips or rule is not None:
                norms = rows.part("norms", block).astype(theta.dtype, copy=False)
            if clips:
                slope *= _clip_factor(np.abs(slope) * norms, clip_norm)
            if weights is not None:
                slope *= weights[block].T
            if rule is not None:
                slope *= rule(block, np.abs(slope) * norms)
            total += _product(slope, signed)
        return total * _SHORTER if single else total

    def line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        """Scores are linear along a line, so that two products serve all its points."""
        r, total = len(theta), np.zeros((count, len(theta)))
        steps = direction * (reach / max(count - 1, 1))[:, None]
        points = np.vstack([theta, steps]).astype(np.float32)
        block_rows = max(512, _LINE_ELEMENTS // max(r, 1))
        for first in range(0, len(rows), block_rows):
            signed = rows.part("signed32", slice(first, first + block_rows))
            # a few groups of rows, whose losses are multiplied with each other, and what is left of them
            size, start = len(signed) // group_size(clip), 0
            for groups, length in ((group_size(clip), size), (1, len(signed) - group_size(clip) * size)):
                if length:
                    end = start + groups * length
                    both = np.matmul(points, signed[start:end].reshape(groups, length, -1).transpose(0, 2, 1))
                    total += self.loss.line_sums(both[:, :r].copy(), both[:, r:].copy(), count, clip)
                    start = end
        return total.T

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        return np.abs(self.loss.slope_inplace(rows.signed @ theta.T)) * rows.norms[:, None]

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        total = np.zeros_like(theta)
        # long rows make descent expansive, so that rounding grows: single precision only where time asks for it
        everything: NDArray[np.floating] = rows.signed32 if rows.X.size > _SINGLE_FROM else rows.signed
        kind = everything.dtype
        plain, scaled = theta.astype(kind), (theta * scale[:, None]).astype(kind)
        labels = rows.y.astype(kind)
        common = len(noise) == 1
        for block in _blocks(len(rows), max(theta.shape)):  # rows and noise both stay in the cache between the two products
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
        slope, curvature = self.slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = silent) -> Floats:
        return newton(rows.signed, self.loss, lam, start=start)[0]

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        margin = rows.signed @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.signed, theta)
        return np.asarray(self.loss.slope(margin), float), np.asarray(self.loss.curvature(margin), float)

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X

    def score_products(self, theta: Floats, rows: Rows, vectors: Floats) -> Floats:
        return rows.X @ vectors.T

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * np.eye(len(theta))
        for block in _blocks(len(rows), len(theta)):
            active = weight[block] > 0
            part = rows.X[block] if active.all() else rows.X[block][active]
            part = part * np.sqrt(weight[block][active] / len(rows))[:, None]
            total += part.T @ part  # one buffer on both sides: numpy calls syrk, half the work of a product
        return total

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * vectors
        for block in _blocks(len(rows), len(vectors)):
            total += ((rows.X[block] @ vectors.T) * (weight[block, None] / len(rows))).T @ rows.X[block]
        return total

    def curvature(self, theta: Floats, rows: Rows, lam: float) -> Curvature:
        raise NotImplementedError("the Hessian of a linear model is small enough")


def _blocks(n: int, replicas: int) -> list[slice]:
    """Slices of rows for one pass."""
    size = max(256, min(_BLOCK_ROWS, _BLOCK_ELEMENTS // max(replicas, 1)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _product(slope: NDArray[np.floating], signed: NDArray[np.floating]) -> NDArray[np.floating]:
    """slope @ signed; in single precision sums stay short, so that rounding is far below what one row contributes."""
    if slope.dtype != np.float32:
        return slope @ signed
    whole = len(signed) - len(signed) % _SINGLE_ROWS
    parts = slope[:, :whole].reshape(len(slope), -1, _SINGLE_ROWS).transpose(1, 0, 2)
    total = (parts @ signed[:whole].reshape(-1, _SINGLE_ROWS, signed.shape[1])).sum(axis=0, dtype=np.float64)
    return total + slope[:, whole:] @ signed[whole:]


def _clip_factor(norm: Floats, clip_norm: float) -> Floats:
    """min(1, C/|g|), with 1 for zero gradients (Abadi et al. 2016, Algorithm 1)."""
    return clip_norm / np.maximum(norm, clip_norm)
