"""The pieces that kernels share (`compiling.piece`): a row's margins, adding rows, clipping, a batch.

A table is (ends, columns, values, dense, which, pairs): row i has the entries ends[i] to ends[i + 1] - 1, and in the five columns
`which` the numbers dense[5 i] to dense[5 i + 4], zeros included. The last columns are merged ones (`merging`), one for each pair.
Parameters and sums are (columns, W) flat, W replicas next to each other. Indices are unsigned, because numba counts negative ones
from the end, which takes longer than the sums.
"""

import numpy as np

import dpviz.models.kernels.functions  # noqa: F401 (what elementary functions are inside kernels)
from dpviz.models.elementary import limited
from dpviz.models.kernels import BLOCK, DENSE, SIMD, WIDEST
from dpviz.models.kernels.compiling import piece, prefetch, stack

ZERO, ONE, TWO, FIVE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(DENSE)
THREE, FOUR, _L, _BATCH_SUMS = np.uint64(3), np.uint64(4), np.uint64(SIMD), DENSE * WIDEST


@piece
def expand(theta, pairs, W):  # type: ignore[no-untyped-def]
    """Writes the parameters of merged columns: sums of those that they stand for."""
    to = len(theta) - len(pairs) // TWO * W
    for p in range(ZERO, len(pairs), TWO):
        a, b = pairs[p] * W, pairs[p + ONE] * W
        for r in range(W):
            theta[to + r] = theta[a + r] + theta[b + r]
        to += W


@piece
def scatter(total, pairs, W):  # type: ignore[no-untyped-def]
    """Adds the sums of merged columns, which become 0, to those that they stand for."""
    at = np.uint64(len(total))
    for p in range(len(pairs), ZERO, -TWO):  # merged columns may stand for merged columns before them
        a, b = pairs[p - TWO] * W, pairs[p - ONE] * W
        at -= W
        for r in range(W):
            total[a + r] += total[at + r]
            total[b + r] += total[at + r]
            total[at + r] = 0


@piece
def clip_slopes(slopes, place, W, norm, clip_norm):  # type: ignore[no-untyped-def]
    """Clips the gradients of a row with this norm (Abadi et al. 2016, Algorithm 1): |slope x| <= C is |slope| <= C/|x|."""
    most = clip_norm / norm
    for r in range(W):
        slopes[place + r] = limited(slopes[place + r], -most, most)


@piece
def row_margin(table, row, theta, W, margin):  # type: ignore[no-untyped-def]
    """Writes <theta_r, x> for a row x and all replicas r to `margin`, (W,)."""
    ends, columns, values, dense, which, _ = table
    k, p, q, s, t, u = row * FIVE, which[0] * W, which[1] * W, which[2] * W, which[3] * W, which[4] * W
    x, y, z, v, w = dense[k], dense[k + ONE], dense[k + TWO], dense[k + THREE], dense[k + FOUR]
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
    add_sparse(table, row, slope, W, total)


@piece
def add_sparse(table, row, slope, W, total):  # type: ignore[no-untyped-def]
    """Adds what is in no dense column."""
    ends, columns, values, _, _, _ = table
    for k in range(ends[row], ends[row + ONE]):
        value, at = values[k], columns[k] * W
        for r in range(W):
            total[at + r] += value * slope[r]


@piece
def add_dense(dense, row, slopes, place, count, sums):  # type: ignore[no-untyped-def]
    """Adds the dense columns of a row times slopes[place + r], r < count, to `sums`, (DENSE, count) flat."""
    k = row * FIVE
    x, y, z, v, w = dense[k], dense[k + ONE], dense[k + TWO], dense[k + THREE], dense[k + FOUR]
    for r in range(count):
        slope = slopes[place + r]
        sums[r] += x * slope
        sums[count + r] += y * slope
        sums[TWO * count + r] += z * slope
        sums[THREE * count + r] += v * slope
        sums[FOUR * count + r] += w * slope


@piece
def add_columns(table, blocks, start, stop, slopes, W, most, short, sums, total):  # type: ignore[no-untyped-def]
    """Adds the sums of a block's rows times slopes, column by column; at most `most` terms before the sum goes on in `total`.

    Args:
        start, stop: the first row of the block, and the last, this one excluded.
        sums: (DENSE, SIMD) flat, overwritten; what is in them stays in registers.
        blocks: the table by block of rows and column: where each begins, rows counted from the block's first, values.
        slopes: (rows, W) flat.
        short: (W,) overwritten.
    """
    dense, which = table[3], table[4]
    for first in range(start, stop, most):
        for left in range(ZERO, W, _L):
            for c in range(FIVE * _L):
                sums[c] = 0
            for i in range(first, min(first + most, stop)):
                add_dense(dense, i, slopes, (i - start) * W + left, _L, sums)
            for c in range(FIVE):
                at = which[c] * W + left
                for r in range(_L):
                    total[at + r] += sums[c * _L + r]
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
def ask_for_row(table, order, at):  # type: ignore[no-untyped-def]
    """Asks for the row that is read eight after order[at] (`prefetch`)."""
    row = order[min(at + np.uint64(8), np.uint64(len(order) - 1))]
    prefetch(table[1], table[0][row])
    prefetch(table[2], table[0][row])
    prefetch(table[3], row * FIVE)


@piece
def add_batch(slope_at, one, table, order, start, stop, theta, norms, clip_norm, loss, W, short, total):  # type: ignore[no-untyped-def]
    """Adds the clipped gradients of the rows order[start] to order[stop - 1], those eight ahead being asked for.

    Args:
        short: takes what is in no dense column, in the precision of the rows or in double.
    """
    slopes, sums = stack(WIDEST, theta), stack(_BATCH_SUMS, theta)
    for c in range(FIVE * W):
        sums[c] = 0
    for at in range(start, stop):
        row = order[at]
        ask_for_row(table, order, at)
        row_margin(table, row, theta, W, slopes)
        for r in range(W):
            slopes[r] = slope_at(slopes[r], one, *loss)
        if clip_norm < np.inf:
            clip_slopes(slopes, ZERO, W, norms[row], clip_norm)
        add_sparse(table, row, slopes, W, short)
        add_dense(table[3], row, slopes, ZERO, W, sums)
    for c in range(FIVE):
        at = table[4][c] * W
        for r in range(W):
            total[at + r] += sums[c * W + r]
