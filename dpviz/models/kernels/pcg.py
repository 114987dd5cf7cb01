"""numpy's random bits (PCG64) inside kernels: the same numbers, four at a time.

A state of 128 bits goes from s to a s + c modulo 2^128 (O'Neill 2014); its output is both halves, xor, rotated by 6 bits.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpviz.models.kernels.compiling import piece

_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # a, as in numpy's pcg64.h
_MODULUS = 1 << 128
_AT_ONCE = 4
_HELD, _HALF = np.uint64(10), np.uint64(11)  # whether an upper half of 64 bits is still to be given out, and that half
_0, _1, _4 = np.uint64(0), np.uint64(1), np.uint64(4)
_LOWER, _32, _63 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(63)


def known(rng: np.random.Generator) -> bool:
    """True where the generator draws by PCG64; another class may draw in another way."""
    return type(rng) is np.random.Generator and type(rng.bit_generator) is np.random.PCG64


def state_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(12,) where a generator stands, for kernels, which go on from there while the generator does not.

    State, a and c; a and c of four steps at once, each as its upper and lower 64 bits; `_HELD` and `_HALF`.
    """
    found = rng.bit_generator.state
    state, plus = found["state"]["state"], found["state"]["inc"]
    # four steps of s <- a s + c are one of s <- a^4 s + (a^3 + a^2 + a + 1) c
    leap = pow(_FACTOR, _AT_ONCE, _MODULUS), plus * sum(_FACTOR**k for k in range(_AT_ONCE)) % _MODULUS
    halves = [half for whole in (state, _FACTOR, plus, *leap) for half in divmod(whole, 1 << 64)]
    return np.array([*halves, found["has_uint32"], found["uinteger"]], np.uint64)


@piece
def _upper(one, other):  # type: ignore[no-untyped-def]
    """The upper 64 bits of a product of 128; the compiler knows these words as one instruction."""
    a, b, c, d = one & _LOWER, one >> _32, other & _LOWER, other >> _32
    low = b * c + (a * c >> _32)
    return b * d + (low >> _32) + (a * d + (low & _LOWER) >> _32)


@piece
def _step(high, low, by_high, by_low, plus_high, plus_low):  # type: ignore[no-untyped-def]
    """a s + c modulo 2^128."""
    total = low * by_low + plus_low
    above = _upper(low, by_low) + high * by_low + low * by_high
    return above + plus_high + np.uint64(total < plus_low), total


@piece
def _bits(high, low):  # type: ignore[no-untyped-def]
    """The output of a state."""
    mixed, by = high ^ low, high >> np.uint64(58)
    return (mixed >> by) | (mixed << ((np.uint64(64) - by) & _63))


@njit
def fill(state, out):  # type: ignore[no-untyped-def]
    """`random_raw`: writes the next numbers of 64 bits."""
    high, low, by_high, by_low, plus_high, plus_low = state[0], state[1], state[2], state[3], state[4], state[5]
    wide_high, wide_low, far_high, far_low = state[6], state[7], state[8], state[9]
    whole = np.uint64(len(out)) // _4 * _4
    a, b = _step(high, low, by_high, by_low, plus_high, plus_low)
    c, d = _step(a, b, by_high, by_low, plus_high, plus_low)
    e, f = _step(c, d, by_high, by_low, plus_high, plus_low)
    g, h = _step(e, f, by_high, by_low, plus_high, plus_low)
    for k in range(_0, whole, _4):
        out[k], out[k + _1] = _bits(a, b), _bits(c, d)
        out[k + np.uint64(2)], out[k + np.uint64(3)] = _bits(e, f), _bits(g, h)
        high, low = g, h
        a, b = _step(a, b, wide_high, wide_low, far_high, far_low)
        c, d = _step(c, d, wide_high, wide_low, far_high, far_low)
        e, f = _step(e, f, wide_high, wide_low, far_high, far_low)
        g, h = _step(g, h, wide_high, wide_low, far_high, far_low)
    for k in range(whole, np.uint64(len(out))):
        high, low = _step(high, low, by_high, by_low, plus_high, plus_low)
        out[k] = _bits(high, low)
    state[0], state[1] = high, low


@piece
def next_half(state):  # type: ignore[no-untyped-def]
    """The next number of 32 bits: lower halves first, upper halves are kept for the next call."""
    if state[_HELD]:
        state[_HELD] = _0
        return state[_HALF]
    state[0], state[1] = _step(state[0], state[1], state[2], state[3], state[4], state[5])
    made = _bits(state[0], state[1])
    state[_HELD], state[_HALF] = _1, made >> _32
    return made & _LOWER
