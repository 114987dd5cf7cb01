"""The inverse of an objective's Hessian: factorised, by conjugate gradients, or in the model's own approximation."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpviz.common.arrays import Floats
from dpviz.models import Curvature, Derivatives, Rows, derivatives_of
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import conjugate_gradients

_FEW = 16  # vectors are few if this many times their number is below the number of parameters
_BLOCK_BYTES = 1 << 21  # score gradients worked on at once


@dataclass(frozen=True, eq=False)
class InverseHessian:
    """H^{-1} of a problem at theta, computed when first needed.

    Attributes:
        problem: rows, model and regularisation.
        theta: (m,)
        solver: "dense" factorises H, "cg" solves with products only, "factored" uses the model's own approximation.
    """

    problem: Problem
    theta: Floats
    solver: str

    @cached_property
    def _derivatives(self) -> Derivatives:
        return derivatives_of(self.problem.model)

    @cached_property
    def hessian(self) -> Floats:
        """(m, m) H."""
        return self._derivatives.hessian(self.theta, self.problem.rows, self.problem.lam)

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        factor, lower = cho_factor(self.hessian)
        return factor, bool(lower)

    @cached_property
    def _inverse(self) -> Floats:
        inverse = cho_solve(self._factor, np.eye(len(self.theta)))
        return 0.5 * (inverse + inverse.T)

    @cached_property
    def _factored(self) -> Curvature:
        return self._derivatives.curvature(self.theta, self.problem.rows, self.problem.lam)

    def solve(self, vectors: Floats) -> Floats:
        """(k, m) H^{-1} v for k vectors (k, m)."""
        if self.solver == "dense":
            if "_inverse" not in self.__dict__ and _FEW * len(vectors) < len(self.theta):
                return cho_solve(self._factor, vectors.T).T  # the inverse costs as much as m such vectors
            return vectors @ self._inverse
        if self.solver == "factored":
            return self._factored.solve(vectors)
        rows, lam = self.problem.rows, self.problem.lam
        return conjugate_gradients(lambda v: self._derivatives.hessian_product(self.theta, rows, lam, v), vectors)

    def quadratic(self, rows: Rows) -> tuple[Floats, Floats]:
        """(k,) |H^{-1} J_i| and (k,) J_i' H^{-1} J_i for the score gradients J_i of k rows."""
        if self.solver == "factored":
            return self._factored.quadratic(rows)
        norm, kernel = np.empty(len(rows)), np.empty(len(rows))
        for block, J in self._blocks(rows):
            U = self.solve(J)
            np.sqrt(np.einsum("ij,ij->i", U, U), out=norm[block])
            np.einsum("ij,ij->i", J, U, out=kernel[block])
        return norm, kernel

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, Floats]]:
        """Slices of the rows with their score gradients (rows, m)."""
        n = len(rows)
        size = max(64, _BLOCK_BYTES // (8 * len(self.theta)))
        for start in range(0, n, size):
            block = slice(start, min(start + size, n))
            yield block, self._derivatives.score_gradients(self.theta, rows.take(block))
