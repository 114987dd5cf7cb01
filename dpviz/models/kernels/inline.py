"""The pieces that kernels share (`compiling.piece`): a row's margins, adding rows, clipping, a batch.

A table is (ends, columns, values, dense, which): row i has the entries ends[i] to ends[i + 1] - 1, and in the five columns
`which` the numbers dense[5 i] to dense[5 i + 4], zeros included. Parameters and sums are (d, W) flat, W replicas next to each
other. Indices are unsigned, because numba counts negative ones from the end,
which takes longer than the sums.
"""

import numpy as np

import dpviz.models.kernels.functions  # noqa: F401 (what elementary functions are inside kernels)
from dpviz.models.elementary import limited
from dpviz.models.kernels import BLOCK, CHUNK, DENSE, SIMD, SUMS, WIDEST
from dpviz.models.kernels.compiling import piece, prefetch, stack

ZERO, ONE, TWO, FIVE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(DENSE)
_L, _CHUNK, _SLOPES, _NEAR = np.uint64(SIMD), np.uint64(CHUNK), CHUNK * WIDEST, CHUNK * DENSE


@piece
def clip_slopes(slopes, place, W, norm, clip_norm):  # type: ignore[no-untyped-def]
    """Clips the gradients of a row with this norm (Abadi et al. 2016, Algorithm 1): |slope x| <= C is |slope| <= C/|x|."""
    most = clip_norm / norm
    for r in range(W):
        slopes[place + r] = limited(slopes[place + r], -most, most)


@piece
def row_margin(table, row, theta, W, margin):  # type: ignore[no-untyped-def]
    """Writes <theta_r, x> for a row x and all replicas r to `margin`, (W,)."""
    ends, columns, values, dense, which = table
    k, p, q, s, t, u = row * FIVE, which[0] * W, which[1] * W, which[2] * W, which[3] * W, which[4] * W
    x, y, z, v, w = dense[k], dense[k + np.uint64(1)], dense[k + np.uint64(2)], dense[k + np.uint64(3)], dense[k + np.uint64(4)]
    for r in range(W):
        margin[r] = (x * theta[p + r] + y * theta[q + r]) + (z * theta[s + r] + v * theta[t + r]) + w * theta[u + r]
    for k in range(ends[row], ends[row + ONE]):
        value, at = values[k], columns[k] * W
        for r in range(W):
            margin[r] += value * theta[at + r]


@piece
def add_row(table, row, slope, W, total):  # type: ignore[no-untyped-def]
    """Adds x slope_r for a row x and all replicas r to `total`."""
    for c in range(FIVE):
        value, at = table[3][row * FIVE + c], table[4][c] * W
        for r in range(W):
            total[at + r] += value * slope[r]
    add_sparse(table, row, slope, ZERO, W, total)


@piece
def add_sparse(table, row, slopes, place, W, total):  # type: ignore[no-untyped-def]
    """Adds what is in no dense column: of a row x with the slopes slopes[place + r], r < W."""
    ends, columns, values, _, _ = table
    for k in range(ends[row], ends[row + ONE]):
        value, at = values[k], columns[k] * W
        for r in range(W):
            total[at + r] += value * slopes[place + r]


@piece
def add_dense(dense, first, stop, which, slopes, place, W, sums, total):  # type: ignore[no-untyped-def]
    """Adds the dense columns of rows `first` to `stop` - 1 times slopes, of which the first row's begin at `place`.

    Args:
        sums: (DENSE, SIMD) flat, overwritten; what is in them stays in registers.
    """
    for left in range(ZERO, W, _L):
        for c in range(FIVE * _L):
            sums[c] = 0
        for i in range(first, stop):
            k, here = i * FIVE, place + (i - first) * W + left
            x, y, z, v, w = dense[k], dense[k + ONE], dense[k + np.uint64(2)], dense[k + np.uint64(3)], dense[k + np.uint64(4)]
            for r in range(_L):
                slope = slopes[here + r]
                sums[r] += x * slope
                sums[_L + r] += y * slope
                sums[np.uint64(2) * _L + r] += z * slope
                sums[np.uint64(3) * _L + r] += v * slope
                sums[np.uint64(4) * _L + r] += w * slope
        for c in range(FIVE):
            at = which[c] * W + left
            for r in range(_L):
                total[at + r] += sums[c * _L + r]


@piece
def add_columns(table, blocks, start, stop, slopes, W, most, short, sums, total):  # type: ignore[no-untyped-def]
    """Adds the sums of a block's rows times slopes, column by column; at most `most` terms before the sum goes on in `total`.

    Args:
        start, stop: the first row of the block, and the last, this one excluded.
        sums: as of `add_dense`.
        blocks: the table by block of rows and column: where each begins, rows counted from the block's first, values.
        slopes: (rows, W) flat.
        short: (W,) overwritten.
    """
    for first in range(start, stop, most):
        add_dense(table[3], first, min(first + most, stop), table[4], slopes, (first - start) * W, W, sums, total)
    starts, rows, values = blocks
    d, block = np.uint64(len(total)) // W, start // np.uint64(BLOCK)
    for j in range(d):
        end, to = starts[block * d + j + ONE], j * W
        for k in range(starts[block * d + j], end, most):
            for r in range(W):
                short[r] = 0
            for e in range(k, min(end, k + most)):
                value, at = values[e], rows[e] * W
                for r in range(W):
                    short[r] += value * slopes[at + r]
            for r in range(W):
                total[to + r] += short[r]


@piece
def add_batch(slope_at, one, table, order, start, stop, theta, norms, clip_norm, loss, W, total):  # type: ignore[no-untyped-def]
    """Adds the clipped gradients of the rows order[start] to order[stop - 1]; eight ahead, rows are asked for (`prefetch`)."""
    slopes, near, sums = stack(_SLOPES, theta), stack(_NEAR, theta), stack(SUMS, theta)
    margin = stack(WIDEST, theta)
    for first in range(start, stop, _CHUNK):
        last = min(first + _CHUNK, stop)
        # one loop after the other: what a row waits for then does not hold up the next one
        for at in range(first, last):
            row, later, to = order[at], order[min(at + np.uint64(8), np.uint64(len(order) - 1))], (at - first) * W
            prefetch(table[1], table[0][later])
            prefetch(table[2], table[0][later])
            prefetch(table[3], later * FIVE)
            for c in range(FIVE):
                near[(at - first) * FIVE + c] = table[3][row * FIVE + c]
            row_margin(table, row, theta, W, margin)
            for r in range(W):
                slopes[to + r] = margin[r]
        for to in range(ZERO, (last - first) * W, W):
            for r in range(W):
                slopes[to + r] = slope_at(slopes[to + r], one, *loss)
        if clip_norm < np.inf:
            for at in range(first, last):
                clip_slopes(slopes, (at - first) * W, W, norms[order[at]], clip_norm)
        for at in range(first, last):
            add_sparse(table, order[at], slopes, (at - first) * W, W, total)
        add_dense(near, ZERO, last - first, table[4], slopes, ZERO, W, sums, total)
