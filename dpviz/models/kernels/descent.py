"""Mini-batch gradient descent without noise, for W trainings on the same batches, in double precision:

    w_r <- w_r - eta_tr (mean over the batch of x_i phi'(<w_r, x_i>) + lam w_r)

A batch of some tens of rows takes less time than calling a function does, so that a kernel makes many updates.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from dpviz.models.kernels.compiling import INDEX, flat, kernel, stack, table_of
from dpviz.models.kernels.inline import ZERO, add_batch, expand, scatter


@cache
def descent_of(width: int, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` trainings; other arguments as of `gradient_of`."""
    W, number, whole = np.uint64(width), types.float64, types.uint64
    many, loss = flat(number), types.UniTuple(number, constants)

    @kernel(table_of(number), INDEX, INDEX, whole, whole, many, number, whole, loss, many, many, many)
    def descend(table, order, bounds, first, last, steps, lam, window, loss, w, gradient, total):  # type: ignore[no-untyped-def]
        """Makes the updates `first` to `last` - 1.

        Args:
            table, loss: as of `gradient`.
            order: the rows as they are taken; bounds (m + 1,): ends of the batches, of which update t takes number t mod m.
            steps: (T, W) flat, eta.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
            w, gradient, total: (columns, W) flat; the gradient is 0, and `total` the sum of the iterates of this window.
        """
        one, size, shrunk, step = 1.0, np.uint64(len(w)), stack(width, steps), stack(width, steps)
        for t in range(first, last):
            k = t % np.uint64(len(bounds) - 1)
            a, b, eta = bounds[k], bounds[k + np.uint64(1)], t * W
            expand(w, table[5], W)
            add_batch(slope_at, one, table, order, a, b, w, steps, np.inf, loss, W, gradient, gradient)
            scatter(gradient, table[5], W)
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
