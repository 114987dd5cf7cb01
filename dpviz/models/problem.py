"""A training problem: rows, a model and its regularisation. What mechanisms are given to train on.

Under add-remove neighbours have n and n - 1 rows, so the number of rows is private and nothing may be divided by it [ours]. Let
n0 be a public constant. The proofs are about sums over rows, which one row moves by at most one term:

- objective perturbation minimises sum loss + (n0 lam + Delta)/2 |theta|^2 + <b, theta>: the sum alone differs on neighbours;
- noisy descent is theta <- theta - eta ((sum of clipped gradients + noise)/(q n0) + lam theta): with n0, q and lam public it is
  the same function of the noisy sum on both, so post-processing; a score of step sizes has n0 lam/2 |theta|^2 likewise.

With the number of rows in the place of n0 that function differs: the noise is divided by n on one side and by n - 1 on the other,
which no calibration counts. Any n0 >= 1 will do for the proof; far from the number of rows it is another lam and another eta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor
from dpviz.models import Model, Rows, Setting, regulariser


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise mean loss over `rows` + lam/2 |theta|^2.

    Attributes:
        rows: the training rows.
        model: the model.
        lam: l2 regularisation, > 0.
        public_n: n0, what noise and steps are divided by where the number of rows is private (add-remove); 0 for that number.
    """

    rows: Rows
    model: Model
    lam: float
    public_n: int = 0

    @cached_property
    def setting(self) -> Setting:
        """Public facts about the problem, the only thing that a calibration sees."""
        rows = self.rows
        return replace(
            self.model.setting(self.n, rows.X.shape[1], self.lam),
            person_rows=rows.person_rows,
            weighted=rows.weights is not None,
            preparations=rows.preparations,
            looked_at=rows.looked_at,
        )

    @property
    def n(self) -> int:
        """The public number of training rows."""
        return self.public_n or len(self.rows)

    @property
    def m(self) -> int:
        """Parameters."""
        return self.setting.m

    @cached_property
    def optimum(self) -> Floats:
        """(m,) the non-private minimiser theta*."""
        return self.model.minimise(self.rows, self.lam)

    @property
    def solved(self) -> bool:
        """True where `optimum` was computed already."""
        return "optimum" in self.__dict__

    def find_optimum(self, monitor: Monitor) -> None:
        """Computes `optimum` now unless it is there; `monitor` receives progress and raises to cancel."""
        if not self.solved:
            self.__dict__["optimum"] = self.model.minimise(self.rows, self.lam, monitor=monitor)

    @cached_property
    def optimal_value(self) -> float:
        """F(theta*)."""
        return float(self.objective(self.optimum[None])[0])

    def objective(self, theta: Floats) -> Floats:
        """(R,) values of the regularised objective."""
        return self.measure(theta)[0]

    def measure(self, theta: Floats) -> tuple[Floats, Floats]:
        """(R,) values of the regularised objective, and (R,) shares of the training rows predicted right."""
        loss, right = self.model.measure(theta, self.rows)
        return loss + regulariser(theta, self.lam), right

    def replace_row(self, index: int | NDArray[np.intp], x: Floats, y: float | Floats) -> Problem:
        """The neighbouring problem in which training row `index` (by position), or several rows of one person, are (x, y)."""
        return replace(self, rows=self.rows.replace_row(index, x, y))


def accuracy(model: Model, theta: Floats, rows: Rows) -> Floats:
    """(R,) shares of rows predicted right, in [0, 1]."""
    return model.measure(theta, rows)[1]
