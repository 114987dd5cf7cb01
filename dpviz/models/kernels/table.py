"""Rows that are mostly zeros as kernels take them, dense columns and the other entries; and memory for what kernels write."""

import math
import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csc_array, csr_array

from dpviz.models.kernels import BLOCK, DENSE
from dpviz.models.kernels.merging import merged

_own = threading.local()
Arrays = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[Any]]
Table = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[Any], NDArray[Any], tuple[int, ...], NDArray[np.uint64]]


class SparseTable:
    """n rows without their zeros.

    Attributes:
        n, d: rows and columns.
        width: columns and merged columns.
    """

    def __init__(self, rows: NDArray[np.floating]) -> None:
        """From rows (n, d)."""
        self.n, self.d = rows.shape
        split, self._dense, self._which = _split(csr_array(rows))
        self._rows, self._pairs = merged(split)
        self.width = self._rows.shape[1]

    @property
    def entries(self) -> int:
        """Number of multiplications in a product with all rows."""
        return self._rows.nnz + len(self._dense)

    def rows(self, precision: type[np.floating]) -> Table:
        """Starts of the rows, columns, values; values of the dense columns, and positions of these; pairs that were merged."""
        return self._double if precision is np.float64 else self._single

    def blocks(self, precision: type[np.floating]) -> Arrays:
        """Entries by block of rows and column, dense columns left out; rows are counted from the block's first."""
        return self._double_blocks if precision is np.float64 else self._single_blocks

    @cached_property
    def _double(self) -> Table:
        return (*_arrays(self._rows), self._dense, self._which, self._pairs)

    @cached_property
    def _single(self) -> Table:
        return (*_in_single(self._double[:3]), self._dense.astype(np.float32), self._which, self._pairs)

    @cached_property
    def _double_blocks(self) -> Arrays:
        rows = self._rows
        block = np.repeat(np.arange(self.n) // BLOCK, np.diff(rows.indptr))
        shape = (self.n, -(-self.n // BLOCK) * self.width)
        by_column = csr_array((rows.data, rows.indices + block * self.width, rows.indptr), shape=shape).tocsc()
        by_column.indices %= BLOCK
        return _arrays(by_column)

    @cached_property
    def _single_blocks(self) -> Arrays:
        return _in_single(self._double_blocks)


def _split(rows: csr_array) -> tuple[csr_array, NDArray[np.float64], tuple[int, ...]]:
    """Rows without the columns that have most entries; these as (n, DENSE) flat numbers, and which they are."""
    n, width = rows.shape
    most = np.argsort(-np.bincount(rows.indices, minlength=width), kind="stable")[:DENSE]
    dense, place = np.zeros((n, DENSE)), np.full(width, -1)
    place[most] = np.arange(len(most))
    found, row = place[rows.indices], np.repeat(np.arange(n), np.diff(rows.indptr))
    here = found >= 0
    dense[row[here], found[here]] = rows.data[here]
    ends = np.concatenate([[0], np.cumsum(~here)])[rows.indptr].astype(np.int32)
    which = (*map(int, most), *[0] * (DENSE - len(most)))  # where there are fewer columns, the rest are zeros
    return csr_array((rows.data[~here], rows.indices[~here], ends), shape=rows.shape), dense.reshape(-1), which


def _arrays(rows: csr_array | csc_array) -> Arrays:
    return rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), np.ascontiguousarray(rows.data, np.float64)


def _in_single(arrays: Arrays) -> Arrays:
    return (*arrays[:2], arrays[2].astype(np.float32))


def scratch(name: str, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Numbers of any value for a thread's own use: the same memory whenever it asks for this name."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    kept: dict[str, NDArray[np.uint8]] = _own.__dict__
    if name not in kept or len(kept[name]) < size:
        memory = np.zeros(size + 64, np.uint8)
        start = -int(memory.ctypes.data) % 64  # a cache line: SIMD numbers in two lines take twice the time
        kept[name] = memory[start : start + size]
    return kept[name][:size].view(kind).reshape(shape)


def zeros(name: str, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """`scratch`, set to 0."""
    memory = scratch(name, shape, kind)
    memory.fill(0)
    return memory
