"""Compiled loops (numba) that take the place of functions in `common.random`: the same numbers in a third of the time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpviz.common.random import Drawn, normals_of_numpy, poisson_of_numpy
from dpviz.common.random import Normals as Draws
from dpviz.models.compiled.options import OPTIONS
from dpviz.models.compiled.pcg import fill, known, next_half, state_of

_EIGHT = 8  # numbers whose positions are written at once
#: of each of 256 masks, how many bits are set, and their places one after the other, in rows of eight
_COUNTS = np.array([mask.bit_count() for mask in range(256)])
_PLACES = np.array(
    [[k for k in range(8) if mask >> k & 1] + [0] * (8 - mask.bit_count()) for mask in range(256)], np.uint8
).ravel()
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
def _write_places(typing: Any, out: Any, at: Any, first: Any, places: Any, mask: Any) -> Any:
    """Writes first + each of the 8 places of a mask to `out` from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target, table = (
            cgutils.create_struct_proxy(kind)(context, builder, value).data
            for kind, value in ((out, given[0]), (places, given[3]))
        )
        eight, wide = ir.VectorType(ir.IntType(8), _EIGHT), ir.VectorType(ir.IntType(64), _EIGHT)
        row = builder.gep(table, [builder.mul(builder.zext(given[4], ir.IntType(64)), ir.Constant(ir.IntType(64), _EIGHT))])
        found = builder.load(builder.bitcast(row, eight.as_pointer()))
        found.align = 1
        one = builder.insert_element(ir.Constant(wide, ir.Undefined), given[2], ir.Constant(ir.IntType(32), 0))
        start = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), _EIGHT), [0] * _EIGHT))
        made = builder.add(builder.zext(found, wide), start)
        builder.store(made, builder.bitcast(builder.gep(target, [given[1]]), wide.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.none(out, types.intp, types.intp, places, types.uint32), generate


@njit(**OPTIONS)
def _positions(bits, most, out, ties):  # type: ignore[no-untyped-def]
    """Writes the positions of numbers up to `most`, and which of them are of `most` itself; how many there are of both.

    Eight numbers at a time: a loop over those that are small enough would end where the processor does not guess.

    Args:
        out: room for 8 more than there are.
    """
    count, tied, whole, byte = 0, 0, len(bits) // 32 * 32, np.uint32(255)
    for start in range(0, whole, 32):
        mask = _up_to(bits, start, most)
        equal = mask ^ (_up_to(bits, start, most - np.uint16(1)) if most else np.uint32(0))
        while equal:
            before = mask & ((equal & (~equal + np.uint32(1))) - np.uint32(1))
            ties[tied] = count
            for k in range(0, 32, _EIGHT):
                ties[tied] += _COUNTS[np.uint64((before >> np.uint32(k)) & byte)]
            tied += 1
            equal &= equal - np.uint32(1)
        for k in range(0, 32, _EIGHT):
            some = (mask >> np.uint32(k)) & byte
            _write_places(out, count, start + k, _PLACES, some)
            count += _COUNTS[np.uint64(some)]
    for at in range(whole, len(bits)):
        if bits[at] <= most:
            out[count] = at
            if bits[at] == most:
                ties[tied] = count
                tied += 1
            count += 1
    return count, tied


@njit(**OPTIONS)
def _poisson(states, first, n, coarse, fine, space, ties, out, cuts):  # type: ignore[no-untyped-def]
    """Batches of the replicas from `first` on, for as long as there is room for all n rows; the replica that comes next.

    Args:
        states: (S, 12) of `pcg`.
        space: for n random numbers of 16 bits.
        ties: (n,), overwritten.
        out, cuts: positions, and (S + 1,) where each replica's begin.
    """
    for s in range(first, len(states)):
        if len(out) - cuts[s] < n + _EIGHT:
            return s
        fill(states[s], space)
        mine = out[cuts[s] :]
        count, tied = _positions(space.view(np.uint16)[:n], coarse, mine, ties)
        left = count if tied == 0 else ties[0]
        for k in range(tied):
            end = ties[k + 1] if k + 1 < tied else count
            # ties of the upper 16 bits are decided by 16 more, those of `Generator.integers(0, 2**16)`
            for at in range(ties[k] + (next_half(states[s]) >> np.uint32(16) >= fine), end):
                mine[left] = mine[at]
                left += 1
        cuts[s + 1] = cuts[s] + left
    return len(states)


class Poisson:
    """What `common.random` draws as Poisson batches, bit by bit: those of all replicas in one call, overwritten by the next."""

    def __init__(self, rngs: Sequence[np.random.Generator], n: int, coarse: int, fine: int) -> None:
        """
        Args:
            rngs: fresh generators (`pcg.known`), from which nobody else draws.
            n, coarse, fine: as of `common.random.poisson_of_numpy`.
        """
        self._states, self._n, self._limits = np.array([state_of(rng) for rng in rngs]), n, (np.uint16(coarse), np.uint32(fine))
        self._space, self._ties = np.empty(-(-n // 4), np.uint64), np.empty(n, np.intp)
        self._cuts = np.zeros(len(rngs) + 1, np.intp)
        self._out = np.empty(n + _EIGHT + len(rngs) * (n * (coarse + 1) >> 16), np.intp)

    def __call__(self) -> Drawn:
        done = 0
        while True:
            done = _poisson(self._states, done, self._n, *self._limits, self._space, self._ties, self._out, self._cuts)
            if done == len(self._states):
                return Drawn(self._out[: self._cuts[-1]], self._cuts)
            self._out = np.concatenate([self._out, np.empty(max(self._n + _EIGHT, len(self._out) // 4), np.intp)])


def poisson(rngs: Sequence[np.random.Generator], n: int, coarse: int, fine: int) -> Callable[[], Drawn]:
    """`Poisson`, or numpy for generators of other classes."""
    return Poisson(rngs, n, coarse, fine) if all(map(known, rngs)) else poisson_of_numpy(rngs, n, coarse, fine)


@njit(**OPTIONS)
def _next(state, space, bits, reach, left):  # type: ignore[no-untyped-def]
    """The next random number; where none are made, new ones for at least `left` draws are, as long as there is room.

    Args:
        bits: `space`, as numbers of 32 or of 64 bits.
        reach: (2,) which of `bits` comes next, and how many there are.
    """
    if reach[0] >= reach[1]:
        each = len(bits) // len(space)
        size = min(len(space), left // each + 64)
        fill(state, space[:size])
        reach[0], reach[1] = 0, each * size
    reach[0] += 1
    return bits[reach[0] - 1]


@njit(**OPTIONS)
def _normals(state, space, bits, reach, ziggurat, drop, unit, out):  # type: ignore[no-untyped-def]
    """Fills `out` by the ziggurat of Marsaglia & Tsang (2000), as numpy does: 9 bits say which layer and sign, others how far.

    Args:
        state, space, bits, reach: of `_next`.
        ziggurat: its layers: their width over the largest number that says how far, and the same with a minus; numbers that
            lie within the next one; e^(-x^2/2). Where the last layer ends, and 1 over that. All in the precision of `out`.
        drop, unit: a number in [0, 1) is one without its last bits times 2^-24 or 2^-53.
    """
    width, inside, density, end, inverse = ziggurat
    kind, word = out.dtype.type, bits.dtype.type
    last, layers, both = word(9), word(255), word(511)
    far = word((1 << (23 if len(bits) > len(space) else 52)) - 1)
    i, n = 0, len(out)
    while i < n:
        # most draws are decided by their first random number
        at, most = reach[0], min(n - i, reach[1] - reach[0])
        k = 0
        while k < most:
            r = bits[np.uint64(at + k)]
            size = (r >> last) & far
            if size >= inside[np.uint64(r & layers)]:
                break
            out[np.uint64(i + k)] = kind(np.int64(size)) * width[np.uint64(r & both)]
            k += 1
        i += k
        reach[0] += k
        if i == n:
            break
        r = _next(state, space, bits, reach, n - i)
        layer, size = np.uint64(r & layers), (r >> last) & far
        x = kind(np.int64(size)) * width[np.uint64(r & both)]
        if size < inside[layer]:
            out[i] = x
            i += 1
        elif layer == 0:
            beyond, more = False, inverse
            while not beyond:
                more = -inverse * np.log1p(-kind(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit)
                other = -np.log1p(-kind(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit)
                beyond = other + other > more * more
            out[i] = -(end + more) if size & word(256) else end + more
            i += 1
        else:
            low, high = density[layer], density[layer - np.uint64(1)]
            share = kind(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit
            if (high - low) * share + low < math.exp(-0.5 * np.float64(x) * np.float64(x)):
                out[i] = x
                i += 1


class Normals:
    """What `numpy.random.Generator.standard_normal` gives, call after call, bit by bit."""

    def __init__(self, rng: np.random.Generator, precision: type[np.floating] = np.float32) -> None:
        """
        Args:
            rng: a fresh generator (`pcg.known`), from which nobody else draws.
            precision: of the draws.
        """
        from numba.np.random import _constants as numbers  # numpy's own tables are not to be had

        single = precision is np.float32
        self._precision, space = precision, np.empty(_CHUNK, np.uint64)
        self._source = (state_of(rng), space, space.view(np.uint32) if single else space, np.zeros(2, np.intp))
        names = ("wi_float", "ki_float", "fi_float") if single else ("wi_double", "ki_double", "fi_double")
        width, inside, density = (getattr(numbers, name) for name in names)
        ends = (
            (numbers.ziggurat_nor_r_f, numbers.ziggurat_nor_inv_r_f)
            if single
            else (numbers.ziggurat_nor_r, numbers.ziggurat_nor_inv_r)
        )
        self._ziggurat = (np.concatenate([width, -width]), inside, density, *map(precision, ends))
        self._last = (np.uint32(8), np.float32(2.0**-24)) if single else (np.uint64(11), 2.0**-53)

    def __call__(self, shape: tuple[int, ...]) -> NDArray[Any]:
        out = np.empty(shape, self._precision)
        _normals(*self._source, self._ziggurat, *self._last, out.reshape(-1))
        return out


def normals() -> Callable[[np.random.Generator, type[np.floating]], Draws]:
    """The function that makes `Normals`; numpy's own where numba has no tables, or memory does not hold lower halves first."""
    try:
        Normals(np.random.default_rng(0)), Normals(np.random.default_rng(0), np.float64)
    except (ImportError, AttributeError):
        return normals_of_numpy
    return _normals_of if sys.byteorder == "little" else normals_of_numpy


def _normals_of(rng: np.random.Generator, precision: type[np.floating]) -> Draws:
    return Normals(rng, precision) if known(rng) else normals_of_numpy(rng, precision)
