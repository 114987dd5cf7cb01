"""Rows that are mostly zeros, multiplied by compiled loops: some of them without a copy, slopes in the same pass as margins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csc_array, csr_array

from dpviz.models.compiled import loops
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.sparse import SINGLE_ROWS, Array, Index, Products

_LOGARITHM = 64  # rows for whose losses one logarithm is taken
_LINE = 64  # bytes of memory that a processor reads at once: as many as the widest lanes


class CompiledRows(Products):
    """b rows of which only the non-zero entries are kept."""

    def __init__(self, rows: csr_array, index: Index | None = None) -> None:
        """
        Args:
            rows: (b, d), in single or double precision.
            index: those that are meant; None for all.
        """
        self._rows, self._index = rows, index
        self._loops: Any = loops()

    @classmethod
    def of(cls, table: Array) -> CompiledRows:
        """From a dense (b, d) table; products are in its precision."""
        return cls(csr_array(table))

    def __len__(self) -> int:
        return int(self._rows.shape[0]) if self._index is None else len(self._index)

    @property
    def nbytes(self) -> int:
        return int(self._rows.data.nbytes + self._rows.indices.nbytes)

    def ordered(self, order: Index) -> CompiledRows:
        return CompiledRows(self._rows[self._meant[order]])

    def cut(self, block: slice) -> CompiledRows:
        return CompiledRows(self._rows[block] if self._index is None else self._rows[self._index[block]])

    def take(self, index: Index) -> CompiledRows:
        """Some of the rows, not copied."""
        if len(index) and not 0 <= index.min() <= index.max() < len(self):
            raise IndexError(f"{len(self)} rows have no row {index.max()}")
        return CompiledRows(self._rows, np.ascontiguousarray(index if self._index is None else self._index[index], np.intp))

    @cached_property
    def _meant(self) -> Index:
        return np.arange(self._rows.shape[0]) if self._index is None else self._index

    @cached_property
    def _columns(self) -> csc_array:
        return self._rows.tocsc()

    def margins(self, columns: Array, out: Array) -> Array:
        return self._pass(columns, self._loops.NO_LOSS, 0.0, out)

    def slopes(self, columns: Array, loss: Loss, out: Array) -> Array:
        known = loss_of(loss)
        return super().slopes(columns, loss, out) if known is None else self._pass(columns, *known, out)

    @cached_property
    def _blocks(self) -> tuple[NDArray[Any], NDArray[Any], Array]:
        """Entries by block of rows and column: where each begins, their rows, counted from the block's first, and values."""
        rows, (n, d) = self._rows, self._rows.shape
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
            norms: (n,) lengths of all rows, those that are not meant included; not needed where `clip_norm` is infinite.
            most: terms summed in single precision.
        """
        known, rows, (d, width), kind = loss_of(loss), self._rows, columns.shape, self._rows.dtype
        assert known is not None
        flat, total = _flat(columns, rows.shape[1], width, kind), aligned((d, width), np.float64)
        lengths = _flat(norms.astype(kind)[:, None], rows.shape[0], 1, kind) if clip_norm < np.inf else np.empty(0, kind)
        table, clip = (rows.indptr, rows.indices, rows.data), kind.type(clip_norm)
        for at, lanes in parts_of(width):
            if self._index is None:
                slopes, loop = aligned((self._loops.BLOCK * lanes,), kind), self._loops.gradients_of(lanes, known[0])
                before, after = (flat, width, at, known[1], lengths, clip, most, slopes), total.reshape(-1)
                loop(table, self._blocks, *before, after)
            else:
                part, short, sums = aligned((d, lanes), kind), aligned((d * lanes,), kind), aligned((d, lanes), np.float64)
                part[:] = columns[:, at : at + lanes]
                cuts, here = np.array([0, len(self._index)]), (part.reshape(-1), known[1], clip, most, short)
                self._loops.batches_of(lanes, known[0])(*table, self._index, cuts, lengths, *here, sums.reshape(-1))
                total[:, at : at + lanes] = sums
        return total

    def losses(self, columns: Array, loss: Loss, least: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(W,) sums of losses at parameters `columns` (d, W), and (W,) rows whose margins are above their `least`.

        In double precision.

        Args:
            loss: one that `loss_of` knows.
            least: (n,) for all rows, those that are not meant included.
        """
        known, rows, width = loss_of(loss), self._rows, columns.shape[1]
        assert known is not None
        flat, limits = (_flat(each, len(each), each.shape[1], np.float64) for each in (columns, least[:, None]))
        if len(columns) != rows.shape[1] or len(limits) != rows.shape[0] or rows.dtype != np.float64:
            raise ValueError(f"{columns.shape} parameters and {len(limits)} limits for rows {rows.shape} of type {rows.dtype}")
        products = aligned((-(-len(self) // _LOGARITHM), width), np.float64)
        total, right = (aligned((width,), np.float64) for _ in range(2))
        for at, lanes in parts_of(width):
            loop = self._loops.losses_of(lanes, known[0])
            table, ends = (rows.indptr, rows.indices, rows.data, self._meant, limits), (products.reshape(-1), total, right)
            loop(*table, flat, width, at, known[1], _LOGARITHM, *ends)
        return total + np.log(products, out=products).sum(axis=0), right

    def _pass(self, columns: Array, loss: int, h: float, out: Array) -> Array:
        rows, width = self._rows, columns.shape[1]
        flat, there = _flat(columns, rows.shape[1], width, rows.dtype), _flat(out, len(self), width, rows.dtype)
        for at, lanes in parts_of(width):
            loop = self._loops.margins_of(lanes, loss)
            loop(rows.indptr, rows.indices, rows.data, self._meant, flat, width, at, h, there)
        return out

    def add(self, weights: Array, total: NDArray[np.float64], most: int = SINGLE_ROWS) -> None:
        width = weights.shape[1]
        flat, there = _flat(weights, len(self), width, self._rows.dtype), _flat(total, self._rows.shape[1], width, np.float64)
        for at, lanes in parts_of(width):
            if self._index is None:
                table = self._columns
                self._loops.sums_by_column(lanes)(table.indptr, table.indices, table.data, flat, width, at, most, there)
            else:
                rows = self._rows
                short = aligned((len(total) * lanes,), flat.dtype)
                loop = self._loops.sums_by_row(lanes)
                loop(rows.indptr, rows.indices, rows.data, self._index, flat, width, at, most, short, there)


def line_products(start: Array, step: Array, together: int, count: int, top: np.float32) -> NDArray[np.float32]:
    """(count, groups, W) products over groups of rows of 1 + min(e^-m, top), at margins m = start - k step, k < count.

    Args:
        start, step: (b, W), in single precision; |start| + count |step| must stay below 87.
        together: rows in a group.
    """
    there, (many, width) = loops(), start.shape
    assert there is not None
    out = np.empty((count, -(-many // together), width), np.float32)
    flat = [_flat(each, many, width, np.float32) for each in (start, step)]
    for at, lanes in parts_of(width):
        there.line_products_of(lanes)(*flat, width, at, together, count, top, out.reshape(-1))
    return out


def network_rows(s: Array, a: Array, c: Array, y: Array, norms: Array, clip_norm: float, sums: Array, offsets: Array) -> Array:
    """(b, W) weights of b rows for the first layer's sums of R networks of k units, clipped, under the logistic loss.

    All in one precision.

    Args:
        s: (b, W) hidden values, of which the first R k of each row count.
        a, c: (R, k) and (R,) parameters of the second layer.
        y, norms: (b,) labels and lengths of the rows.
        sums, offsets: (R, k) and (R,), to which the second layer's sums are added.
    """
    from dpviz.models.compiled.network import clipped_rows

    (b, width), (networks, k), kind = s.shape, a.shape, s.dtype
    if networks * k > width:
        raise ValueError(f"{networks} networks of {k} units in {width} lanes")
    weights = np.zeros_like(s) if networks * k < width else np.empty_like(s)
    flat = [_flat(each, rows, columns, kind) for each, rows, columns in ((s, b, width), (a, networks, k), (sums, networks, k))]
    ends = [_flat(each[:, None], rows, 1, kind) for each, rows in ((c, networks), (y, b), (norms, b), (offsets, networks))]
    clipped_rows(flat[0], width, flat[1], ends[0], ends[1], ends[2], kind.type(clip_norm), weights.reshape(-1), flat[2], ends[3])
    return weights


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
        dense = not isinstance(rows, CompiledRows)
        if isinstance(rows, CompiledRows):
            d, table = rows._rows.shape[1], (rows._rows.indptr, rows._rows.indices, rows._rows.data)
        else:
            d = rows.shape[1]
            table = (np.arange(0, (n + 1) * d, d), np.empty(0, np.intp), _flat(rows, n, d, np.float64))
        if bounds[0] != 0 or bounds[-1] != n or np.min(np.diff(bounds)) < 1:
            raise ValueError("batches must be some of the rows each, one after the other")
        self._updates, width = lengths.shape
        self._loop = there.descent_of(16 if width > 1 else 1, known[0], dense)
        self._before = (*table, np.array(bounds))
        self.w, total = (aligned((d, width), np.float64) for _ in range(2))
        steps = _flat(lengths, self._updates, width, np.float64)
        self._after = (steps, lam, width, known[1], window, self.w.reshape(-1), total.reshape(-1))

    def go(self, first: int, last: int) -> None:
        """Updates `first` to `last`, which come after those that were made before."""
        self._loop(*self._before, first, min(last, self._updates), *self._after)


def batch_sums(
    rows: CompiledRows, theta: Array, batches: Sequence[Index], norms: Array, loss: Loss, clip_norm: float, most: int
) -> NDArray[np.float64]:
    """(S, E, d) sums of clipped gradients: replicas theta[s] (S, E, d) over the rows batches[s]; in single precision.

    Args:
        loss: one that `loss_of` knows.
        norms: (n,) lengths of the rows.
        most: rows summed in single precision.
    """
    known, (seeds, budgets, d), single = loss_of(loss), theta.shape, np.float32
    assert known is not None
    lanes = in_lanes(budgets)
    columns = aligned((seeds, d, lanes), single)
    columns[:, :, :budgets] = theta.transpose(0, 2, 1)
    index, cuts = np.concatenate(batches), np.cumsum([0, *map(len, batches)])
    if rows._index is not None or len(batches) != seeds or (len(index) and not 0 <= index.min() <= index.max() < len(rows)):
        raise IndexError(f"batches of {len(rows)} rows for {seeds} seeds")
    total, lengths = np.zeros(columns.shape), _flat(norms.astype(single)[:, None], len(rows), 1, single)
    facts = (rows._rows.indptr, rows._rows.indices, rows._rows.data, index, cuts, lengths)
    for at, many in parts_of(lanes):
        loop, part = rows._loops.batches_of(many, known[0]), aligned((seeds, d, many), single)
        part[:] = columns[:, :, at : at + many]
        short, sums = aligned((d * many,), single), aligned(part.shape, np.float64)
        loop(*facts, part.reshape(-1), known[1], single(clip_norm), most, short, sums.reshape(-1))
        total[:, :, at : at + many] = sums
    return np.ascontiguousarray(total[:, :, :budgets].transpose(0, 2, 1))


def loss_of(loss: Loss) -> tuple[int, float] | None:
    """A loss as compiled loops know it: which, and h of `HuberHinge`; None for others, and without compiled loops."""
    there = loops()
    if there is None:
        return None
    if type(loss) is HuberHinge:
        return there.HUBER, loss.h
    return (there.LOGISTIC, 0.0) if type(loss) is Logistic else None


class NoiseInBlocks:
    """Noise of rows in single precision, as compiled loops want it: feature by feature in blocks of rows.

    Attributes:
        blocks: (b, BLOCK / STRIP, deep, STRIP), with zeros behind the last feature and the last row.
        n, d: rows and features.
    """

    def __init__(self, blocks: Array, n: int, d: int) -> None:
        self.blocks, self.n, self.d = blocks, n, d

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, part: slice) -> NoiseInBlocks:
        """The noise of some neighbouring rows, which begin where a block does, to the end of a block."""
        size = self.blocks.shape[1] * self.blocks.shape[3]
        if part.start % size or (part.stop % size and part.stop != self.n):
            raise ValueError(f"blocks of {size} rows do not begin at row {part.start}, or end at row {part.stop}")
        return NoiseInBlocks(self.blocks[part.start // size : -(-part.stop // size)], part.stop - part.start, self.d)

    @classmethod
    def of(cls, noise: Array) -> NoiseInBlocks:
        """From noise (n, d), row by row."""
        there, (n, d) = loops(), noise.shape
        assert there is not None
        across, deep = -(-d // there.GROUP) * there.GROUP, -(-d // there.TILE_DEEP) * there.TILE_DEEP
        strips = there.BLOCK // there.STRIP
        turned = aligned((-(-n // there.BLOCK), strips, deep, there.STRIP), np.float32)
        # whole squares of numbers are turned, so that the last features need room that is cut off afterwards
        rows, out = aligned((there.BLOCK, across), np.float32), aligned((strips, across, there.STRIP), np.float32)
        for b, target in enumerate(turned):
            block = noise[b * there.BLOCK : (b + 1) * there.BLOCK]
            rows[: len(block), :d] = block
            rows[len(block) :] = 0.0
            there.turn_rows(rows.reshape(-1), across, out.reshape(-1))
            target[:] = out[:, :deep]
        return cls(turned, n, d)


def noisy_gradient(
    rows: CompiledRows,
    theta: Array,
    moved: Array,
    noises: Sequence[NoiseInBlocks],
    loss: Loss,
    most: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of rows times slopes, and of their noise times slopes, (R, d) each; in single precision.

    Args:
        rows: n rows, not chosen from others.
        theta: (R, d), of which the first R/S have the first draw, and so on.
        moved: (R, d) parameters times noise scales.
        noises: S draws for these rows.
        loss: one that `loss_of` knows.
        most: rows summed in single precision; sums with noise are shorter.
    """
    there, known, (replicas, d) = rows._loops, loss_of(loss), theta.shape
    assert known is not None
    each = replicas // len(noises)
    # a draw's replicas in groups of at most 15, which are three tiles
    per_draw = -(-each // (there.GROUP // there.TILE_TALL * there.TILE_TALL))
    size = -(-each // per_draw)
    tall = -(-size // there.TILE_TALL) * there.TILE_TALL
    groups = [slice(each * s + a, each * s + min(a + size, each)) for s in range(len(noises)) for a in range(0, each, size)]
    draws = [noise for noise in noises for _ in range(0, each, size)]
    deep = -(-d // there.TILE_DEEP) * there.TILE_DEEP
    if rows._index is not None:
        raise ValueError("rows chosen from others have no blocks")
    for noise in noises:
        if noise.d != d or len(noise) != len(rows):
            raise ValueError(f"noise of {len(noise)} rows and {noise.d} features for {len(rows)} rows of {d}")
        strips = -(-len(rows) // there.BLOCK) * (there.BLOCK // there.STRIP)
        _flat(noise.blocks.reshape(-1, there.STRIP), strips * deep, there.STRIP, np.float32)
    sums, own = np.zeros((2, replicas, d))
    table = (rows._rows.indptr, rows._rows.indices, rows._rows.data)
    _flat(rows._rows.data[:, None], rows._rows.nnz, 1, np.float32)
    for start, lanes in parts_of(there.GROUP * len(groups)):
        here = groups[start // there.GROUP : (start + lanes) // there.GROUP]
        plain, along = aligned((d, len(here), there.GROUP), np.float32), aligned((len(here), d, tall), np.float32)
        for g, part in enumerate(here):
            plain[:, g, : part.stop - part.start] = theta[part].T
            along[g, :, : part.stop - part.start] = moved[part].T
        total, against = aligned((d, len(here), there.GROUP), float), aligned((len(here), deep, tall, there.KEPT), float)
        margins = aligned((there.BLOCK, lanes), np.float32)
        turned = aligned((max(tall, there.GROUP), there.BLOCK), np.float32)
        noise_of = tuple(noise.blocks.reshape(-1) for noise in draws[start // there.GROUP : (start + lanes) // there.GROUP])
        before, after = (
            (noise_of, deep, plain.reshape(-1), along.reshape(-1), tall, known[1], most),
            (margins, turned, total, against),
        )
        there.noisy_gradients_of(lanes, known[0])(table, rows._blocks, *before, *(each.reshape(-1) for each in after))
        for g, part in enumerate(here):
            count = part.stop - part.start
            sums[part] = total[:, g, :count].T
            own[part] = against[g, :d, :count].sum(axis=2).T
    return sums, own


def _flat(table: Array, rows: int, columns: int, kind: DTypeLike) -> Array:
    """A table as compiled loops take it; they look at no bounds, so that its size is looked at here."""
    if table.shape != (rows, columns) or table.dtype != kind or not table.flags.c_contiguous:
        raise ValueError(f"{table.shape} numbers of type {table.dtype} in the place of ({rows}, {columns}) of type {kind}")
    return table.reshape(-1)


def parts_of(width: int) -> list[tuple[int, int]]:
    """Lanes that are worked on at once, as (first, how many): 64, 32 and 16, or one where there is only one."""
    parts, at = [], 0
    for lanes in (64, 32, 16, 1):
        while width - at >= lanes:
            parts.append((at, lanes))
            at += lanes
    return parts


def in_whole_lanes(theta: Array) -> NDArray[Any]:
    """(d, W) parameters theta (R, d), with W - R columns of zeros that fill the lanes."""
    out = aligned((theta.shape[1], in_lanes(len(theta))), theta.dtype)
    out[:, : len(theta)] = theta.T
    return out


def aligned(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Zeros that begin where a cache line does, so that no lanes lie in two: reading those takes twice the time."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(size + _LINE, np.uint8)  # numpy asks for large pages for these, but not for zeros
    memory[:] = 0
    first = -memory.ctypes.data % _LINE
    return memory[first : first + size].view(kind).reshape(shape)


def in_lanes(replicas: int) -> int:
    """Lanes that so many replicas take: whole groups of 16, or one."""
    return 1 if replicas == 1 else -(-replicas // 16) * 16
