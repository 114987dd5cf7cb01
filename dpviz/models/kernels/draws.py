"""Standard normal draws in single precision, the numbers of `numpy.random.Generator.standard_normal` in half of the time.

The ziggurat of Marsaglia & Tsang (2000): 8 bits of a random number choose one of 256 layers, 1 bit the sign, 23 bits how far.
Layer k ends at width[k] 2^23; what lies within the next layer (inside[k]) is accepted, the rest by a second random number.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.np.random import _constants
from numpy.typing import NDArray

from dpviz.common.random import Normals
from dpviz.models.kernels.compiling import flat, kernel, piece
from dpviz.models.kernels.inline import ONE, TWO, ZERO

_CHUNK = 1 << 14  # random numbers of 64 bits that are made at once
_FAR, _LAYERS, _SIGN = np.uint32((1 << 23) - 1), np.uint32(255), np.uint32(256)
_END, _INVERSE, _UNIT = np.float32(_constants.ziggurat_nor_r_f), np.float32(_constants.ziggurat_nor_inv_r_f), np.float32(2.0**-24)
_TABLES = (_constants.wi_float, _constants.ki_float, _constants.fi_float)


@piece
def fraction(bits):  # type: ignore[no-untyped-def]
    """The number in [0, 1) of which these are the first bits."""
    return np.float32(bits >> np.uint32(8)) * _UNIT


@cache
def normals() -> Callable[..., tuple[int, int]]:
    """The kernel."""
    number, bits = types.float32, flat(types.uint32)

    @kernel(bits, flat(number), bits, flat(number), flat(number))
    def draw(bits, width, inside, density, out):  # type: ignore[no-untyped-def]
        """Writes draws to `out` for as long as there are random numbers.

        Returns:
            How many draws there are, and how many of `bits` they took.
        """
        used = ZERO
        for i in range(np.uint64(len(out))):
            k, x, accepted = used, np.float32(0), False
            while not accepted:
                if k + TWO >= len(bits):
                    return i, used
                layer, far = np.uint64(bits[k] & _LAYERS), (bits[k] >> np.uint32(9)) & _FAR
                x = np.float32(far) * width[layer]
                x = -x if bits[k] & _SIGN else x
                k += ONE
                accepted = far < inside[layer]
                if not accepted and layer > ZERO:
                    low, high = density[layer], density[layer - ONE]
                    accepted = (high - low) * fraction(bits[k]) + low < math.exp(-0.5 * np.float64(x) * np.float64(x))
                    k += ONE
                elif not accepted:  # beyond the last layer, where 1 bit of `far` is the sign
                    while not accepted:
                        if k + ONE >= len(bits):
                            return i, used
                        beyond, other = -_INVERSE * np.log1p(-fraction(bits[k])), -np.log1p(-fraction(bits[k + ONE]))
                        x, accepted = _END + beyond, other + other > beyond * beyond
                        k += TWO
                    x = -x if far & _SIGN else x
            out[i], used = x, k
        return np.uint64(len(out)), used

    return draw


def compiled_normals(rng: np.random.Generator) -> Normals:
    """The draws that `rng` would give, which nothing else may draw from."""
    kernel, left = normals(), np.empty(0, np.uint32)

    def draw(shape: tuple[int, ...]) -> NDArray[Any]:
        nonlocal left
        out, done = np.empty(math.prod(shape), np.float32), 0
        while done < len(out):
            more = rng.bit_generator.random_raw(min(_CHUNK, (len(out) - done) // 2 + 16))
            bits = np.concatenate([left, more.view(np.uint32)])
            count, used = kernel(bits, *_TABLES, out[done:])
            done, left = done + count, bits[used:]
        return out.reshape(shape)

    return draw
