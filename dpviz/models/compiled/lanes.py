"""Compiled loops (numba): products with rows that are mostly zeros, slopes of losses, sums, products with a row's noise.

Lanes are the numbers that a processor works on at once: here the parameters, margins or slopes of up to 64 replicas, which lie
together in memory. A row is read once for all of them, and its margins are turned into slopes before they leave the
processor's registers. numba has no type for lanes, so that the first half of this module makes one: `load`, `store`, `fused`
and others are instructions on lanes.

All is in one module because numba keeps compiled code on disk by the module that it is written in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, register_model

from dpviz.models.compiled.options import OPTIONS

LOGISTIC, HUBER, NO_LOSS = 1, 2, 0  # which slope is made of a margin

_FUSED = ("contract",)  # product and sum may be one instruction
_INT = ir.IntType(32)


class Lanes(types.Type):
    """Some numbers of one precision, worked on at once."""

    def __init__(self, scalar: Any, count: int) -> None:
        self.scalar, self.count = scalar, count
        super().__init__(name=f"Lanes({scalar}, {count})")

    @property
    def vector(self) -> ir.VectorType:
        """The same for the compiler."""
        return ir.VectorType(ir.FloatType() if self.scalar.bitwidth == 32 else ir.DoubleType(), self.count)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, declared: Lanes) -> None:
        super().__init__(manager, declared, declared.vector)


def _pointer(context: Any, builder: Any, array: Any, value: Any, at: Any) -> Any:
    if array.ndim != 1 or array.layout != "C":
        raise TypeError(f"not a flat array whose numbers lie together: {array}")
    return builder.gep(context.make_array(array)(context, builder, value).data, [at])


def _place(context: Any, builder: Any, array: Any, value: Any, at: Any, vector: Any) -> Any:
    return builder.bitcast(_pointer(context, builder, array, value, at), vector.as_pointer())


def _all(builder: Any, value: Any, vector: Any) -> Any:
    """Lanes that all hold one value."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INT, 0))
    order = ir.Constant(ir.VectorType(_INT, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), order)


@intrinsic(prefer_literal=True)
def load(typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    """`lanes` numbers of a flat array from `at` on."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    kind = Lanes(array.dtype, lanes.literal_value)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        found = builder.load(_place(context, builder, array, given[0], given[1], kind.vector))
        found.align = array.dtype.bitwidth // 8
        return found

    return kind(array, types.intp, lanes), generate


@intrinsic
def item(typing: Any, array: Any, at: Any) -> Any:
    """array[at] for at >= 0: numba's own indexing asks each time whether to count from the end."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_pointer(context, builder, array, *given))

    return array.dtype(array, types.intp), generate


@intrinsic(prefer_literal=True)
def zero(typing: Any, array: Any, lanes: Any) -> Any:
    """`lanes` zeros in the precision of an array."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    kind = Lanes(array.dtype, lanes.literal_value)
    return kind(array, lanes), lambda *_: ir.Constant(kind.vector, None)


@intrinsic
def store(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Writes lanes to a flat array from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        written = builder.store(given[2], _place(context, builder, array, given[0], given[1], values.vector))
        written.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.none(array, types.intp, values), generate


@intrinsic
def add_double(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Adds lanes to a flat array in double precision from `at` on."""
    wide = Lanes(types.float64, values.count)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, array, given[0], given[1], wide.vector)
        before = builder.load(place)
        before.align = 8
        more = given[2] if values.scalar.bitwidth == 64 else builder.fpext(given[2], wide.vector)
        builder.store(builder.fadd(before, more), place).align = 8
        return context.get_dummy_value()

    return types.none(array, types.intp, values), generate


@intrinsic
def fused(typing: Any, factor: Any, values: Any, more: Any) -> Any:
    """factor x values + more, for one factor."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        factors = _all(builder, given[0], values.vector)
        return builder.fadd(builder.fmul(factors, given[1], flags=_FUSED), given[2], flags=_FUSED)

    return more(factor, values, more), generate


@intrinsic(prefer_literal=True)
def slope_at(typing: Any, margin: Any, loss: Any, h: Any) -> Any:
    """phi' of a loss at margins, or the margins themselves for NO_LOSS; what is not a number stays so."""
    if not isinstance(loss, types.IntegerLiteral):
        return None
    made = _SLOPES[loss.literal_value]

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return made(_Maths(builder, margin), given[0], given[2])

    return margin(margin, loss, types.float64), generate


@intrinsic
def exponential_of(typing: Any, factor: Any, values: Any) -> Any:
    """e^(factor x values), within the precision's range."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)
        return maths.exponential(builder.fmul(maths.all(given[0]), given[1]))

    return values(types.float64, values), generate


@intrinsic
def times(typing: Any, values: Any, others: Any) -> Any:
    """values x others."""
    return values(values, others), lambda _, builder, __, given: builder.fmul(*given)


@intrinsic
def shortened(typing: Any, slopes: Any, length: Any, most: Any) -> Any:
    """slopes x min(1, most/(|slopes| length)): gradients of a row of this length, none longer than `most`."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        slope, row, bound = given[0], _all(builder, given[1], slopes.vector), _all(builder, given[2], slopes.vector)
        turned = builder.fmul(slope, _Maths(builder, slopes).constant(-1.0))
        size = builder.fmul(builder.select(builder.fcmp_unordered(">", slope, turned), slope, turned), row)
        longer = builder.select(builder.fcmp_unordered(">", size, bound), size, bound)
        return builder.fmul(slope, builder.fdiv(bound, longer))

    return slopes(slopes, slopes.scalar, slopes.scalar), generate


@intrinsic
def one_and_at_most(typing: Any, values: Any, most: Any) -> Any:
    """1 + min(values, most)."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, end = _Maths(builder, values), _all(builder, given[1], values.vector)
        kept = builder.select(builder.fcmp_unordered("<", given[0], end), given[0], end)
        return builder.fadd(maths.constant(1.0), kept)

    return values(values, values.scalar), generate


class _Maths:
    """Arithmetic on lanes of one kind, for the compiler."""

    def __init__(self, builder: Any, kind: Lanes) -> None:
        self.builder, self.vector, self.bits = builder, kind.vector, kind.scalar.bitwidth

    def constant(self, value: float) -> ir.Constant:
        return ir.Constant(self.vector, [float(np.float32(value)) if self.bits == 32 else float(value)] * self.vector.count)

    def all(self, value: Any) -> Any:
        """Lanes of a number in double precision."""
        return _all(self.builder, self.builder.fptrunc(value, ir.FloatType()) if self.bits == 32 else value, self.vector)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.fadd(self.builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Its value at x, the highest coefficient first."""
        result = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fused(result, x, self.constant(coefficient))
        return result

    def within(self, value: Any, least: float, most: float) -> Any:
        """The value, or the nearest of both ends."""
        # "unordered" is true for what is not a number, which therefore stays
        for sign, end in ((">", self.constant(least)), ("<", self.constant(most))):
            value = self.builder.select(self.builder.fcmp_unordered(sign, value, end), value, end)
        return value

    def exponential(self, value: Any) -> Any:
        """e^m where it is within the precision's range; beyond, the value at the end of the range."""
        builder, of = self.builder, _EXPONENTIALS[self.bits]
        value = self.within(value, -of.farthest, of.farthest)
        shift = self.constant(1.5 * 2.0**of.digits)  # adding it leaves the nearest integer in the last bits
        shifted = self.fused(value, self.constant(1 / math.log(2)), shift)
        power = builder.fsub(shifted, shift)
        for part in of.ln2:
            value = self.fused(power, self.constant(-part), value)
        whole = ir.VectorType(ir.IntType(self.bits), self.vector.count)
        places, one = (
            ir.Constant(whole, [k] * whole.count) for k in (of.digits, (2 ** (self.bits - of.digits - 2) - 1) << of.digits)
        )
        scale = builder.bitcast(builder.add(builder.shl(builder.bitcast(shifted, whole), places), one), self.vector)
        return builder.fmul(of.near_zero(self, value), scale)


@dataclass(frozen=True)
class _Exponential:
    """How e^m is computed in one precision: ln 2 in two parts, of which the first has few digits, and e^r on |r| <= ln(2)/2.

    Attributes:
        digits: binary digits behind the first.
        farthest: e^m and e^-m are numbers up to here.
    """

    digits: int
    farthest: float
    ln2: tuple[float, float]
    near_zero: Callable[[_Maths, Any], Any]


def _single(maths: _Maths, r: Any) -> Any:
    """Cephes, expf.c, to 2^-23."""
    return maths.polynomial(
        r, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0)
    )


def _double(maths: _Maths, r: Any) -> Any:
    """Cephes, exp.c, to 2^-52: 1 + 2 r P(r^2)/(Q(r^2) - r P(r^2))."""
    builder, square = maths.builder, maths.builder.fmul(r, r)
    above = builder.fmul(r, maths.polynomial(square, (1.26177193074810590878e-4, 3.02994407707441961300e-2, 1.0)))
    below = maths.polynomial(square, (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0))
    part = builder.fdiv(above, builder.fsub(below, above))
    return maths.fused(part, maths.constant(2.0), maths.constant(1.0))


_EXPONENTIALS = {
    32: _Exponential(23, 87.0, (0.693359375, -2.12194440e-4), _single),
    64: _Exponential(52, 708.0, (6.93145751953125e-1, 1.42860682030941723212e-6), _double),
}


def _logistic(maths: _Maths, margin: Any, h: Any) -> Any:
    """-1/(1 + e^m)."""
    above = maths.builder.fadd(maths.exponential(margin), maths.constant(1.0))
    return maths.builder.fdiv(maths.constant(-1.0), above)


def _huber(maths: _Maths, margin: Any, h: Any) -> Any:
    """clip((m - 1 - h)/(2h), -1, 0)."""
    builder, width = maths.builder, maths.all(h)
    beyond = builder.fsub(margin, builder.fadd(maths.constant(1.0), width))
    return maths.within(builder.fdiv(beyond, builder.fadd(width, width)), -1.0, 0.0)


_SLOPES: dict[int, Callable[[_Maths, Any, Any], Any]] = {NO_LOSS: lambda _, m, h: m, LOGISTIC: _logistic, HUBER: _huber}


@cache
def margins_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that makes margins, or slopes of a loss, for `lanes` replicas at once.

    Args:
        loss: LOGISTIC, HUBER, or NO_LOSS for margins.
    """

    @njit(**OPTIONS)
    def margins(ends, columns, values, index, theta, width, at, h, out):  # type: ignore[no-untyped-def]
        """<theta_r, row> for the rows of `index`, or the loss's slopes there.

        Args:
            ends, columns, values: a CSR matrix of b rows.
            theta: (d, width) flat; lanes from `at` on are worked on.
            h: of HUBER.
            out: (rows, width) flat, in the precision of `theta`.
        """
        for i in range(len(index)):
            row = item(index, i)
            total = zero(theta, lanes)
            for k in range(item(ends, row), item(ends, row + 1)):
                total = fused(item(values, k), load(theta, np.intp(item(columns, k)) * width + at, lanes), total)
            store(out, i * width + at, slope_at(total, loss, h))

    return margins


@cache
def sums_by_column(lanes: int) -> Callable[..., None]:
    """The loop that sums rows times slopes, column by column, for `lanes` replicas at once."""

    @njit(**OPTIONS)
    def sums(ends, rows, values, slopes, width, at, most, total):  # type: ignore[no-untyped-def]
        """Adds the sums over all rows; at most `most` terms are summed before the sum goes on in double precision.

        Args:
            ends, rows, values: a CSC matrix of d columns.
            slopes: (rows, width) flat.
            total: (d, width) flat, in double precision.
        """
        for j in range(len(ends) - 1):
            k = np.intp(item(ends, j))
            end: Any = np.intp(item(ends, j + 1))
            while k < end:
                stop = min(end, k + most)
                short = zero(slopes, lanes)
                while k < stop:
                    short = fused(item(values, k), load(slopes, np.intp(item(rows, k)) * width + at, lanes), short)
                    k = k + 1
                add_double(total, j * width + at, short)

    return sums


@cache
def sums_by_row(lanes: int) -> Callable[..., None]:
    """The loop that sums some rows times slopes, row by row, for `lanes` replicas at once."""

    @njit(**OPTIONS)
    def sums(ends, columns, values, index, slopes, width, at, most, short, total):  # type: ignore[no-untyped-def]
        """Adds the sums over the rows of `index`, as `sums_by_column` does for all rows.

        Args:
            short: (d, lanes) flat zeros, in the precision of `slopes`: the sums before they go on in double precision.
        """
        for i in range(len(index)):
            row = item(index, i)
            slope = load(slopes, i * width + at, lanes)
            for k in range(item(ends, row), item(ends, row + 1)):
                place = np.intp(item(columns, k)) * lanes
                store(short, place, fused(item(values, k), slope, load(short, place, lanes)))
            if (i + 1) % most == 0 or i + 1 == len(index):
                for j in range(len(short) // lanes):
                    add_double(total, j * width + at, load(short, j * lanes, lanes))
                    store(short, j * lanes, zero(short, lanes))

    return sums


@cache
def batches_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that sums clipped gradients over batches, each for `lanes` replicas of its own."""

    @njit(**OPTIONS)
    def batches(ends, columns, values, index, cuts, norms, theta, h, clip_norm, most, short, total):  # type: ignore[no-untyped-def]
        """Adds to total[s] the sum over the rows of batch s, index[cuts[s]] to index[cuts[s + 1] - 1], at theta[s].

        Args:
            norms: (n,) lengths of the rows.
            theta: (S, d, lanes) flat, in single precision.
            clip_norm: longest gradient; infinite for none.
            most: rows summed before the sum goes on in double precision.
            short: (d, lanes) flat zeros, in single precision.
            total: (S, d, lanes) flat, in double precision.
        """
        size = len(short)
        for s in range(len(cuts) - 1):
            first, last = item(cuts, s), item(cuts, s + 1)
            for i in range(first, last):
                row = item(index, i)
                start, end = np.intp(item(ends, row)), np.intp(item(ends, row + 1))
                slope = zero(theta, lanes)
                for k in range(start, end):
                    slope = fused(item(values, k), load(theta, s * size + np.intp(item(columns, k)) * lanes, lanes), slope)
                slope = slope_at(slope, loss, h)
                if clip_norm < np.inf:
                    slope = shortened(slope, item(norms, row), clip_norm)
                for k in range(start, end):
                    place = np.intp(item(columns, k)) * lanes
                    store(short, place, fused(item(values, k), slope, load(short, place, lanes)))
                if (i + 1 - first) % most == 0 or i + 1 == last:
                    for j in range(0, size, lanes):
                        add_double(total, s * size + j, load(short, j, lanes))
                        store(short, j, zero(short, lanes))

    return batches


@cache
def noisy_slopes_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that adds the noise of rows to their margins, and sums noise times slopes, for `lanes` replicas at once."""

    @njit(**OPTIONS)
    def noisy_slopes(noise, d, moved, width, at, h, most, margins, short, total):  # type: ignore[no-untyped-def]
        """Slopes at margins + <moved_r, noise>, and their sums times the noise.

        Args:
            noise: (b, d) flat, b a multiple of 8.
            moved: (d, width) flat, parameters times noise scales.
            most: rows summed before the sum goes on in double precision, a multiple of 8.
            margins: (b, width) flat, replaced by the slopes.
            short: (d, lanes) flat zeros, in single precision.
            total: (d, width) flat, in double precision, to which the sums are added.
        """
        many = len(margins) // width
        for i in range(0, many, 8):  # eight rows at a time, so that a product need not wait for the one before
            a0, a1, a2, a3 = i * d, (i + 1) * d, (i + 2) * d, (i + 3) * d
            a4, a5, a6, a7 = (i + 4) * d, (i + 5) * d, (i + 6) * d, (i + 7) * d
            p = i * width + at
            s0, s1 = load(margins, p, lanes), load(margins, p + width, lanes)
            s2, s3 = load(margins, p + 2 * width, lanes), load(margins, p + 3 * width, lanes)
            s4, s5 = load(margins, p + 4 * width, lanes), load(margins, p + 5 * width, lanes)
            s6, s7 = load(margins, p + 6 * width, lanes), load(margins, p + 7 * width, lanes)
            for j in range(d):
                one = load(moved, j * width + at, lanes)
                s0, s1 = fused(item(noise, a0 + j), one, s0), fused(item(noise, a1 + j), one, s1)
                s2, s3 = fused(item(noise, a2 + j), one, s2), fused(item(noise, a3 + j), one, s3)
                s4, s5 = fused(item(noise, a4 + j), one, s4), fused(item(noise, a5 + j), one, s5)
                s6, s7 = fused(item(noise, a6 + j), one, s6), fused(item(noise, a7 + j), one, s7)
            s0, s1, s2, s3 = slope_at(s0, loss, h), slope_at(s1, loss, h), slope_at(s2, loss, h), slope_at(s3, loss, h)
            s4, s5, s6, s7 = slope_at(s4, loss, h), slope_at(s5, loss, h), slope_at(s6, loss, h), slope_at(s7, loss, h)
            store(margins, p, s0)
            store(margins, p + width, s1)
            store(margins, p + 2 * width, s2)
            store(margins, p + 3 * width, s3)
            store(margins, p + 4 * width, s4)
            store(margins, p + 5 * width, s5)
            store(margins, p + 6 * width, s6)
            store(margins, p + 7 * width, s7)
            for j in range(d):
                one = load(short, j * lanes, lanes)
                one = fused(item(noise, a1 + j), s1, fused(item(noise, a0 + j), s0, one))
                one = fused(item(noise, a3 + j), s3, fused(item(noise, a2 + j), s2, one))
                one = fused(item(noise, a5 + j), s5, fused(item(noise, a4 + j), s4, one))
                store(short, j * lanes, fused(item(noise, a7 + j), s7, fused(item(noise, a6 + j), s6, one)))
            if (i + 8) % most == 0 or i + 8 >= many:
                for j in range(d):
                    add_double(total, j * width + at, load(short, j * lanes, lanes))
                    store(short, j * lanes, zero(short, lanes))

    return noisy_slopes


@cache
def descent_of(lanes: int, loss: int, dense: bool) -> Callable[..., None]:
    """The loop of mini-batch gradient descent without noise, in double precision, for `lanes` trainings at once.

    Args:
        dense: whether rows have their zeros, so that their columns are not listed.
    """

    @njit(**OPTIONS)
    def descend(ends, columns, values, bounds, first, last, lengths, lam, width, h, window, w, total):  # type: ignore[no-untyped-def]
        """Updates `first` to `last`: w <- w - eta (mean data gradient of the batch + lam w).

        Args:
            ends, columns: as of a CSR matrix; of dense rows no columns.
            bounds: (m + 1,) ends of the batches, of which update t takes number t mod m.
            lengths: (T, width) flat, eta.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
            w: (d, width) flat.
            total: (d, width) flat, the sum of the iterates of a window that is not over.
        """
        batches, gradient = len(bounds) - 1, np.zeros(len(w))
        for t in range(first, last):
            a, b = item(bounds, t % batches), item(bounds, t % batches + 1)
            for row in range(a, b):
                start, end = np.intp(item(ends, row)), np.intp(item(ends, row + 1))
                for at in range(0, width, lanes):
                    slope = zero(w, lanes)
                    for k in range(start, end):
                        place = (k - start if dense else np.intp(item(columns, k))) * width + at
                        slope = fused(item(values, k), load(w, place, lanes), slope)
                    slope = slope_at(slope, loss, h)
                    for k in range(start, end):
                        place = (k - start if dense else np.intp(item(columns, k))) * width + at
                        store(gradient, place, fused(item(values, k), slope, load(gradient, place, lanes)))
            for r in range(width):
                eta = item(lengths, t * width + r)
                shorter, share = 1 - eta * lam, eta / (b - a)
                for at in range(r, len(w), width):
                    w[at] = w[at] * shorter - share * gradient[at]
                    gradient[at] = 0.0
            if window > 0:
                for at in range(len(w)):
                    total[at] += w[at]
                if (t + 1) % window == 0:
                    for at in range(len(w)):
                        w[at], total[at] = total[at] / window, 0.0

    return descend


@cache
def line_products_of(lanes: int) -> Callable[..., None]:
    """The loop that multiplies e^(logistic loss) of rows at points of lines, for `lanes` replicas at once."""

    @njit(**OPTIONS)
    def products(start, step, width, at, together, count, top, out):  # type: ignore[no-untyped-def]
        """Products over groups of rows of 1 + min(e^-m, top), where m goes in equal steps: start - k step, k < count.

        Args:
            start, step: (b, width) flat margins, in single precision.
            together: rows in a group.
            out: (count, groups, width) flat.
        """
        many = len(start) // width
        groups = -(-many // together)
        odds, factor = np.empty(together * lanes, np.float32), np.empty(together * lanes, np.float32)
        for g in range(groups):
            first, here = g * together, min(together, many - g * together)
            for i in range(here):
                place = (first + i) * width + at
                # in equal steps e^-m goes by equal factors, so that two exponentials serve all points of the line
                store(odds, i * lanes, exponential_of(-1.0, load(start, place, lanes)))
                store(factor, i * lanes, exponential_of(1.0, load(step, place, lanes)))
            for k in range(count):
                product = exponential_of(0.0, load(odds, 0, lanes))
                for i in range(here):
                    one = load(odds, i * lanes, lanes)
                    product = times(product, one_and_at_most(one, top))
                    store(odds, i * lanes, times(one, load(factor, i * lanes, lanes)))
                store(out, (k * groups + g) * width + at, product)

    return products
