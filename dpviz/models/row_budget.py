"""A rule for sums of gradients: rows whose squared gradients have used up a budget add nothing."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.models.products import Rule


class RowBudget:
    """Counts each row's squared gradients over the steps, and gives weight 0 to rows that have used up more than a budget.

    A rule for `Model.sum_gradient`. Sums are rounded up, so that no row has spent more than is counted.

    Attributes:
        spent: (n, R) sums so far.
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
        self.spent = np.zeros((n, replicas), precision)
        self._up = precision(1 + 4 * np.finfo(precision).eps)  # four units in the last place more than the sum of two numbers
        self.active, self._lock = np.zeros(replicas), threading.Lock()  # threads hand over different rows

    def take_active(self) -> Floats:
        """(R,) rows that took part since the last call."""
        taken = self.active.copy()
        self.active[:] = 0.0
        return taken

    def __call__(self, block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
        """Weights (R, b) for rows with gradients of these norms; what is not a number is not above the budget."""
        spent = self.spent[block].T
        spent += norms * norms
        spent *= self._up
        weights = np.ones_like(norms) if self.all else 1 - (spent > self._limit).astype(norms.dtype)
        with self._lock:
            self.active += weights.sum(axis=1)  # weights are added faster than truth values are counted, and as exactly
        return weights


def rule_of_part(rule: Rule | None, first: int) -> Rule | None:
    """A rule of all rows as one of the rows from `first` on."""
    if rule is None or first == 0:
        return rule
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)
