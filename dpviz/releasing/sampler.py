"""Noise that is hardened against floating-point attacks: every draw is the sum of four, from the operating system's randomness.

A double that was made from one uniform draw can be inverted: which sums "value + noise" are possible betrays the value (Mironov
2012). Holohan and Braghin (2021) split an infinitely divisible distribution into several draws, so that the way back needs a
search over all of them together, which is infeasible. Here:

    N(0, 1)                      = (g_1 + g_2 + g_3 + g_4) / 2,  g_i ~ N(0, 1) independent
    density prop. to exp(-|b|)   = b_1 + b_2 + b_3 + b_4,  b_i = sqrt(v_i) g_i,  v_i ~ Gamma((m + 1)/8, scale 2),  g_i ~ N(0, I_m)

The second holds because b = sqrt(v) g with v ~ Gamma((m + 1)/2, scale 2) has the characteristic function
(1 + |t|^2)^(-(m + 1)/2), which is the fourth power of that of b_i [ours; the mixture is that of
`dpviz.common.random`]. This resists
known attacks. It is no proof for arithmetic with rounding.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PARTS = 4


def gaussian(size: int, source: random.Random) -> Floats:
    """(size,) draws of N(0, 1)."""
    # `normalvariate` shares no uniform draws between its calls, unlike `gauss`
    draws = np.array([[source.normalvariate(0.0, 1.0) for _ in range(size)] for _ in range(PARTS)])
    return np.asarray(draws.sum(axis=0) / math.sqrt(PARTS))


def gamma_sphere(size: int, source: random.Random) -> Floats:
    """(size,) one draw with density proportional to exp(-|b|)."""
    total = np.zeros(size)
    for _ in range(PARTS):
        spread = math.sqrt(source.gammavariate((size + 1) / (2 * PARTS), 2.0))
        total += spread * np.array([source.normalvariate(0.0, 1.0) for _ in range(size)])
    return total


#: by the names of `dpviz.common.random.STANDARD`
HARDENED: dict[str, Callable[[int, random.Random], Floats]] = {"gaussian": gaussian, "gamma-sphere": gamma_sphere}
