"""Rules for sums of gradients: rows whose squared gradients have used up a budget add nothing."""

import threading
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats

#: (block of rows, (R, b) clipped gradient norms) -> weights that broadcast to (R, b)
Rule = Callable[[slice, Floats], NDArray[Any]]


class RowBudget:
    """Counts each row's squared gradients over the steps, and gives weight 0 to rows that have used up more than a budget.

    A rule for `Model.sum_gradient`. Sums are rounded up, so that no row has spent more than is counted.

    Attributes:
        spent: (n, R) sums so far.
        up: the factor by which a sum is rounded up.
        active: (R,) rows that took part in this step.
        free: steps that are left in which all rows take part, whatever they have spent.
    """

    def __init__(
        self,
        n: int,
        replicas: int,
        budget: float,
        *,
        slack: float = 0.0,
        free: int = 0,
        precision: type[np.floating] = np.float64,
    ) -> None:
        """
        Args:
            budget: squared norms that a row may add up.
            slack: share of it by which rounding may exceed it.
            precision: of the sums, that of the gradients.
        """
        self.free, self._limit = free, precision(budget * (1 + slack))
        self.spent = np.zeros((n, replicas), precision)
        self.up = precision(1 + 4 * np.finfo(precision).eps)  # four units in the last place more than the sum of two numbers
        self.active, self._lock = np.zeros(replicas), threading.Lock()

    def from_row(self, first: int) -> "RowBudget":
        """The same budget for the rows from `first` on, which are counted from there."""
        part = copy(self)
        part.spent = self.spent[first:]
        return part

    @property
    def limit(self) -> Any:
        """The most that a row may have spent, in the precision of the sums."""
        return self._limit * np.inf if self.free > 0 else self._limit

    def count(self, replicas: slice, active: Floats) -> None:
        """Adds rows of some replicas to `active`; threads hand over different rows."""
        with self._lock:
            self.active[replicas] += active[: len(self.active[replicas])]

    def end_step(self) -> Floats:
        """(R,) rows that took part in the step."""
        taken = self.active.copy()
        self.active[:], self.free = 0.0, self.free - 1
        return taken

    def __call__(self, block: slice, norms: NDArray[np.floating]) -> NDArray[np.floating]:
        """Weights (R, b) for rows with gradients of these norms; what is not a number is not above the budget."""
        spent = self.spent[block].T
        spent += norms * norms
        spent *= self.up
        weights = 1 - (spent > self.limit).astype(norms.dtype)
        self.count(slice(None), weights.sum(axis=1))  # weights are added faster than truth values are counted, and as exactly
        return weights


def rule_of_part(rule: Rule | None, first: int) -> Rule | None:
    """A rule of all rows as one of the rows from `first` on."""
    if rule is None or first == 0:
        return rule
    if isinstance(rule, RowBudget):
        return rule.from_row(first)
    return lambda block, norms: rule(slice(block.start + first, block.stop + first), norms)
