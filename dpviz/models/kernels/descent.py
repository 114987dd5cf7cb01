"""Mini-batch gradient descent without noise, for W trainings on the same batches, in double precision:

    w_r <- w_r - eta_tr (mean over the batch of x_i phi'(<w_r, x_i>) + lam w_r)

A batch of some tens of rows takes less time than calling a function does, so that a kernel makes many updates.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from dpviz.models.kernels import CHUNK, DENSE, SUMS
from dpviz.models.kernels.compiling import INDEX, flat, kernel, stack, table_of
from dpviz.models.kernels.inline import ZERO, add_dense, add_sparse, expand_parameters, margin_in_order, scatter_gradients


@cache
def descent_of(width: int, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` trainings; other arguments as of `gradient_of`."""
    W, C, number, whole = np.uint64(width), np.uint64(CHUNK), types.float64, types.uint64
    SIZE, NEAR = CHUNK * width, CHUNK * DENSE
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, INDEX, INDEX, whole, whole, many, number, whole, loss, many, many, many)
    def descend(table, merged, order, bounds, first, last, steps, lam, window, loss, w, gradient, total):  # type: ignore[no-untyped-def]
        """Makes the updates `first` to `last` - 1.

        Args:
            table, merged, loss: as of `gradient`.
            order: the rows as they are taken; bounds (m + 1,): ends of the batches, of which update t takes number t mod m.
            steps: (T, W) flat, eta.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
            w, gradient, total: (d + P, W) flat; the gradient is 0, and `total` the sum of the iterates of this window.
        """
        one, margin, sums = 1.0, numba.carray(stack(width, steps), width), numba.carray(stack(SUMS, steps), SUMS)
        slopes, near = numba.carray(stack(SIZE, steps), SIZE), numba.carray(stack(NEAR, steps), NEAR)
        size = np.uint64(len(w)) - np.uint64(len(merged)) // np.uint64(2) * W
        shrunk, step = numba.carray(stack(width, steps), width), numba.carray(stack(width, steps), width)
        for t in range(first, last):
            k = t % np.uint64(len(bounds) - 1)
            a, b, eta = bounds[k], bounds[k + np.uint64(1)], t * W
            expand_parameters(w, merged, W)
            for start in range(a, b, C):
                stop = min(start + C, b)
                for at in range(start, stop):
                    i, to = order[at], (at - start) * W
                    margin_in_order(table, order, at, start, w, W, margin, near)
                    for r in range(W):
                        slopes[to + r] = slope_at(margin[r], one, *loss)
                    add_sparse(table, i, slopes, to, W, gradient)
                add_dense(near, ZERO, stop - start, table[4], slopes, ZERO, W, sums, gradient)
            scatter_gradients(gradient, merged, W)
            for r in range(W):  # divisions take long
                shrunk[r], step[r] = one - steps[eta + r] * lam, steps[eta + r] / (b - a)
            for j in range(ZERO, size, W):
                for r in range(W):
                    w[j + r] = w[j + r] * shrunk[r] - step[r] * gradient[j + r]
                    gradient[j + r] = 0
            if window > 0:
                for j in range(size):
                    total[j] += w[j]
                if (t + np.uint64(1)) % window == 0:
                    for j in range(size):
                        w[j], total[j] = total[j] / window, 0

    return descend
