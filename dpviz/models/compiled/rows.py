"""Rows that are mostly zeros, multiplied by compiled loops: some of them without a copy, slopes in the same pass as margins."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csc_array, csr_array

from dpviz.common.random import Drawn
from dpviz.models.compiled import loops
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.sparse import SINGLE_ROWS, Array, Index, Products, short_sums

_MOST_FULL = 8  # full columns
MOST_LANES = 128  # worked on at once: their sums are to stay in the processor's registers
_LOGARITHM = 64  # rows for whose losses one logarithm is taken
_LINE = 64  # bytes of memory that a processor reads at once: as many as the widest lanes
_own = threading.local()  # memory of `scratch`


@dataclass(frozen=True)
class _Table:
    """n rows without their zeros. Columns in which most rows have an entry are kept as they are: full columns.

    Attributes:
        rest: (n, d), of which the full columns are empty.
        which: (K,) the full columns.
        full: (n, K) their entries.
    """

    rest: csr_array
    which: Index
    full: Array

    @classmethod
    def of(cls, rows: csr_array) -> _Table:
        """From rows (n, d)."""
        n, d = rows.shape
        entries = np.bincount(rows.indices, minlength=d)
        which = np.sort(np.argsort(-entries, kind="stable")[: min(_MOST_FULL, int((2 * entries > n).sum()))])
        full, column = np.zeros((n, len(which)), rows.dtype), np.full(d, -1)
        if len(which) == 0:
            return cls(rows, which, full)
        column[which] = np.arange(len(which))
        there, row = column[rows.indices], np.repeat(np.arange(n), np.diff(rows.indptr))
        mine = there >= 0
        full[row[mine], there[mine]] = rows.data[mine]
        ends = np.concatenate([[0], np.cumsum(~mine)])[rows.indptr].astype(rows.indptr.dtype)
        return cls(csr_array((rows.data[~mine], rows.indices[~mine], ends), shape=(n, d)), which, full)

    def __getitem__(self, rows: Index | slice) -> _Table:
        return _Table(self.rest[rows], self.which, np.ascontiguousarray(self.full[rows]))

    @property
    def single(self) -> _Table:
        """The same rows in single precision; positions are shared."""
        rest = self.rest
        single = csr_array((rest.data.astype(np.float32), rest.indices, rest.indptr), shape=rest.shape)
        return _Table(single, self.which, self.full.astype(np.float32))

    @property
    def for_loops(self) -> tuple[Any, ...]:
        """As compiled loops take it."""
        return self.rest.indptr, self.rest.indices, self.rest.data, self.which, self.full.reshape(-1)


class CompiledRows(Products):
    """b rows of which only the non-zero entries are kept."""

    def __init__(self, table: _Table, index: Index | None = None, phrases: Index | None = None) -> None:
        """
        Args:
            table: (n, d + P), in single or double precision.
            index: the rows that are meant; None for all.
            phrases: (P, 2) as `phrases.in_phrases` gives them; None where P is 0.
        """
        self._table, self._index = table, index
        self._phrases: Index = np.empty((0, 2), np.intp) if phrases is None else phrases
        self._loops: Any = loops()

    @classmethod
    def of(cls, table: Array | csr_array) -> CompiledRows:
        """From a (b, d) table; products are in its precision."""
        return cls(_Table.of(csr_array(table)))

    @classmethod
    def in_phrases(cls, table: Array) -> CompiledRows:
        """From a (b, d) table, in fewer entries where columns often occur together."""
        from dpviz.models.compiled.phrases import in_phrases

        rows, phrases = in_phrases(csr_array(table))
        return cls(_Table.of(rows), None, phrases)

    def to_single(self) -> CompiledRows:
        """The same rows in single precision; positions are shared."""
        return CompiledRows(self._table.single, self._index, self._phrases)

    def __len__(self) -> int:
        return int(self._table.rest.shape[0]) if self._index is None else len(self._index)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows of the table, those that are not meant included; columns and phrases; full columns."""
        return (*self._table.rest.shape, len(self._table.which))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of products."""
        return np.dtype(self._table.rest.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of entries and their columns."""
        return int(self._table.rest.data.nbytes + self._table.rest.indices.nbytes + self._table.full.nbytes)

    def ordered(self, order: Index) -> CompiledRows:
        return CompiledRows(self._table[self._meant[order]], None, self._phrases)

    def cut(self, block: slice) -> CompiledRows:
        return CompiledRows(self._table[block if self._index is None else self._index[block]], None, self._phrases)

    def take(self, index: Index) -> CompiledRows:
        """Some of the rows, not copied."""
        if len(index) and not 0 <= index.min() <= index.max() < len(self):
            raise IndexError(f"{len(self)} rows have no row {index.max()}")
        index = index if self._index is None else self._index[index]
        return CompiledRows(self._table, np.ascontiguousarray(index, np.intp), self._phrases)

    @cached_property
    def _meant(self) -> Index:
        return np.arange(self.shape[0]) if self._index is None else self._index

    @cached_property
    def _columns(self) -> csc_array:
        return self._table.rest.tocsc()

    def margins(self, columns: Array, out: Array) -> Array:
        return self._pass(columns, self._loops.NO_LOSS, 0.0, out)

    def slopes(self, columns: Array, loss: Loss, out: Array) -> Array:
        known = loss_of(loss)
        return super().slopes(columns, loss, out) if known is None else self._pass(columns, *known, out)

    @property
    def in_blocks(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Index]:
        """All rows as `gradients_of` takes them: table, blocks and order.

        Raises:
            ValueError: these are some of the rows.
        """
        if self._index is not None:
            raise ValueError("rows chosen from others have no blocks")
        return self._table.for_loops, self._blocks, self._order

    @cached_property
    def _order(self) -> Index:
        """(n,) all rows, in each block of `_blocks` by their number of entries."""
        n = self.shape[0]
        return np.lexsort((np.arange(n), np.diff(self._table.rest.indptr), np.arange(n) // self._loops.BLOCK)).astype(np.intp)

    def spelled(self, columns: Array) -> Array:
        """(d + P, W) parameters out of (d, W)."""
        d, width = self.shape[1] - len(self._phrases), columns.shape[1]
        laid_flat(columns, d, width, self.dtype)
        if len(self._phrases) == 0:
            return columns
        spelled = aligned((self.shape[1], width), columns.dtype)
        spelled[:d] = columns
        self._loops.spell(spelled.reshape(-1), self._phrases.reshape(-1), width)
        return spelled

    def shared(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d, W) sums out of (d + P, W), which are changed."""
        self._loops.share(laid_flat(sums, self.shape[1], sums.shape[1], np.float64), self._phrases.reshape(-1), sums.shape[1])
        return sums[: len(sums) - len(self._phrases)]

    @cached_property
    def _blocks(self) -> tuple[NDArray[Any], NDArray[Any], Array]:
        """Entries by block of rows and column: where each begins, their rows, counted from the block's first, and values."""
        rows, (n, d, _) = self._table.rest, self.shape
        size = self._loops.BLOCK
        block = np.repeat(np.arange(n) // size, np.diff(rows.indptr))
        sorted_ = csr_array((rows.data, rows.indices + block * d, rows.indptr), shape=(n, -(-n // size) * d)).tocsc()
        return sorted_.indptr, sorted_.indices % size, sorted_.data

    def gradient(
        self, columns: Array, loss: Loss, norms: Array, clip_norm: float, most: int = SINGLE_ROWS
    ) -> NDArray[np.float64]:
        """(d, W) sums of the rows' gradients at parameters `columns` (d, W), each shortened to the clip norm.

        Args:
            loss: one that `loss_of` knows.
            norms: (n,) lengths of all rows, those that are not meant included; not looked at where `clip_norm` is infinite.
            most: terms summed in single precision.
        """
        if self._index is None:
            return self.shared(self.sums_at(self.spelled(columns), loss, norms, clip_norm, None, most)[0])
        own = aligned((1, self.shape[1], columns.shape[1]), self.dtype)
        own[0, : len(columns)] = columns
        return self.over_batches(own, Drawn.of([self._index]), loss, norms, clip_norm, most)[0]

    def over_batches(
        self, columns: Array, batches: Drawn, loss: Loss, norms: Array, clip_norm: float, most: int
    ) -> NDArray[np.float64]:
        """(S, d, W) sums of gradients at parameters `columns` (S, d + P, W), each over a batch of the table's rows.

        Args:
            columns: the last P are overwritten.
            loss, norms, clip_norm, most: as of `gradient`.
        """
        known, (seeds, d, width), total = loss_of(loss), columns.shape, aligned(columns.shape, np.float64)
        assert known is not None
        before = (self._table.for_loops, self._phrases.reshape(-1), batches.index, batches.cuts, self._lengths(norms, clip_norm))
        flat = laid_flat(columns.reshape(seeds * d, -1), seeds * self.shape[1], width, self.dtype)
        for at, lanes in parts_of(width):
            whole = lanes == width
            part = flat if whole else np.ascontiguousarray(columns[:, :, at : at + lanes]).reshape(-1)
            sums, short = total if whole else np.zeros((seeds, d, lanes)), scratch("short", (d * lanes,), self.dtype)
            short[:] = 0.0
            loop, terms = self._loops.batches_of(lanes, known[0], self.shape[2]), np.zeros(d, np.int64)
            if not loop(*before, part, known[1], self.dtype.type(clip_norm), most, short, terms, sums.reshape(-1)):
                raise IndexError(f"batches of rows that are not among {self.shape[0]}")
            if not whole:
                total[:, :, at : at + lanes] = sums
        return total[:, : d - len(self._phrases)]

    def sums_at(
        self,
        columns: Array,
        loss: Loss,
        norms: Array,
        clip_norm: float,
        budget: tuple[NDArray[Any], float, float] | None = None,
        most: int = SINGLE_ROWS,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(d + P, W) sums of the rows' gradients at parameters (d + P, W), phrases spelled, not shared, and (W,) how many rows.

        Args:
            norms, clip_norm, most: as of `gradient`.
            budget: (spent, unit, limit), which leaves out the rows whose squared gradients add up to more than the limit;
                how many others there are is counted where there is one. `spent` (n, W) are sums of squared lengths in earlier
                steps, times `unit`, to which those of this one are added: in double precision, or as whole numbers of 32 bits,
                rounded up.
        """
        known, kind, (d, width) = loss_of(loss), self.dtype, columns.shape
        assert known is not None
        spent, unit, limit = (None, 1.0, np.inf) if budget is None else budget
        flat = laid_flat(columns, self.shape[1], width, kind)
        total, took = aligned((d, width), np.float64), aligned((width,), np.float64)
        counted = np.float64 if spent is None or spent.dtype != np.uint32 else np.uint32
        sums = np.empty(0) if spent is None else laid_flat(spent, len(self), width, counted)
        lengths = self._lengths(norms, clip_norm if spent is None else 0.0)
        for at, lanes in parts_of(width):
            slopes = scratch("slopes", (self._loops.BLOCK * lanes,), kind)
            before = (flat, width, at, known[1], lengths, kind.type(clip_norm), sums, kind.type(unit), counted(limit), most)
            loop = self._loops.gradients_of(lanes, known[0], self.shape[2], spent is not None)
            loop(*self.in_blocks, *before, slopes, took, total.reshape(-1))
        return total, took

    def _lengths(self, norms: Array, clip_norm: float) -> Array:
        """(n,) lengths of all rows as loops take them; none where nothing is clipped."""
        kind = self.dtype
        if clip_norm == np.inf:
            return np.empty(0, kind)
        return laid_flat(norms.astype(kind)[:, None], self.shape[0], 1, kind)

    def losses(self, columns: Array, loss: Loss, least: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(W,) sums of losses at parameters `columns` (d, W), and (W,) rows whose margins are above their `least`.

        In double precision.

        Args:
            loss: one that `loss_of` knows.
            least: (n,) for all rows, those that are not meant included.
        """
        known, width, columns = loss_of(loss), columns.shape[1], self.spelled(columns)
        assert known is not None
        flat, limits = (laid_flat(each, len(each), each.shape[1], np.float64) for each in (columns, least[:, None]))
        n, d, full = self.shape
        if len(columns) != d or len(limits) != n or self.dtype != np.float64:
            raise ValueError(f"{columns.shape} parameters and {len(limits)} limits for {n} rows of {d}, of type {self.dtype}")
        products = aligned((-(-len(self) // _LOGARITHM), width), np.float64)
        total, right = (aligned((width,), np.float64) for _ in range(2))
        for at, lanes in parts_of(width):
            loop = self._loops.losses_of(lanes, known[0], full)
            meant = self._order if self._index is None else self._index
            table, ends = (self._table.for_loops, meant, limits), (products.reshape(-1), total, right)
            loop(*table, flat, width, at, known[1], _LOGARITHM, *ends)
        return total + np.log(products, out=products).sum(axis=0), right

    def line_losses(self, columns: Array, step: Array, together: int, count: int, top: np.float32) -> NDArray[np.float64]:
        """(W, count) sums of ln(1 + min(e^-m, top)) over the rows, at margins m for parameters columns - k step, k < count.

        In single precision.

        Args:
            columns, step: (d, W); margins must stay between -87 and 87.
            together: groups of four rows for which (1 + top)^(4 together) is a number.
        """
        (_, d, full), width = self.shape, columns.shape[1]
        flat = [laid_flat(self.spelled(each), d, width, np.float32) for each in (columns, step)]
        out, meant = np.empty((width, count)), self._order if self._index is None else self._index
        for at, lanes in parts_of(width):
            products, powers = aligned((2, count, lanes), np.float32)
            products.fill(1)
            loop, ends = self._loops.line_losses_of(lanes, full), (products.reshape(-1), powers.reshape(-1))
            loop(self._table.for_loops, meant, *flat, width, at, together, count, top, *ends)
            out[at : at + lanes] = (np.log(products, dtype=np.float64) + math.log(2) * powers).T
        return out

    def _pass(self, columns: Array, loss: int, h: float, out: Array) -> Array:
        (_, d, full), width, columns = self.shape, columns.shape[1], self.spelled(columns)
        flat, there = laid_flat(columns, d, width, self.dtype), laid_flat(out, len(self), width, self.dtype)
        for at, lanes in parts_of(width):
            loop = self._loops.margins_of(lanes, loss, full)
            loop(self._table.for_loops, self._meant, flat, width, at, h, there)
        return out

    def add(self, weights: Array, total: NDArray[np.float64], most: int = SINGLE_ROWS) -> None:
        (_, d, full), width, whole, rest = self.shape, weights.shape[1], total, self._table.rest
        if len(self._phrases):
            whole = aligned((d, width), np.float64)
            laid_flat(total, d - len(self._phrases), width, np.float64)
        flat, there, short = laid_flat(weights, len(self), width, self.dtype), laid_flat(whole, d, width, np.float64), None
        for at, lanes in parts_of(width):
            if self._index is None:
                table = self._columns
                self._loops.sums_by_column(lanes)(table.indptr, table.indices, table.data, flat, width, at, most, there)
            else:
                if short is None or len(short) != d * lanes:  # the loop leaves it empty
                    short = np.zeros(d * lanes, flat.dtype)
                loop = self._loops.sums_by_row(lanes)
                loop(rest.indptr, rest.indices, rest.data, self._index, flat, width, at, most, short, there)
        if full:
            meant = self._table.full if self._index is None else self._table.full[self._index]
            whole[self._table.which] += short_sums(weights.T, meant, most).T
        if len(self._phrases):
            total += self.shared(whole)


def network_sums(
    rows: CompiledRows, theta: Array, units: int, labels: Array, norms: Array, clip_norm: float, most: int
) -> NDArray[np.float64]:
    """(R, m) sums of clipped gradients of networks with k units over some rows, under the logistic loss; in the rows' precision.

    Args:
        rows: (x, 1).
        theta: (R, m) parameters, m = k d + k + 1 for d columns.
        labels, norms: (n,) of all rows, those that are not meant included; norms are the lengths of x.
        most: rows summed in single precision.
    """
    (n, width, full), (networks, m), kind, there = rows.shape, theta.shape, rows.dtype, rows._loops
    d, parts = width - len(rows._phrases), -(-units // MOST_LANES)
    lanes = max(there.GROUP, in_lanes(-(-units // parts)))
    if most % there.ROWS:
        raise ValueError(f"{most} rows in single precision are no multiple of {there.ROWS}")
    known = (laid_flat(each[:, None], n, 1, kind) for each in (labels, norms))
    flat, clip_norm = laid_flat(theta, networks, units * (d + 1) + 1, kind), kind.type(clip_norm)
    size, total = parts * (width + 1) * lanes, np.zeros((networks, m))
    memory = [scratch(name, (size,), each) for name, each in (("own", kind), ("short", kind), ("long", np.float64))]
    for each in memory:
        each.fill(0.0)
    own, *sums = memory
    hidden, table = scratch("hidden", (there.ROWS * parts * lanes,), kind), (rows._table.for_loops, rows._phrases.reshape(-1))
    before = (*table, rows._meant, *known, flat, units, networks, clip_norm, most)
    there.networks_of(lanes, full)(*before, own, hidden, *sums, total.reshape(-1))
    return total


class Descent:
    """Mini-batch gradient descent without noise on rows in the order in which they are taken, in double precision.

    Attributes:
        w: (d, W) parameters.
    """

    def __init__(
        self,
        rows: CompiledRows | Array,
        loss: Loss,
        bounds: Sequence[int],
        lengths: NDArray[np.float64],
        lam: float,
        window: int,
    ) -> None:
        """
        Args:
            rows: all n rows y_i x_i, without their zeros or (n, d), in double precision.
            loss: one that `loss_of` knows.
            bounds: (m + 1,) ends of the batches, of which update t takes number t mod m.
            lengths: (T, W) step lengths.
            window: after so many updates w becomes the mean of the iterates since the last time; 0 for never.
        """
        known, there, n = loss_of(loss), loops(), len(rows)
        assert known is not None
        assert there is not None
        full, phrases = 0, np.empty((0, 2), np.intp)
        table: tuple[Any, ...]
        if isinstance(rows, CompiledRows):
            table, phrases, full = rows._table.for_loops, rows._phrases, rows.shape[2]
            d = rows.shape[1] - len(phrases)
        else:
            d, none = rows.shape[1], np.empty(0, np.intp)
            table = (np.arange(0, (n + 1) * d, d), none, laid_flat(rows, n, d, np.float64), none, np.empty(0))
        if bounds[0] != 0 or bounds[-1] != n or np.min(np.diff(bounds)) < 1:
            raise ValueError("batches must be some of the rows each, one after the other")
        self._updates, width = lengths.shape
        self._loop = there.descent_of(16 if width % 16 == 0 else width, known[0], full, not isinstance(rows, CompiledRows))
        self._before = (table, phrases.reshape(-1), np.array(bounds))
        self.w, total = (aligned((d, width), np.float64) for _ in range(2))
        steps = laid_flat(lengths, self._updates, width, np.float64)
        self._after = (steps, lam, width, known[1], window, self.w.reshape(-1), total.reshape(-1))

    def go(self, first: int, last: int) -> None:
        """Updates `first` to `last`, which come after those that were made before."""
        self._loop(*self._before, first, min(last, self._updates), *self._after)


def batch_sums(
    rows: CompiledRows, theta: Array, batches: Drawn, norms: Array, loss: Loss, clip_norm: float, most: int
) -> NDArray[np.float64]:
    """(S, E, d) sums of clipped gradients: replicas theta[s] (S, E, d) over the rows batches[s]; in the rows' precision.

    Args:
        loss: one that `loss_of` knows.
        norms: (n,) lengths of the rows.
        most: rows summed in single precision.
    """
    seeds, budgets, d = theta.shape
    lanes, width = in_lanes(budgets, rows.dtype == np.float64), rows.shape[1]
    if d != width - len(rows._phrases):
        raise ValueError(f"{d} parameters for rows of {width - len(rows._phrases)} columns")
    columns = scratch("parameters", (seeds, width, lanes), rows.dtype)
    columns[:, :d, :budgets] = theta.transpose(0, 2, 1)
    columns[:, :d, budgets:] = 0.0
    if rows._index is not None or len(batches) != seeds:
        raise IndexError(f"{len(batches)} batches of {len(rows)} rows for {seeds} seeds")
    sums = rows.over_batches(columns, batches, loss, norms, clip_norm, most)
    return np.ascontiguousarray(sums[:, :, :budgets].transpose(0, 2, 1))


def loss_of(loss: Loss) -> tuple[int, float] | None:
    """A loss as compiled loops know it: which, and h of `HuberHinge`; None for others, and without compiled loops."""
    there = loops()
    if there is None:
        return None
    if type(loss) is HuberHinge:
        return there.HUBER, loss.h
    return (there.LOGISTIC, 0.0) if type(loss) is Logistic else None


def laid_flat(table: Array, rows: int, columns: int, kind: DTypeLike) -> Array:
    """A table as compiled loops take it; they look at no bounds, so that its size is looked at here."""
    if table.shape != (rows, columns) or table.dtype != kind or not table.flags.c_contiguous:
        raise ValueError(f"{table.shape} numbers of type {table.dtype} in the place of ({rows}, {columns}) of type {kind}")
    return table.reshape(-1)


def parts_of(width: int) -> list[tuple[int, int]]:
    """Lanes that are worked on at once, as (first, how many): nearly equal parts of at most `MOST_LANES`, in groups of 16.

    In groups of 4 where these leave no lane over, and those of 16 do.
    """
    unit = 16 if width % 16 == 0 or width % 4 else 4
    if width < unit:
        return [(at, 1) for at in range(width)]
    groups = -(-width // MOST_LANES)
    edges = [width // unit * g // groups * unit for g in range(groups + 1)]
    return [(first, last - first) for first, last in itertools.pairwise(edges)] + [(at, 1) for at in range(edges[-1], width)]


def in_whole_lanes(theta: Array, few: bool = False) -> NDArray[Any]:
    """(d, W) parameters theta (R, d), with W - R columns of zeros that fill the lanes; `few` as of `in_lanes`."""
    out = aligned((theta.shape[1], in_lanes(len(theta), few)), theta.dtype)
    out[:, : len(theta)] = theta.T
    return out


def aligned(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Zeros that begin where a cache line does, so that no lanes lie in two: reading those takes twice the time."""
    table = unset(shape, kind)
    table.fill(0)
    return table


def unset(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """`aligned` numbers of any value, all of which are to be written."""
    return _from_line(math.prod(shape) * np.dtype(kind).itemsize).view(kind).reshape(shape)


def scratch(name: str, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """`aligned` numbers of any value for a thread's own use: the same memory whenever it asks for this name."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    kept: dict[str, NDArray[np.uint8]] = _own.__dict__
    memory = kept.get(name)
    if memory is None or len(memory) < size:
        memory = kept[name] = _from_line(size)
        memory.fill(0)
    return memory[:size].view(kind).reshape(shape)


def _from_line(size: int) -> NDArray[np.uint8]:
    memory = np.empty(size + _LINE, np.uint8)  # numpy asks for large pages for these, but not for zeros
    first = -int(memory.__array_interface__["data"][0]) % _LINE
    return memory[first : first + size]


def in_lanes(replicas: int, few: bool = False) -> int:
    """Lanes that so many replicas take: whole groups of 16, or one.

    Args:
        few: up to 32, groups of 4: in double precision those are as many as some processors work on at once.
    """
    if replicas == 1:
        return 1
    unit = 4 if few and replicas <= 32 else 16
    return -(-replicas // unit) * unit
