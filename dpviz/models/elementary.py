"""Functions that formulas of losses are written with: numpy on arrays, and SIMD instructions inside kernels.

A formula takes its constants as numbers of the margin's precision and uses nothing but arithmetic and these functions, so that
one text serves both (`models.kernels` has what they are there).
"""

from typing import Any

import numpy as np


def exponential(x: Any) -> Any:
    """e^x, element by element.

    >>> float(exponential(0.0))
    1.0
    """
    return np.exp(x)


def limited(x: Any, low: Any, high: Any) -> Any:
    """x where it is between `low` and `high`, else the nearer of both.

    >>> float(limited(3.0, -1.0, 1.0))
    1.0
    """
    return np.clip(x, low, high)
