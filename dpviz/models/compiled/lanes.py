"""Compiled loops (numba): products with rows that are mostly zeros, slopes of losses, sums, products with a row's noise.

Lanes are the numbers that a processor works on at once: here the parameters, margins or slopes of up to 128 replicas, which lie
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
from numba import literally, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from dpviz.models.compiled.options import OPTIONS

LOGISTIC, HUBER, NO_LOSS = 1, 2, 0  # which slope is made of a margin

BLOCK = 1024  # rows whose slopes stay in the processor's cache between both products
NOISY = 256  # rows whose noise does
ROWS = 32  # rows whose hidden values do
GROUP = 16  # replicas, or rows, that are turned into rows, or replicas
FOUR = 4  # replicas that are worked on at once where a whole group is too many
TILE_TALL = (5, 10)  # replicas, one or the other, of a product whose sums stay in registers
TILE_WIDE, TILE_DEEP = 2, 2  # its groups of rows, and its features
SOON = 8  # rows ahead of which memory that lies elsewhere is asked for
KEPT = 4  # sums of NOISY / 4 rows in single precision, which are kept apart in double precision
FULL = 1 << 31  # units of a budget that is used up more than once, beyond which nothing is counted
STRIP = TILE_WIDE * GROUP  # rows whose noise lies together, feature by feature

_FUSED = ("contract",)  # product and sum may be one instruction
_INT = ir.IntType(32)
_LINE_BITS = 512  # of a cache line


class Lanes(types.Type):
    """Some numbers of one precision, worked on at once."""

    def __init__(self, scalar: Any, count: int, rows: int = 1) -> None:
        """
        Args:
            count: lanes, of all rows.
            rows: of several rows of lanes.
        """
        self.scalar, self.count = scalar, count
        # the compiler handles vectors of lengths that are no power of 2 number by number
        self.size = math.gcd(count // rows, GROUP)
        super().__init__(name=f"Lanes({scalar}, {count}, {self.size})")

    @property
    def vector(self) -> ir.VectorType:
        """Some of the lanes for the compiler: `size` of them."""
        return ir.VectorType(ir.FloatType() if self.scalar.bitwidth == 32 else ir.DoubleType(), self.size)

    @property
    def whole(self) -> ir.Type:
        """All of them for the compiler: one vector, or an array of vectors."""
        return self.vector if self.size == self.count else ir.ArrayType(self.vector, self.count // self.size)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, declared: Lanes) -> None:
        super().__init__(manager, declared, declared.whole)


def _pointer(context: Any, builder: Any, array: Any, value: Any, at: Any, further: int = 0) -> Any:
    if array.ndim != 1 or array.layout != "C":
        raise TypeError(f"not a flat array whose numbers lie together: {array}")
    return builder.gep(
        context.make_array(array)(context, builder, value).data,
        [builder.add(at, ir.Constant(at.type, further)) if further else at],
    )


def _place(context: Any, builder: Any, array: Any, value: Any, at: Any, vector: Any, further: int = 0) -> Any:
    return builder.bitcast(_pointer(context, builder, array, value, at, further), vector.as_pointer())


def _fetch(builder: Any, place: Any) -> None:
    """Asks for a cache line, as it will be read soon; nothing happens where there is none."""
    byte = ir.IntType(8).as_pointer()
    wanted = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
    prefetch = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0i8")
    # to read, to the second cache, data
    how = [ir.Constant(_INT, k) for k in (0, 2, 1)]
    builder.call(prefetch, [builder.bitcast(place, byte), *how])


def _each(builder: Any, kind: Lanes, make: Callable[..., Any], *values: Any) -> Any:
    """Lanes whose vectors are made, one by one, of the place of their first lane and of the vectors of values."""
    if kind.size == kind.count:
        return make(0, *values)
    whole = ir.Constant(kind.whole, ir.Undefined)
    for k in range(kind.count // kind.size):
        made = make(k * kind.size, *(builder.extract_value(value, k) for value in values))
        whole = builder.insert_value(whole, made, k)
    return whole


def _vector(builder: Any, kind: Lanes, value: Any, which: int) -> Any:
    """One of the vectors that lanes consist of."""
    return value if kind.size == kind.count else builder.extract_value(value, which)


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
        def part(lane: int) -> Any:
            found = builder.load(_place(context, builder, array, given[0], given[1], kind.vector, lane))
            found.align = array.dtype.bitwidth // 8
            return found

        return _each(builder, kind, part)

    return kind(array, types.intp, lanes), generate


def _row_at(context: Any, builder: Any, which: Any, value: Any, k: int, at: Any, step: Any) -> Any:
    """at + step x which[k]."""
    row = builder.load(_pointer(context, builder, which, value, ir.Constant(at.type, k)))
    return builder.add(at, builder.mul(step, row))


@intrinsic(prefer_literal=True)
def load_rows(typing: Any, array: Any, which: Any, at: Any, step: Any, rows: Any, lanes: Any) -> Any:
    """`lanes` numbers of a flat array from at + step x which[k] on, for k < rows."""
    if not isinstance(rows, types.IntegerLiteral) or not isinstance(lanes, types.IntegerLiteral):
        return None
    kind = Lanes(array.dtype, rows.literal_value * lanes.literal_value, rows.literal_value)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(lane: int) -> Any:
            k, further = divmod(lane, lanes.literal_value)
            start = _row_at(context, builder, which, given[1], k, given[2], given[3])
            found = builder.load(_place(context, builder, array, given[0], start, kind.vector, further))
            found.align = array.dtype.bitwidth // 8
            return found

        return _each(builder, kind, part)

    return kind(array, which, types.intp, types.intp, rows, lanes), generate


@intrinsic(prefer_literal=True)
def zero_rows(typing: Any, array: Any, rows: Any, lanes: Any) -> Any:
    """`rows` rows of `lanes` zeros in the precision of an array."""
    if not isinstance(rows, types.IntegerLiteral) or not isinstance(lanes, types.IntegerLiteral):
        return None
    many = max(1, rows.literal_value)  # code for 0 rows is compiled too, though it never runs
    kind = Lanes(array.dtype, many * lanes.literal_value, many)
    return kind(array, rows, lanes), lambda *_: ir.Constant(kind.whole, None)


@intrinsic(prefer_literal=True)
def fetch(typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Brings `lanes` numbers of a flat array from `at` on near, as they will be read soon."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        for lane in range(0, lanes.literal_value, _LINE_BITS // array.dtype.bitwidth):
            _fetch(builder, _pointer(context, builder, array, given[0], given[1], lane))
        return context.get_dummy_value()

    return types.none(array, types.intp, lanes), generate


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
    return kind(array, lanes), lambda *_: ir.Constant(kind.whole, None)


@intrinsic
def store(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Writes lanes to a flat array from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(lane: int, some: Any) -> Any:
            written = builder.store(some, _place(context, builder, array, given[0], given[1], values.vector, lane))
            written.align = array.dtype.bitwidth // 8
            return some

        _each(builder, values, part, given[2])
        return context.get_dummy_value()

    return types.none(array, types.intp, values), generate


def _add_double(context: Any, builder: Any, array: Any, value: Any, at: Any, values: Lanes, some: Any, further: int) -> None:
    """Adds a vector of lanes to a flat array in double precision from at + further on."""
    place = _place(context, builder, array, value, at, Lanes(types.float64, values.size).vector, further)
    before = builder.load(place)
    before.align = 8
    builder.store(_Maths(builder, values).add_in_double(before, some), place).align = 8


@intrinsic
def add_double(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Adds lanes to a flat array in double precision from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(lane: int, some: Any) -> Any:
            _add_double(context, builder, array, given[0], given[1], values, some, lane)
            return some

        _each(builder, values, part, given[2])
        return context.get_dummy_value()

    return types.none(array, types.intp, values), generate


@intrinsic(prefer_literal=True)
def add_rows(typing: Any, array: Any, which: Any, at: Any, step: Any, lanes: Any, values: Any) -> Any:
    """Adds rows of `lanes` numbers to a flat array in double precision, each from at + step x which[k] on."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(lane: int, some: Any) -> Any:
            k, further = divmod(lane, lanes.literal_value)
            start = _row_at(context, builder, which, given[1], k, given[2], given[3])
            _add_double(context, builder, array, given[0], start, values, some, further)
            return some

        _each(builder, values, part, given[5])
        return context.get_dummy_value()

    return types.none(array, which, types.intp, types.intp, lanes, values), generate


@intrinsic
def fused(typing: Any, factor: Any, values: Any, more: Any) -> Any:
    """factor x values + more, for one factor."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        factors = _all(builder, given[0], values.vector)

        def part(_: int, some: Any, others: Any) -> Any:
            return builder.fadd(builder.fmul(factors, some, flags=_FUSED), others, flags=_FUSED)

        return _each(builder, values, part, *given[1:])

    return more(factor, values, more), generate


@intrinsic
def along(typing: Any, parameters: Any, row: Any, at: Any, margins: Any) -> Any:
    """margins + <parameters, row>: K groups of lanes, and the K entries of a row from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        many, size = parameters.count // margins.count, margins.size
        groups = margins.count // size
        sums = [_vector(builder, margins, given[3], g) for g in range(groups)]
        for k in range(many):
            factor = _all(builder, builder.load(_pointer(context, builder, row, given[1], given[2], k)), margins.vector)
            for g in range(groups):
                product = builder.fmul(factor, _vector(builder, parameters, given[0], k * groups + g), flags=_FUSED)
                sums[g] = builder.fadd(product, sums[g], flags=_FUSED)
        return _each(builder, margins, lambda lane: sums[lane // size])

    return margins(parameters, row, types.intp, margins), generate


@intrinsic
def against(typing: Any, sums: Any, row: Any, at: Any, slopes: Any) -> Any:
    """sums + row x slopes: K groups of lanes, one for each of the K entries of a row from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        groups = slopes.count // slopes.size

        def part(lane: int, some: Any) -> Any:
            k, g = divmod(lane // slopes.size, groups)
            factor = _all(builder, builder.load(_pointer(context, builder, row, given[1], given[2], k)), slopes.vector)
            product = builder.fmul(factor, _vector(builder, slopes, given[3], g), flags=_FUSED)
            return builder.fadd(product, some, flags=_FUSED)

        return _each(builder, sums, part, given[0])

    return sums(sums, row, types.intp, slopes), generate


@intrinsic(prefer_literal=True)
def slope_at(typing: Any, margin: Any, loss: Any, h: Any) -> Any:
    """phi' of a loss at margins, or the margins themselves for NO_LOSS; what is not a number stays so."""
    if not isinstance(loss, types.IntegerLiteral):
        return None
    made = _SLOPES[loss.literal_value]

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _each(builder, margin, lambda _, some: made(_Maths(builder, margin), some, given[2]), given[0])

    return margin(margin, loss, types.float64), generate


@intrinsic
def exponential_of(typing: Any, factor: Any, values: Any) -> Any:
    """e^(factor x values), within the precision's range."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)
        return _each(builder, values, lambda _, some: maths.exponential(builder.fmul(maths.all(given[0]), some)), given[1])

    return values(types.float64, values), generate


@intrinsic
def times(typing: Any, values: Any, others: Any) -> Any:
    """values x others."""
    return values(values, others), lambda _, builder, __, given: _each(
        builder, values, lambda _, a, b: builder.fmul(a, b), *given
    )


@intrinsic
def plus(typing: Any, values: Any, others: Any) -> Any:
    """values + others."""
    return values(values, others), lambda _, builder, __, given: _each(
        builder, values, lambda _, a, b: builder.fadd(a, b), *given
    )


@intrinsic
def above(typing: Any, values: Any, least: Any) -> Any:
    """1 where values are above `least`, otherwise 0."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)

        def part(_: int, some: Any) -> Any:
            over = builder.fcmp_ordered(">", some, _all(builder, given[1], values.vector))
            return builder.select(over, maths.constant(1.0), maths.constant(0.0))

        return _each(builder, values, part, given[0])

    return values(values, values.scalar), generate


@intrinsic
def tangent_of(typing: Any, values: Any) -> Any:
    """tanh of values."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)
        return _each(builder, values, lambda _, some: maths.tangent(some), given[0])

    return values(values), generate


@intrinsic
def through_tangent(typing: Any, values: Any, others: Any) -> Any:
    """values (1 - others^2): what enters tanh, whose value is `others`, by what leaves it."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)

        def part(_: int, some: Any, other: Any) -> Any:
            return builder.fmul(some, maths.fused(builder.fmul(other, maths.constant(-1.0)), other, maths.constant(1.0)))

        return _each(builder, values, part, *given)

    return values(values, values), generate


@intrinsic
def joined(typing: Any, values: Any, others: Any, more: Any) -> Any:
    """values x others + more."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths = _Maths(builder, values)
        return _each(builder, values, lambda _, *three: maths.fused(*three), *given)

    return values(values, values, values), generate


@intrinsic
def total_of(typing: Any, values: Any) -> Any:
    """The sum of all lanes, of halves that are added until one number is left."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        parts = [_vector(builder, values, given[0], k) for k in range(values.count // values.size)]
        while len(parts) > 1:
            pairs = [builder.fadd(*parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[len(parts) // 2 * 2 :]
        whole, size = parts[0], values.size
        while size > 1:
            size //= 2
            halves = (ir.Constant(ir.VectorType(_INT, size), list(range(k * size, k * size + size))) for k in range(2))
            whole = builder.fadd(*[builder.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), half) for half in halves])
        return builder.extract_element(whole, ir.Constant(_INT, 0))

    return values.scalar(values), generate


@intrinsic(prefer_literal=True)
def loss_in_parts(typing: Any, margin: Any, loss: Any, h: Any) -> Any:
    """A factor and a term at margins: the loss is the term, and the logarithm of the factor."""
    if not isinstance(loss, types.IntegerLiteral):
        return None
    made, both = _LOSSES[loss.literal_value], types.UniTuple(margin, 2)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(which: int) -> Any:
            return _each(builder, margin, lambda _, some: made(_Maths(builder, margin), some, given[2])[which], given[0])

        return context.make_tuple(builder, both, (part(0), part(1)))

    return both(margin, loss, types.float64), generate


@intrinsic
def shortened(typing: Any, slopes: Any, length: Any, most: Any) -> Any:
    """slopes x min(1, most/(|slopes| length)): gradients of a row of this length, none longer than `most`."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, (row, bound) = _Maths(builder, slopes), (_all(builder, one, slopes.vector) for one in given[1:])

        def part(_: int, slope: Any) -> Any:
            size = builder.fmul(maths.most(slope, builder.fmul(slope, maths.constant(-1.0))), row)
            return builder.fmul(slope, builder.fdiv(bound, maths.most(size, bound)))

        return _each(builder, slopes, part, given[0])

    return slopes(slopes, slopes.scalar, slopes.scalar), generate


@intrinsic
def within(typing: Any, slopes: Any, length: Any, spent: Any, at: Any, unit: Any, limit: Any) -> Any:
    """Adds squared lengths of gradients to `spent`; gives the slopes, 0 where that is above the limit, and 1 elsewhere.

    Args:
        spent: sums of squares in double precision, or whole numbers of 32 bits: of 1/unit, each square rounded up, and none
            above `FULL`.
        limit: of the kind of `spent`.
    """
    both, whole = types.UniTuple(slopes, 2), spent.dtype == types.uint32

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, over = _Maths(builder, slopes), []
        none, one = maths.constant(0.0), maths.constant(1.0)
        kind = ir.VectorType(_INT, slopes.size) if whole else Lanes(types.float64, slopes.count).vector
        add = maths.add_rounded_up if whole else maths.add_in_double

        def part(lane: int, slope: Any) -> Any:
            size = builder.fmul(slope, _all(builder, given[1], slopes.vector))
            place = _place(context, builder, spent, given[2], given[3], kind, lane)
            before = builder.load(place)
            before.align = spent.dtype.bitwidth // 8
            after = add(before, builder.fmul(builder.fmul(size, size), _all(builder, given[4], slopes.vector)))
            builder.store(after, place).align = spent.dtype.bitwidth // 8
            most = _all(builder, given[5], kind)
            # what is not a number is not above: a training that diverged stays one
            over.append(builder.icmp_unsigned(">", after, most) if whole else builder.fcmp_ordered(">", after, most))
            return builder.select(over[-1], none, slope)

        kept = _each(builder, slopes, part, given[0])
        count = _each(builder, slopes, lambda lane: builder.select(over[lane // slopes.size], none, one))
        return context.make_tuple(builder, both, (kept, count))

    return both(slopes, slopes.scalar, spent, types.intp, slopes.scalar, spent.dtype), generate


@intrinsic
def grown(typing: Any, values: Any, by: Any, most: Any) -> Any:
    """values (1 + min(by, most))."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, end = _Maths(builder, values), _all(builder, given[2], values.vector)

        def part(_: int, some: Any, more: Any) -> Any:
            return maths.fused(some, maths.least(more, end), some)

        return _each(builder, values, part, *given[:2])

    return values(values, values, values.scalar), generate


@intrinsic
def split(typing: Any, values: Any) -> Any:
    """m and e of values = m 2^e > 0, in single precision, with 1 <= m < 2; what is not a number stays so in m."""
    both = types.UniTuple(values, 2)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, one, digits = _Maths(builder, values), 127, _EXPONENTIALS[32].digits

        def halves(some: Any) -> tuple[Any, Any]:
            whole = ir.VectorType(_INT, values.size)
            mask, start, shift = (ir.Constant(whole, [k] * whole.count) for k in ((1 << digits) - 1, one << digits, digits))
            bits = builder.bitcast(some, whole)
            power = builder.sub(builder.lshr(bits, shift), ir.Constant(whole, [one] * whole.count))
            number = builder.fcmp_ordered("<", some, maths.constant(math.inf))
            mantissa = builder.bitcast(builder.or_(builder.and_(bits, mask), start), values.vector)
            powers = builder.select(number, builder.sitofp(power, values.vector), maths.constant(0.0))
            return builder.select(number, mantissa, some), powers

        parts = [_each(builder, values, lambda _, some, k=k: halves(some)[k], given[0]) for k in range(2)]
        return context.make_tuple(builder, both, parts)

    return both(values), generate


@intrinsic
def turn(typing: Any, source: Any, at: Any, step: Any, target: Any, place: Any, stride: Any) -> Any:
    """Writes 16 rows of 16 numbers, `step` apart from `at` on, as columns: rows that are `stride` apart from `place` on."""
    vector = Lanes(source.dtype, GROUP).vector

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def row(array: int, k: int) -> Any:
            start, apart = given[array + 1], given[array + 2]
            at = builder.add(start, builder.mul(apart, ir.Constant(apart.type, k)))
            return _place(context, builder, signature.args[array], given[array], at, vector)

        rows = []
        for k in range(GROUP):
            rows.append(builder.load(row(0, k)))
            rows[-1].align = 4
        for half in (8, 4, 2, 1):  # in squares twice as large, the upper right and the lower left quarter change places
            upper, lower = (
                [(GROUP * (i & half > 0) + i if i & half in keep else GROUP * (i & half > 0) + (i ^ half)) for i in range(GROUP)]
                for keep in ((0,), (half,))
            )
            for k in (k for k in range(GROUP) if not k & half):
                both = rows[k], rows[k + half]
                for which, order in ((k, upper), (k + half, lower)):
                    rows[which] = builder.shuffle_vector(*both, ir.Constant(ir.VectorType(_INT, GROUP), order))
        for k in range(GROUP):
            builder.store(rows[k], row(3, k)).align = 4
        return context.get_dummy_value()

    return types.none(source, types.intp, types.intp, target, types.intp, types.intp), generate


class _Tile:
    """A product whose sums stay in registers: code for sums of `tall` x `wide` groups of 16 numbers."""

    def __init__(self, context: Any, builder: Any, array: Any, tall: int, wide: int) -> None:
        self.context, self.builder, self.kind = context, builder, Lanes(array.dtype, GROUP)
        self.sums = [[cgutils.alloca_once(builder, self.kind.vector) for _ in range(wide)] for _ in range(tall)]

    def at(self, first: Any, *steps: tuple[Any, Any]) -> Any:
        """first + sum of products."""
        for by, count in steps:
            factors = [ir.Constant(first.type, each) if isinstance(each, int) else each for each in (by, count)]
            first = self.builder.add(first, self.builder.mul(*factors))
        return first

    def place(self, array: Any, value: Any, at: Any, kind: Lanes | None = None) -> Any:
        return _place(self.context, self.builder, array, value, at, (kind or self.kind).vector)

    def load(self, array: Any, value: Any, at: Any) -> Any:
        found = self.builder.load(self.place(array, value, at))
        found.align = 4
        return found

    def fetch(self, array: Any, value: Any, at: Any) -> None:
        """Asks for a cache line, as it will be read soon."""
        _fetch(self.builder, self.place(array, value, at))

    def add(self, tall: int, wide: int, factor: Any, other: Any) -> None:
        place, builder = self.sums[tall][wide], self.builder
        builder.store(builder.fadd(builder.fmul(factor, other, flags=_FUSED), builder.load(place), flags=_FUSED), place)


@intrinsic(prefer_literal=True)
def slopes_along(
    typing: Any,
    noise: Any,
    at: Any,
    coming: Any,
    soon: Any,
    d: Any,
    moved: Any,
    first: Any,
    tall: Any,
    margins: Any,
    place: Any,
    loss: Any,
    h: Any,
    many: Any,
) -> Any:
    """Slopes at margins + <moved, noise>, for a tile of `many` replicas and rows.

    Args:
        noise: (d, STRIP) from `at` on.
        coming, soon: where noise lies that will be read soon: as much of each feature from there on is brought near.
        moved: (d, tall) from `first` on.
        margins: (replicas, NOISY) from `place` on, replaced by the slopes.
    """
    if not isinstance(loss, types.IntegerLiteral) or not isinstance(many, types.IntegerLiteral):
        return None
    made, whole, replicas = _SLOPES[loss.literal_value], types.intp, many.literal_value

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        tile = _Tile(context, builder, noise, replicas, TILE_WIDE)
        tiles = [(r, v) for r in range(replicas) for v in range(TILE_WIDE)]
        for r, v in tiles:
            builder.store(tile.load(margins, given[8], tile.at(given[9], (NOISY, r), (GROUP, v))), tile.sums[r][v])
        with cgutils.for_range(builder, given[4]) as loop:
            for line in range(TILE_WIDE):
                tile.fetch(coming, given[2], tile.at(given[3], (STRIP, loop.index), (GROUP, line)))
            rows = [tile.load(noise, given[0], tile.at(given[1], (STRIP, loop.index), (GROUP, v))) for v in range(TILE_WIDE)]
            for r in range(replicas):
                one = builder.load(_pointer(context, builder, moved, given[5], tile.at(given[6], (given[7], loop.index), (1, r))))
                for v in range(TILE_WIDE):
                    tile.add(r, v, _all(builder, one, tile.kind.vector), rows[v])
        for r, v in tiles:
            slope = made(_Maths(builder, tile.kind), builder.load(tile.sums[r][v]), given[11])
            builder.store(slope, tile.place(margins, given[8], tile.at(given[9], (NOISY, r), (GROUP, v)))).align = 4
        return context.get_dummy_value()

    ends = (moved, whole, whole, margins, whole, loss, types.float64, many)
    return types.none(noise, whole, coming, whole, whole, *ends), generate


@intrinsic(prefer_literal=True)
def sums_against(
    typing: Any, noise: Any, at: Any, deep: Any, slopes: Any, first: Any, total: Any, place: Any, tall: Any, many: Any
) -> Any:
    """Adds products of slopes and noise, summed over every fourth row of a block, for a tile of `many` replicas and features.

    Args:
        noise: (NOISY / STRIP, deep, STRIP), of which features from `at` on are looked at.
        slopes: (replicas, NOISY) from `first` on.
        total: (features, tall, KEPT) from `place` on, in double precision.
    """
    if not isinstance(many, types.IntegerLiteral):
        return None
    whole, replicas = types.intp, many.literal_value

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        tile, wide = _Tile(context, builder, noise, replicas, TILE_DEEP), Lanes(types.float64, KEPT)
        tiles = [(r, j) for r in range(replicas) for j in range(TILE_DEEP)]
        for r, j in tiles:
            builder.store(ir.Constant(tile.kind.vector, None), tile.sums[r][j])
        with cgutils.for_range(builder, ir.Constant(given[1].type, NOISY // STRIP)) as loop:
            strip = tile.at(given[1], (builder.mul(given[2], loop.index), STRIP))
            for v in range(TILE_WIDE):
                rows = [tile.load(noise, given[0], tile.at(strip, (STRIP, j), (GROUP, v))) for j in range(TILE_DEEP)]
                for r in range(replicas):
                    slope = tile.load(slopes, given[3], tile.at(given[4], (NOISY, r), (STRIP, loop.index), (GROUP, v)))
                    for j in range(TILE_DEEP):
                        tile.add(r, j, slope, rows[j])
        for r, j in tiles:
            target = tile.place(total, given[5], tile.at(given[6], (given[7], KEPT * j), (KEPT, r)), wide)
            more, count = builder.load(tile.sums[r][j]), GROUP
            while count > KEPT:
                count //= 2
                halves = [ir.Constant(ir.VectorType(_INT, count), list(range(at, at + count))) for at in (0, count)]
                more = builder.fadd(*(builder.shuffle_vector(more, more, half) for half in halves))
            before = builder.load(target)
            before.align = 8
            builder.store(builder.fadd(before, builder.fpext(more, wide.vector)), target).align = 8
        return context.get_dummy_value()

    return types.none(noise, whole, whole, slopes, whole, total, whole, whole, many), generate


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

    def add_in_double(self, before: Any, more: Any) -> Any:
        """before + more in double precision."""
        return self.builder.fadd(before, more if self.bits == 64 else self.builder.fpext(more, before.type))

    def add_rounded_up(self, before: Any, more: Any) -> Any:
        """before + the next whole number above more >= 0, at most FULL; what is not a number is 0."""
        builder, full = self.builder, ir.Constant(before.type, [FULL] * self.vector.count)
        ceil = ir.FunctionType(self.vector, [self.vector])
        up = builder.call(cgutils.get_or_insert_function(builder.module, ceil, f"llvm.ceil.v{self.vector.count}f32"), [more])
        up = self.least(up, self.constant(FULL / 2))  # with which the sum is a number of 32 bits
        up = builder.select(builder.fcmp_ordered(">=", more, self.constant(0.0)), up, self.constant(0.0))
        after = builder.add(before, builder.fptoui(up, before.type))
        return builder.select(builder.icmp_unsigned("<", after, full), after, full)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Its value at x, the highest coefficient first."""
        result = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fused(result, x, self.constant(coefficient))
        return result

    def least(self, value: Any, end: Any) -> Any:
        """The smaller one; a value that is not a number stays so. In these words it is one instruction."""
        return self.builder.select(self.builder.fcmp_ordered("<", end, value), end, value)

    def most(self, value: Any, end: Any) -> Any:
        """The larger one, otherwise as `least`."""
        return self.builder.select(self.builder.fcmp_ordered(">", end, value), end, value)

    def within(self, value: Any, least: float, most: float) -> Any:
        """The value, or the nearest of both ends."""
        return self.least(self.most(value, self.constant(least)), self.constant(most))

    def exponential(self, value: Any) -> Any:
        """e^m where it is within the precision's range; beyond, the value at the end of the range."""
        return self.builder.fdiv(*self.ratio(value))

    def tangent(self, value: Any) -> Any:
        """tanh in single precision, within 3 units in the last place: x P(x^2)/Q(x^2), beyond the reach its value there."""
        value = self.within(value, -_TANGENT_REACH, _TANGENT_REACH)
        square = self.builder.fmul(value, value)
        above, below = (self.polynomial(square, terms) for terms in _TANGENT)
        return self.builder.fdiv(self.builder.fmul(value, above), below)

    def ratio(self, value: Any) -> tuple[Any, Any]:
        """`exponential` as what is divided, and by what: 1 in single precision, which the compiler leaves out."""
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
        above, below = of.near_zero(self, value)
        return builder.fmul(above, scale), below


#: P and Q of x P(x^2)/Q(x^2) for tanh, highest powers first: the largest relative error up to `_TANGENT_REACH` is least, 2.1e-8
#: [ours: fitted by weighted least squares]; beyond, tanh is 1 in single precision
_TANGENT = (
    (1.3319152271e-8, 2.0583543190e-5, 3.4940384716e-3, 1.3379721273e-1, 9.9999997902e-1),
    (7.7620535185e-7, 3.2830991381e-4, 2.5871088208e-2, 4.6713036514e-1, 1.0),
)
_TANGENT_REACH = 9.02


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
    near_zero: Callable[[_Maths, Any], tuple[Any, Any]]


def _single(maths: _Maths, r: Any) -> tuple[Any, Any]:
    """Cephes, expf.c, to 2^-23."""
    terms = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0)
    return maths.polynomial(r, terms), maths.constant(1.0)


def _double(maths: _Maths, r: Any) -> tuple[Any, Any]:
    """Cephes, exp.c, to 2^-52: 1 + 2 r P(r^2)/(Q(r^2) - r P(r^2)), as (Q + r P)/(Q - r P)."""
    builder, square = maths.builder, maths.builder.fmul(r, r)
    above = builder.fmul(r, maths.polynomial(square, (1.26177193074810590878e-4, 3.02994407707441961300e-2, 1.0)))
    below = maths.polynomial(square, (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0))
    return builder.fadd(below, above), builder.fsub(below, above)


_EXPONENTIALS = {
    32: _Exponential(23, 87.0, (0.693359375, -2.12194440e-4), _single),
    64: _Exponential(52, 708.0, (6.93145751953125e-1, 1.42860682030941723212e-6), _double),
}


def _logistic(maths: _Maths, margin: Any, h: Any) -> Any:
    """-1/(1 + e^m)."""
    above, below = maths.ratio(margin)
    return maths.builder.fdiv(maths.builder.fmul(below, maths.constant(-1.0)), maths.builder.fadd(above, below))


def _huber(maths: _Maths, margin: Any, h: Any) -> Any:
    """clip((m - 1 - h)/(2h), -1, 0)."""
    builder, width = maths.builder, maths.all(h)
    beyond = builder.fsub(margin, builder.fadd(maths.constant(1.0), width))
    return maths.within(builder.fdiv(beyond, builder.fadd(width, width)), -1.0, 0.0)


def _logistic_loss(maths: _Maths, margin: Any, h: Any) -> tuple[Any, Any]:
    """1 + e^-|m| and max(-m, 0)."""
    builder, opposite = maths.builder, maths.builder.fmul(margin, maths.constant(-1.0))
    beyond = maths.most(opposite, maths.constant(0.0))
    return builder.fadd(maths.exponential(maths.least(margin, opposite)), maths.constant(1.0)), beyond


def _huber_loss(maths: _Maths, margin: Any, h: Any) -> tuple[Any, Any]:
    """1, and t^2/(4h) + max(1 - h - m, 0) with t = 1 + h - m between 0 and 2h."""
    builder, width = maths.builder, maths.all(h)
    one, none, twice = maths.constant(1.0), maths.constant(0.0), maths.builder.fadd(width, width)
    short, beyond = builder.fsub(builder.fadd(one, width), margin), builder.fsub(builder.fsub(one, width), margin)
    short = maths.least(maths.most(short, none), twice)
    square = builder.fdiv(builder.fmul(short, short), builder.fadd(twice, twice))
    return one, builder.fadd(square, maths.most(beyond, none))


_LOSSES: dict[int, Callable[[_Maths, Any, Any], tuple[Any, Any]]] = {LOGISTIC: _logistic_loss, HUBER: _huber_loss}
_SLOPES: dict[int, Callable[[_Maths, Any, Any], Any]] = {NO_LOSS: lambda _, m, h: m, LOGISTIC: _logistic, HUBER: _huber}


@cache
def margins_of(lanes: int, loss: int, full: int) -> Callable[..., None]:
    """The loop that makes margins, or slopes of a loss, for `lanes` replicas at once.

    Args:
        loss: LOGISTIC, HUBER, or NO_LOSS for margins.
        full: columns that are listed for all rows.
    """

    @njit(**OPTIONS)
    def margins(table, index, theta, width, at, h, out):  # type: ignore[no-untyped-def]
        """<theta_r, row> for the rows of `index`, or the loss's slopes there.

        Args:
            table: ends, columns and values of a CSR matrix of n rows, which full columns there are besides, and their entries,
                (n, full) flat.
            theta: (d, width) flat; lanes from `at` on are worked on.
            h: of HUBER.
            out: (rows, width) flat, in the precision of `theta`.
        """
        ends, columns, values, which, entries = table
        if full:
            heads = load_rows(theta, which, at, width, full, lanes)
        for i in range(len(index)):
            row = item(index, i)
            total = zero(theta, lanes)
            if full:
                total = along(heads, entries, row * full, total)
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
def losses_of(lanes: int, loss: int, full: int) -> Callable[..., None]:
    """The loop that sums losses over rows and counts right predictions, for `lanes` replicas at once.

    Args:
        loss: LOGISTIC or HUBER.
        full: as of `margins_of`.
    """

    @njit(**OPTIONS)
    def losses(table, index, least, theta, width, at, h, together, products, total, right):  # type: ignore[no-untyped-def]
        """Adds to `total` and `right`, and multiplies what a logarithm is to be taken of.

        The logistic loss is ln(1 + e^-|m|) + max(-m, 0): one logarithm serves the product of several rows.

        Args:
            table, index: as of `margins_of`.
            least: (n,) margins above which a prediction is right.
            theta: (d, width) flat, in double precision, as all that follows; lanes from `at` on are worked on.
            together: rows whose 1 + e^-|m| are multiplied.
            products: (groups of rows, width) flat, overwritten; 1 for HUBER.
            total, right: (width,).
        """
        ends, columns, values, which, entries = table
        if full:
            heads = load_rows(theta, which, at, width, full, lanes)
        one, none = exponential_of(0.0, zero(theta, lanes)), zero(theta, lanes)
        product, sums, hits = one, none, none
        for i in range(len(index)):
            row = item(index, i)
            margin = zero(theta, lanes)
            if full:
                margin = along(heads, entries, row * full, margin)
            for k in range(item(ends, row), item(ends, row + 1)):
                margin = fused(item(values, k), load(theta, np.intp(item(columns, k)) * width + at, lanes), margin)
            hits = plus(hits, above(margin, item(least, row)))
            factor, more = loss_in_parts(margin, loss, h)
            product, sums = times(product, factor), plus(sums, more)
            if (i + 1) % together == 0 or i + 1 == len(index):
                store(products, i // together * width + at, product)
                product = one
        store(total, at, plus(load(total, at, lanes), sums))
        store(right, at, plus(load(right, at, lanes), hits))

    return losses


@njit(**OPTIONS)
def add_block(blocks, block, table, start, slopes, lanes, some, full, width, at, most, total):  # type: ignore[no-untyped-def]
    """Adds the sums of rows times slopes over a block, which begins at row `start`; as of `gradients_of`.

    Args:
        some: lanes whose sums over full columns stay in registers.
    """
    literally(lanes), literally(some), literally(full)  # the code is made for these
    _, _, _, which, entries = table
    starts, places, values = blocks
    stop, d = min(start + BLOCK, len(table[0]) - 1), len(total) // width
    if full:
        for part in range(0, lanes, some):
            row = start
            while row < stop:
                last = min(stop, row + most)
                sums = zero_rows(slopes, full, some)
                while row < last:
                    sums = against(sums, entries, row * full, load(slopes, (row - start) * lanes + part, some))
                    row = row + 1
                add_rows(total, which, at + part, width, some, sums)
    for j in range(d):
        entry: Any = np.intp(item(starts, block * d + j))
        end: Any = np.intp(item(starts, block * d + j + 1))
        while entry < end:
            last = min(end, entry + most)
            short = zero(slopes, lanes)
            while entry < last:
                short = fused(item(values, entry), load(slopes, np.intp(item(places, entry)) * lanes, lanes), short)
                entry = entry + 1
            add_double(total, j * width + at, short)


@cache
def gradients_of(lanes: int, loss: int, full: int, limited: bool) -> Callable[..., None]:
    """The loop that sums clipped gradients over all rows, for `lanes` replicas at once.

    Args:
        full: as of `margins_of`.
        limited: whether rows have a budget.
    """
    some = min(lanes, GROUP)

    @njit(**OPTIONS)
    def gradients(table, blocks, order, theta, width, at, h, norms, clip_norm, spent, unit, limit, most, slopes, took, total):  # type: ignore[no-untyped-def]
        """Adds the sums of BLOCK rows at a time, whose slopes stay in the processor's cache between both products.

        Args:
            table: as of `margins_of`.
            blocks: the CSR matrix's entries by block of rows and column: where they begin (blocks x d + 1,), rows in it, values.
            order: (n,) the rows, in each block those with as many entries one after the other, so that loops are foreseen.
            theta: (d, width) flat; lanes from `at` on are worked on.
            norms: (n,) lengths of the rows, not looked at where nothing is clipped.
            clip_norm: longest gradient; infinite for none.
            spent, unit: (n, width) flat sums of squared gradients, to which these are added, as of `within`.
            limit: of these sums; rows above add nothing.
            most: terms summed before the sum goes on in double precision.
            slopes: (BLOCK, lanes) flat, overwritten.
            took: (width,) rows that added something, in double precision, to which these are added.
            total: (d, width) flat, in double precision.
        """
        ends, columns, values, which, entries = table
        n = len(ends) - 1
        if full:
            heads = load_rows(theta, which, at, width, full, lanes)
        took_part = zero(theta, lanes)  # counts of at most 2^24 rows are exact in single precision
        for block in range(-(-n // BLOCK)):
            start, stop = block * BLOCK, min(block * BLOCK + BLOCK, n)
            for i in range(start, stop):
                row = item(order, i)
                slope = zero(theta, lanes)
                if full:
                    slope = along(heads, entries, row * full, slope)
                for k in range(item(ends, row), item(ends, row + 1)):
                    slope = fused(item(values, k), load(theta, np.intp(item(columns, k)) * width + at, lanes), slope)
                slope = slope_at(slope, loss, h)
                if clip_norm < np.inf:
                    slope = shortened(slope, item(norms, row), clip_norm)
                if limited:
                    fetch(spent, item(order, min(i + SOON, n - 1)) * width + at, lanes)
                    slope, part = within(slope, item(norms, row), spent, row * width + at, unit, limit)
                    took_part = plus(took_part, part)
                store(slopes, (row - start) * lanes, slope)
            add_block(blocks, block, table, start, slopes, lanes, some, full, width, at, most, total)
        add_double(took, at, took_part)

    return gradients


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


@njit(**OPTIONS)
def _spell(parameters, to, one, other, lanes):  # type: ignore[no-untyped-def]
    """Writes the sums of lanes from `one` and from `other` on."""
    literally(lanes)
    store(parameters, to, plus(load(parameters, one, lanes), load(parameters, other, lanes)))


@njit(**OPTIONS)
def _share(sums, at, one, other, lanes):  # type: ignore[no-untyped-def]
    """Adds some lanes to those from `one` and from `other` on, and empties them."""
    literally(lanes)
    more = load(sums, at, lanes)
    store(sums, at, zero(sums, lanes))
    store(sums, one, plus(load(sums, one, lanes), more))
    store(sums, other, plus(load(sums, other, lanes), more))


@njit(**OPTIONS)
def spell(parameters, phrases, width):  # type: ignore[no-untyped-def]
    """Fills the last P of (d + P, width) flat parameters with the sums of two columns that phrases (2 P,) stand for."""
    to, groups, fours = len(parameters) - len(phrases) // 2 * width, width // GROUP * GROUP, width // FOUR * FOUR
    for p in range(0, len(phrases), 2):
        one, other = item(phrases, p) * width, item(phrases, p + 1) * width
        for r in range(0, groups, GROUP):
            _spell(parameters, to + r, one + r, other + r, GROUP)
        for r in range(groups, fours, FOUR):
            _spell(parameters, to + r, one + r, other + r, FOUR)
        for r in range(fours, width):
            _spell(parameters, to + r, one + r, other + r, 1)
        to += width


@njit(**OPTIONS)
def share(sums, phrases, width):  # type: ignore[no-untyped-def]
    """Adds the last P of (d + P, width) flat sums to both columns that each phrase stands for, and empties them."""
    last, groups, fours = len(sums), width // GROUP * GROUP, width // FOUR * FOUR
    for p in range(len(phrases) - 2, -1, -2):
        last -= width
        one, other = item(phrases, p) * width, item(phrases, p + 1) * width
        for r in range(0, groups, GROUP):
            _share(sums, last + r, one + r, other + r, GROUP)
        for r in range(groups, fours, FOUR):
            _share(sums, last + r, one + r, other + r, FOUR)
        for r in range(fours, width):
            _share(sums, last + r, one + r, other + r, 1)


@njit(**OPTIONS)
def _beyond(index, n):  # type: ignore[no-untyped-def]
    """Whether some positions are not among n."""
    found = False
    for i in range(len(index)):
        found |= index[i] < 0 or index[i] >= n
    return found


@njit(**OPTIONS)
def _hand_over_at(short, place, lanes, total, at):  # type: ignore[no-untyped-def]
    """Adds the sums at a place to those in double precision, which begin at `at`, and empties them."""
    literally(lanes)  # the code is made for them
    add_double(total, at + place, load(short, place, lanes))
    store(short, place, zero(short, lanes))


@njit(**OPTIONS)
def _hand_over(short, lanes, total, at):  # type: ignore[no-untyped-def]
    """`_hand_over_at` of all columns."""
    literally(lanes)
    for place in range(0, len(short), lanes):
        _hand_over_at(short, place, lanes, total, at)


@njit(**OPTIONS)
def _hand_over_long(short, long, left, lanes, terms, total, at):  # type: ignore[no-untyped-def]
    """`_hand_over_at` of the first `left` columns in `long`, whose sums have no terms then."""
    literally(lanes)
    for k in range(left):
        _hand_over_at(short, item(long, k) * lanes, lanes, total, at)
        terms[np.uint64(item(long, k))] = 0


@njit(**OPTIONS)
def _fetch_row(table, row, full):  # type: ignore[no-untyped-def]
    """Brings what is known of a row near."""
    literally(full)
    ends, columns, values, _, entries = table
    fetch(columns, np.intp(item(ends, row)), 16)
    fetch(values, np.intp(item(ends, row)), 16)
    fetch(entries, row * full, full)


@njit(**OPTIONS)
def _add_row(table, row, slope, short, lanes, terms, limit, long, left):  # type: ignore[no-untyped-def]
    """Adds a row's entries times slopes to the sums of their columns, and gives how many columns are in `long` then.

    Args:
        terms: (d,) how many terms the sums in `short` have, which are counted.
        long: columns whose sums have reached `limit` terms; `left` of them are there before.
    """
    literally(lanes)
    ends, columns, values, _, _ = table
    for k in range(np.intp(item(ends, row)), np.intp(item(ends, row + 1))):
        column = np.uint64(item(columns, k))
        place = np.intp(column) * lanes
        store(short, place, fused(item(values, k), slope, load(short, place, lanes)))
        terms[column] += 1
        long[left] = column
        left += np.uint64(terms[column] == limit)  # a branch would be guessed wrong
    return left


@cache
def batches_of(lanes: int, loss: int, full: int) -> Callable[..., bool]:
    """The loop that sums clipped gradients over batches, each for `lanes` replicas of its own.

    Args:
        full: as of `margins_of`.
    """

    @njit(**OPTIONS)
    def batches(table, phrases, index, cuts, norms, theta, h, clip_norm, most, short, terms, total):  # type: ignore[no-untyped-def]
        """Adds to total[s] the sum over batch s, index[cuts[s]] to index[cuts[s + 1] - 1]; False, and nothing, without such rows.

        Args:
            table: as of `margins_of`.
            phrases: as of `descent_of`; those of `theta` are spelled here, and those of `total` shared.
            theta: (S, d, lanes) flat.
            norms, clip_norm: as of `gradients_of`.
            most: terms summed before the sum goes on in double precision.
            short, total: (d, lanes) flat zeros in the precision of `theta`, and (S, d, lanes) flat in double precision.
            terms: (d,) zeros: how many terms the sums in `short` have.
        """
        ends, columns, values, which, entries = table
        size, group, long = len(short), min(most, GROUP), np.empty(len(terms) + 1, np.intp)
        limit = most - group + 1  # from which the next rows could make a sum too long
        if _beyond(index, len(ends) - 1):
            return False
        if full:
            sums = zero_rows(theta, full, lanes)
        for s in range(len(cuts) - 1):
            spell(theta[s * size : (s + 1) * size], phrases, lanes)
            first, last, full_terms = item(cuts, s), item(cuts, s + 1), 0
            if full:
                heads = load_rows(theta, which, s * size, lanes, full, lanes)
            for part in range(first, last, group):
                stop, left = min(part + group, last), np.uint64(0)
                for i in range(part, stop):
                    row = item(index, i)
                    _fetch_row(table, item(index, min(i + SOON, last - 1)), full)
                    slope = zero(theta, lanes)
                    if full:
                        slope = along(heads, entries, row * full, slope)
                    for k in range(np.intp(item(ends, row)), np.intp(item(ends, row + 1))):
                        slope = fused(item(values, k), load(theta, s * size + np.intp(item(columns, k)) * lanes, lanes), slope)
                    slope = slope_at(slope, loss, h)
                    if clip_norm < np.inf:
                        slope = shortened(slope, item(norms, row), clip_norm)
                    if full:
                        sums = against(sums, entries, row * full, slope)
                    left = _add_row(table, row, slope, short, lanes, terms, limit, long, left)
                full_terms += group
                if full and (full_terms >= limit or stop == last):
                    add_rows(total, which, s * size, lanes, lanes, sums)
                    sums, full_terms = zero_rows(theta, full, lanes), 0
                _hand_over_long(short, long, left, lanes, terms, total, s * size)
            _hand_over(short, lanes, total, s * size)
            terms[:] = 0
            share(total[s * size : (s + 1) * size], phrases, lanes)
        return True

    return batches


@njit(**OPTIONS)
def _by_column(parameters, at, units, d, columns, lanes, step):  # type: ignore[no-untyped-def]
    """Writes parameters (units, d) from `at` on by column, (parts, step / lanes, lanes)."""
    for u in range(units):
        start = u // lanes * step + u % lanes
        for j in range(d):
            store(columns, start + j * lanes, load(parameters, at + u * d + j, 1))


@njit(**OPTIONS)
def _by_unit(columns, at, units, d, total, lanes, step):  # type: ignore[no-untyped-def]
    """The other way round; adds."""
    for u in range(units):
        start = u // lanes * step + u % lanes
        for j in range(d):
            add_double(total, at + u * d + j, load(columns, start + j * lanes, 1))


@njit(**OPTIONS)
def _into_hidden(table, index, first, last, own, offset, lanes, full, hidden, margins, squares):  # type: ignore[no-untyped-def]
    """Writes the hidden values of rows `first` to `last` - 1, and what `_clip_networks` makes slopes of.

    Args:
        margins, squares: of `_clip_networks`.
        others: as of `networks_of`.
    """
    literally(lanes), literally(full)  # the code is made for these
    ends, columns, values, which, entries = table
    parts, one = len(hidden) // (ROWS * lanes), own.dtype.type(1)
    step = len(own) // parts
    for i in range(last - first):
        row, soon = item(index, first + i), item(index, min(first + i + SOON, len(index) - 1))
        _fetch_row(table, soon, full)
        for p in range(parts):
            value = zero(own, lanes)
            for k in range(full):
                value = fused(item(entries, row * full + k), load(own, p * step + item(which, k) * lanes, lanes), value)
            for k in range(np.intp(item(ends, row)), np.intp(item(ends, row + 1))):
                value = fused(item(values, k), load(own, p * step + np.intp(item(columns, k)) * lanes, lanes), value)
            store(hidden, (i * parts + p) * lanes, tangent_of(value))
        scores, inner, outer = zero(own, GROUP), zero(own, GROUP), zero(own, GROUP)
        for p in range(parts):
            for g in range(0, lanes, GROUP):
                value = load(hidden, (i * parts + p) * lanes + g, GROUP)
                weight = load(own, (p + 1) * step - lanes + g, GROUP)
                entering = through_tangent(weight, value)
                scores, outer = joined(weight, value, scores), joined(value, value, outer)
                inner = joined(entering, entering, inner)
        margins[i] = offset + total_of(scores)
        squares[i], squares[ROWS + i] = total_of(inner), total_of(outer) + one


@njit(**OPTIONS)
def _clip_networks(margins, squares, labels, norms, index, first, last, clip_norm):  # type: ignore[no-untyped-def]
    """Turns scores of the rows `first` to `last` - 1 into slopes, clipped; gives their sum.

    Args:
        margins: (ROWS,) scores, overwritten.
        squares: (2, ROWS) flat: |e|^2, and |s|^2 + 1, as in `models.network`.
        labels, norms: (n,).
    """
    one, total = labels.dtype.type(1), 0.0
    for i in range(last - first):
        margins[i] *= item(labels, item(index, first + i))
    for i in range(0, ROWS, GROUP):
        store(margins, i, slope_at(load(margins, i, GROUP), LOGISTIC, 0.0))
    for i in range(last - first):
        row = item(index, first + i)
        norm, slope = item(norms, row), margins[i] * item(labels, row)
        length = abs(slope) * np.sqrt(squares[i] * (norm * norm + one) + squares[ROWS + i])  # Goodfellow 2015
        if length > clip_norm:
            slope *= clip_norm / length  # Abadi et al. 2016, Algorithm 1
        margins[i] = slope
        total += slope
    return total


@njit(**OPTIONS)
def _out_of_hidden(table, index, first, last, own, slopes, lanes, full, hidden, short, long):  # type: ignore[no-untyped-def]
    """Adds what rows `first` to `last` - 1 weigh to `long`, and for columns that are not full to `short`.

    Args:
        slopes: (ROWS,) of the rows.
        others: as of `networks_of`.
    """
    literally(lanes), literally(full)  # the code is made for these
    ends, columns, values, which, entries = table
    parts = len(hidden) // (ROWS * lanes)
    step = len(own) // parts
    for p in range(parts):
        for g in range(0, lanes, GROUP):
            above, weight = zero(own, GROUP), load(own, (p + 1) * step - lanes + g, GROUP)
            if full:
                sums = zero_rows(own, full, GROUP)
            for i in range(last - first):
                place, slope = (i * parts + p) * lanes + g, item(slopes, i)
                value = load(hidden, place, GROUP)
                above = fused(slope, value, above)
                value = fused(slope, through_tangent(weight, value), zero(own, GROUP))
                store(hidden, place, value)
                if full:
                    sums = against(sums, entries, item(index, first + i) * full, value)
            add_double(long, (p + 1) * step - lanes + g, above)
            if full:
                add_rows(long, which, p * step + g, lanes, GROUP, sums)
    for i in range(last - first):
        row = item(index, first + i)
        for p in range(parts):
            weights = load(hidden, (i * parts + p) * lanes, lanes)
            for k in range(np.intp(item(ends, row)), np.intp(item(ends, row + 1))):
                place = p * step + np.intp(item(columns, k)) * lanes
                store(short, place, fused(item(values, k), weights, load(short, place, lanes)))


@cache
def networks_of(lanes: int, full: int) -> Callable[..., None]:
    """The loop that sums clipped gradients of networks with one hidden layer of tanh units, under the logistic loss.

    Args:
        lanes: units that are worked on at once, groups of 16. Parameters of 0 fill those of the last part.
        full: as of `margins_of`.
    """

    @njit(**OPTIONS)
    def networks(table, phrases, index, labels, norms, theta, units, count, clip_norm, most, own, hidden, short, long, total):  # type: ignore[no-untyped-def]
        """Adds to total[r] the sum over the rows of `index`, one network after the other.

        Args:
            table, phrases: of rows (x, 1), as of `margins_of` and `descent_of`.
            labels, norms: (n,) of all rows; norms are lengths of x.
            theta: (R, m) flat, m = k d + k + 1: weights of k units for d columns, weights of the second layer, its offset.
            units, count: k, and R.
            clip_norm: as of `gradients_of`.
            most: rows summed before the sum goes on in double precision, a multiple of ROWS.
            own: (parts, d + P + 1, lanes) flat zeros, in the precision of `theta`: a network's weights by column, the second
                layer's last.
            hidden: (ROWS, parts, lanes) flat: tanh of the units, then what weights the rows in the first layer's sums.
            short, long: as `own`, in single and in double precision: sums for the weights.
            total: as `theta`, in double precision.
        """
        m, end, parts = len(theta) // count, len(index), len(hidden) // (ROWS * lanes)
        step, d = len(own) // parts, (m - units - 1) // units
        after = step - lanes
        margins, squares = np.zeros(ROWS, theta.dtype), np.empty(2 * ROWS, theta.dtype)
        for r in range(count):
            at = r * m
            _by_column(theta, at, units, d, own, lanes, step)
            _by_column(theta, at + units * d, units, 1, own[after:], lanes, step)
            for p in range(0, parts * step, step):
                spell(own[p : p + after], phrases, lanes)
            for first in range(0, end, ROWS):
                last = min(first + ROWS, end)
                _into_hidden(table, index, first, last, own, theta[at + m - 1], lanes, full, hidden, margins, squares)
                total[at + m - 1] += _clip_networks(margins, squares, labels, norms, index, first, last, clip_norm)
                _out_of_hidden(table, index, first, last, own, margins, lanes, full, hidden, short, long)
                if last % most == 0 or last == end:
                    _hand_over(short, lanes, long, 0)
            for p in range(0, parts * step, step):
                share(long[p : p + after], phrases, lanes)
            _by_unit(long, at, units, d, total, lanes, step)
            _by_unit(long[after:], at + units * d, units, 1, total, lanes, step)
            long[:] = 0.0

    return networks


@njit(**OPTIONS)
def _turn_lanes(source, at, lanes, target):  # type: ignore[no-untyped-def]
    """NOISY rows of lanes, from `at` on, as (lanes, NOISY)."""
    for lane in range(0, lanes, GROUP):
        for i in range(0, NOISY, GROUP):
            turn(source, at + i * lanes + lane, lanes, target, lane * NOISY + i, NOISY)


@njit(**OPTIONS)
def _turn_back(source, target, at, lanes):  # type: ignore[no-untyped-def]
    """The other way round."""
    for lane in range(0, lanes, GROUP):
        for i in range(0, NOISY, GROUP):
            turn(source, lane * NOISY + i, NOISY, target, at + i * lanes + lane, lanes)


@cache
def noisy_gradients_of(lanes: int, loss: int, full: int, many: int) -> Callable[..., None]:
    """The loop that sums gradients over all rows with noise, for `lanes` replicas at once: as many for each draw.

    Args:
        full: as of `margins_of`.
        many: replicas of a tile, one of TILE_TALL.
    """
    some = min(lanes, GROUP)

    @njit(**OPTIONS)
    def noisy_gradients(table, blocks, order, noises, features, deep, theta, moved, tall, h, most, margins, turned, total, own):  # type: ignore[no-untyped-def]
        """Adds the sums of rows times slopes at margins + <moved, noise> to `total`, and of noise times slopes to `own`.

        Args:
            table, blocks, order: as of `gradients_of`.
            noises: S flat arrays, (parts, NOISY / STRIP, deep, STRIP); behind the last row there is no noise.
            features, deep: of the noise, and these up to a multiple of TILE_DEEP.
            theta: (d, lanes) flat, in single precision: `tall` of the first draw, a multiple of `many`, and so on.
            moved: (S, features, tall) flat, parameters times noise scales.
            most: terms summed before the sum goes on in double precision; those with noise are short.
            margins, turned: (BLOCK, lanes), finite, and (lanes, NOISY) flat, overwritten.
            total: (d, lanes) flat, in double precision.
            own: (S, deep, tall, KEPT) flat, in double precision: sums over every fourth row.
        """
        ends, columns, values, which, entries = table
        n = len(ends) - 1
        if full:
            heads = load_rows(theta, which, 0, lanes, full, lanes)
        for block in range(-(-n // BLOCK)):
            start, stop = block * BLOCK, min(block * BLOCK + BLOCK, n)
            for i in range(start, stop):
                row = item(order, i)
                margin = zero(theta, lanes)
                if full:
                    margin = along(heads, entries, row * full, margin)
                for k in range(item(ends, row), item(ends, row + 1)):
                    margin = fused(item(values, k), load(theta, np.intp(item(columns, k)) * lanes, lanes), margin)
                store(margins, (row - start) * lanes, margin)
            for part in range(start, stop, NOISY):
                here = (part - start) * lanes
                _turn_lanes(margins, here, lanes, turned)
                for s in range(len(noises)):
                    noise, at, last = noises[s], part * deep, s == len(noises) - 1
                    coming, next_at = noises[0 if last else s + 1], at + (NOISY * deep if last else 0)
                    for i in range(0, NOISY, STRIP):
                        for r in range(0, tall, many):
                            strip, soon = at + i * deep, next_at + i * deep
                            first, to = s * features * tall + r, (s * tall + r) * NOISY + i
                            slopes_along(noise, strip, coming, soon, features, moved, first, tall, turned, to, loss, h, many)
                    for j in range(0, deep, TILE_DEEP):
                        for r in range(0, tall, many):
                            to = ((s * deep + j) * tall + r) * KEPT
                            sums_against(noise, at + j * STRIP, deep, turned, (s * tall + r) * NOISY, own, to, tall, many)
                _turn_back(turned, margins, here, lanes)
            add_block(blocks, block, table, start, margins, lanes, some, full, lanes, 0, most, total)

    return noisy_gradients


@cache
def noisy_dense_of(loss: int, many: int) -> Callable[..., None]:
    """`noisy_gradients_of` for rows with their zeros, which are multiplied as their noise is."""

    @njit(**OPTIONS)
    def noisy_dense(rows, noises, features, deep, theta, moved, tall, h, turned, total, own):  # type: ignore[no-untyped-def]
        """Adds the sums of rows times slopes at <theta, row> + <moved, noise> to `total`, and of noise times slopes to `own`.

        Args:
            rows: as `noises` flat, (parts, NOISY / STRIP, deep, STRIP), with zeros behind the last row.
            noises, features, deep, moved, tall, turned, own: as of `noisy_gradients_of`.
            theta, total: as `moved` and `own`.
        """
        for first in range(0, len(rows) // deep, NOISY):
            for g in range(len(noises)):
                noise, at, group = noises[g], first * deep, g * features * tall
                turned[:] = 0.0
                for i in range(0, NOISY, STRIP):
                    for r in range(0, tall, many):
                        here, to = at + i * deep, r * NOISY + i
                        soon = here + NOISY * deep
                        slopes_along(rows, here, rows, soon, features, theta, group + r, tall, turned, to, NO_LOSS, h, many)
                        slopes_along(noise, here, noise, soon, features, moved, group + r, tall, turned, to, loss, h, many)
                for j in range(0, deep, TILE_DEEP):
                    for r in range(0, tall, many):
                        to = ((g * deep + j) * tall + r) * KEPT
                        sums_against(rows, at + j * STRIP, deep, turned, r * NOISY, total, to, tall, many)
                        sums_against(noise, at + j * STRIP, deep, turned, r * NOISY, own, to, tall, many)

    return noisy_dense


@njit(**OPTIONS)
def turn_rows(noise, d, turned):  # type: ignore[no-untyped-def]
    """Noise (b, d), flat, b a multiple of STRIP and d of 16, as (b / STRIP, d, STRIP)."""
    for i in range(0, len(noise) // d, GROUP):
        for j in range(0, d, GROUP):
            turn(noise, i * d + j, d, turned, i // STRIP * d * STRIP + j * STRIP + i % STRIP, STRIP)


@njit(**OPTIONS)
def _move(w, gradient, eta, lam, rows):  # type: ignore[no-untyped-def]
    """w <- w - eta (gradient/rows + lam w), both (d, width) flat for eta (width,), and empties the gradient."""
    shorter, part, fours = 1 - eta * lam, -eta / rows, len(eta) // FOUR * FOUR
    for r in range(0, fours, FOUR):
        _move_lanes(w, gradient, shorter, part, r, FOUR)
    for r in range(fours, len(eta)):
        _move_lanes(w, gradient, shorter, part, r, 1)
    gradient[:] = 0.0


@njit(**OPTIONS)
def _move_lanes(w, gradient, shorter, part, at, lanes):  # type: ignore[no-untyped-def]
    """w <- shorter w + part gradient, for some lanes from `at` on."""
    literally(lanes)
    less, more = load(shorter, at, lanes), load(part, at, lanes)
    for j in range(at, len(w), len(shorter)):
        store(w, j, plus(times(less, load(w, j, lanes)), times(more, load(gradient, j, lanes))))


@cache
def descent_of(lanes: int, loss: int, full: int, dense: bool) -> Callable[..., None]:
    """The loop of mini-batch gradient descent without noise, in double precision, for `lanes` trainings at once.

    Args:
        full: as of `margins_of`.
        dense: whether rows have their zeros, so that their columns are not listed.
    """

    @njit(**OPTIONS)
    def descend(table, phrases, bounds, first, last, lengths, lam, width, h, window, w, total):  # type: ignore[no-untyped-def]
        """Updates `first` to `last`: w <- w - eta (mean data gradient of the batch + lam w).

        Args:
            table: as of `margins_of`; of dense rows no columns.
            phrases: (2 P,) the two columns that each of the last P stands for.
            bounds: (m + 1,) ends of the batches, of which update t takes number t mod m.
            lengths: (T, width) flat, eta.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
            w: (d, width) flat.
            total: (d, width) flat, the sum of the iterates of a window that is not over.
        """
        ends, columns, values, which, entries = table
        batches, gradient = len(bounds) - 1, np.zeros(len(w) + len(phrases) // 2 * width)
        spelled = np.zeros(len(gradient))
        for t in range(first, last):
            a, b = item(bounds, t % batches), item(bounds, t % batches + 1)
            spelled[: len(w)] = w
            spell(spelled, phrases, width)
            for at in range(0, width, lanes):
                if full:
                    heads, sums = load_rows(spelled, which, at, width, full, lanes), zero_rows(w, full, lanes)
                for row in range(a, b):
                    start, end = np.intp(item(ends, row)), np.intp(item(ends, row + 1))
                    slope = zero(w, lanes)
                    if full:
                        slope = along(heads, entries, row * full, slope)
                    for k in range(start, end):
                        place = (k - start if dense else np.intp(item(columns, k))) * width + at
                        slope = fused(item(values, k), load(spelled, place, lanes), slope)
                    slope = slope_at(slope, loss, h)
                    if full:
                        sums = against(sums, entries, row * full, slope)
                    for k in range(start, end):
                        place = (k - start if dense else np.intp(item(columns, k))) * width + at
                        store(gradient, place, fused(item(values, k), slope, load(gradient, place, lanes)))
                if full:
                    add_rows(gradient, which, at, width, lanes, sums)
            share(gradient, phrases, width)
            _move(w, gradient, lengths[t * width : (t + 1) * width], lam, b - a)
            if window > 0:
                total += w
                if (t + 1) % window == 0:
                    w[:], total[:] = total / window, 0.0

    return descend


@cache
def line_losses_of(lanes: int, full: int) -> Callable[..., None]:
    """The loop that sums logistic losses of rows at points of lines, for `lanes` replicas at once.

    Args:
        full: as of `margins_of`.
    """
    some = min(lanes, GROUP)

    @njit(**OPTIONS)
    def losses(table, index, theta, step, width, at, together, count, top, products, powers):  # type: ignore[no-untyped-def]
        """Multiplies 1 + min(e^-m, top) over rows, where m goes in equal steps: <theta - k step, row>, k < count.

        Args:
            table, index: as of `margins_of`.
            theta, step: (d, width) flat, in single precision; lanes from `at` on are worked on.
            together: groups of four rows after which a product is split, so that it stays a number.
            products, powers: (count, lanes) flat, products 2^powers.
        """
        ends, columns, values, which, entries = table
        odds, factor = np.zeros(4 * lanes, np.float32), np.ones(4 * lanes, np.float32)
        if full:
            heads, changes = load_rows(theta, which, at, width, full, lanes), load_rows(step, which, at, width, full, lanes)
        for first in range(0, len(index), 4):
            last = min(first + 4, len(index))
            for i in range(first, last):
                row = item(index, i)
                start, change = zero(theta, lanes), zero(theta, lanes)
                if full:
                    start, change = along(heads, entries, row * full, start), along(changes, entries, row * full, change)
                for k in range(item(ends, row), item(ends, row + 1)):
                    place = np.intp(item(columns, k)) * width + at
                    start = fused(item(values, k), load(theta, place, lanes), start)
                    change = fused(item(values, k), load(step, place, lanes), change)
                # in equal steps e^-m goes by equal factors, so that two exponentials serve all points of the line
                store(odds, (i - first) * lanes, exponential_of(-1.0, start))
                store(factor, (i - first) * lanes, exponential_of(1.0, change))
            odds[(last - first) * lanes :] = 0.0
            for part in range(0, lanes, some):  # four rows for each time that a product is read and written
                a, b = load(odds, part, some), load(odds, lanes + part, some)
                c, d = load(odds, 2 * lanes + part, some), load(odds, 3 * lanes + part, some)
                for k in range(count):
                    place = k * lanes + part
                    product = grown(grown(load(products, place, some), a, top), b, top)
                    store(products, place, grown(grown(product, c, top), d, top))
                    a, b = times(a, load(factor, part, some)), times(b, load(factor, lanes + part, some))
                    c, d = times(c, load(factor, 2 * lanes + part, some)), times(d, load(factor, 3 * lanes + part, some))
            if first // 4 % together == together - 1:
                for k in range(0, count * lanes, some):
                    short, power = split(load(products, k, some))
                    store(products, k, short)
                    store(powers, k, plus(load(powers, k, some), power))

    return losses
