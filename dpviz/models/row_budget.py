"""A rule for sums of gradients: rows whose squared gradients have used up a budget add nothing."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.models.base import Rule
from dpviz.models.compiled.rows import aligned, in_lanes

Floats = NDArray[np.float64]

_UNITS = 1 << 29  # of a budget
FULL = 4 * _UNITS  # beyond which nothing is counted; also in lanes.py, whose compiled code is kept by that file alone


class RowBudget:
    """Counts each row's squared gradients over the steps, and gives weight 0 to rows that have used up more than a budget.

    A rule for `Model.sum_gradient`, which compiled loops know.

    Sums are in double precision, or in whole numbers of 32 bits, which are read and written in half the time: units of the
    budget over 2^29, each square rounded up, so that rounding lets no row stay for longer.

    Attributes:
        spent: (n, W) sums so far, times `unit`, the R replicas of a row next to each other.
        all: whether all rows take part, whatever they have spent.
        active: (R,) rows that took part since the last `take_active`.
    """

    def __init__(self, n: int, replicas: int, budget: float, *, slack: float = 0.0, whole: bool = False) -> None:
        """
        Args:
            budget: squared lengths that a row may add up.
            slack: share of it by which rounding may exceed it.
            whole: whether to count in whole numbers.
        """
        self.unit = _UNITS / budget if whole else 1.0
        self.all, self._limit = False, budget * self.unit * (1 + slack)
        self.spent: NDArray[Any] = aligned((n, in_lanes(replicas)), np.uint32 if whole else np.float64)
        self.active, self._lock = np.zeros(replicas), threading.Lock()  # threads hand over different rows

    @property
    def limit(self) -> float:
        """The largest sum of rows that take part."""
        if not self.all:
            return self._limit
        return float(np.iinfo(np.uint32).max) if self.spent.dtype == np.uint32 else np.inf

    def part(self, first: int, count: int) -> RowBudget:
        """The same for neighbouring rows, in the same memory."""
        mine = copy.copy(self)
        mine.spent = self.spent[first : first + count]
        return mine

    def add_active(self, count: Floats) -> None:
        """Adds (R,) rows that took part."""
        with self._lock:
            self.active += count

    def take_active(self) -> Floats:
        """(R,) rows that took part since the last call."""
        taken = self.active.copy()
        self.active[:] = 0.0
        return taken

    def __call__(self, block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
        """Weights (R, b) for rows with gradients of lengths `norms`, or (1, 1) where all take part."""
        replicas = len(self.active)
        spent = self.spent[block, :replicas].T
        if spent.dtype == np.uint32:
            units = np.nan_to_num(np.ceil(norms * norms * norms.dtype.type(self.unit)), nan=0.0)
            spent[:] = np.minimum(spent + np.minimum(units, FULL // 2).astype(np.uint64), FULL)
        else:
            spent += norms * norms
        if self.all:
            self.add_active(np.full(replicas, norms.shape[1]))
            return np.ones((1, 1), norms.dtype)
        weights = (spent <= self._limit).astype(norms.dtype)
        self.add_active(weights.sum(axis=1))  # weights are added faster than truth values are counted, and as exactly
        return weights


def rule_of_part(rule: Rule | None, first: int, count: int) -> Rule | None:
    """A rule of all rows as one of `count` rows from `first` on."""
    if isinstance(rule, RowBudget):
        return rule.part(first, count)
    if rule is None or first == 0:
        return rule
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)
