"""A rule for sums of gradients: rows whose squared gradients have used up a budget add nothing."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from dpviz.models.base import Rule
from dpviz.models.compiled.rows import aligned, in_lanes

Floats = NDArray[np.float64]


class RowBudget:
    """Counts each row's squared gradients over the steps, and gives weight 0 to rows that are above a limit.

    A rule for `Model.sum_gradient`, which compiled loops know.

    Attributes:
        limit: squared lengths that a row may add up; infinite for as many as it likes.
        spent: (n, W) sums so far, the R replicas of a row next to each other.
        active: (R,) rows that took part since the last `take_active`.
    """

    def __init__(self, n: int, replicas: int) -> None:
        self.limit = np.inf
        self.spent: Floats = aligned((n, in_lanes(replicas)), np.float64)
        self.active, self._lock = np.zeros(replicas), threading.Lock()  # threads hand over different rows

    def part(self, first: int, count: int) -> RowBudget:
        """The same for neighbouring rows, in the same memory."""
        mine = object.__new__(RowBudget)
        mine.limit, mine.spent = self.limit, self.spent[first : first + count]
        mine.active, mine._lock = self.active, self._lock
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
        spent += norms * norms
        if self.limit == np.inf:
            self.add_active(np.full(replicas, norms.shape[1]))
            return np.ones((1, 1), norms.dtype)
        weights = (spent <= self.limit).astype(norms.dtype)
        self.add_active(weights.sum(axis=1))  # weights are added faster than truth values are counted, and as exactly
        return weights


def rule_of_part(rule: Rule | None, first: int, count: int) -> Rule | None:
    """A rule of all rows as one of `count` rows from `first` on."""
    if isinstance(rule, RowBudget):
        return rule.part(first, count)
    if rule is None or first == 0:
        return rule
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)
