"""Sums over labelled rows y_i x_i, which training consists of: in numpy, and by `kernels` where rows are mostly zeros.

Replicas are trained together: parameters are (R, d), and sums (R, d) in double precision. In single precision the terms of a sum
are few before it goes on in double precision, so that rounding is far below what one row contributes.
"""

import math
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor
from dpviz.common.random import BatchIndices
from dpviz.models.losses import Loss
from dpviz.models.row_budget import RowBudget, Rule
from dpviz.models.rows import Batch, Rows, row_blocks

Array = NDArray[np.floating]
Index = NDArray[np.intp]

_SHORT = 64  # rows summed in single precision before the sum goes on in double
_LEAST = 5e-324  # the smallest number above 0
FIXED_WIDTH = 16  # replicas of a product whose bits are to be the same whatever the others are
SMALL_PRODUCT = 1_000_000  # multiplications up to which BLAS takes the factors of a product as they lie, and above copies them
_MOST_FILLED = 0.35  # share of non-zero entries up to which kernels are faster than dense products
_LEAST_ENTRIES = 1 << 15  # of a table; below, a first page would wait longer for compiling than it gains
_REPORT_ENTRIES = 10_000_000  # of rows that updates read between two reports, in less than 0.1 s


@cache
def has_kernels() -> bool:
    """True where numba is installed and DPVIZ_COMPILED is not 0."""
    if os.environ.get("DPVIZ_COMPILED") == "0" or find_spec("numba") is None:
        return False
    try:
        import dpviz.models.kernels  # noqa: F401
    except ImportError:  # a numba that is too old for this numpy, or too new for what is used of it, says so when it is loaded
        return False
    return True


def uses_kernels(rows: Rows) -> bool:
    """True where kernels sum these rows, which are many and mostly zeros."""

    def decide() -> bool:
        X = rows.X
        return rows.weights is None and X.size >= _LEAST_ENTRIES and bool(np.count_nonzero(X) <= _MOST_FILLED * X.size)

    return not isinstance(rows, Batch) and rows.compute_once("sparse", decide) and has_kernels()


def products(rows: Rows, precision: type[np.floating]) -> "Products":
    """The sums over these rows in single or double precision: by kernels where rows are mostly zeros and numba is installed."""
    return SparseProducts(rows, precision) if uses_kernels(rows) else Products(rows, precision)


class Products:
    """Sums over n rows, by dense blocks in numpy. A block's rows and slopes stay in the processor's cache."""

    def __init__(self, rows: Rows, precision: type[np.floating]) -> None:
        self.rows, self.precision = rows, precision

    def _block(self, block: slice) -> Array:
        """(b, d) rows y_i x_i."""
        return self.rows.part("signed_rows32" if self.precision is np.float32 else "signed_rows", block)

    def margins(self, theta: Floats, block: slice) -> Array:
        """(b, R) margins of a block of rows."""
        return by_replica(self._block(block), theta.astype(self.precision, copy=False))

    def gradient(
        self,
        theta: Floats,
        loss: Loss,
        clip_norm: float = np.inf,
        weights: Array | None = None,
        rule: Rule | None = None,
        more: Array | None = None,
    ) -> Floats:
        """(R, d) sums over rows of weight x clipped gradient; arguments as of `Model.sum_gradient`.

        Args:
            more: (n, R) added to the margins, and overwritten by the rows' weighted slopes.
        """
        columns, total = np.ascontiguousarray(theta.T, self.precision), np.zeros(theta.shape)
        for block in row_blocks(len(self.rows), len(theta)):
            rows = self._block(block)
            margin = matmul(rows, columns)
            if more is not None:
                margin += more[block]
            slope = loss.slope_inplace(margin).T
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
            if more is not None:
                more[block] = slope.T
            total += short_sums(slope, rows)
        return total

    def batches(self, theta: Floats, batches: BatchIndices, loss: Loss, clip_norm: float = np.inf) -> Floats:
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
        total, ends = np.zeros((count, len(theta))), np.asfortranarray(np.concatenate([theta, step]), self.precision)
        for block in row_blocks(len(self.rows), len(ends)):
            at, change = self.margins(ends, block).reshape(-1, 2, len(theta)).swapaxes(0, 1)
            total += loss.line_sums(at, change, count, clip)
        return total

    def descend(
        self,
        loss: Loss,
        lam: Floats,
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
            lam: (E,) regularisation.
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
            w = w * (1 - eta * lam[:, None]) - eta * mean
            total += w
            if window and (t + 1) % window == 0:
                w, total = total / window, np.zeros_like(total)
            if t + 1 in stops:
                ends[t + 1] = w[0]
            if t % 64 == 0:
                monitor(t / steps.shape[1])
        return np.array([ends[stop] for stop in stops]) if stops else w

    def noisy_gradient(self, theta: Floats, moved: Floats, noise: Sequence[Array], loss: Loss) -> tuple[Floats, Floats]:
        """(R, d) sums of rows times slopes, and of their noise times slopes and labels, at margins <theta, x> + y <moved, z>.

        Args:
            moved: (R, d) parameters times noise scales.
            noise: S draws (n, d), or (1, d) that all rows share; the first is for the first R/S replicas, and so on.
        """
        each, y = len(theta) // len(noise), self.rows.y[:, None].astype(self.precision)
        draws = [(slice(each * s, each * (s + 1)), z.astype(self.precision, copy=False)) for s, z in enumerate(noise)]
        slopes, own = np.empty((len(noise[0]), len(theta)), self.precision), np.empty(theta.shape)
        for part, z in draws:
            matmul(z, np.ascontiguousarray(moved[part].T, self.precision), slopes[:, part])
        slopes = slopes * y
        total = self.gradient(theta, loss, more=slopes)
        slopes *= y
        for part, z in draws:
            mine = slopes[:, part].T
            own[part] = mine.sum(axis=1, dtype=float)[:, None] * z if len(z) == 1 else short_sums(mine, z, 8 * _SHORT)
        return total, own


class SparseProducts(Products):
    """Sums by kernels. Rules, single rows of others and whatever else kernels do not know are done by dense blocks."""

    precision: Any

    def __init__(self, rows: Rows, precision: type[np.floating]) -> None:
        super().__init__(rows, precision)
        from dpviz.models import kernels

        self._kernels, self._d = kernels, rows.X.shape[1]
        signed = rows.signed_rows32 if precision is np.float32 else rows.signed_rows
        self._sparse = rows.compute_once(f"sparse {precision}", lambda: csr_array(signed))
        self._entries = rows.compute_once(f"entries {precision}", lambda: kernels.by_row(self._sparse))
        self._norms = rows.compute_once(f"norms {precision}", lambda: rows.norms.astype(precision))

    def margins(self, theta: Floats, block: slice) -> Array:
        # scipy adds the entries of a row in their order, for each replica alike: its bits do not depend on the others
        ends = self._sparse.indptr[block.start : block.stop + 1]
        here = slice(ends[0], ends[-1])  # in the same memory: the copy that scipy would make takes longer than the product
        rows = csr_array((self._sparse.data[here], self._sparse.indices[here], ends - ends[0]), (len(ends) - 1, self._d))
        return np.asarray(rows @ np.ascontiguousarray(theta.T, self.precision))

    def gradient(
        self,
        theta: Floats,
        loss: Loss,
        clip_norm: float = np.inf,
        weights: Array | None = None,
        rule: Rule | None = None,
        more: Array | None = None,
    ) -> Floats:
        if not isinstance(rule, RowBudget | None):
            return super().gradient(theta, loss, clip_norm, weights, rule, more)
        blocks = self.rows.compute_once(f"blocks {self.precision}", lambda: self._kernels.by_column(self._sparse))
        out, table, one = np.empty(theta.shape), (self._entries, blocks), self.precision(1)
        own = None if weights is None else np.ascontiguousarray(np.broadcast_to(weights, (len(self.rows), len(theta))))
        spending = (None, one, one) if rule is None else (rule.spent, rule.up, rule.limit)
        for part, width in self._parts(len(theta)):
            columns, total, active = self._columns(theta[part], width), aligned((self._d, width), np.float64), np.zeros(width)
            kernel = self._kernels.compile_kernel(self._kernels.gradient, width, loss.slope_at)
            slopes = aligned((self._kernels.ROWS, width), self.precision)
            numbers = columns, self._norms, self.precision(clip_norm), one, self._constants(loss)
            kernel(*table, *numbers, own, more, part.start, *spending, active, slopes, total)
            out[part] = total.T[: len(out[part])]
            if rule is not None:
                rule.count(part, active)
        return out

    def batches(self, theta: Floats, batches: BatchIndices, loss: Loss, clip_norm: float = np.inf) -> Floats:
        index, out, one = batches.index, np.empty(theta.shape), self.precision(1)
        if len(theta) != len(batches) or (len(index) and not 0 <= index.min() <= index.max() < len(self.rows)):
            raise IndexError(f"{len(batches)} batches for {len(theta)} seeds, of rows that must be among {len(self.rows)}")
        for part, width in self._parts(theta.shape[1]):
            columns, short = self._columns(theta[:, part], width), aligned((self._d, width), self.precision)
            total, clip = aligned(columns.shape, np.float64), self.precision(clip_norm)
            kernel = self._kernels.compile_kernel(self._kernels.batches, width, loss.slope_at)
            kernel(self._entries, index, batches.cuts, columns, self._norms, clip, one, self._constants(loss), short, total)
            out[:, part] = total.transpose(0, 2, 1)[:, : out[:, part].shape[1]]
        return out

    def descend(
        self,
        loss: Loss,
        lam: Floats,
        steps: Floats,
        bounds: Sequence[int],
        order: Index | None = None,
        *,
        window: int = 0,
        stops: Sequence[int] = (),
        monitor: Monitor,
    ) -> Floats:
        updates, found = steps.shape[1], []
        rows = self._entries if order is None else self._kernels.by_row(self._sparse[order])  # read one after the other
        if bounds[0] != 0 or not bounds[-1] == len(self.rows) == len(rows.ends) - 1 or min(np.diff(bounds)) < 1:
            raise ValueError("batches must be some of the rows each, one after the other")
        some = max(1, _REPORT_ENTRIES * (len(bounds) - 1) // max(len(self._entries.values), 1))
        for part, width in self._parts(len(steps)) if len(steps) > 1 else [(slice(0, 1), 1)]:
            w, gradient, total = aligned((3, self._d, width), np.float64)
            eta, mine, ends = self._columns(steps[part], width), self._columns(lam[part, None], width)[0], {}
            kernel = self._kernels.compile_kernel(self._kernels.descend, width, loss.slope_at)
            for a, b in pairwise(sorted({*range(0, updates, some), *stops, updates})):
                after = eta, mine, window, self._constants(loss), w, gradient, total
                kernel(rows, np.array(bounds), a, b, *after)
                ends[b] = w[:, 0].copy()
                monitor(b / updates)
            found.append(np.array([ends[stop] for stop in stops]) if stops else w.T[: len(steps[part])])
        return np.concatenate(found)

    def _parts(self, replicas: int) -> list[tuple[slice, int]]:
        """The replicas in parts of a kernel's width."""
        narrow, found, first = self._kernels.NARROW, [], 0
        while first < replicas:
            width = narrow if replicas - first <= 3 * narrow else self._kernels.WIDE
            found.append((slice(first, first + width), width))
            first += width
        return found

    def _columns(self, theta: Floats, width: int) -> Array:
        """(..., d, W) parameters of some replicas (..., R, d); further replicas are 0."""
        columns = aligned((*theta.shape[:-2], theta.shape[-1], width), self.precision)
        columns[..., : theta.shape[-2]] = np.swapaxes(theta, -1, -2)
        return columns

    def _constants(self, loss: Loss) -> tuple[Any, ...]:
        return tuple(self.precision(constant) for constant in loss.constants)


def aligned(shape: tuple[int, ...], kind: type[np.floating]) -> Array:
    """Zeros from the start of a cache line, so that no vector of a kernel lies in two lines, which takes a quarter longer."""
    room = np.zeros(math.prod(shape) * np.dtype(kind).itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + len(room) - 64].view(kind).reshape(shape)


def matmul(rows: Array, columns: Array, out: Array | None = None) -> Array:
    """rows (b, d) times columns (d, R), in groups of rows that BLAS takes as they lie; written to `out` where it is given."""
    out = np.empty((len(rows), columns.shape[1]), rows.dtype) if out is None else out
    size = rows_per_product(len(rows), columns.size)
    whole = len(rows) - len(rows) % size
    # OpenBLAS takes along what registers held before, which raises "invalid"; the product is right
    with np.errstate(invalid="ignore"):
        np.matmul(rows[:whole].reshape(-1, size, rows.shape[1]), columns, out=out[:whole].reshape(-1, size, columns.shape[1]))
        np.matmul(rows[whole:], columns, out=out[whole:])
    return out


def by_replica(rows: Array, theta: Array) -> NDArray[Any]:
    """(b, R) rows (b, d) times theta (R, d); the bits of a replica do not depend on the others.

    BLAS sums a product in another order where it has another width; products here have one width each.
    """
    out = np.empty((len(rows), -(-len(theta) // FIXED_WIDTH) * FIXED_WIDTH), rows.dtype)
    for first in range(0, len(theta), FIXED_WIDTH):
        some = np.zeros((rows.shape[1], FIXED_WIDTH), rows.dtype)
        some[:, : len(theta) - first] = theta[first : first + FIXED_WIDTH].T
        np.matmul(rows, some, out=out[:, first : first + FIXED_WIDTH])
    return out[:, : len(theta)]


def short_sums(weights: Array, rows: Array, short: int = _SHORT) -> Array:
    """(R, d) weights (R, b) times rows (b, d); in single precision sums stay short."""
    size = short if weights.dtype == np.float32 else rows_per_product(len(rows), len(weights) * rows.shape[1])
    whole = len(rows) - len(rows) % size
    parts = weights[:, :whole].reshape(len(weights), -1, size).transpose(1, 0, 2)
    total = (parts @ rows[:whole].reshape(-1, size, rows.shape[1])).sum(axis=0, dtype=np.float64)
    return total + weights[:, whole:] @ rows[whole:]


def rows_per_product(rows: int, each: int) -> int:
    """Rows in one product, in groups of about equal size; with `each` multiplications a row."""
    most = SMALL_PRODUCT // max(each, 1)
    return max(1, rows if most < _SHORT else -(-rows // max(1, -(-rows // most))))
