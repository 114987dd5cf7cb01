"""Noise for a release, drawn exactly with whole numbers: no draw goes through floating-point arithmetic.

A normal draw is made by Karney (2016, "Sampling exactly from the normal distribution", algorithm N), whose only ingredients are
fair bits and events of probability exp(-a/b) with whole a, b, drawn exactly by Canonne, Kamath and Steinke (2020, algorithm 1):

    k with chance ~ exp(-k/2);  kept with chance exp(-k(k - 1)/2);  x uniform in (0, 1);  kept with chance exp(-x(2k + x)/2)

so that k + x has density ~ exp(-(k + x)^2/2); the sign is a fair bit. Here x is the middle of one of 2^512 cells, chosen
uniformly. The chance of a cell is then its width times the density in its middle, which differs from the integral of the
density by less than 2^-1000 in total variation. So a draw is, up to that, a real normal draw moved by at most 2^-513 to the
middle of its cell.

Noise with density ~ exp(-|b|) in m dimensions is b = |h| g for independent h ~ N(0, I_(m+1)), g ~ N(0, I_m): |h|^2 is
Gamma((m + 1)/2, scale 2), and the Gaussian scale mixture has the characteristic function (1 + |t|^2)^(-(m + 1)/2) [ours; the
mixture is that of `dpviz.common.random`].
"""

import math
import random
from collections.abc import Callable

_BITS = 512  # so many that the slack of `grid.on_grid` is below every delta in use, also times e^epsilon
DIGITS = _BITS + 1
_ONE = 1 << DIGITS  # what stands for 1 in a draw: middles of cells are odd numbers

#: (m,) numerators of the draws and their common denominator
Draws = tuple[list[int], int]


def _happens(a: int, b: int, source: random.Random) -> bool:
    """An event of probability exp(-a/b), a >= 0, b > 0 (Canonne, Kamath, Steinke 2020, algorithm 1)."""
    while a > b:
        if not _happens(b, b, source):
            return False
        a -= b
    k = 1
    while source.randrange(b * k) < a:
        k += 1
    return k % 2 == 1


def _normal(source: random.Random) -> int:
    """N(0, 1) times `_ONE` (Karney 2016, algorithm N)."""
    while True:
        k = 0
        while _happens(1, 2, source):
            k += 1
        if not all(_happens(1, 1, source) for _ in range(k * (k - 1) // 2)):
            continue
        x = 2 * source.getrandbits(_BITS) + 1
        if _happens(x * (2 * k * _ONE + x), 2 * _ONE * _ONE, source):
            y = k * _ONE + x
            return -y if source.getrandbits(1) else y


def gaussian(size: int, source: random.Random) -> Draws:
    """A draw of N(0, I)."""
    return [_normal(source) for _ in range(size)], _ONE


def gamma_sphere(size: int, source: random.Random) -> Draws:
    """A draw with density proportional to exp(-|b|)."""
    norm = math.isqrt(sum(_normal(source) ** 2 for _ in range(size + 1)))
    return [norm * _normal(source) for _ in range(size)], _ONE * _ONE


#: by the ids of `dpviz.privacy.noise`
EXACT: dict[str, Callable[[int, random.Random], Draws]] = {"gaussian": gaussian, "gamma-sphere": gamma_sphere}
