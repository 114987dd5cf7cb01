"""numpy's PCG64 as compiled loops: the same numbers, four side by side where numpy waits for each before it makes the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpviz.models.compiled.options import OPTIONS

_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # O'Neill 2014 (PCG), as in numpy's pcg64.h
_MODULUS = 1 << 128
_AT_ONCE = 4
_HELD, _HALF = 10, 11  # whether an upper half of 64 bits is still to be given out, and that half


def known(rng: np.random.Generator) -> bool:
    """Whether the generator draws by PCG64; another class may draw in another way."""
    return type(rng) is np.random.Generator and type(rng.bit_generator) is np.random.PCG64


def state_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(12,) where a generator stands, for the loops here, which go on from there while the generator does not.

    State, factor and increment; factor and increment of four steps at once, each as its upper and lower 64 bits; `_HELD` and
    `_HALF`.
    """
    found = rng.bit_generator.state
    state, plus = found["state"]["state"], found["state"]["inc"]
    # four steps of s <- a s + c are one of s <- a^4 s + (a^3 + a^2 + a + 1) c
    leap = pow(_FACTOR, _AT_ONCE, _MODULUS), plus * sum(_FACTOR**k for k in range(_AT_ONCE)) % _MODULUS
    halves = [half for whole in (state, _FACTOR, plus, *leap) for half in divmod(whole, 1 << 64)]
    return np.array([*halves, found["has_uint32"], found["uinteger"]], np.uint64)


@intrinsic
def _upper(typing: Any, one: Any, other: Any) -> Any:
    """The upper 64 bits of a product of 128."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        whole = ir.IntType(128)
        product = builder.mul(*(builder.zext(each, whole) for each in given))
        return builder.trunc(builder.lshr(product, ir.Constant(whole, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@njit(**OPTIONS)
def _step(high, low, by_high, by_low, plus_high, plus_low):  # type: ignore[no-untyped-def]
    """factor * state + increment modulo 2^128."""
    product = low * by_low
    total = product + plus_low
    above = _upper(low, by_low) + high * by_low + low * by_high
    return above + plus_high + np.uint64(total < product), total


@njit(**OPTIONS)
def _bits(high, low):  # type: ignore[no-untyped-def]
    """Both halves of a state, xor, turned to the right by its upper 6 bits."""
    mixed, by = high ^ low, high >> np.uint64(58)
    return (mixed >> by) | (mixed << ((np.uint64(64) - by) & np.uint64(63)))


@njit(**OPTIONS)
def fill(state, out):  # type: ignore[no-untyped-def]
    """`random_raw`: writes the next numbers of 64 bits."""
    high, low, by_high, by_low, plus_high, plus_low = state[0], state[1], state[2], state[3], state[4], state[5]
    wide_high, wide_low, far_high, far_low = state[6], state[7], state[8], state[9]
    whole = len(out) // 4
    a, b = _step(high, low, by_high, by_low, plus_high, plus_low)
    c, d = _step(a, b, by_high, by_low, plus_high, plus_low)
    e, f = _step(c, d, by_high, by_low, plus_high, plus_low)
    g, h = _step(e, f, by_high, by_low, plus_high, plus_low)
    for k in range(whole):
        at = np.uint64(4 * k)
        out[at], out[at + np.uint64(1)] = _bits(a, b), _bits(c, d)
        out[at + np.uint64(2)], out[at + np.uint64(3)] = _bits(e, f), _bits(g, h)
        high, low = g, h
        a, b = _step(a, b, wide_high, wide_low, far_high, far_low)
        c, d = _step(c, d, wide_high, wide_low, far_high, far_low)
        e, f = _step(e, f, wide_high, wide_low, far_high, far_low)
        g, h = _step(g, h, wide_high, wide_low, far_high, far_low)
    for k in range(4 * whole, len(out)):
        high, low = _step(high, low, by_high, by_low, plus_high, plus_low)
        out[k] = _bits(high, low)
    state[0], state[1] = high, low


@njit(**OPTIONS)
def next_half(state):  # type: ignore[no-untyped-def]
    """The next number of 32 bits: lower halves first, upper halves are kept for the next call."""
    if state[_HELD]:
        state[_HELD] = np.uint64(0)
        return np.uint32(state[_HALF])
    high, low = _step(state[0], state[1], state[2], state[3], state[4], state[5])
    state[0], state[1] = high, low
    made = _bits(high, low)
    state[_HELD], state[_HALF] = np.uint64(1), made >> np.uint64(32)
    return np.uint32(made & np.uint64(0xFFFFFFFF))
