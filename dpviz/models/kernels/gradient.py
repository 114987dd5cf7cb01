"""The sum of clipped gradients over all rows of a range, for W replicas at once; rows may have a budget.

With rows x_i (labels multiplied in), parameters theta_r, clip norm C, and the loss's slope phi':

    s_ir = phi'(<theta_r, x_i>) min(1, C / (|phi'(<theta_r, x_i>)| |x_i|)),      gradient_r = sum_i x_i s_ir

Where rows have a budget B, |s_ir x_i|^2 is added to `spent` (n, W), rounded up, and row i adds nothing once that is above B.

Slopes of a block of rows stay in the processor's cache between the two products. A column's sum takes at most 64 terms in the
precision of the rows before it goes on in double precision, so that rounding is far below a row's contribution.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from dpviz.models.kernels import BLOCK, SUMS, rounding_up
from dpviz.models.kernels.compiling import INDEX, blocks_of, flat, kernel, real, stack, table_of
from dpviz.models.kernels.inline import add_columns, clip_slopes, expand, row_margin, scatter


@cache
def gradient_of(width: int, precision: Any, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas and a loss.

    Args:
        precision: of rows and parameters.
        slope_at, constants: of the loss, and how many constants it has.
    """
    W, R, one, number = np.uint64(width), np.uint64(BLOCK), precision(1), real(precision)
    many, doubles, table, loss = flat(number), flat(types.float64), table_of(number), types.UniTuple(number, constants)
    budget, up = types.Tuple((many, types.uint64, types.uint64, number)), rounding_up(precision)

    @kernel(table, blocks_of(number), INDEX, many, many, number, loss, budget, many, doubles, doubles)
    def gradient(table, blocks, span, theta, norms, clip_norm, loss, budget, slopes, active, total):  # type: ignore[no-untyped-def]
        """Adds to `total`, and to `active` how many rows added something.

        Args:
            table, blocks: as of `inline`.
            span: (2,) first row, the first of a block, and last row of the range, this one excluded.
            theta, total: (columns, W) flat; `total` in double precision.
            norms: (n,) of the rows; not looked at where the clip norm is infinite and rows have no budget.
            loss: the loss's constants.
            budget: sums of squared norms, of the range's rows and all replicas (rows, stride) flat; the stride, and the first of
                the W replicas; and the largest sum of rows that add something. Without a budget there are no sums.
            slopes: (BLOCK, W) flat, overwritten.
            active: (W,) in double precision.
        """
        spent, stride, first_replica, limit = budget
        margin, sums = stack(width, norms), stack(SUMS, norms)
        expand(theta, table[5], W)
        for start in range(span[0], span[1], R):
            stop = min(start + R, span[1])
            for i in range(start, stop):
                row_margin(table, i, theta, W, margin)
                to = (i - start) * W
                for r in range(W):
                    slopes[to + r] = slope_at(margin[r], one, *loss)
                if clip_norm < np.inf:
                    clip_slopes(slopes, to, W, norms[i], clip_norm)
                if len(spent) > 0:
                    norm, place = norms[i], (i - span[0]) * stride + first_replica
                    for r in range(W):
                        size = slopes[to + r] * norm
                        spent[place + r] = (spent[place + r] + size * size) * up
                        # what is not a number is not above: a training that diverged stays one
                        over = spent[place + r] > limit
                        slopes[to + r] = 0 if over else slopes[to + r]
                        active[r] += 0 if over else 1
            add_columns(table, blocks, start, stop, slopes, W, np.uint64(64), margin, sums, total)
        scatter(total, table[5], W)

    return gradient
