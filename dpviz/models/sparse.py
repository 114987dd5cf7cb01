"""Products with rows: short sums in single precision, and rows that are mostly zeros, as one-hot encoded tables are.

`Products` is one block of rows y_i x_i in one precision: margins and slopes of replicas, and the sums of rows times slopes.
`DenseRows` multiplies with the zeros, `SparseRows` without them, `compiled.rows.CompiledRows` too and faster, where it is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from dpviz.models.losses import Loss

Array = NDArray[np.floating]
Index = NDArray[np.intp]

_MOST_FILLED = 0.2  # share of non-zero entries up to which sparse products are faster than dense ones
_LEAST_ENTRIES = 1 << 18  # of a table; below, the products are so short that preparing them takes as long
SINGLE_ROWS = 64  # rows summed in single precision before the sum goes on in double
_LONGER = 4  # times longer are the groups of columns with few entries, or its square
_AS_THEY_LIE = 1_000_000  # multiplications up to which BLAS takes the factors of a product as they lie, and above copies them


def worth_it(table: NDArray[np.floating]) -> bool:
    """Whether products with this table are faster when its zeros are left out."""
    return table.size >= _LEAST_ENTRIES and bool(np.count_nonzero(table) <= _MOST_FILLED * table.size)


class Products(ABC):
    """The products of a model with b rows y_i x_i. Parameters, margins and sums of W replicas lie together in memory.

    W is the number of replicas, or more where a way of multiplying wants whole lanes: see `Rows.columns`.
    """

    @abstractmethod
    def margins(self, columns: Array, out: Array) -> Array:
        """(b, W) margins at parameters `columns` (d, W), in `out` or in memory of their own."""

    def slopes(self, columns: Array, loss: Loss, out: Array) -> Array:
        """(b, W) slopes of a loss there."""
        return loss.slope_inplace(self.margins(columns, out))

    @abstractmethod
    def add(self, weights: Array, total: NDArray[np.float64], most: int = SINGLE_ROWS) -> None:
        """Adds the sums of the rows times weights (b, W) to `total` (d, W).

        In single precision at most `most` terms are summed before the sum goes on in double precision.
        """

    @abstractmethod
    def ordered(self, order: Index) -> Products:
        """The rows in another order, copied."""

    @abstractmethod
    def cut(self, block: slice) -> Products:
        """Some neighbouring rows."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the rows take."""

    @abstractmethod
    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class DenseRows(Products):
    """Rows with their zeros.

    Attributes:
        rows: (b, d).
    """

    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def ordered(self, order: Index) -> DenseRows:
        return DenseRows(self.rows[order])

    def cut(self, block: slice) -> DenseRows:
        return DenseRows(self.rows[block])

    def margins(self, columns: Array, out: Array) -> Array:
        # (rows, W) in memory: BLAS takes half the time for few replicas
        return products(self.rows, columns, out)

    def add(self, weights: Array, total: NDArray[np.float64], most: int = SINGLE_ROWS) -> None:
        total += short_sums(weights.T, self.rows, most).T


#: rows as columns, of which each group has a place of its own, and (columns, groups, first place) of those of one length
Groups = tuple[csc_array, list[tuple[NDArray[np.intp], int, int]]]


@dataclass(frozen=True, eq=False)
class SparseRows(Products):
    """b rows of which only the non-zero entries are kept.

    Attributes:
        rows: (b, d), in single or double precision.
    """

    rows: csr_array
    _grouped: dict[int, Groups] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Array) -> SparseRows:
        """From a dense (b, d) table; products are in its precision."""
        return cls(csr_array(table))

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def nbytes(self) -> int:
        return int(self.rows.data.nbytes + self.rows.indices.nbytes)

    def ordered(self, order: Index) -> SparseRows:
        return SparseRows(self.rows[order])

    def cut(self, block: slice) -> SparseRows:
        return SparseRows(self.rows[block])

    def take(self, index: Index) -> SparseRows:
        """Some of the rows, copied."""
        return self.ordered(index)

    def margins(self, columns: Array, out: Array) -> Array:
        return np.asarray(self.rows @ columns)

    def add(self, weights: Array, total: NDArray[np.float64], most: int = SINGLE_ROWS) -> None:
        if self.rows.dtype != np.float32:
            total += self.rows.T @ weights
            return
        if most not in self._grouped:
            self._grouped[most] = self._groups(most)
        table, kinds = self._grouped[most]
        parts = np.asarray(table @ weights)
        for columns, groups, place in kinds:
            part = parts[place : place + groups * len(columns)].reshape(groups, len(columns), weights.shape[1])
            total[columns] += part.sum(axis=0, dtype=np.float64)

    def _groups(self, most: int) -> Groups:
        """The rows as columns whose entries are shifted to the place of their group, so that one product sums all groups.

        A group holds at most `most` entries of a column: where a column has few entries, its groups are longer. Fewer groups
        mean less to write and to add up.
        """
        (b, d), indices = self.rows.shape, self.rows.indices
        row = np.repeat(np.arange(b), np.diff(self.rows.indptr))
        left, shifted, kinds, place = np.ones(d, bool), np.empty_like(indices), [], 0
        for length in (most * _LONGER**2, most * _LONGER, most):
            groups = -(-b // length)
            entries = np.bincount(row // length * d + indices, minlength=groups * d).reshape(groups, d)
            columns = np.flatnonzero(left & ((entries.max(axis=0, initial=0) <= most) | (length == most)))
            left[columns] = False
            rank = np.full(d, -1)
            rank[columns] = np.arange(len(columns))
            here = rank[indices] >= 0
            shifted[here] = place + row[here] // length * len(columns) + rank[indices[here]]
            kinds.append((columns, groups, place))
            place += groups * len(columns)
        return csc_array((self.rows.data, shifted, self.rows.indptr), shape=(place, b)), kinds


def products(
    rows: NDArray[np.floating], columns: NDArray[np.floating], out: NDArray[np.floating] | None = None
) -> NDArray[np.floating]:
    """rows (b, d) times columns (d, R), in groups of rows that BLAS takes as they lie; written to `out` where it is given."""
    out = np.empty((len(rows), columns.shape[1]), rows.dtype) if out is None else out
    size = _together(len(rows), columns.size)
    whole = len(rows) - len(rows) % size
    np.matmul(rows[:whole].reshape(-1, size, rows.shape[1]), columns, out=out[:whole].reshape(-1, size, columns.shape[1]))
    if whole < len(rows):
        np.matmul(rows[whole:], columns, out=out[whole:])
    return out


def short_sums(weights: NDArray[np.floating], rows: NDArray[np.floating], most: int = SINGLE_ROWS) -> NDArray[np.floating]:
    """weights @ rows; in single precision sums stay short, so that rounding is far below what one row contributes.

    Args:
        most: rows summed in single precision.
    """
    size = most if weights.dtype == np.float32 else _together(len(rows), len(weights) * rows.shape[1])
    whole = len(rows) - len(rows) % size
    parts = weights[:, :whole].reshape(len(weights), -1, size).transpose(1, 0, 2)
    total = (parts @ rows[:whole].reshape(-1, size, rows.shape[1])).sum(axis=0, dtype=np.float64)
    return total + weights[:, whole:] @ rows[whole:]


def _together(rows: int, each: int) -> int:
    """Rows in one product, in groups of about equal size; with `each` multiplications a row."""
    most = _AS_THEY_LIE // max(each, 1)
    return max(1, rows if most < SINGLE_ROWS else -(-rows // max(1, -(-rows // most))))
