"""A rule for sums of gradients: rows whose squared gradients have used up a budget add nothing."""

from __future__ import annotations

import copy
import threading

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.models.kernels import padded, rounding_up
from dpviz.models.products import Rule


class RowBudget:
    """Counts each row's squared gradients over the steps, and gives weight 0 to rows that have used up more than a budget.

    A rule for `Model.sum_gradient`, which kernels know. Sums are rounded up, so that no row has spent more than is counted.

    Attributes:
        spent: (n, W) sums so far, the R replicas of a row next to each other.
        all: whether all rows take part, whatever they have spent.
        active: (R,) rows that took part since the last `take_active`.
    """

    def __init__(
        self, n: int, replicas: int, budget: float, *, slack: float = 0.0, precision: type[np.floating] = np.float64
    ) -> None:
        """
        Args:
            budget: squared norms that a row may add up.
            slack: share of it by which rounding may exceed it.
            precision: of the sums, that of the gradients.
        """
        self.all, self._limit = False, precision(budget * (1 + slack))
        self.spent, self._up = np.zeros((n, padded(replicas)), precision), rounding_up(precision)
        self.active, self._lock = np.zeros(replicas), threading.Lock()  # threads hand over different rows

    def part(self, first: int, count: int) -> RowBudget:
        """The same for neighbouring rows, in the same memory."""
        mine = copy.copy(self)
        mine.spent = self.spent[first : first + count]
        return mine

    def for_kernel(self, first: int) -> tuple[NDArray[np.floating], int, int, np.floating]:
        """The arguments of `kernels.gradient` for replicas from `first` on."""
        return self.spent.reshape(-1), self.spent.shape[1], first, type(self._limit)(np.inf) if self.all else self._limit

    def add_active(self, count: Floats, first: int = 0) -> None:
        """Adds rows that took part, of replicas from `first` on."""
        with self._lock:
            self.active[first : first + len(count)] += count

    def take_active(self) -> Floats:
        """(R,) rows that took part since the last call."""
        taken = self.active.copy()
        self.active[:] = 0.0
        return taken

    def __call__(self, block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
        """Weights (R, b) for rows with gradients of these norms; what is not a number is not above the budget."""
        spent = self.spent[block, : len(self.active)].T
        spent += norms * norms
        spent *= self._up
        weights = np.ones_like(norms) if self.all else 1 - (spent > self._limit).astype(norms.dtype)
        self.add_active(weights.sum(axis=1))  # weights are added faster than truth values are counted, and as exactly
        return weights


def rule_of_part(rule: Rule | None, first: int, count: int) -> Rule | None:
    """A rule of all rows as one of `count` rows from `first` on."""
    if isinstance(rule, RowBudget):
        return rule.part(first, count)
    if rule is None or first == 0:
        return rule
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)
