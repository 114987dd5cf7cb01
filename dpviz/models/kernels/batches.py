"""Sums of clipped gradients over batches of rows, each for W replicas of its own: the formula of `gradient`.

A row's two products follow one another, and its entries are added in double precision: a batch has no blocks by column. Dense
columns are summed over CHUNK rows in the precision of the rows first.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from dpviz.models.kernels.compiling import INDEX, flat, kernel, real, table_of
from dpviz.models.kernels.inline import add_batch


@cache
def batches_of(width: int, precision: Any, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas of each batch; arguments as of `gradient_of`."""
    W, one, number = np.uint64(width), precision(1), real(precision)
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, INDEX, many, many, number, loss, flat(types.float64))
    def batches(table, index, cuts, theta, norms, clip_norm, loss, total):  # type: ignore[no-untyped-def]
        """Adds the sum over the rows index[cuts[s]] to index[cuts[s + 1] - 1] to total[s].

        Args:
            table, norms, clip_norm, loss: as of `gradient`.
            index, cuts: S batches.
            theta, total: (S, d, W) flat; `total` in double precision.
        """
        size = len(theta) // (len(cuts) - 1)
        for s in range(len(cuts) - 1):
            mine, sums = theta[s * size : (s + 1) * size], total[s * size : (s + 1) * size]
            a, b = cuts[s], cuts[np.uint64(s + 1)]
            add_batch(slope_at, one, table, index, a, b, mine, norms, clip_norm, loss, W, sums)

    return batches
