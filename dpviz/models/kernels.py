"""Compiled sums over rows that are mostly zeros (numba, `pip install 'dpviz[fast]'`), for W replicas at once.

For rows x_i (labels multiplied in), parameters theta (d, W), clip norm C and the loss's slope phi' there are three kernels:

    gradient: sum over all rows of x_i s_ir,    s_ir = phi'(<theta_r, x_i>) min(1, C / (|phi'(<theta_r, x_i>)| |x_i|))
    batches:  the same over S batches of rows, each at parameters of its own
    descend:  theta_r <- theta_r - eta_tr (mean over batch t of x_i phi'(<theta_r, x_i>) + lam theta_r), many updates

W is a constant when a kernel is compiled, so that the innermost loops become SIMD instructions. A sum takes at most SHORT terms
in the precision of the rows before it goes on in double precision. Kernels look at no bounds: `products` checks every array.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpviz.models.losses import exponential, limited

ROWS = 1024  # rows of a block, whose slopes stay in the processor's cache between both products of a gradient
SHORT = 64
NARROW, WIDE = 16, 112  # replicas of a kernel: two numbers, because each is compiled by itself; a figure trains 100


class Entries(NamedTuple):
    """Rows without their zeros: row i has the entries ends[i] to ends[i + 1] - 1."""

    ends: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]


def _writable() -> bool:
    """True where compiled functions can be kept; numba refuses to define one where neither its folder nor home can be written."""
    try:
        njit(cache=True)(_writable)
    except RuntimeError:
        return False
    return True


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_kernel = njit(**_OPTIONS, cache=_writable())
_inline = njit(**_OPTIONS, forceinline=True)


def by_row(rows: csr_array) -> Entries:
    """The entries of rows; positions without a sign, for which compiled loops look for no negative ones."""
    return Entries(rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), rows.data)


def by_column(rows: csr_array) -> Entries:
    """The entries by block of ROWS rows and column, where rows are counted from the block's first."""
    n, d = rows.shape
    block = np.repeat(np.arange(n) // ROWS, np.diff(rows.indptr))
    blocks = csr_array((rows.data, rows.indices + block * d, rows.indptr), shape=(n, -(-n // ROWS) * d)).tocsc()
    return Entries(blocks.indptr.astype(np.uint64), (blocks.indices % ROWS).astype(np.uint32), blocks.data)


@cache
def compile_kernel(kernel: Callable[..., Any], width: int, slope_at: Callable[..., Any]) -> Callable[..., None]:
    """One of the three kernels for a number of replicas and the slope of a loss."""
    code = slope_at.__code__
    made: Callable[..., None] = kernel(width, register_jitable(slope_at), f"{code.co_code!r} {code.co_consts}")
    return made


@intrinsic
def _stack(typing: Any, count: Any, like: Any) -> Any:
    """A pointer to `count` numbers on the stack, of the type of those in `like` (numba has no stack arrays: its issue 5084)."""
    if not isinstance(count, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(like.dtype)
        return cgutils.alloca_once(builder, kind, size=context.get_constant(types.intp, count.literal_value))

    return types.CPointer(like.dtype)(types.literal(count.literal_value), like), generate


@intrinsic
def _add_vector(typing: Any, to: Any, at: Any, first: Any, value: Any) -> Any:
    """to[first + r] += value * at[first + r], r < NARROW, as vectors: LLVM leaves so short a loop as single numbers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(context.get_value_type(to.dtype), NARROW)
        starts = [
            builder.gep(context.make_array(t)(context, builder, a).data, [given[2]])
            for t, a in zip((to, at), given, strict=False)
        ]
        places = [builder.bitcast(start, kind.as_pointer()) for start in starts]
        before, term = (builder.load(place, align=1) for place in places)
        one, same = ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), NARROW), [0] * NARROW)
        factor = builder.shuffle_vector(builder.insert_element(one, given[3], ir.Constant(ir.IntType(32), 0)), one, same)
        product = builder.fmul(factor, term, flags=("contract",))
        builder.store(builder.fadd(before, product, flags=("contract",)), places[0], align=1)

    return types.void(to, at, first, value), generate


def _exponential_in(kind: Any, whole: Any, most: float, digits: int, bias: int, ln2: tuple[float, float], terms: int) -> Any:
    """e^x = 2^k e^r for the whole number k nearest to x/ln 2, within 2 units in the last place; beyond `most` the value there.

    Args:
        kind, whole: types of x and of its bits, whose last `digits` are those after the point, beside an exponent plus `bias`.
        ln2: in two parts, of which the first has few digits.
        terms: of the Taylor series.
    """
    low, high, zero, bits, one = kind(-most), kind(most), kind(0), whole(digits), whole(bias << digits)
    inverse, shift, (large, small) = kind(1 / math.log(2)), kind(1.5 * 2.0**digits), map(kind, ln2)
    taylor = tuple(kind(1 / math.factorial(k)) for k in range(terms, -1, -1))

    def exponential(x):  # type: ignore[no-untyped-def]
        x = limited(x, low, high)
        shifted = x * inverse + shift  # which leaves the nearest whole number in the last bits
        power = shifted - shift
        r = x - power * large - power * small
        z = zero
        for term in taylor:
            z = z * r + term
        return z * whole((kind(shifted).view(whole) << bits) + one).view(kind)

    return exponential


_single = _exponential_in(np.float32, np.int32, 87, 23, 127, (0.693359375, -2.12194440e-4), 7)  # Cephes, expf.c
_double = _exponential_in(np.float64, np.int64, 708, 52, 1023, (6.93145751953125e-1, 1.42860682030941723212e-6), 13)  # exp.c


@overload(exponential)
def _exponential(x):  # type: ignore[no-untyped-def]
    return _single if x == types.float32 else _double


@overload(limited)
def _limited(x, low, high):  # type: ignore[no-untyped-def]
    return lambda x, low, high: low if x < low else (high if x > high else x)  # what is not a number stays so


@_inline
def _add_multiple(to, value, at, W):  # type: ignore[no-untyped-def]
    """to += value * at, (W,)."""
    for r in range(0, W - W % NARROW, NARROW):
        _add_vector(to, at, r, value)
    for r in range(W - W % NARROW, W):
        to[r] += value * at[r]


@_inline
def _margins(rows, i, theta, W, margin):  # type: ignore[no-untyped-def]
    """Writes <theta_r, x_i> to `margin`, (W,)."""
    for r in range(W):
        margin[r] = 0
    for k in range(rows.ends[i], rows.ends[i + 1]):
        _add_multiple(margin, rows.values[k], theta[rows.columns[k]], W)


@_inline
def _add(rows, i, slopes, W, total):  # type: ignore[no-untyped-def]
    """Adds x_i times slopes (W,) to `total`, (d, W)."""
    for k in range(rows.ends[i], rows.ends[i + 1]):
        _add_multiple(total[rows.columns[k]], rows.values[k], slopes, W)


def gradient(W: int, slope_at: Callable[..., Any], formula: str) -> Callable[..., None]:
    """Adds the sum over all rows to `total`."""

    @_kernel
    def kernel(  # type: ignore[no-untyped-def]
        rows, blocks, theta, norms, clip_norm, one, loss, weights, more, first, spent, up, limit, active, slopes, total
    ):
        """
        Args:
            rows, blocks: as of `by_row` and `by_column`.
            weights: (n, R) of rows, of which replica r has column first + r; None for 1.
            more: (n, R) likewise, added to the margins, and overwritten by the slopes; None for 0.
            spent: (n, R) likewise, squared norms that rows added up, to which those of this sum are added, rounded up by the
                factor `up`; rows above `limit` add nothing, and `active` (W,) counts those that do. None where all rows do.
            theta, total: (d, W); `total` in double precision; slopes: (ROWS, W), overwritten; norms: (n,) of the rows.
            one, loss: 1 and the loss's constants in the precision of the rows.
        """
        _ = formula  # numba knows a kernel that it kept by this file and by such values, not by the file of the loss
        n, d = len(rows.ends) - 1, len(total)
        sums = nb.carray(_stack(W, norms), W)
        for block in range(-(-n // ROWS)):
            start, stop = block * ROWS, min(block * ROWS + ROWS, n)
            for i in range(start, stop):
                _margins(rows, i, theta, W, sums)
                if more is not None:
                    added = more[i, first:]
                    for r in range(min(W, len(added))):
                        sums[r] += added[r]
                most, out = clip_norm / norms[i], slopes[i - start]
                for r in range(W):
                    out[r] = limited(slope_at(sums[r], one, *loss), -most, most)  # Abadi et al. 2016, Algorithm 1
                if weights is not None:
                    own = weights[i, first:]
                    for r in range(min(W, len(own))):
                        out[r] *= own[r]
                if spent is not None:
                    squares = spent[i, first:]
                    for r in range(min(W, len(squares))):
                        norm = out[r] * norms[i]
                        squares[r] = (squares[r] + norm * norm) * up
                        above = squares[r] > limit  # what is not a number is not
                        out[r] = one - one if above else out[r]
                        active[r] += one - one if above else one
                if more is not None:
                    for r in range(min(W, len(added))):
                        added[r] = out[r]
            for j in range(d):
                k, end, to = blocks.ends[block * d + j], blocks.ends[block * d + j + 1], total[j]
                while k < end:
                    last = min(end, k + np.uint64(SHORT))
                    for r in range(W):
                        sums[r] = 0
                    for at in range(k, last):
                        _add_multiple(sums, blocks.values[at], slopes[blocks.columns[at]], W)
                    k = last
                    for r in range(W):
                        to[r] += sums[r]

    return kernel


def batches(W: int, slope_at: Callable[..., Any], formula: str) -> Callable[..., None]:
    """Adds the sum over the rows index[cuts[s]] to index[cuts[s + 1] - 1] to total[s]."""

    @_kernel
    def kernel(rows, index, cuts, theta, norms, clip_norm, one, loss, short, total):  # type: ignore[no-untyped-def]
        """
        Args:
            theta, total: (S, d, W); other arguments as of `gradient`.
            short: (d, W) zeros.
        """
        _ = formula
        slopes = nb.carray(_stack(W, norms), W)
        for s in range(len(cuts) - 1):
            for first in range(cuts[s], cuts[s + 1], SHORT):
                for i in index[first : min(first + SHORT, cuts[s + 1])]:
                    _margins(rows, i, theta[s], W, slopes)
                    most = clip_norm / norms[i]
                    for r in range(W):
                        slopes[r] = limited(slope_at(slopes[r], one, *loss), -most, most)
                    _add(rows, i, slopes, W, short)
                for j in range(len(short)):
                    for r in range(W):
                        total[s, j, r] += short[j, r]
                        short[j, r] = 0

    return kernel


def descend(W: int, slope_at: Callable[..., Any], formula: str) -> Callable[..., None]:
    """Makes the updates `first` to `last` - 1 of mini-batch gradient descent, in double precision."""

    @_kernel
    def kernel(rows, bounds, first, last, steps, lam, window, loss, theta, gradient, total):  # type: ignore[no-untyped-def]
        """
        Args:
            bounds: (m + 1,) ends of the batches, of which update t takes number t mod m.
            steps: (T, W) eta; lam: (W,).
            window: after so many updates theta becomes the mean of the iterates since the last time; 0 for never.
            theta, gradient, total: (d, W); the gradient is 0, and `total` the sum of the iterates of this window.
        """
        _ = formula
        slopes = nb.carray(_stack(W, steps), W)
        for t in range(first, last):
            a, b = bounds[t % (len(bounds) - 1)], bounds[t % (len(bounds) - 1) + 1]
            for i in range(a, b):
                _margins(rows, i, theta, W, slopes)
                for r in range(W):
                    slopes[r] = slope_at(slopes[r], 1.0, *loss)
                _add(rows, i, slopes, W, gradient)
            for r in range(W):
                slopes[r] = steps[t, r] / (b - a)
            for j in range(len(theta)):
                at, change = theta[j], gradient[j]
                for r in range(W):
                    at[r] = at[r] * (1 - steps[t, r] * lam[r]) - slopes[r] * change[r]
                    total[j, r] += at[r]
                    change[r] = 0
            if window > 0 and (t + 1) % window == 0:
                for j in range(len(theta)):
                    for r in range(W):
                        theta[j, r], total[j, r] = total[j, r] / window, 0

    return kernel
