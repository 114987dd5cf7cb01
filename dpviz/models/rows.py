"""Labelled rows with the derived arrays that models work on."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpviz.common.progress import Monitor, silent
from dpviz.common.threads import groups, map_streams
from dpviz.models.compiled import loops
from dpviz.models.compiled.noise import Strips
from dpviz.models.compiled.rows import CompiledRows, in_whole_lanes
from dpviz.models.sparse import Array, DenseRows, Products, SparseRows, worth_it

Floats = NDArray[np.float64]

_BLOCK_ELEMENTS = 1 << 18  # rows x replicas worked on at once: small enough to stay in the processor's cache
_MANY_ENTRIES = 1 << 20  # of a table that is worth a second of loading
BLOCK_ROWS = 2048  # at once, for the same reason
_SHARED = 1 << 26  # multiplications of a Hessian that is worth several threads

K = TypeVar("K")
V = TypeVar("V")

_making = threading.RLock()


def _once(kept: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """kept[key]; of threads that ask at once for what is not there the first makes it. What is there is not waited for."""
    if key not in kept:
        with _making:
            if key not in kept:
                kept[key] = make()
    return kept[key]


class Rows:
    """Labelled rows with the derived arrays that models work on, made once when first needed."""

    def __init__(self, X: Floats, y: Floats) -> None:
        self.X = X
        self.y = y

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def signed(self) -> Floats:
        """(n, d) rows y_i x_i: margins are `signed @ theta`, gradients `signed.T @ slope`."""
        return self.X * self.y[:, None]

    @cached_property
    def signed32(self) -> NDArray[np.float32]:
        """`signed` in single precision, for stochastic training."""
        if "signed" in self.__dict__:
            return self.signed.astype(np.float32)
        return np.multiply(self.X, self.y[:, None], dtype=np.float32, casting="same_kind")

    @cached_property
    def extended(self) -> Floats:
        """(n, d + 1) rows followed by a 1, for scores with an offset of their own."""
        return np.column_stack([self.X, np.ones(len(self.y))])

    @cached_property
    def extended32(self) -> NDArray[np.float32]:
        """`extended` in single precision, for stochastic training."""
        return self.extended.astype(np.float32)

    @cached_property
    def norms(self) -> Floats:
        """(n,) lengths of the rows."""
        return np.sqrt(np.einsum("ij,ij->i", self.X, self.X))

    @cached_property
    def longest(self) -> float:
        """Length of the longest row."""
        return float(self.norms.max(initial=0.0))

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        """A block of rows of one of the arrays above, by the array's name."""
        values: NDArray[np.floating] = getattr(self, name)[block]
        return values

    @cached_property
    def sparse(self) -> bool:
        """Whether the rows are so many and so full of zeros that `products` leave the zeros out."""
        return worth_it(self.X)

    @property
    def compiled(self) -> bool:
        """Whether compiled loops multiply the rows without their zeros."""
        return self.sparse and loops() is not None

    @property
    def many(self) -> bool:
        """Whether loading compiled loops pays for rows that are multiplied with their zeros."""
        return self.X.size >= _MANY_ENTRIES

    @cached_property
    def _kept(self) -> dict[tuple[type[np.floating], int, int], SparseRows | CompiledRows]:
        return {}

    def columns(self, theta: Array) -> NDArray[Any]:
        """(d, W) parameters theta (R, d) as `Products` take them; W - R columns of zeros fill the lanes of compiled loops."""
        if not self.compiled:
            return np.ascontiguousarray(theta.T)
        return in_whole_lanes(theta)

    def products(self, precision: type[np.floating], block: slice) -> Products:
        """The products with a block of the rows y_i x_i, without their zeros where that is faster."""
        if not self.sparse:
            return DenseRows(self.part("signed32" if precision is np.float32 else "signed", block))
        # kept are all rows, and the blocks of the usual size: with others there could be any number of copies
        usual = block.start % BLOCK_ROWS == 0 and block.stop == min(block.start + BLOCK_ROWS, len(self))
        whole = block.start == 0 and block.stop == len(self)
        if not (usual or whole):
            return self._without_zeros(precision, slice(0, len(self))).take(np.arange(block.start, block.stop))
        return self._without_zeros(precision, block)

    def _without_zeros(self, precision: type[np.floating], block: slice) -> SparseRows | CompiledRows:
        def make() -> SparseRows | CompiledRows:
            table = np.multiply(self.X[block], self.y[block, None], dtype=precision, casting="same_kind")
            return CompiledRows.of(table) if self.compiled else SparseRows.of(table)

        return _once(self._kept, (precision, block.start, block.stop), make)

    def for_loops(self, precision: type[np.floating]) -> tuple[CompiledRows, Floats]:
        """All rows in phrases for compiled loops, and lengths of the rows that these keep; only where `compiled`."""

        def make() -> CompiledRows:
            if self._part_of is not None:
                return self._whole.for_loops(precision)[0].cut(self._part_of[1])
            if precision is np.float32:
                return self.for_loops(np.float64)[0].to_single()
            return CompiledRows.in_phrases(self.X * self.y[:, None])

        return _once(self._in_phrases, precision, make), self.norms

    @property
    def strips(self) -> Strips:
        """The rows y_i x_i with their zeros, in single precision, as compiled loops multiply rows with noise."""

        def make() -> Strips:
            return Strips.of(self.signed32) if self._part_of is None else self._whole.strips[self._part_of[1]]

        return _once(self._in_strips, "all", make)

    @cached_property
    def _in_strips(self) -> dict[str, Strips]:
        return {}

    @cached_property
    def _in_phrases(self) -> dict[type[np.floating], CompiledRows]:
        return {}

    #: the rows that these are neighbouring ones of, which keep these and are let go of with them, and which of them
    _part_of: tuple[weakref.ref[Rows], slice] | None = None

    @property
    def _whole(self) -> Rows:
        assert self._part_of is not None
        whole = self._part_of[0]()
        assert whole is not None
        return whole

    def extended_part(self, block: slice) -> csr_array | CompiledRows | None:
        """A block of `extended32` without its zeros, for products; None where rows have too few zeros for that."""
        if self.compiled:
            return self.for_networks[0].take(np.arange(block.start, block.stop))
        return self._extended_sparse[block] if self.sparse else None

    @cached_property
    def _extended_sparse(self) -> csr_array:
        return csr_array(self.extended32)

    @property
    def for_networks(self) -> tuple[CompiledRows, NDArray[np.float32], NDArray[np.float32]]:
        """All rows (x, 1) in phrases for compiled loops, (n,) labels and lengths of x of the rows that these keep; single.

        Only where `compiled`.
        """

        def make() -> tuple[CompiledRows, NDArray[np.float32], NDArray[np.float32]]:
            if self._part_of is not None:
                here, (table, labels, norms) = self._part_of[1], self._whole.for_networks
                return table.cut(here), labels[here], norms[here]
            extended = np.ones((len(self), self.X.shape[1] + 1), np.float32)
            extended[:, :-1] = self.X
            return CompiledRows.in_phrases(extended), self.y.astype(np.float32), self.norms.astype(np.float32)

        return _once(self._in_networks, "all", make)

    @cached_property
    def _in_networks(self) -> dict[str, tuple[CompiledRows, NDArray[np.float32], NDArray[np.float32]]]:
        return {}

    def parts(self, count: int) -> list[tuple[int, Rows]]:
        """The rows in parts of nearly equal length, each with the position of its first row; kept with what they derive."""
        if count <= 1:
            return [(0, self)]
        return _once(self._parts, count, lambda: self._cut(count))

    def _cut(self, count: int) -> list[tuple[int, Rows]]:
        # blocks of noise lie in one part each
        there = loops() if self.compiled or self.many else None
        unit, found = (1 if there is None else there.NOISY), []
        for part in groups(-(-len(self) // unit), count):
            here = slice(part.start * unit, min(part.stop * unit, len(self)))
            rows = self.take(here)
            rows._part_of = (weakref.ref(self), here)
            rows.__dict__["sparse"] = self.sparse  # all parts alike, however short
            found.append((here.start, rows))
        return found

    @cached_property
    def _parts(self) -> dict[int, list[tuple[int, Rows]]]:
        return {}

    def batch(self, index: NDArray[np.intp]) -> Batch:
        """Some of the rows, each array gathered only where it is asked for: cheap for mini-batches."""
        return Batch(self, index)

    def take(self, index: NDArray[np.intp] | slice) -> Rows:
        """Some of the rows; slices share memory. What was derived is carried over where it is there already."""
        part = Rows(self.X[index], self.y[index])
        for name in ("signed", "signed32", "extended", "extended32", "norms"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][index]
        return part

    def replace_row(self, index: int, x: Floats, y: float) -> Rows:
        """The neighbouring rows in which row `index` is (x, y)."""
        X, labels = self.X.copy(), self.y.copy()
        X[index], labels[index] = x, y
        return Rows(X, labels)


class Batch(Rows):
    """Rows of a parent by index. `part` gathers block by block, so that a batch never leaves the processor's cache."""

    def __init__(self, parent: Rows, index: NDArray[np.intp]) -> None:
        self.parent = parent
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    def __getattr__(self, name: str) -> Floats:
        if name not in ("X", "y"):
            raise AttributeError(name)
        value: Floats = getattr(self.parent, name)[self.index]
        setattr(self, name, value)
        return value

    @cached_property
    def longest(self) -> float:
        """Length of the parent's longest row: an upper bound."""
        return self.parent.longest

    @cached_property
    def sparse(self) -> bool:
        """As its parent."""
        return self.parent.sparse

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        values: NDArray[np.floating] = getattr(self.parent, name).take(self.index[block], axis=0)
        return values

    def products(self, precision: type[np.floating], block: slice) -> Products:
        # in single precision gathering, grouping and multiplying without zeros take a third longer than with them, unless
        # compiled loops need no gathering
        if self.parent.compiled or (self.parent.sparse and precision is not np.float32):
            return self.parent._without_zeros(precision, slice(0, len(self.parent))).take(self.index[block])
        return DenseRows(self.part("signed32" if precision is np.float32 else "signed", block))

    def for_loops(self, precision: type[np.floating]) -> tuple[CompiledRows, Floats]:
        kept, norms = self.parent.for_loops(precision)
        return kept.take(self.index), norms

    @property
    def for_networks(self) -> tuple[CompiledRows, NDArray[np.float32], NDArray[np.float32]]:
        table, labels, norms = self.parent.for_networks
        return table.take(self.index), labels, norms

    def extended_part(self, block: slice) -> csr_array | CompiledRows | None:
        if self.parent.compiled:
            return self.parent.for_networks[0].take(self.index[block])
        return self.parent._extended_sparse[self.index[block]] if self.parent.sparse else None


def row_blocks(n: int, replicas: int) -> list[slice]:
    """Slices of n rows, for one pass of some replicas over them."""
    size = max(256, min(BLOCK_ROWS, _BLOCK_ELEMENTS // max(replicas, 1)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def gram(rows: Floats, weight: Floats) -> Floats:
    """(d, d) sum of weight_i z_i z_i' over rows z_i, (n, d), with weights of at least 0; of many rows by several threads."""
    n, many = len(rows), rows.size * rows.shape[1] >= _SHARED
    parts = groups(n) if many else [slice(0, n)]

    def part(k: int, _: Monitor) -> Floats:
        return _gram(rows[parts[k]], weight[parts[k]])

    total: Floats = np.sum(map_streams(part, len(parts), silent, parallel=many), axis=0)
    return total


def _gram(rows: Floats, weight: Floats) -> Floats:
    (n, d), root = rows.shape, np.sqrt(weight)
    blocks, total = row_blocks(n, d), np.zeros((d, d))
    buffer = np.empty((blocks[0].stop if blocks else 0, d))
    for block in blocks:
        active = root[block] > 0
        here = rows[block] if active.all() else rows[block][active]
        here = np.multiply(here, root[block][active, None], out=buffer[: len(here)])
        total += here.T @ here  # one buffer on both sides: numpy calls syrk, half the work of a product
    return total
