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
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from dpviz.models.compiled.options import OPTIONS

LOGISTIC, HUBER, NO_LOSS = 1, 2, 0  # which slope is made of a margin

BLOCK = 1024  # rows whose slopes stay in the processor's cache between both products
NOISY = 256  # rows whose noise does
GROUP = 16  # replicas, or rows, that are turned into rows, or replicas
TILE_TALL, TILE_WIDE, TILE_DEEP = 5, 4, 4  # replicas, groups of rows, and features of a product whose sums stay in registers
SOON = 8  # rows ahead of which memory that lies elsewhere is asked for
KEPT = 4  # sums of NOISY / 4 rows in single precision, which are kept apart in double precision
FULL = 1 << 31  # units of a budget that is used up more than once, beyond which nothing is counted
STRIP = TILE_WIDE * GROUP  # rows whose noise lies together, feature by feature

_FUSED = ("contract",)  # product and sum may be one instruction
_INT = ir.IntType(32)
_LINE_BITS = 512  # of a cache line


class Lanes(types.Type):
    """Some numbers of one precision, worked on at once."""

    def __init__(self, scalar: Any, count: int) -> None:
        self.scalar, self.count = scalar, count
        # the compiler handles vectors of other lengths number by number
        self.size = min(count, GROUP)
        super().__init__(name=f"Lanes({scalar}, {count})")

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


@intrinsic
def add_double(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Adds lanes to a flat array in double precision from `at` on."""
    wide = Lanes(types.float64, values.count)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def part(lane: int, some: Any) -> Any:
            place = _place(context, builder, array, given[0], given[1], wide.vector, lane)
            before = builder.load(place)
            before.align = 8
            builder.store(_Maths(builder, values).add_in_double(before, some), place).align = 8
            return some

        _each(builder, values, part, given[2])
        return context.get_dummy_value()

    return types.none(array, types.intp, values), generate


@intrinsic
def fused(typing: Any, factor: Any, values: Any, more: Any) -> Any:
    """factor x values + more, for one factor."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        factors = _all(builder, given[0], values.vector)

        def part(_: int, some: Any, others: Any) -> Any:
            return builder.fadd(builder.fmul(factors, some, flags=_FUSED), others, flags=_FUSED)

        return _each(builder, values, part, *given[1:])

    return more(factor, values, more), generate


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
        row, bound = (_all(builder, one, slopes.vector) for one in given[1:])

        def part(_: int, slope: Any) -> Any:
            turned = builder.fmul(slope, _Maths(builder, slopes).constant(-1.0))
            size = builder.fmul(builder.select(builder.fcmp_unordered(">", slope, turned), slope, turned), row)
            longer = builder.select(builder.fcmp_unordered(">", size, bound), size, bound)
            return builder.fmul(slope, builder.fdiv(bound, longer))

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
def one_and_at_most(typing: Any, values: Any, most: Any) -> Any:
    """1 + min(values, most)."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        maths, end = _Maths(builder, values), _all(builder, given[1], values.vector)

        def part(_: int, some: Any) -> Any:
            kept = builder.select(builder.fcmp_unordered("<", some, end), some, end)
            return builder.fadd(maths.constant(1.0), kept)

        return _each(builder, values, part, given[0])

    return values(values, values.scalar), generate


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

    def __init__(self, context: Any, builder: Any, array: Any, wide: int) -> None:
        self.context, self.builder, self.kind = context, builder, Lanes(array.dtype, GROUP)
        self.sums = [[cgutils.alloca_once(builder, self.kind.vector) for _ in range(wide)] for _ in range(TILE_TALL)]

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
) -> Any:
    """Slopes at margins + <moved, noise>, for a tile of replicas and rows.

    Args:
        noise: (d, STRIP) from `at` on.
        coming, soon: where noise lies that will be read soon: two cache lines of each feature from there on are brought near.
        moved: (d, tall) from `first` on.
        margins: (replicas, NOISY) from `place` on, replaced by the slopes.
    """
    if not isinstance(loss, types.IntegerLiteral):
        return None
    made, whole = _SLOPES[loss.literal_value], types.intp

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        tile = _Tile(context, builder, noise, TILE_WIDE)
        tiles = [(r, v) for r in range(TILE_TALL) for v in range(TILE_WIDE)]
        for r, v in tiles:
            builder.store(tile.load(margins, given[8], tile.at(given[9], (NOISY, r), (GROUP, v))), tile.sums[r][v])
        with cgutils.for_range(builder, given[4]) as loop:
            for line in range(2):
                tile.fetch(coming, given[2], tile.at(given[3], (STRIP, loop.index), (GROUP, line)))
            rows = [tile.load(noise, given[0], tile.at(given[1], (STRIP, loop.index), (GROUP, v))) for v in range(TILE_WIDE)]
            for r in range(TILE_TALL):
                one = builder.load(_pointer(context, builder, moved, given[5], tile.at(given[6], (given[7], loop.index), (1, r))))
                for v in range(TILE_WIDE):
                    tile.add(r, v, _all(builder, one, tile.kind.vector), rows[v])
        for r, v in tiles:
            slope = made(_Maths(builder, tile.kind), builder.load(tile.sums[r][v]), given[11])
            builder.store(slope, tile.place(margins, given[8], tile.at(given[9], (NOISY, r), (GROUP, v)))).align = 4
        return context.get_dummy_value()

    return types.none(noise, whole, coming, whole, whole, moved, whole, whole, margins, whole, loss, types.float64), generate


@intrinsic
def sums_against(typing: Any, noise: Any, at: Any, deep: Any, slopes: Any, first: Any, total: Any, place: Any, tall: Any) -> Any:
    """Adds products of slopes and noise, summed over every fourth row of a block, for a tile of replicas and features.

    Args:
        noise: (NOISY / STRIP, deep, STRIP), of which features from `at` on are looked at.
        slopes: (replicas, NOISY) from `first` on.
        total: (features, tall, KEPT) from `place` on, in double precision.
    """
    whole = types.intp

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        tile, wide = _Tile(context, builder, noise, TILE_DEEP), Lanes(types.float64, KEPT)
        tiles = [(r, j) for r in range(TILE_TALL) for j in range(TILE_DEEP)]
        for r, j in tiles:
            builder.store(ir.Constant(tile.kind.vector, None), tile.sums[r][j])
        with cgutils.for_range(builder, ir.Constant(given[1].type, NOISY // STRIP)) as loop:
            strip = tile.at(given[1], (builder.mul(given[2], loop.index), STRIP))
            for v in range(TILE_WIDE):
                rows = [tile.load(noise, given[0], tile.at(strip, (STRIP, j), (GROUP, v))) for j in range(TILE_DEEP)]
                for r in range(TILE_TALL):
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

    return types.none(noise, whole, whole, slopes, whole, total, whole, whole), generate


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
        most = self.constant(FULL / 2)  # with which the sum is a number of 32 bits
        up = builder.select(builder.fcmp_ordered("<", up, most), up, most)
        up = builder.select(builder.fcmp_ordered(">=", more, self.constant(0.0)), up, self.constant(0.0))
        after = builder.add(before, builder.fptoui(up, before.type))
        return builder.select(builder.icmp_unsigned("<", after, full), after, full)

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


def _logistic_loss(maths: _Maths, margin: Any, h: Any) -> tuple[Any, Any]:
    """1 + e^-|m| and max(-m, 0)."""
    builder, opposite = maths.builder, maths.builder.fmul(margin, maths.constant(-1.0))
    lower = builder.select(builder.fcmp_unordered("<", margin, opposite), margin, opposite)
    beyond = builder.select(builder.fcmp_unordered(">", opposite, maths.constant(0.0)), opposite, maths.constant(0.0))
    return builder.fadd(maths.exponential(lower), maths.constant(1.0)), beyond


def _huber_loss(maths: _Maths, margin: Any, h: Any) -> tuple[Any, Any]:
    """1, and t^2/(4h) + max(1 - h - m, 0) with t = 1 + h - m between 0 and 2h."""
    builder, width = maths.builder, maths.all(h)
    one, none, twice = maths.constant(1.0), maths.constant(0.0), maths.builder.fadd(width, width)
    short, beyond = builder.fsub(builder.fadd(one, width), margin), builder.fsub(builder.fsub(one, width), margin)
    short = builder.select(builder.fcmp_unordered(">", short, none), short, none)
    short = builder.select(builder.fcmp_unordered("<", short, twice), short, twice)
    square = builder.fdiv(builder.fmul(short, short), builder.fadd(twice, twice))
    return one, builder.fadd(square, builder.select(builder.fcmp_unordered(">", beyond, none), beyond, none))


_LOSSES: dict[int, Callable[[_Maths, Any, Any], tuple[Any, Any]]] = {LOGISTIC: _logistic_loss, HUBER: _huber_loss}
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
def losses_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that sums losses over rows and counts right predictions, for `lanes` replicas at once.

    Args:
        loss: LOGISTIC or HUBER.
    """

    @njit(**OPTIONS)
    def losses(ends, columns, values, index, least, theta, width, at, h, together, products, total, right):  # type: ignore[no-untyped-def]
        """Adds to `total` and `right`, and multiplies what a logarithm is to be taken of.

        The logistic loss is ln(1 + e^-|m|) + max(-m, 0): one logarithm serves the product of several rows.

        Args:
            ends, columns, values, index: as of `margins_of`.
            least: (n,) margins above which a prediction is right.
            theta: (d, width) flat, in double precision, as all that follows; lanes from `at` on are worked on.
            together: rows whose 1 + e^-|m| are multiplied.
            products: (groups of rows, width) flat, overwritten; 1 for HUBER.
            total, right: (width,).
        """
        one, none = exponential_of(0.0, zero(theta, lanes)), zero(theta, lanes)
        product, sums, hits = one, none, none
        for i in range(len(index)):
            row = item(index, i)
            margin = zero(theta, lanes)
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


@cache
def gradients_of(lanes: int, loss: int, limited: bool) -> Callable[..., None]:
    """The loop that sums clipped gradients over all rows, for `lanes` replicas at once.

    Args:
        limited: whether rows have a budget.
    """

    @njit(**OPTIONS)
    def gradients(table, blocks, order, theta, width, at, h, norms, clip_norm, spent, unit, limit, most, slopes, took, total):  # type: ignore[no-untyped-def]
        """Adds the sums of BLOCK rows at a time, whose slopes stay in the processor's cache between both products.

        Args:
            table: ends, columns and values of a CSR matrix of n rows.
            blocks: its entries by block of rows and column: where they begin (blocks x d + 1,), rows in the block, values.
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
        ends, columns, values = table
        starts, places, sorted_values = blocks
        n, d = len(ends) - 1, len(theta) // width
        took_part = zero(theta, lanes)  # counts of at most 2^24 rows are exact in single precision
        for block in range(-(-n // BLOCK)):
            first = block * BLOCK
            for i in range(first, min(first + BLOCK, n)):
                row = item(order, i)
                slope = zero(theta, lanes)
                for k in range(item(ends, row), item(ends, row + 1)):
                    slope = fused(item(values, k), load(theta, np.intp(item(columns, k)) * width + at, lanes), slope)
                slope = slope_at(slope, loss, h)
                if clip_norm < np.inf:
                    slope = shortened(slope, item(norms, row), clip_norm)
                if limited:
                    fetch(spent, item(order, min(i + SOON, n - 1)) * width + at, lanes)
                    slope, part = within(slope, item(norms, row), spent, row * width + at, unit, limit)
                    took_part = plus(took_part, part)
                store(slopes, (row - first) * lanes, slope)
            for j in range(d):
                entry: Any = np.intp(item(starts, block * d + j))
                end: Any = np.intp(item(starts, block * d + j + 1))
                while entry < end:
                    stop = min(end, entry + most)
                    short = zero(theta, lanes)
                    while entry < stop:
                        short = fused(
                            item(sorted_values, entry), load(slopes, np.intp(item(places, entry)) * lanes, lanes), short
                        )
                        entry = entry + 1
                    add_double(total, j * width + at, short)
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


@cache
def batches_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that sums clipped gradients over batches, each for `lanes` replicas of its own."""

    @njit(**OPTIONS)
    def batches(ends, columns, values, index, cuts, norms, theta, h, clip_norm, most, short, total):  # type: ignore[no-untyped-def]
        """Adds to total[s] the sum over the rows of batch s, index[cuts[s]] to index[cuts[s + 1] - 1], at theta[s].

        Args:
            theta: (S, d, lanes) flat.
            norms: (n,) lengths of the rows, not looked at where nothing is clipped.
            clip_norm: longest gradient; infinite for none.
            most: rows summed before the sum goes on in double precision.
            short: (d, lanes) flat zeros, in the precision of `theta`.
            total: (S, d, lanes) flat, in double precision.
        """
        size = len(short)
        for s in range(len(cuts) - 1):
            first, last = item(cuts, s), item(cuts, s + 1)
            for i in range(first, last):
                row = item(index, i)
                soon = np.intp(item(ends, item(index, min(i + SOON, last - 1))))
                fetch(columns, soon, 16)
                fetch(values, soon, 16)
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
def noisy_gradients_of(lanes: int, loss: int) -> Callable[..., None]:
    """The loop that sums gradients over all rows with noise, for `lanes` replicas at once: as many for each draw."""

    @njit(**OPTIONS)
    def noisy_gradients(table, blocks, order, noises, features, deep, theta, moved, tall, h, most, margins, turned, total, own):  # type: ignore[no-untyped-def]
        """Adds the sums of rows times slopes at margins + <moved, noise> to `total`, and of noise times slopes to `own`.

        Args:
            table, blocks, order: as of `gradients_of`.
            noises: S flat arrays, (parts, NOISY / STRIP, deep, STRIP); behind the last row there is no noise.
            features, deep: of the noise, and these up to a multiple of TILE_DEEP.
            theta: (d, lanes) flat, in single precision: `tall` of the first draw, a multiple of TILE_TALL, and so on.
            moved: (S, features, tall) flat, parameters times noise scales.
            most: terms summed before the sum goes on in double precision; those with noise are short.
            margins, turned: (BLOCK, lanes), finite, and (lanes, NOISY) flat, overwritten.
            total: (d, lanes) flat, in double precision.
            own: (S, deep, tall, KEPT) flat, in double precision: sums over every fourth row.
        """
        ends, columns, values = table
        starts, places, sorted_values = blocks
        n, d = len(ends) - 1, len(theta) // lanes
        for block in range(-(-n // BLOCK)):
            start, stop = block * BLOCK, min(block * BLOCK + BLOCK, n)
            for i in range(start, stop):
                row = item(order, i)
                margin = zero(theta, lanes)
                for k in range(item(ends, row), item(ends, row + 1)):
                    margin = fused(item(values, k), load(theta, np.intp(item(columns, k)) * lanes, lanes), margin)
                store(margins, (row - start) * lanes, margin)
            for first in range(start, stop, NOISY):
                here = (first - start) * lanes
                _turn_lanes(margins, here, lanes, turned)
                for s in range(len(noises)):
                    noise, at, last = noises[s], first * deep, s == len(noises) - 1
                    coming, next_at = noises[0 if last else s + 1], at + (NOISY * deep if last else 0)
                    for i in range(0, NOISY, STRIP):
                        for r in range(0, tall, TILE_TALL):
                            strip, soon = at + i * deep, next_at + i * deep + r // TILE_TALL % 2 * 2 * GROUP
                            from_moved, to = s * features * tall + r, (s * tall + r) * NOISY + i
                            slopes_along(noise, strip, coming, soon, features, moved, from_moved, tall, turned, to, loss, h)
                    for j in range(0, deep, TILE_DEEP):
                        for r in range(0, tall, TILE_TALL):
                            to = ((s * deep + j) * tall + r) * KEPT
                            sums_against(noise, at + j * STRIP, deep, turned, (s * tall + r) * NOISY, own, to, tall)
                _turn_back(turned, margins, here, lanes)
            for j in range(d):
                entry: Any = np.intp(item(starts, block * d + j))
                end: Any = np.intp(item(starts, block * d + j + 1))
                while entry < end:
                    stop = min(end, entry + most)
                    short = zero(theta, lanes)
                    while entry < stop:
                        short = fused(
                            item(sorted_values, entry), load(margins, np.intp(item(places, entry)) * lanes, lanes), short
                        )
                        entry = entry + 1
                    add_double(total, j * lanes, short)

    return noisy_gradients


@cache
def noisy_dense_of(loss: int) -> Callable[..., None]:
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
                    for r in range(0, tall, TILE_TALL):
                        here, to = at + i * deep, r * NOISY + i
                        soon = here + NOISY * deep + r // TILE_TALL % 2 * 2 * GROUP
                        slopes_along(rows, here, rows, soon, features, theta, group + r, tall, turned, to, NO_LOSS, h)
                        slopes_along(noise, here, noise, soon, features, moved, group + r, tall, turned, to, loss, h)
                for j in range(0, deep, TILE_DEEP):
                    for r in range(0, tall, TILE_TALL):
                        to = ((g * deep + j) * tall + r) * KEPT
                        sums_against(rows, at + j * STRIP, deep, turned, r * NOISY, total, to, tall)
                        sums_against(noise, at + j * STRIP, deep, turned, r * NOISY, own, to, tall)

    return noisy_dense


@njit(**OPTIONS)
def turn_rows(noise, d, turned):  # type: ignore[no-untyped-def]
    """Noise (b, d), flat, b a multiple of STRIP and d of 16, as (b / STRIP, d, STRIP)."""
    for i in range(0, len(noise) // d, GROUP):
        for j in range(0, d, GROUP):
            turn(noise, i * d + j, d, turned, i // STRIP * d * STRIP + j * STRIP + i % STRIP, STRIP)


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
