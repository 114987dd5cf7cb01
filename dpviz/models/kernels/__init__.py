"""Compiled sums over rows that are mostly zeros (numba, `pip install 'dpviz[fast]'`): one file a kernel.

`gradient`, `batches`, `descent`, `margins`, `line_losses`, `network` and `draws` hold one kernel each, `noisy_rows` two.
`inline` has the pieces that they share, `functions` e^x and tanh, `compiling` how they are compiled, `table` the rows as they
take them, `products` the interface. A kernel looks at no bounds: what calls it makes or checks every array that it gets.

Key terms:
    replicas: models that are trained together, whose parameters, margins and slopes lie next to each other in memory.
    width: replicas of one kernel, a constant when it is compiled, so that loops over replicas become SIMD instructions and
        their sums stay in registers. Parameters of 0 fill what is left over.
    dense columns: those with most entries, kept with their zeros, so that no index is looked up (`table`).
    merged columns: columns that stand for two others each where both entries of a row are equal (`merging`).
"""

import os
from functools import cache
from importlib.util import find_spec

import numpy as np


@cache
def available() -> bool:
    """True where numba is installed and DPVIZ_COMPILED is not 0."""
    if os.environ.get("DPVIZ_COMPILED") == "0" or find_spec("numba") is None:
        return False
    try:
        from dpviz.models.kernels import compiling
    except ImportError:  # a numba that is too old for this numpy, or too new for what is used of it, says so when it is loaded
        return False
    return True


WIDTHS = (16, 32, 112)  # replicas of a kernel: few, because each is compiled by itself; a figure trains 100
WIDEST = WIDTHS[-1]
IN_DOUBLE = WIDTHS[:1]  # of sums in double precision, few of which are computed on large tables
WIDE = WIDTHS[1:]  # of sums over all rows, which are quick for few replicas too
SIMD = 16  # numbers that are worked on at once
DENSE = 5  # columns in which most rows have an entry: these are multiplied without looking up which they are
SUMS = DENSE * SIMD
CHUNK = 64  # rows of a batch that are summed in single precision before the sum goes on in double
BLOCK = 1024  # rows whose slopes stay in the processor's cache between both products; parts of a table begin with a block


def rounding_up(precision: type[np.floating]) -> np.floating:
    """The factor for a sum of two numbers that may not be too small: four units in the last place more."""
    return precision(1 + 4 * np.finfo(precision).eps)


def parts_of(replicas: int, widths: tuple[int, ...] = WIDE, first: int = 0) -> list[tuple[int, int]]:
    """The replicas in parts of a kernel's width, as (first, width); the last one has room for twice what is left."""
    if replicas <= 0:
        return []
    width = min((each for each in widths if each >= replicas), default=widths[-1])
    if width >= 2 * replicas > 2 * widths[0]:
        width = max(each for each in widths if each < width)
    return [(first, width), *parts_of(replicas - width, widths, first + width)]


def padded(replicas: int) -> int:
    """Replicas that all parts have room for."""
    return sum(width for _, width in parts_of(replicas))
