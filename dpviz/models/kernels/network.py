"""Sums of clipped gradients of networks with one hidden layer of tanh units over a batch of rows; single precision.

With s = tanh(W (x, 1)), score f = <a, s> + c, e = a (1 - s^2) and q = y phi'(y f), a row's gradient is q (e (x, 1)', s, 1), and

    |gradient|^2 = q^2 (|e|^2 (|x|^2 + 1) + |s|^2 + 1)          (Goodfellow 2015)

Units lie next to each other, as replicas do elsewhere: K of them in parts of `width`. A network's sums go on in double precision
every MOST rows.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from dpviz.models.kernels import WIDTHS
from dpviz.models.kernels.compiling import INDEX, flat, kernel, slope_of, stack, table_of
from dpviz.models.kernels.functions import tangent
from dpviz.models.kernels.inline import add_row, ask_for_row, expand, row_margin, scatter
from dpviz.models.kernels.table import scratch, zeros
from dpviz.models.losses import Loss
from dpviz.models.rows import Batch, Rows

MOST = 512
_REASSOCIATED = {"contract", "reassoc", "nsz"}


@njit(fastmath=_REASSOCIATED)
def _product(a, b, start, count):  # type: ignore[no-untyped-def]
    """<a, b> of `count` numbers from `start` on; in whichever order is fast."""
    total = np.float32(0)
    for k in range(start, start + count):
        total += a[k] * b[k]
    return total


@cache
def networks_of(width: int, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for parts of `width` units."""
    W, one, number = np.uint64(width), np.float32(1), types.float32
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, many, many, many, many, number, number, loss, *[many] * 4, flat(types.float64))
    def network(table, index, labels, norms, first, second, offset, clip_norm, loss, s, e, short, above, total):  # type: ignore[no-untyped-def]
        """Adds one network's sums to `total`: of both layers' weights as they lie in `first` and `second`, and of the offset.

        Args:
            table: of rows (x, 1), as of `gradient`.
            index: the batch.
            labels, norms: (n,) of all rows; norms are those of x.
            first: (parts, D, W) flat weights of the first layer for D = d + 1 columns.
            second: (K,) weights of the second layer, K = parts x W; offset: c.
            s, e, short, above: (K,), (K,), as `first`, (K,), overwritten.
        """
        K, size = np.uint64(len(second)), np.uint64(len(first)) // (np.uint64(len(second)) // W)
        parts, part = K // W, stack(width, norms)
        for p in range(parts):
            expand(first[p * size : (p + np.uint64(1)) * size], table[5], W)
        for at in range(len(index)):
            i = index[at]
            ask_for_row(table, index, np.uint64(at))
            for p in range(parts):
                row_margin(table, i, first[p * size : (p + np.uint64(1)) * size], W, part)
                for r in range(W):
                    s[p * W + r] = tangent(part[r])
            for u in range(K):
                e[u] = second[u] * (one - s[u] * s[u])
            score = _product(second, s, np.uint64(0), K) + offset
            squares = _product(e, e, np.uint64(0), K) * (norms[i] * norms[i] + one) + _product(s, s, np.uint64(0), K) + one
            q = labels[i] * slope_at(labels[i] * score, one, *loss)
            norm = abs(q) * np.sqrt(squares)
            if norm > clip_norm:
                q *= clip_norm / norm  # Abadi et al. 2016, Algorithm 1
            for u in range(K):
                e[u] *= q
                above[u] += q * s[u]
            for p in range(parts):
                for r in range(W):
                    part[r] = e[p * W + r]
                add_row(table, i, part, W, short[p * size : (p + np.uint64(1)) * size])
            total[len(total) - 1] += q
            if (at + 1) % MOST == 0 or at + 1 == len(index):
                for k in range(np.uint64(len(first))):
                    total[k] += short[k]
                    short[k] = 0
                for u in range(K):
                    total[np.uint64(len(first)) + u] += above[u]
                    above[u] = 0
        for p in range(parts):
            scatter(total[p * size : (p + np.uint64(1)) * size], table[5], W)

    return network


def network_gradient(rows: Rows, theta: NDArray[Any], units: int, loss: Loss, clip_norm: float) -> NDArray[np.float64]:
    """(R, m) sums of clipped gradients over the rows at theta (R, m), m = k (d + 1) + k + 1 for k units."""
    table, f32 = rows.network_table, np.float32
    assert table is not None
    index = (rows.index if isinstance(rows, Batch) else np.arange(len(rows))) + rows.first
    if len(index) and not 0 <= index.min() <= index.max() < table.n:
        raise IndexError(f"{table.n} rows have no row {index.max()}")
    width = min(WIDTHS, key=lambda each: (-(-units // each) * each, -each))  # so that least is left over
    parts = -(-units // width)
    K, D = parts * width, table.width
    known = index.astype(np.uint64), rows.table_labels.astype(f32), rows.table_norms(f32)
    constants = tuple(f32(constant) for constant in loss.constants)
    first, second = scratch("first", (parts, D, width), f32), scratch("second", (K,), f32)
    memory = [zeros(name, (size,), f32) for name, size in (("s", K), ("e", K), ("short", D * K), ("above", K))]
    total, out = scratch("network", (D * K + K + 1,), np.float64), np.empty(theta.shape)
    kernel, last = networks_of(width, slope_of(loss), len(loss.constants)), units * table.d
    for at, sums in zip(theta.astype(f32, copy=False), out, strict=True):
        for each in (first, second, total):
            each.fill(0)
        for p, a in enumerate(range(0, units, width)):  # units next to each other
            b = min(a + width, units)
            first[p, : table.d, : b - a] = at[a * table.d : b * table.d].reshape(b - a, table.d).T
        second[:units] = at[last:-1]
        before = (table.rows(f32), *known, first.reshape(-1), second, at[-1], f32(clip_norm), constants)
        kernel(*before, *memory, total)
        weights = total[: D * K].reshape(parts, D, width)
        sums[:last] = weights[:, : table.d].transpose(0, 2, 1).reshape(K, table.d)[:units].reshape(-1)
        sums[last:-1], sums[-1] = total[D * K : D * K + units], total[-1]
    return out
