"""Influence functions of all training rows at once, from one factorised Hessian.

Signs: every effect is what *removing* the row does (theta_{-i} - theta*), with the divisor n kept because n is public.

    H = (1/n) sum_j phi''_j J_j J_j' + lam I           J_j = derivative of row j's score, x_j for linear models
    influence   IF_i = (1/n) H^{-1} g_i                g_i = y_i phi'_i J_i, row i's data gradient
    leverage    h_i  = phi''_i J_i' H^{-1} J_i / n      in [0, 1)
    Newton      NS_i = IF_i / (1 - h_i)                 one Newton step on the objective without row i (Sherman-Morrison)

Sources: Koh & Liang, ICML 2017 (IF); Cook & Weisberg 1982 (leverage); Kang et al. (PIDP), eq. (11) and Theorem 4.
All of it is read off private rows and none of it is covered by any privacy budget.

The inverse of an objective's Hessian: factorised, by conjugate gradients, or in the model's own approximation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_choice, check_integer
from dpviz.influence.leave_one_out import Retrained, retrain, row_gradients
from dpviz.models import Curvature, Derivatives, Rows, derivatives_of, margins
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
    def derivatives(self) -> Derivatives:
        """The derivatives that the model declares."""
        return derivatives_of(self.problem.model)

    @cached_property
    def hessian(self) -> Floats:
        """(m, m) H."""
        return self.derivatives.hessian(self.theta, self.problem.rows, self.problem.lam)

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
        return self.derivatives.curvature(self.theta, self.problem.rows, self.problem.lam)

    def solve(self, vectors: Floats) -> Floats:
        """(k, m) H^{-1} v for k vectors (k, m)."""
        if self.solver == "dense":
            if "_inverse" not in self.__dict__ and _FEW * len(vectors) < len(self.theta):
                return cho_solve(self._factor, vectors.T).T  # the inverse costs as much as m such vectors
            return vectors @ self._inverse
        if self.solver == "factored":
            return self._factored.solve(vectors)
        rows, lam = self.problem.rows, self.problem.lam
        return conjugate_gradients(lambda v: self.derivatives.hessian_product(self.theta, rows, lam, v), vectors)

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
            yield block, self.derivatives.score_gradients(self.theta, rows.take(block))


_DENSE_LIMIT = 4000  # parameters up to which the Hessian is formed and factorised
DENSE_APPROXIMATION = 1500  # the same where the Hessian is approximate anyway, and a cheaper approximation is at hand
_MOST_LEVERAGE = 0.9
_RETRAINED = 5  # rows that are retrained without, to know which of them is the most influential
_MINIMISER = 1e-8  # gradient up to which parameters count as the minimum of a convex problem
_TRAINED = 1e-6  # gradient up to which a network counts as being at a minimum


def influence_of(
    problem: Problem, theta: Floats | None = None, *, solver: str = "auto", row_ids: NDArray[np.integer] | None = None
) -> Influence:
    """Influence of every training row of a problem.

    Args:
        problem: rows, model and regularisation.
        theta: (m,) the parameters at which to look; the non-private minimiser by default.
        solver: "dense" factorises the Hessian, "cg" solves with products only, "factored" uses the model's own
            approximation without an m x m matrix, "auto" picks by the number of parameters.
        row_ids: (n,) what the rows are called in `Influence.frame`; their positions by default.

    Raises:
        InvalidInput: theta has another length or is not finite, or the model gives no derivatives or has no such solver.
    """
    check_choice("solver", solver, ("auto", "dense", "cg", "factored"))
    factored = derivatives_of(problem.model).factored
    if solver == "auto":
        solver = "dense" if problem.m <= _DENSE_LIMIT else "cg"
        if problem.m > DENSE_APPROXIMATION and factored:
            solver = "factored"
    elif solver == "factored" and not factored:
        raise InvalidInput("solver", f"{problem.model.id!r} has no factored curvature", "Choose dense or cg.")
    if theta is None:
        theta = problem.optimum
    theta = np.asarray(theta, float)
    if theta.shape != (problem.m,) or not np.isfinite(theta).all():
        raise InvalidInput("theta", f"must be {problem.m} finite numbers, got shape {theta.shape}", "Give one parameter vector.")
    return Influence(problem, theta, solver, row_ids)


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of n training rows on a model with m parameters; arrays go by position in the training rows.

    Everything is computed when first asked for and then kept, except n x m matrices, which are never kept.

    Attributes:
        problem: rows, model and regularisation.
        theta: (m,) where the influence is taken.
        solver: "dense", "cg" or "factored".
        row_ids: (n,) ids of the rows; None where only their positions are known.
    """

    problem: Problem
    theta: Floats
    solver: str
    row_ids: NDArray[np.integer] | None = None

    @property
    def exact_curvature(self) -> bool:
        """False where H is a Gauss-Newton approximation, so that IF and NS are approximate even to first order."""
        return self._inverse.derivatives.exact

    @cached_property
    def residual(self) -> float:
        """|gradient of F at theta|: how far theta is from being a minimiser; the influence assumes 0."""
        total = self.problem.model.sum_gradient(self.theta[None], self.problem.rows)[0]
        return float(np.linalg.norm(total / self.problem.n + self.problem.lam * self.theta))

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        return self._inverse.derivatives.slopes(self.theta, self.problem.rows)

    @cached_property
    def _coefficients(self) -> Floats:
        """(n,) coefficients y_i phi'_i / n of J_i in g_i / n."""
        return self.problem.rows.y * self._slopes[0] / self.problem.n

    @cached_property
    def _inverse(self) -> InverseHessian:
        return InverseHessian(self.problem, self.theta, self.solver)

    @property
    def hessian(self) -> Floats:
        """(m, m) H."""
        return self._inverse.hessian

    def solve(self, vectors: Floats) -> Floats:
        """(k, m) H^{-1} v for k vectors (k, m)."""
        return self._inverse.solve(vectors)

    @cached_property
    def _quadratic(self) -> tuple[Floats, Floats]:
        """(n,) |H^{-1} J_i| and (n,) J_i' H^{-1} J_i."""
        return self._inverse.quadratic(self.problem.rows)

    @cached_property
    def norm(self) -> Floats:
        """(n,) |IF_i|."""
        return np.abs(self._coefficients) * self._quadratic[0]

    @cached_property
    def leverage(self) -> Floats:
        """(n,) h_i, the share of the curvature along its own direction that row i itself provides.

        A factored curvature may miss part of a row's own share, which would make it more than all of it; it counts as at
        most 0.9 then.
        """
        share = self._slopes[1] * self._quadratic[1] / self.problem.n
        return np.minimum(share, _MOST_LEVERAGE) if self.solver == "factored" else share

    @cached_property
    def newton_norm(self) -> Floats:
        """(n,) |NS_i|: much closer to retraining than `norm`."""
        return self.norm / (1.0 - self.leverage)

    @cached_property
    def leaders(self) -> Retrained | None:
        """Retrained without each of the rows of the largest Newton steps; None for networks and where theta is no minimum."""
        if not self.problem.model.convex or self.residual > _MINIMISER:
            return None
        return self.leave_one_out(np.argsort(-self.newton_norm, kind="stable")[:_RETRAINED])

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(n,) positions of the rows, the most influential first: by what the parameters change without the row.

        The rows of the largest Newton steps are retrained without, and stand by that; all others stand by the Newton step. A
        network, and parameters that are no minimum, have nothing to retrain to: there the Newton step decides alone.
        """
        ranks = np.argsort(-self.newton_norm, kind="stable")
        if self.leaders is not None:
            ranks[:_RETRAINED] = self.leaders.index[np.argsort(-self.leaders.norm, kind="stable")]
        return ranks

    @cached_property
    def flip_norm(self) -> Floats:
        """(n,) how far the parameters move to first order when the row's label is flipped: |H^{-1}(g_i - g_i')|/n."""
        model, rows = self.problem.model, self.problem.rows
        margin = margins(model, self.theta[None], rows)[:, 0]
        here, there = rows.weights_with(rows.y), rows.weights_with(-rows.y)
        # y w phi'(m) J against -y w' phi'(-m) J, w' the weight of the other label
        return np.abs(here * model.loss.slope(margin) + there * model.loss.slope(-margin)) / self.problem.n * self._quadratic[0]

    @cached_property
    def published_norm(self) -> Floats:
        """(n,) |c_i|, Kang-PIDP eq. (11) with the regulariser inside each row's loss: c_i = H^{-1}(g_i + lam theta)/n."""
        shift = self.solve(self.theta[None])[0] * (self.problem.lam / self.problem.n)
        # |IF_i + shift|^2, where IF_i . shift is the effect on a quantity with gradient `shift`
        square = self.norm**2 + 2 * self.effect(shift, newton=False) + shift @ shift
        return np.sqrt(np.maximum(square, 0.0))

    def parameters(self, index: ArrayLike | None = None, kind: str = "newton") -> Floats:
        """(k, m) effects on the parameters of the rows at these positions (all n by default).

        Args:
            kind: "influence" (IF), "newton" (NS) or "published" (Kang-PIDP eq. (11)).
        """
        check_choice("kind", kind, ("influence", "newton", "published"))
        at = self.positions(index)
        rows = self.problem.rows.take(at)
        out = self.solve(row_gradients(self.problem.model, self.theta, rows) / self.problem.n)
        if kind == "newton":
            out /= (1.0 - self._leverage_at(at, rows))[:, None]
        elif kind == "published":
            out += self.solve(self.theta[None]) * (self.problem.lam / self.problem.n)
        return out

    def _leverage_at(self, at: NDArray[np.intp], rows: Rows) -> Floats:
        if "_quadratic" in self.__dict__:
            return self.leverage[at]
        J = self._inverse.derivatives.score_gradients(self.theta, rows)
        share = self._slopes[1][at] * np.einsum("ij,ij->i", J, self.solve(J)) / self.problem.n
        return np.minimum(share, _MOST_LEVERAGE) if self.solver == "factored" else share

    def effect(self, gradients: Floats, *, newton: bool = True) -> Floats:
        """First-order effects of removing each row on quantities with these gradients at theta: gradient . NS_i.

        Args:
            gradients: (m,) or (t, m).
            newton: use NS_i; otherwise IF_i.

        Returns:
            (n,) or (n, t)
        """
        targets = np.atleast_2d(np.asarray(gradients, float))
        changed = self._inverse.derivatives.score_products(self.theta, self.problem.rows, self.solve(targets))
        out = changed * self._coefficients[:, None]
        if newton:
            out /= (1.0 - self.leverage)[:, None]
        return out[:, 0] if np.ndim(gradients) == 1 else out

    def loss_change(self, rows: Rows) -> Floats:
        """(n,) effects on the mean loss over `rows` (test rows, for example): below 0 the row does harm there."""
        return self.effect(self.problem.model.sum_gradient(self.theta[None], rows)[0] / len(rows))

    @cached_property
    def training_loss_change(self) -> Floats:
        """(n,) effects on the mean loss over all training rows, the removed one included, without the regulariser."""
        return self.loss_change(self.problem.rows)

    @cached_property
    def own_loss_change(self) -> Floats:
        """(n,) effects on the row's own loss, >= 0: how much the model relies on having seen the row."""
        square = self._slopes[0] ** 2 * self._quadratic[1] / self.problem.n  # g_i . IF_i
        return square / (1.0 - self.leverage)

    @cached_property
    def objective_change(self) -> Floats:
        """(n,) F(theta_{-i}) - F(theta*) to second order, NS_i' H NS_i / 2, >= 0; the first order vanishes at the minimum."""
        return 0.5 * self._coefficients**2 * self._quadratic[1] / (1.0 - self.leverage) ** 2

    def score_change(self, rows: Rows) -> Floats:
        """(n, t) effects on the scores of t rows, for example one chosen test row."""
        return self.effect(self._inverse.derivatives.score_gradients(self.theta, rows))

    def leave_one_out(self, index: ArrayLike | None = None, *, tolerance: float = 1e-9, monitor: Monitor = ignore) -> Retrained:
        """The exact minimisers without each of these rows (all n by default), each with a proved error bound.

        Args: as in `dpviz.influence.leave_one_out.retrain`.
        """
        at = self.positions(index)
        self._need_minimiser()
        return retrain(self.problem, self.theta, self.solve, at, tolerance=tolerance, monitor=monitor)

    def frame(self) -> pd.DataFrame:
        """One row per training row, by its id.

        influence_function and newton_step approximate the change of the parameters without the row, rank is its place in
        `order`; leverage, own_loss, training_loss, objective.
        """
        rank = np.argsort(self.order) + 1
        return pd.DataFrame(
            {
                "influence_function": self.norm,
                "newton_step": self.newton_norm,
                "leverage": self.leverage,
                "own_loss": self.own_loss_change,
                "training_loss": self.training_loss_change,
                "objective": self.objective_change,
                "rank": rank,
            },
            index=pd.RangeIndex(self.problem.n) if self.row_ids is None else pd.Index(self.row_ids, name="row_id"),
        )

    def positions(self, index: ArrayLike | None) -> NDArray[np.intp]:
        """Checked positions of training rows, 0 <= i < n; all of them for None."""
        if index is None:
            return np.arange(self.problem.n)
        return np.array([check_integer("index", i, 0, self.problem.n - 1) for i in np.atleast_1d(np.asarray(index))], np.intp)

    @property
    def at_minimum(self) -> bool:
        """True where training without privacy has reached a minimum; elsewhere retraining moves the model without any row."""
        return self.residual <= (_MINIMISER if self.problem.model.convex else _TRAINED)

    def _need_minimiser(self) -> None:
        if self.at_minimum:
            return
        if self.problem.model.convex:
            raise InvalidInput("theta", "is not the minimiser, so retraining has nothing to compare with", "Leave theta out.")
        raise InvalidInput(
            "model",
            f"is not at a minimum (its gradient has norm {self.residual:.1g}): retraining would move it without any row",
            "Use fewer rows or fewer hidden units, where training without privacy reaches a minimum.",
        )
