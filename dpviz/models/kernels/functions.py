"""Elementary functions inside kernels: e^x, limits and tanh, as loops that a compiler makes SIMD instructions of."""

import math

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from dpviz.models.elementary import exponential, limited

_single, _whole = np.float32, np.int32
# e^x = 2^k e^r for the whole number k nearest to x/ln 2: ln 2 in two parts, of which the first has few digits
_LN2 = {32: (0.693359375, -2.12194440e-4), 64: (6.93145751953125e-1, 1.42860682030941723212e-6)}  # Cephes, expf.c and exp.c
_TAYLOR = {bits: tuple(1 / math.factorial(k) for k in range(terms, -1, -1)) for bits, terms in ((32, 7), (64, 13))}


@overload(exponential)
def _exponential(x):  # type: ignore[no-untyped-def]
    """e^x within 2 units in the last place, for |x| <= 87 or 708; beyond, the value there."""
    return _exponential_single if x == types.float32 else _exponential_double


def _exponential_single(x):  # type: ignore[no-untyped-def]
    x = _single(-87) if x < _single(-87) else x
    x = _single(87) if x > _single(87) else x
    shifted = x * _INVERSE32 + _SHIFT32  # which leaves the nearest whole number in the last bits
    power = shifted - _SHIFT32
    r = x - power * _HIGH32 - power * _LOW32
    z = _single(0)
    for term in _TERMS32:
        z = z * r + term
    return z * np.int32((_single(shifted).view(np.int32) << _whole(23)) + _whole(127 << 23)).view(np.float32)


def _exponential_double(x):  # type: ignore[no-untyped-def]
    x = -708.0 if x < -708.0 else x
    x = 708.0 if x > 708.0 else x
    shifted = x * _INVERSE64 + _SHIFT64
    power = shifted - _SHIFT64
    r = x - power * _HIGH64 - power * _LOW64
    z = 0.0
    for term in _TERMS64:
        z = z * r + term
    return z * np.int64((np.float64(shifted).view(np.int64) << np.int64(52)) + np.int64(1023 << 52)).view(np.float64)


_INVERSE32, _SHIFT32, _INVERSE64, _SHIFT64 = _single(1 / math.log(2)), _single(1.5 * 2**23), 1 / math.log(2), 1.5 * 2.0**52
(_HIGH32, _LOW32), (_HIGH64, _LOW64) = (_single(part) for part in _LN2[32]), _LN2[64]
_TERMS32, _TERMS64 = tuple(_single(term) for term in _TAYLOR[32]), _TAYLOR[64]


@overload(limited)
def _limited(x, low, high):  # type: ignore[no-untyped-def]
    return lambda x, low, high: low if x < low else (high if x > high else x)  # what is not a number stays so


#: P and Q of x P(x^2)/Q(x^2) for tanh, highest powers first: the largest relative error up to `_REACH` is least, 2.1e-8
#: [ours: fitted by weighted least squares]; beyond, tanh is 1 in single precision
_P = tuple(_single(c) for c in (1.3319152271e-8, 2.0583543190e-5, 3.4940384716e-3, 1.3379721273e-1, 9.9999997902e-1))
_Q = tuple(_single(c) for c in (7.7620535185e-7, 3.2830991381e-4, 2.5871088208e-2, 4.6713036514e-1, 1.0))
_REACH = _single(9.02)


@register_jitable
def tangent(x):  # type: ignore[no-untyped-def]
    """tanh in single precision, within 4 units in the last place."""
    x = limited(x, -_REACH, _REACH)
    square, above, below = x * x, _single(0), _single(0)
    for term in _P:
        above = above * square + term
    for term in _Q:
        below = below * square + term
    return x * above / below
