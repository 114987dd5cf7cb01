"""Rows that are mostly zeros as kernels take them: their entries by row, and by block of rows and column."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from dpviz.models.kernels import BLOCK
from dpviz.models.kernels.merged_columns import merge_columns

Arrays = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[Any]]


class SparseTable:
    """n rows without their zeros.

    Attributes:
        n, d: rows and columns, before pairs of columns were merged.
        merged: (2 P,) the two columns that each of the P further ones stands for.
    """

    def __init__(self, rows: NDArray[np.floating]) -> None:
        """From rows (n, d)."""
        (self.n, self.d), (self._rows, merged) = rows.shape, merge_columns(csr_array(rows))
        self.merged = merged.reshape(-1).astype(np.uint64)

    @property
    def width(self) -> int:
        """d + P."""
        return self.d + len(self.merged) // 2

    def rows(self, precision: type[np.floating]) -> Arrays:
        """Where rows begin, columns, values."""
        return self._double if precision is np.float64 else self._single

    def blocks(self, precision: type[np.floating]) -> Arrays:
        """The same by block of rows and column; rows are counted from the block's first."""
        return self._double_blocks if precision is np.float64 else self._single_blocks

    @cached_property
    def _double(self) -> Arrays:
        return _arrays(self._rows)

    @cached_property
    def _single(self) -> Arrays:
        return _in_single(self._double)

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


def _arrays(rows: csr_array | csc_array) -> Arrays:
    return rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), np.ascontiguousarray(rows.data, np.float64)


def _in_single(arrays: Arrays) -> Arrays:
    ends, columns, values = arrays
    return ends, columns, values.astype(np.float32)
