"""Sums of clipped gradients over batches of rows, each for W replicas of its own: the formula of `gradient`.

A row's two products follow one another, and its entries are added in double precision: a batch has no blocks by column. Dense
columns are summed over CHUNK rows in the precision of the rows first.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from dpviz.models.kernels import CHUNK, DENSE, SUMS
from dpviz.models.kernels.compiling import INDEX, flat, kernel, real, stack, table_of
from dpviz.models.kernels.inline import add_dense, add_sparse, clip_slopes, expand_parameters, margin_in_order, scatter_gradients


@cache
def batches_of(width: int, precision: Any, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas of each batch; arguments as of `gradient_of`."""
    W, C, one, number = np.uint64(width), np.uint64(CHUNK), precision(1), real(precision)
    SIZE, NEAR = CHUNK * width, CHUNK * DENSE
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, INDEX, INDEX, many, many, number, loss, flat(types.float64))
    def batches(table, merged, index, cuts, theta, norms, clip_norm, loss, total):  # type: ignore[no-untyped-def]
        """Adds the sum over the rows index[cuts[s]] to index[cuts[s + 1] - 1] to total[s].

        Args:
            table, merged, norms, clip_norm, loss: as of `gradient`.
            index, cuts: S batches.
            theta, total: (S, d + P, W) flat; `total` in double precision. The last P of each are overwritten.
        """
        size = len(theta) // (len(cuts) - 1)
        margin, slopes = numba.carray(stack(width, norms), width), numba.carray(stack(SIZE, norms), SIZE)
        near, dense_sums = numba.carray(stack(NEAR, norms), NEAR), numba.carray(stack(SUMS, norms), SUMS)
        for s in range(len(cuts) - 1):
            mine, sums = theta[s * size : (s + 1) * size], total[s * size : (s + 1) * size]
            expand_parameters(mine, merged, W)
            for start in range(cuts[s], cuts[np.uint64(s + 1)], C):
                stop = min(start + C, cuts[np.uint64(s + 1)])
                for at in range(start, stop):
                    i, to = index[at], (at - start) * W
                    margin_in_order(table, index, at, start, mine, W, margin, near)
                    for r in range(W):
                        slopes[to + r] = slope_at(margin[r], one, *loss)
                    if clip_norm < np.inf:
                        clip_slopes(slopes, to, W, norms[i], clip_norm)
                    add_sparse(table, i, slopes, to, W, sums)
                add_dense(near, np.uint64(0), stop - start, table[4], slopes, np.uint64(0), W, dense_sums, sums)
            scatter_gradients(sums, merged, W)

    return batches
