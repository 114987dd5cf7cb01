"""Compiled loops (numba) that take the place of functions in `common.random`: the same numbers in a third of the time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpviz.common.random import Index, normals_of_numpy
from dpviz.common.random import Normals as Draws
from dpviz.models.compiled.options import OPTIONS

_CHUNK = 1 << 14  # random numbers of 64 bits made at once, which stay in the processor's cache


@intrinsic
def _up_to(typing: Any, bits: Any, at: Any, most: Any) -> Any:
    """Which of 32 numbers of 16 bits from `at` on are at most so large, as the bits of a number."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = cgutils.create_struct_proxy(bits)(context, builder, given[0]).data
        many = ir.VectorType(ir.IntType(16), 32)
        found = builder.load(builder.bitcast(builder.gep(data, [given[1]]), many.as_pointer()))
        found.align = 2
        one = builder.insert_element(ir.Constant(many, ir.Undefined), given[2], ir.Constant(ir.IntType(32), 0))
        all_ = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32))
        return builder.bitcast(builder.icmp_unsigned("<=", found, all_), ir.IntType(32))

    return types.uint32(bits, types.intp, types.uint16), generate


@intrinsic
def _lowest(typing: Any, mask: Any) -> Any:
    """The position of the lowest bit that is set, where one is."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.zext(builder.cttz(given[0], ir.Constant(ir.IntType(1), 1)), ir.IntType(64))

    return types.intp(types.uint32), generate


@njit(**OPTIONS)
def _positions(bits, most, out, ties):  # type: ignore[no-untyped-def]
    """Writes the positions of numbers up to `most`, and which of them are of `most` itself; how many there are of both."""
    count, tied, whole = 0, 0, len(bits) // 32 * 32
    for start in range(0, len(bits), 32):
        mask = np.uint32(0)
        if start < whole:
            mask = _up_to(bits, start, most)
        else:
            for k in range(len(bits) - start):
                mask |= np.uint32(bits[start + k] <= most) << np.uint32(k)
        while mask:
            at = start + _lowest(mask)
            mask &= mask - np.uint32(1)
            out[count] = at
            if bits[at] == most:
                ties[tied] = count
                tied += 1
            count += 1
    return count, tied


def positions(bits: NDArray[np.uint16], most: int) -> tuple[Index, Index]:
    """As `common.random` finds them."""
    out, ties = np.empty((2, len(bits)), np.intp)
    count, tied = _positions(bits, np.uint16(most), out, ties)
    return out[:count].copy(), ties[:tied].copy()


@njit(**OPTIONS)
def _share(bits, at):  # type: ignore[no-untyped-def]
    """A number in [0, 1) out of the upper 24 bits."""
    return np.float32(np.float32(bits[at] >> np.uint32(8)) * np.float32(2.0**-24))


@njit(**OPTIONS)
def _normals(bits, width, inside, density, end, inverse, out):  # type: ignore[no-untyped-def]
    """Fills `out` by the ziggurat of Marsaglia & Tsang (2000), as numpy does, for as long as there are random bits.

    Args:
        bits: random numbers of 32 bits.
        width, inside, density: of the layers: their width over 2^23, numbers that lie within the next one, e^(-x^2/2).
        end, inverse: where the last layer ends, and 1 over that.

    Returns:
        How many draws there are, and how many of the bits they took.
    """
    at, n = 0, len(bits)
    for i in range(len(out)):
        start = at
        while True:
            if at >= n:
                return i, start
            r = np.uint32(bits[np.uint64(at)])
            at += 1
            layer, size = np.uint64(r & np.uint32(255)), np.uint32(r >> np.uint32(9))
            x = np.float32(size) * width[layer]
            x = -x if r & np.uint32(256) else x
            if size < inside[layer]:
                out[np.uint64(i)] = x
                break
            if layer == 0:
                far = False
                more = inverse
                while not far:
                    if at + 2 > n:
                        return i, start
                    more = -inverse * np.log1p(-_share(bits, at))
                    other = -np.log1p(-_share(bits, at + 1))
                    at += 2
                    far = other + other > more * more
                out[i] = -(end + more) if size & np.uint32(256) else end + more
                break
            if at >= n:
                return i, start
            low, high = density[layer], density[layer - np.uint64(1)]
            at += 1
            if (high - low) * _share(bits, at - 1) + low < math.exp(-0.5 * np.float64(x) * np.float64(x)):
                out[i] = x
                break
    return len(out), at


class Normals:
    """What `numpy.random.Generator.standard_normal` gives in single precision, call after call, bit by bit."""

    def __init__(self, rng: np.random.Generator) -> None:
        """
        Args:
            rng: a fresh generator of 64 bits, which nobody else draws from.
        """
        from numba.np.random import _constants as numbers  # numpy's own tables are not to be had

        self._raw, self._left = rng.bit_generator.random_raw, np.empty(0, np.uint32)
        layers = (numbers.wi_float, numbers.ki_float, numbers.fi_float)
        self._ziggurat = (*layers, *(np.float32(x) for x in (numbers.ziggurat_nor_r_f, numbers.ziggurat_nor_inv_r_f)))

    def __call__(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.empty(shape, np.float32)
        flat, at = out.reshape(-1), 0
        while at < len(flat):
            fresh = np.asarray(self._raw(min(_CHUNK, (len(flat) - at) // 2 + 64))).view(np.uint32)
            bits = np.concatenate([self._left, fresh]) if len(self._left) else fresh
            done, used = _normals(bits, *self._ziggurat, flat[at:])
            at, self._left = at + done, bits[used:]
        return out


def normals() -> Callable[[np.random.Generator], Draws]:
    """The function that makes `Normals`; numpy's own where numba has no tables, or memory does not hold lower halves first."""
    try:
        Normals(np.random.default_rng(0))
    except (ImportError, AttributeError):
        return normals_of_numpy
    return _normals_of if sys.byteorder == "little" else normals_of_numpy


def _normals_of(rng: np.random.Generator) -> Draws:
    # a generator of another class may draw in another way
    return Normals(rng) if type(rng) is np.random.Generator else normals_of_numpy(rng)
