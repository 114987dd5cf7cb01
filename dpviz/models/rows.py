"""Labelled rows with the derived arrays that models work on."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, silent
from dpviz.common.threads import groups, map_streams
from dpviz.models import kernels
from dpviz.models.products import Products, products, row_blocks

if TYPE_CHECKING:
    from dpviz.models.kernels.table import SparseTable


_MOST_FILLED = 0.35  # share of non-zero entries up to which kernels are faster than dense products
_LEAST_ENTRIES = 1 << 15  # of a table; below, a first page would wait longer for compiling than it gains
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
    """Labelled rows with the derived arrays that models work on, made once when first needed.

    Args:
        person_rows: see `Setting.person_rows`.
        weights: (n,) of the rows' losses, in [0, 1], so that bounds on a row's slope and curvature stay as they are; None for 1.
        class_weights: weights of the labels -1 and +1 in the place of `weights`, where a row's weight follows from its label.
        persons: (n,) whose row each is, as numbers, where epsilon is for a person.
        private_ranges: see `Setting.private_ranges`.
    """

    #: scored again and again, so that a table for kernels pays
    scored_often = False

    def __init__(
        self,
        X: Floats,
        y: Floats,
        person_rows: int = 0,
        weights: Floats | None = None,
        class_weights: tuple[float, float] | None = None,
        persons: NDArray[np.intp] | None = None,
        private_ranges: bool = False,
    ) -> None:
        self.X = X
        self.y = y
        self.person_rows = person_rows
        self.class_weights = class_weights
        self.persons = persons
        self.private_ranges = private_ranges
        if class_weights is not None:
            weights = np.where(y > 0, class_weights[1], class_weights[0])
        if weights is not None and not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError("weights must lie in [0, 1]: every sensitivity supposes it")
        self.weights = weights

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
        """(n,) norms of the rows."""
        return np.sqrt(np.einsum("ij,ij->i", self.X, self.X))

    @cached_property
    def longest(self) -> float:
        """Norm of the longest row."""
        return float(self.norms.max(initial=0.0))

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        """A block of rows of one of the arrays above, by the array's name."""
        values: NDArray[np.floating] = getattr(self, name)[block]
        return values

    #: where these rows begin in the rows that they are a part of, which keep what kernels take, and are let go of with them
    first: int = 0
    _part_of: weakref.ref[Rows] | None = None

    @property
    def _whole(self) -> Rows:
        whole = self if self._part_of is None else self._part_of()
        assert whole is not None
        return whole

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    @cached_property
    def sparse(self) -> bool:
        """True where the rows are so many and so full of zeros that kernels leave the zeros out."""
        return self.X.size >= _LEAST_ENTRIES and bool(np.count_nonzero(self.X) <= _MOST_FILLED * self.X.size)

    @property
    def table(self) -> SparseTable | None:
        """The rows y_i x_i that these are a part of, as kernels take them; None where numpy multiplies all entries."""
        return self._table("rows", lambda whole: whole.X * whole.y[:, None])

    @property
    def network_table(self) -> SparseTable | None:
        """The same for the rows (x, 1)."""
        return self._table("extended", lambda whole: np.column_stack([whole.X, np.ones(len(whole))]))

    def _table(self, name: str, make: Callable[[Rows], Floats]) -> SparseTable | None:
        whole = self._whole
        if whole.weights is not None or not (whole.sparse and kernels.available()):
            return None
        from dpviz.models.kernels.table import SparseTable

        return _once(whole._kept, name, lambda: SparseTable(make(whole)))

    def table_norms(self, precision: type[np.floating]) -> NDArray[np.floating]:
        """(n,) norms of the rows of the tables."""
        whole = self._whole
        return _once(whole._kept, f"norms {precision.__name__}", lambda: whole.norms.astype(precision))

    @property
    def table_labels(self) -> Floats:
        """(n,) labels of the rows of the tables."""
        return self._whole.y

    def products(self, precision: type[np.floating]) -> Products:
        """The sums over the rows y_i x_i."""
        return products(self, precision)

    def parts(self, count: int) -> list[tuple[int, Rows]]:
        """The rows in parts of nearly equal length, each with the position of its first row; kept with what they derive."""
        if count <= 1 or self._part_of is not None:
            return [(0, self)]
        return _once(self._kept, f"{count} parts", lambda: self._cut(count))

    def sample(self, count: int) -> Rows:
        """Rows y_i x_i in single precision of as many rows at random, the same ones at each call; kept as `parts` are."""

        def drawn() -> Rows:
            chosen = np.sort(np.random.default_rng(0).choice(len(self), count, replace=False))
            return Rows(self.signed32[chosen].astype(float), np.ones(count))

        return _once(self._kept, f"{count} at random", drawn)

    def _cut(self, count: int) -> list[tuple[int, Rows]]:
        unit, found = kernels.BLOCK if self.table is not None else 1, []
        for part in groups(-(-len(self) // unit), count):
            rows = self.take(slice(part.start * unit, min(part.stop * unit, len(self))))
            rows.first, rows._part_of = part.start * unit, weakref.ref(self)
            found.append((rows.first, rows))
        return found

    def batch(self, index: NDArray[np.intp]) -> Batch:
        """Some of the rows, each array gathered only where it is asked for: cheap for mini-batches."""
        return Batch(self, index)

    def take(self, index: NDArray[np.intp] | slice) -> Rows:
        """Some of the rows; slices share memory. What was derived is carried over where it is there already."""
        weights = None if self.weights is None else self.weights[index]
        persons = None if self.persons is None else self.persons[index]
        part = Rows(self.X[index], self.y[index], self.person_rows, weights, self.class_weights, persons, self.private_ranges)
        for name in ("signed", "signed32", "extended", "extended32", "norms"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][index]
        return part

    def replace_row(self, index: int | NDArray[np.intp], x: Floats, y: float | Floats) -> Rows:
        """The neighbouring rows in which row `index`, or several rows of one person, are (x, y)."""
        X, labels = self.X.copy(), self.y.copy()
        X[index], labels[index] = x, y
        return Rows(X, labels, self.person_rows, self.weights, self.class_weights, self.persons, self.private_ranges)

    def averaged(self) -> Rows:
        """The rows, each with its weight over the number of its person's rows: those of one person count as one row.

        Raises:
            ValueError: the person of each row is not known.
        """
        if self.persons is None:
            raise ValueError("the rows do not say whose they are")
        who, count = np.unique(self.persons, return_inverse=True, return_counts=True)[1:]
        return Rows(self.X, self.y, self.person_rows, self.weights_with(self.y) / count[who], persons=self.persons)

    def weights_with(self, y: Floats) -> Floats | float:
        """(n,) weights that the rows would have with these labels."""
        if self.class_weights is not None:
            return np.where(y > 0, self.class_weights[1], self.class_weights[0])
        return 1.0 if self.weights is None else self.weights


class Batch(Rows):
    """Rows of a parent by index. `part` gathers block by block, so that a batch never leaves the processor's cache."""

    def __init__(self, parent: Rows, index: NDArray[np.intp]) -> None:
        self.parent = parent
        self.index = index
        self.person_rows, self.private_ranges = parent.person_rows, parent.private_ranges
        self.class_weights = parent.class_weights
        self.persons = None if parent.persons is None else parent.persons[index]
        self.weights = None if parent.weights is None else parent.weights[index]

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
        """Norm of the parent's longest row: an upper bound."""
        return self.parent.longest

    @property
    def first(self) -> int:  # type: ignore[override]
        return self.parent.first

    @property
    def _whole(self) -> Rows:
        return self.parent._whole

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        values: NDArray[np.floating] = getattr(self.parent, name).take(self.index[block], axis=0)
        return values


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
