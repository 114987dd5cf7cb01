"""Round ranges for columns of numbers, to be confirmed by a person as public knowledge.

A range that is read from the rows tells two people's values, the smallest and the largest, and one outlier squeezes all others
together. A round range that covers all but a few rows tells less and clips the outliers.
"""

import math

import numpy as np

from dpviz.common.arrays import Floats

_TAIL = 0.01  # share of the values left out at each end, before rounding outwards
_FEW = 40  # different values: a scale or a code, whose ends are no outliers
_SLACK = 1e-9  # of a step: rounding errors do not move an end by a whole one


def round_range(values: Floats) -> tuple[float, float] | None:
    """(low, high), both round, around all but about a hundredth of the values at each end; None where no range is left.

    Args:
        values: (n,) finite numbers, NaN for gaps.
    """
    present = values[~np.isnan(values)]
    if not len(present):
        return None
    different = np.unique(present)
    ends = different[[0, -1]] if len(different) <= _FEW else np.quantile(present, [_TAIL, 1 - _TAIL])
    low, high = float(ends[0]), float(ends[1])
    if len(different) <= _FEW and (different == np.floor(different)).all():
        return (low, high) if low < high else None  # marks such as 1 to 10
    if low == high:
        return None
    if 0 <= low < 0.25 * high:
        low = 0.0  # a quantity that begins at nothing
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    return _multiple(math.floor(low / step + _SLACK), step), _multiple(math.ceil(high / step - _SLACK), step)


def count_outside(values: Floats, low: float, high: float) -> int:
    """The number of values that a range clips."""
    return int(((values < low) | (values > high)).sum())


def _multiple(count: int, step: float) -> float:
    return float(f"{count * step:.12g}")
