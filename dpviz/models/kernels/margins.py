"""Margins <theta_r, x_i> of the rows of a range, for W replicas at once; losses of any kind are made of them in numpy."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dpviz.models.kernels.compiling import INDEX, flat, kernel, real, stack, table_of
from dpviz.models.kernels.inline import expand, row_margin


@cache
def margins_of(width: int, precision: Any) -> Callable[..., None]:
    """The kernel for `width` replicas."""
    W, number, many = np.uint64(width), real(precision), flat(real(precision))

    @kernel(table_of(number), INDEX, many, many)
    def margins(table, span, theta, out):  # type: ignore[no-untyped-def]
        """Writes `out`, (rows, W) flat; other arguments as of `gradient`, of which a range may begin anywhere."""
        margin = stack(width, theta)
        expand(theta, table[5], W)
        for i in range(span[0], span[1]):
            row_margin(table, i, theta, W, margin)
            for r in range(W):
                out[(i - span[0]) * W + r] = margin[r]

    return margins
