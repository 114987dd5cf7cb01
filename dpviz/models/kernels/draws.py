"""Random numbers that take the place of those in `common.random`, bit by bit, in a third of the time.

A Poisson batch has the rows whose 16 random bits are below the chance's; ties are decided by 16 more, those of
`Generator.integers(0, 2**16)`. Normal draws come from the ziggurat of Marsaglia & Tsang (2000), as numpy's: 9 bits say which
layer and sign, the others how far; most draws are decided by their first random number.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from dpviz.common.random import Drawn, normals_of_numpy, poisson_of_numpy
from dpviz.common.random import Normals as Draws
from dpviz.models.kernels.compiling import flat, kernel
from dpviz.models.kernels.pcg import fill, known, next_half, state_of

_CHUNK = 1 << 14  # random numbers of 64 bits made at once, which stay in the processor's cache


@cache
def _poisson() -> Callable[..., int]:
    whole, bits = flat(types.intp), flat(types.uint64)

    @kernel(types.uint64[:, ::1], types.intp, types.intp, types.uint16, types.uint64, bits, flat(types.uint16), whole, whole)
    def batches(states, first, n, coarse, fine, space, parts, out, cuts):  # type: ignore[no-untyped-def]
        """Batches of the replicas from `first` on, for as long as there is room for all n rows; the replica that comes next.

        Args:
            states: (S, 12) of `pcg`.
            space, parts: for n random numbers of 16 bits, as numbers of 64 and of 16.
            out, cuts: positions, and (S + 1,) where each replica's begin.
        """
        for s in range(first, len(states)):
            start = cuts[s]
            if len(out) - start <= n:
                return s
            fill(states[s], space)
            count, last = np.uint64(start), np.uint64(start)
            for at in range(n):
                out[count] = at
                count += np.uint64(parts[np.uint64(at)] <= coarse)  # a branch would be guessed wrong
            for k in range(np.uint64(start), count):
                out[last] = out[k]
                if parts[np.uint64(out[k])] != coarse or next_half(states[s]) >> np.uint64(16) < fine:
                    last += np.uint64(1)
            cuts[s + 1] = last
        return len(states)

    return batches


class Poisson:
    """Poisson batches of all replicas in one call, overwritten by the next."""

    def __init__(self, rngs: Sequence[np.random.Generator], n: int, coarse: int, fine: int) -> None:
        """
        Args:
            rngs: fresh generators (`pcg.known`), from which nobody else draws.
            n, coarse, fine: as of `common.random.poisson_of_numpy`.
        """
        self._states, self._n, self._limits = np.array([state_of(rng) for rng in rngs]), n, (np.uint16(coarse), np.uint64(fine))
        self._space, self._cuts = np.empty(-(-n // 4), np.uint64), np.zeros(len(rngs) + 1, np.intp)
        self._out = np.empty(n + 1 + len(rngs) * (n * (coarse + 1) >> 16), np.intp)

    def __call__(self) -> Drawn:
        done, draw, space = 0, _poisson(), (self._space, self._space.view(np.uint16))
        while True:
            done = draw(self._states, done, self._n, *self._limits, *space, self._out, self._cuts)
            if done == len(self._states):
                return Drawn(self._out[: self._cuts[-1]], self._cuts)
            self._out = np.concatenate([self._out, np.empty(max(self._n + 1, len(self._out) // 4), np.intp)])


def poisson(rngs: Sequence[np.random.Generator], n: int, coarse: int, fine: int) -> Callable[[], Drawn]:
    """`Poisson`, or numpy for other generators."""
    return Poisson(rngs, n, coarse, fine) if all(map(known, rngs)) else poisson_of_numpy(rngs, n, coarse, fine)


@njit
def _next(state, space, bits, reach, left):  # type: ignore[no-untyped-def]
    """The next random number; where none are made, new ones for at least `left` draws are, as long as there is room.

    Args:
        bits: `space`, as numbers of 32 bits.
        reach: (2,) which of `bits` comes next, and how many there are.
    """
    if reach[0] >= reach[1]:
        size = min(len(space), left // 2 + 64)
        fill(state, space[:size])
        reach[0], reach[1] = 0, 2 * size
    reach[0] += 1
    return bits[reach[0] - 1]


@cache
def _ziggurat() -> Callable[..., None]:
    sign_and_layer, layers, both, sign = np.uint32(9), np.uint32(255), np.uint32(511), np.uint32(256)
    far, drop, unit = np.uint32((1 << 23) - 1), np.uint32(8), np.float32(2.0**-24)
    bits_of, many, number = flat(types.uint32), flat(types.float32), types.float32
    tables = types.Tuple((many, bits_of, many, number, number))

    @kernel(flat(types.uint64), flat(types.uint64), bits_of, flat(types.intp), tables, many, exact=True)
    def normals(state, space, bits, reach, ziggurat, out):  # type: ignore[no-untyped-def]
        """Fills `out` with standard normal draws.

        Args:
            state, space, bits, reach: of `_next`.
            ziggurat: of its layers, width over the largest number that says how far, that with a minus, numbers within the next
                layer, and e^(-x^2/2); where the last layer ends, and 1 over that.
        """
        width, inside, density, end, inverse = ziggurat
        i, n = 0, len(out)
        while i < n:
            at, most = reach[0], min(n - i, reach[1] - reach[0])
            k = 0
            while k < most:
                r = bits[np.uint64(at + k)]
                size = (r >> sign_and_layer) & far
                if size >= inside[np.uint64(r & layers)]:
                    break
                out[np.uint64(i + k)] = np.float32(np.int64(size)) * width[np.uint64(r & both)]
                k += 1
            i += k
            reach[0] += k
            if i == n:
                break
            r = _next(state, space, bits, reach, n - i)
            layer, size = np.uint64(r & layers), (r >> sign_and_layer) & far
            x = np.float32(np.int64(size)) * width[np.uint64(r & both)]
            if size < inside[layer]:
                out[i] = x
                i += 1
            elif layer == 0:
                beyond, more = False, inverse
                while not beyond:
                    more = -inverse * np.log1p(-np.float32(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit)
                    other = -np.log1p(-np.float32(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit)
                    beyond = other + other > more * more
                out[i] = -(end + more) if size & sign else end + more
                i += 1
            else:
                low, high = density[layer], density[layer - np.uint64(1)]
                chosen = np.float32(np.int64(_next(state, space, bits, reach, n - i) >> drop)) * unit
                if (high - low) * chosen + low < math.exp(-0.5 * np.float64(x) * np.float64(x)):
                    out[i] = x
                    i += 1

    return normals


class Normals:
    """The draws of `numpy.random.Generator.standard_normal` in single precision, call after call."""

    def __init__(self, rng: np.random.Generator) -> None:
        """
        Args:
            rng: a fresh generator (`pcg.known`), from which nobody else draws.
        """
        from numba.np.random import _constants as numbers  # numpy's own tables are not to be had

        space = np.empty(_CHUNK, np.uint64)
        self._source = (state_of(rng), space, space.view(np.uint32), np.zeros(2, np.intp))
        width, inside, density = (np.array(getattr(numbers, name)) for name in ("wi_float", "ki_float", "fi_float"))
        ends = (np.float32(getattr(numbers, name)) for name in ("ziggurat_nor_r_f", "ziggurat_nor_inv_r_f"))
        self._tables = (np.concatenate([width, -width]), inside, density, *ends)

    def __call__(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.empty(shape, np.float32)
        _ziggurat()(*self._source, self._tables, out.reshape(-1))
        return out


def normals() -> Callable[[np.random.Generator], Draws]:
    """The function that makes `Normals`; numpy's own where numba has no tables, or memory does not hold lower halves first."""
    try:
        Normals(np.random.default_rng(0))
    except (ImportError, AttributeError):
        return normals_of_numpy
    return _normals_of if sys.byteorder == "little" else normals_of_numpy


def _normals_of(rng: np.random.Generator) -> Draws:
    return Normals(rng) if known(rng) else normals_of_numpy(rng)
