"""Sums over labelled rows y_i x_i, which training consists of: one interface, in numpy here and by kernels in `kernels.products`.

Replicas are trained together: parameters are (R, d), and sums (R, d) in double precision. In single precision the terms of a sum
are few before it goes on in double precision, so that rounding is far below what one row contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor
from dpviz.common.random import Drawn
from dpviz.models.losses import Loss

if TYPE_CHECKING:
    from dpviz.models.rows import Rows

Array = NDArray[np.floating]
Index = NDArray[np.intp]
#: (block of rows, (R, b) clipped gradient norms) -> weights that broadcast to (R, b)
Rule = Callable[[slice, Floats], NDArray[Any]]

BLOCK_ROWS = 2048  # at once: rows and margins stay in the processor's cache between two products
_BLOCK_ELEMENTS = 1 << 18  # rows x replicas at once, for the same reason
_SHORT = 64  # rows summed in single precision before the sum goes on in double
_LEAST = 5e-324  # the smallest number above 0
_ALIKE = 16  # replicas of a product whose bits are to be the same whatever the others are
_AS_THEY_LIE = 1_000_000  # multiplications up to which BLAS takes the factors of a product as they lie, and above copies them


def products(rows: Rows, precision: type[np.floating]) -> Products:
    """The sums over these rows in single or double precision: by kernels where rows are mostly zeros and numba is installed."""
    if rows.table is None:
        return Products(rows, precision)
    from dpviz.models.kernels.products import KernelProducts

    return KernelProducts(rows, precision)


class Products:
    """Sums over n rows, by dense blocks in numpy. A block's rows and slopes stay in the processor's cache."""

    def __init__(self, rows: Rows, precision: type[np.floating]) -> None:
        self.rows, self.precision = rows, precision

    def _block(self, block: slice) -> Array:
        """(b, d) rows y_i x_i."""
        return self.rows.part("signed32" if self.precision is np.float32 else "signed", block)

    def margins(self, theta: Floats, block: slice) -> Array:
        """(b, R) margins of a block of rows."""
        return by_replica(self._block(block), theta.astype(self.precision, copy=False))

    def gradient(
        self, theta: Floats, loss: Loss, clip_norm: float = np.inf, weights: Array | None = None, rule: Rule | None = None
    ) -> Floats:
        """(R, d) sums over rows of weight x clipped gradient; arguments as of `Model.sum_gradient`."""
        columns, total = np.ascontiguousarray(theta.T, self.precision), np.zeros(theta.shape)
        for block in row_blocks(len(self.rows), len(theta)):
            rows = self._block(block)
            slope = loss.slope_inplace(matmul(rows, columns)).T
            if clip_norm < np.inf or rule is not None:
                norms = self.rows.part("norms", block).astype(self.precision, copy=False)
            if clip_norm < np.inf:
                slope *= clip_norm / np.maximum(np.abs(slope) * norms, clip_norm)  # Abadi et al. 2016, Algorithm 1
            if self.rows.weights is not None:  # after clipping, so that a row contributes at most clip_norm
                slope *= self.rows.weights[block].astype(self.precision)
            if weights is not None:
                slope *= weights[block].T
            if rule is not None:
                slope *= rule(block, np.abs(slope) * norms)
            total += short_sums(slope, rows)
        return total

    def batches(self, theta: Floats, batches: Drawn, loss: Loss, clip_norm: float = np.inf) -> Floats:
        """(S, E, d) sums of clipped gradients: replicas theta[s], (S, E, d), over the rows batches[s]."""
        return np.stack(
            [
                products(self.rows.batch(index), self.precision).gradient(at, loss, clip_norm)
                for at, index in zip(theta, batches, strict=True)
            ]
        )

    def losses(self, theta: Floats, loss: Loss) -> tuple[Floats, NDArray[np.intp]]:
        """(R,) sums of losses, and (R,) rows predicted right; a score of 0 predicts +1."""
        total, right = np.zeros(len(theta)), np.zeros(len(theta), np.intp)
        for block in row_blocks(len(self.rows), 1):  # as many rows for any number of replicas, so that bits are the same
            margin = np.ascontiguousarray(self.margins(theta, block).T)
            right += np.count_nonzero(margin > np.where(self.rows.part("y", block) > 0, -_LEAST, 0.0), axis=1)
            if self.rows.weights is None:
                total += loss.total(margin)
            else:
                total += loss.value(margin) @ self.rows.weights[block]
        return total, right

    def line_losses(self, theta: Floats, step: Floats, count: int, loss: Loss, clip: float) -> Floats:
        """(count, R) sums over rows of min(loss, clip) at theta - k step, k < count, to single precision."""
        total = np.zeros((count, len(theta)))
        for block in row_blocks(len(self.rows), len(theta)):
            total += loss.line_sums(self.margins(theta, block), self.margins(step, block), count, clip)
        return total

    def descend(
        self,
        loss: Loss,
        lam: float,
        steps: Floats,
        bounds: Sequence[int],
        order: Index | None = None,
        *,
        window: int = 0,
        stops: Sequence[int] = (),
        monitor: Monitor,
    ) -> Floats:
        """(E, d) mini-batch gradient descent from 0: w <- w - eta (mean data gradient of the batch + lam w).

        Args:
            steps: (E, T) step sizes eta.
            bounds: ends of the m batches in the order; update t takes number t mod m.
            order: (n,) of the rows; None for as they stand.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
            stops: numbers of updates of one training after each of which a training ends; then (stops, d).
        """
        m, w, ends = len(bounds) - 1, np.zeros((len(steps), self.rows.X.shape[1])), {}
        total = np.zeros_like(w)
        for t, eta in enumerate(steps.T[:, :, None]):
            part = slice(bounds[t % m], bounds[t % m + 1])
            batch = self.rows.take(part) if order is None else self.rows.batch(order[part])
            mean = Products(batch, self.precision).gradient(w, loss) / len(batch)
            w = w * (1 - eta * lam) - eta * mean
            total += w
            if window and (t + 1) % window == 0:
                w, total = total / window, np.zeros_like(total)
            if t + 1 in stops:
                ends[t + 1] = w[0]
            if t % 64 == 0:
                monitor(t / steps.shape[1])
        return np.array([ends[stop] for stop in stops]) if stops else w

    def prepared(self, noise: Array, out: Array | None = None) -> Array:
        """A draw as `noisy_gradient` takes it, (n, d) times labels, or one that all rows share, (1, d), as it is."""
        labels = self.rows.part("y", slice(0, len(noise)))[:, None] if len(noise) == len(self.rows) else 1
        return np.multiply(noise, np.asarray(labels, noise.dtype), out=out)

    def noisy_gradient(self, theta: Floats, moved: Floats, noise: Array, loss: Loss) -> tuple[Floats, Floats]:
        """(R, d) sums of rows times slopes, and of their noise times slopes, at margins <theta, x> + <moved, z>.

        Args:
            moved: (R, d) parameters times noise scales.
            noise: S draws from `prepared`; the first is for the first R/S replicas, and so on.
        """
        each, shared = len(theta) // len(noise), noise.shape[1] == 1 != len(self.rows)
        moved, total, own = moved.astype(self.precision, copy=False), np.zeros(theta.shape), np.zeros(theta.shape)
        for block in row_blocks(len(self.rows), len(theta)):
            margin, y = self.margins(theta, block), self.rows.part("y", block)[:, None]
            for s, draw in enumerate(noise):
                part, z = slice(each * s, each * (s + 1)), y * draw if shared else draw[block]
                z = z.astype(self.precision, copy=False)
                along = matmul(z, np.ascontiguousarray(moved[part].T))
                margin[:, part] = slope = loss.slope_inplace(along + margin[:, part])
                own[part] += short_sums(slope.T, z)
            total += short_sums(margin.T, self._block(block))
        return total, own


def row_blocks(n: int, replicas: int) -> list[slice]:
    """Slices of n rows, for one pass of some replicas over them."""
    size = max(256, min(BLOCK_ROWS, _BLOCK_ELEMENTS // max(replicas, 1)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def matmul(rows: Array, columns: Array) -> Array:
    """rows (b, d) times columns (d, R), in groups of rows that BLAS takes as they lie."""
    out = np.empty((len(rows), columns.shape[1]), rows.dtype)
    size = _together(len(rows), columns.size)
    whole = len(rows) - len(rows) % size
    np.matmul(rows[:whole].reshape(-1, size, rows.shape[1]), columns, out=out[:whole].reshape(-1, size, columns.shape[1]))
    np.matmul(rows[whole:], columns, out=out[whole:])
    return out


def by_replica(rows: Array, theta: Array) -> NDArray[Any]:
    """(b, R) rows (b, d) times theta (R, d); the bits of a replica do not depend on the others.

    BLAS sums a product in another order where it has another width; products here have one width each.
    """
    out = np.empty((len(rows), -(-len(theta) // _ALIKE) * _ALIKE), rows.dtype)
    for first in range(0, len(theta), _ALIKE):
        some = np.zeros((rows.shape[1], _ALIKE), rows.dtype)
        some[:, : len(theta) - first] = theta[first : first + _ALIKE].T
        np.matmul(rows, some, out=out[:, first : first + _ALIKE])
    return out[:, : len(theta)]


def short_sums(weights: Array, rows: Array) -> Array:
    """(R, d) weights (R, b) times rows (b, d); in single precision sums stay short."""
    size = _SHORT if weights.dtype == np.float32 else _together(len(rows), len(weights) * rows.shape[1])
    whole = len(rows) - len(rows) % size
    parts = weights[:, :whole].reshape(len(weights), -1, size).transpose(1, 0, 2)
    total = (parts @ rows[:whole].reshape(-1, size, rows.shape[1])).sum(axis=0, dtype=np.float64)
    return total + weights[:, whole:] @ rows[whole:]


def _together(rows: int, each: int) -> int:
    """Rows in one product, in groups of about equal size; with `each` multiplications a row."""
    most = _AS_THEY_LIE // max(each, 1)
    return max(1, rows if most < _SHORT else -(-rows // max(1, -(-rows // most))))
