"""Sums of clipped logistic losses of the rows of a range at points of lines, for W replicas at once; single precision.

At theta_r - k step_r, k < count, a row's margin goes in equal steps and e^-m by equal factors, so that two exponentials serve all
points of a line:

    sum_i min(ln(1 + e^-m_irk), clip) = ln prod_i (1 + min(e^-m_irk, top)),      top = e^clip - 1

A product is split into m 2^e, 1 <= m < 2, before it is no number any more.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import types

from dpviz.models.elementary import exponential, limited
from dpviz.models.kernels.compiling import INDEX, flat, kernel, stack, table_of
from dpviz.models.kernels.inline import expand, row_margin

_LOW, _ONE, _MASK, _BIAS = np.float32(-1), np.int32(127 << 23), np.int32((1 << 23) - 1), np.int32(127)


@cache
def line_losses_of(width: int) -> Callable[..., None]:
    """The kernel for `width` replicas."""
    W, one, number, whole, many = np.uint64(width), np.float32(1), types.float32, types.uint64, flat(types.float32)

    @kernel(table_of(number), INDEX, many, many, whole, whole, number, many, many)
    def line_losses(table, span, theta, step, count, together, top, products, powers):  # type: ignore[no-untyped-def]
        """Multiplies `products` by 1 + min(e^-m, top), 2^powers times.

        Args:
            table, span, theta: as of `margins`.
            step: as `theta`; margins must stay between -87 and 87.
            together: rows for which (1 + top)^together is a number.
            products, powers: (count, W) flat.
        """
        odds, factor = stack(width, theta), stack(width, theta)
        expand(theta, table[5], W)
        expand(step, table[5], W)
        for i in range(span[0], span[1]):
            row_margin(table, i, theta, W, odds)
            row_margin(table, i, step, W, factor)
            for r in range(W):
                odds[r], factor[r] = exponential(-odds[r]), exponential(factor[r])
            for k in range(count):
                for r in range(W):
                    products[k * W + r] *= one + limited(odds[r], _LOW, top)
                    odds[r] *= factor[r]
            if (i - span[0]) % together == together - np.uint64(1):
                for k in range(count * W):
                    product = products[k]
                    bits = np.float32(product).view(np.int32)
                    mantissa = np.int32((bits & _MASK) | _ONE).view(np.float32)
                    number = product < np.inf
                    products[k] = mantissa if number else product
                    powers[k] += np.float32((bits >> np.int32(23)) - _BIAS) if number else np.float32(0)

    return line_losses
