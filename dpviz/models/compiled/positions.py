"""Compiled loop (numba) that finds the rows of a Poisson batch."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpviz.models.compiled.options import OPTIONS


@njit(**OPTIONS)
def _below(bits, most, out):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(bits)):
        out[count] = i  # written over by the next position where this one does not count: a branch would cost more
        if bits[i] <= most:
            count += 1
    return count


def below(bits: NDArray[np.uint16], most: int) -> NDArray[np.intp]:
    """Positions of the numbers up to `most`, ascending, as `numpy.flatnonzero` gives them."""
    out = np.empty(len(bits), np.intp)
    return out[: _below(bits, most, out)].copy()
