"""Labelled rows with the derived arrays that models work on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import groups, map_streams

_BLOCK_ROWS = 2048  # at once: rows and margins stay in the processor's cache between two products
_BLOCK_ELEMENTS = 1 << 18  # rows x replicas at once, for the same reason
_SHARED = 1 << 26  # multiplications of a Hessian that is worth several threads

T = TypeVar("T")

_making = threading.RLock()


def row_blocks(n: int, replicas: int) -> list[slice]:
    """Slices of n rows, for one pass of some replicas over them."""
    size = max(256, min(_BLOCK_ROWS, _BLOCK_ELEMENTS // max(replicas, 1)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class Rows:
    """Labelled rows with the derived arrays that models work on, made once when first needed.

    Args:
        person_rows: see `Setting.person_rows`.
        weights: (n,) of the rows' losses, in [0, 1], so that bounds on a row's slope and curvature stay as they are; None for 1.
        class_weights: weights of the labels -1 and +1 in the place of `weights`, where a row's weight follows from its label.
        persons: (n,) whose row each is, as numbers, where epsilon is for a person.
        preparations, looked_at: see `Setting`.
    """

    def __init__(
        self,
        X: Floats,
        y: Floats,
        person_rows: int = 0,
        weights: Floats | None = None,
        class_weights: tuple[float, float] | None = None,
        persons: NDArray[np.intp] | None = None,
        preparations: tuple[Paid, ...] = (),
        looked_at: int = 0,
    ) -> None:
        self.X = X
        self.y = y
        self.person_rows = person_rows
        self.class_weights = class_weights
        self.persons = persons
        self.preparations, self.looked_at = preparations, looked_at
        if class_weights is not None:
            weights = np.where(y > 0, class_weights[1], class_weights[0])
        if weights is not None and not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError("weights must lie in [0, 1]: every sensitivity supposes it")
        self.weights = weights

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def signed_rows(self) -> Floats:
        """(n, d) rows y_i x_i: margins are `signed_rows @ theta`, gradients `signed_rows.T @ slope`."""
        return self.X * self.y[:, None]

    @cached_property
    def signed_rows32(self) -> NDArray[np.float32]:
        """`signed_rows` in single precision, for stochastic training."""
        if "signed_rows" in self.__dict__:
            return self.signed_rows.astype(np.float32)
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
        return getattr(self, name)[block]

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def compute_once(self, key: str, make: Callable[[], T]) -> T:
        """The cached result of `make`; of several threads that ask at the same time only one computes it."""
        if key not in self._derived:
            with _making:
                if key not in self._derived:
                    self._derived[key] = make()
        return self._derived[key]

    def parts(self, count: int) -> list[tuple[int, Rows]]:
        """The rows in parts of nearly equal length, each with the position of its first row; kept with what they derive."""

        def cut() -> list[tuple[int, Rows]]:
            return [(part.start, self.take(part)) for part in groups(len(self), count)]

        return [(0, self)] if count <= 1 else self.compute_once(f"{count} parts", cut)

    def sample(self, count: int) -> Rows:
        """About so many rows y_i x_i at random, the same ones at each call, with weights of mean 1; kept as `parts` are.

        Half of them are chosen evenly and half by their share in the squares of each column, so that rare values, which may
        decide a direction alone, are among them. A row weighs the less the likelier it was.
        """

        def choose() -> Rows:
            rows = self.signed_rows32
            squares = np.maximum(np.einsum("ij,ij->j", rows, rows), np.float32(1e-30))
            shares = np.einsum("ij,ij,j->i", rows, rows, 1 / squares)
            chance = count / 2 * (1 / len(rows) + shares / shares.sum())
            chosen = np.flatnonzero(np.random.default_rng(0).random(len(rows)) < chance)
            part = Rows(rows[chosen].astype(float), np.ones(len(chosen)))
            part.weights = np.maximum(1 / chance[chosen], 1.0)
            part.weights /= part.weights.mean()
            return part

        return self.compute_once(f"{count} at random", choose)

    def batch(self, index: NDArray[np.intp]) -> Batch:
        """Some of the rows, each array gathered only where it is asked for: cheap for mini-batches."""
        return Batch(self, index)

    def take(self, index: NDArray[np.intp] | slice) -> Rows:
        """Some of the rows; slices share memory. What was derived is carried over where it is there already."""
        weights = None if self.weights is None else self.weights[index]
        persons = None if self.persons is None else self.persons[index]
        public = self.class_weights, persons, self.preparations, self.looked_at
        part = Rows(self.X[index], self.y[index], self.person_rows, None, *public)
        part.weights = weights
        for name in ("signed_rows", "signed_rows32", "extended", "extended32", "norms"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][index]
        return part

    def replace_row(self, index: int | NDArray[np.intp], x: Floats, y: float | Floats) -> Rows:
        """The neighbouring rows in which row `index`, or several rows of one person, are (x, y)."""
        X, labels = self.X.copy(), self.y.copy()
        X[index], labels[index] = x, y
        public = self.class_weights, self.persons, self.preparations, self.looked_at
        return Rows(X, labels, self.person_rows, self.weights, *public)

    def average_persons(self) -> Rows:
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
        self.person_rows, self.preparations, self.looked_at = parent.person_rows, parent.preparations, parent.looked_at
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

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        return getattr(self.parent, name).take(self.index[block], axis=0)


def gram(rows: Floats, weight: Floats) -> Floats:
    """(d, d) sum of weight_i z_i z_i' over rows z_i, (n, d), with weights of at least 0; of many rows by several threads."""
    n, many = len(rows), rows.size * rows.shape[1] >= _SHARED
    parts = groups(n) if many else [slice(0, n)]

    def part(k: int, _: Monitor) -> Floats:
        return _gram(rows[parts[k]], weight[parts[k]])

    total: Floats = np.sum(map_streams(part, len(parts), ignore, parallel=many), axis=0)
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
