"""Sums of clipped gradients over batches of rows, each for W replicas of its own: the formula of `gradient`.

A row's two products follow one another: a batch has no blocks by column. Sums over CHUNK rows are in single precision, where
the rows are, and go on in double precision.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from dpviz.models.kernels import BLOCK, CHUNK
from dpviz.models.kernels.compiling import INDEX, flat, kernel, real, table_of
from dpviz.models.kernels.inline import add_batch, expand, scatter


@cache
def batches_of(width: int, precision: Any, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas of each batch; arguments as of `gradient_of`."""
    W, one, number = np.uint64(width), precision(1), real(precision)
    C = np.uint64(CHUNK if precision is np.float32 else BLOCK)
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, INDEX, many, many, number, loss, many, flat(types.float64))
    def batches(table, index, cuts, theta, norms, clip_norm, loss, short, total):  # type: ignore[no-untyped-def]
        """Adds the sum over the rows index[cuts[s]] to index[cuts[s + 1] - 1] to total[s].

        Args:
            table, norms, clip_norm, loss: as of `gradient`.
            index, cuts: S batches.
            theta, total: (S, columns, W) flat; `total` in double precision.
            short: (columns, W) flat zeros.
        """
        size = len(theta) // (len(cuts) - 1)
        for s in range(len(cuts) - 1):
            mine, sums, end = theta[s * size : (s + 1) * size], total[s * size : (s + 1) * size], cuts[np.uint64(s + 1)]
            expand(mine, table[5], W)
            for first in range(cuts[s], end, C):
                last = min(first + C, end)
                add_batch(slope_at, one, table, index, first, last, mine, norms, clip_norm, loss, W, short, sums)
                for k in range(np.uint64(size)):
                    sums[k] += short[k]
                    short[k] = 0
            scatter(sums, table[5], W)

    return batches
