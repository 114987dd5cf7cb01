"""Exact retraining without a row: many re-solves as one computation.

The retrained objective keeps the divisor n, which is public: F_{-i} = F - phi(m_i)/n. All re-solves share one
factorised Hessian; each corrects it by the row that leaves (Sherman-Morrison), so that an iteration costs one gradient.
Replicas that do not settle are solved one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.models import Model, Rows, Setting, derivatives_of
from dpviz.models.problem import Problem

Solve = Callable[[Floats], Floats]

_CHUNK = 1 << 23  # rows x re-solves whose margins are worked on between two reports of progress
_MAX_STEPS = 30
_ROUNDING = 2e-15  # gradients of mean losses are not exact beyond this
_NETWORK = 1e-8  # gradient at which a model without a unique minimiser counts as trained: its own training goes no further


@dataclass(frozen=True, eq=False)
class Retrained:
    """Minimisers after a row was removed, for k rows. Positions count training rows from 0.

    Attributes:
        index: (k,) positions of the rows.
        theta: (k, m) minimisers without row i.
        base: (m,) the minimiser with all rows.
        certificate: (k,) proved bound on the norm of the error of each theta: |gradient|/lam, by strong convexity
            of the retrained objective, plus the same for `base`; infinite for models that are not convex, where
            theta is the minimum that training from `base` leads to.
        steps: (k,) Newton steps after the first; -1 where the row was solved on its own.
        model, lam: what was trained.
    """

    index: NDArray[np.intp]
    theta: Floats
    base: Floats
    certificate: Floats
    steps: NDArray[np.intp]
    model: Model
    lam: float

    @cached_property
    def change(self) -> Floats:
        """(k, m) theta - base."""
        return self.theta - self.base

    @cached_property
    def norm(self) -> Floats:
        """(k,) norms of `change`."""
        return np.linalg.norm(self.change, axis=1)

    def rank_correlation(self, norms: Floats) -> float:
        """Spearman's rank correlation of (k,) predicted norms with `norm`, in [-1, 1]."""
        from scipy.stats import spearmanr  # a fifth of a second, which the first page does not need

        return float(spearmanr(norms, self.norm).statistic)

    def loss_change(self, rows: Rows) -> Floats:
        """(k,) changes of the mean loss over `rows`, without the regulariser."""
        before = self.model.measure(self.base[None], rows)[0]
        return self.model.measure(self.theta, rows)[0] - before

    def score_change(self, rows: Rows) -> Floats:
        """(k, t) changes of the scores of t rows."""
        before = self.model.scores(self.base[None], rows)
        return (self.model.scores(self.theta, rows) - before).T


@dataclass(frozen=True, eq=False)
class Correction:
    """Inverse Hessians of k problems from which one row each has left, by Sherman and Morrison.

    H_new = H - w P' P and H_new^{-1} v = u + Q' w (P u)/(1 - w P Q'), u = H^{-1} v, Q = P H^{-1}.

    Attributes:
        P: (k, m) score gradients of the rows.
        Q: (k, m) P H^{-1}.
        weight: (k,) curvature/n.
    """

    P: Floats
    Q: Floats
    weight: Floats

    @classmethod
    def compute(cls, problem: Problem, theta: Floats, solve: Solve, leaving: Rows) -> Self:
        """The correction at theta for each row that leaves."""
        derivatives = derivatives_of(problem.model)
        P = derivatives.score_gradients(theta, leaving)
        return cls(P, solve(P), derivatives.slopes(theta, leaving)[1] / problem.n)

    def solve(self, solve: Solve, right: Floats, at: NDArray[np.bool_]) -> Floats:
        """(k, m) H_new^{-1} right, for the problems `at`."""
        u, P, Q, weight = solve(right), self.P[at], self.Q[at], self.weight[at]
        along, leverage = np.einsum("km,km->k", P, u), weight * np.einsum("km,km->k", P, Q)
        return u + (weight * along / (1 - leverage))[:, None] * Q


def retrain(
    problem: Problem, theta: Floats, solve: Solve, index: NDArray[np.intp], *, tolerance: float = 1e-9, monitor: Monitor = ignore
) -> Retrained:
    """Minimisers without each of the rows `index`.

    Args:
        problem: the training problem.
        theta: (m,) its minimiser.
        solve: (k, m) -> (k, m), the inverse of the Hessian at theta.
        index: (k,) positions of training rows.
        tolerance: gradient of the retrained objective, relative to the gradient of the row that is removed.
        monitor: receives progress; raises to cancel.
    """
    size = max(16, _CHUNK // problem.n)
    parts = []
    for start in range(0, len(index), size):
        part = slice(start, start + size)

        def report(share: float, start: int = start) -> None:
            monitor((start + share * min(size, len(index) - start)) / max(len(index), 1))

        parts.append(_chunk(problem, theta, solve, index[part], tolerance, report))
    if not parts:
        parts = [(np.empty((0, len(theta))), np.empty(0), np.empty(0, np.intp))]
    own = np.linalg.norm(problem.model.sum_gradient(theta[None], problem.rows)[0] / problem.n + problem.lam * theta)
    certificate = np.concatenate([p[1] for p in parts]) + own / problem.lam
    return Retrained(
        index=index,
        theta=np.concatenate([p[0] for p in parts]),
        base=theta,
        certificate=certificate if problem.model.convex else np.full(len(index), np.inf),
        steps=np.concatenate([p[2] for p in parts]),
        model=problem.model,
        lam=problem.lam,
    )


def row_gradients(model: Model, theta: Floats, rows: Rows) -> Floats:
    """(n, m) data gradients; theta (m,) for all rows or (n, m) for row i at theta[i]."""
    derivatives = derivatives_of(model)
    slope, _ = derivatives.slopes(theta, rows)
    return (rows.y * slope)[:, None] * derivatives.score_gradients(theta, rows)


def error_bound(setting: Setting) -> float:
    """Kang-PIDP Theorem 4 at zeta = lam: |theta_{-z} - theta* - c_z| <= (2 L G + C G^2 / lam) / (lam^2 n^2).

    L, G and C are bounds for one row's loss. With those of the data part the bound holds for IF with
    the divisor n kept [ours: with weight w on row i, theta(w) has |theta''| <= the bound, since every Hessian on the
    way is at least lam I; Taylor's remainder is even half of it]. The publication asks zeta <= |H| at theta* only,
    which does not carry the proof: the smallest eigenvalue is needed, at all weights between.

    Returns:
        The bound; infinite where the loss has a kinked slope (SVM), where the theorem says nothing.
    """
    lam = setting.lam
    return (2 * setting.beta * setting.G + setting.third * setting.G**2 / lam) / (lam**2 * setting.n**2)


def _chunk(
    problem: Problem, theta: Floats, solve: Solve, index: NDArray[np.intp], tolerance: float, report: Callable[[float], None]
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    model, n, lam = problem.model, problem.n, problem.lam
    leaving = problem.rows.take(index)
    fixed = Correction.compute(problem, theta, solve, leaving)

    def gradient(t: Floats, at: NDArray[np.bool_]) -> Floats:
        total = model.sum_gradient(t, problem.rows) - row_gradients(model, t, leaving.take(np.flatnonzero(at)))
        return total / n + lam * t

    everyone = np.ones(len(index), bool)
    removed = row_gradients(model, theta, leaving) / n
    target = np.maximum(tolerance * np.linalg.norm(removed, axis=1), _ROUNDING if model.convex else _NETWORK)
    current = theta + fixed.solve(solve, removed, everyone)  # the Newton step
    size = np.full(len(index), np.inf)
    steps = np.zeros(len(index), np.intp)
    active, stuck = everyone.copy(), np.zeros(len(index), bool)
    for step in range(_MAX_STEPS):
        report((step / 4 if step < 4 else 0.99) * (1.0 if model.convex else 0.1))
        g = gradient(current[active], active)
        new = np.linalg.norm(g, axis=1)
        # the shared Hessian is close to the true one: each step lowers the gradient's norm by much, or something is wrong
        stuck[active] = (new > 0.7 * size[active]) & (new > target[active])
        size[active] = new
        going = (new > target[active]) & ~stuck[active]
        active[active] = going
        if not active.any():
            break
        current[active] -= fixed.solve(solve, g[going], active)
        steps[active] += 1
    alone = np.flatnonzero(active | stuck)
    for count, k in enumerate(alone):
        report(0.99 if model.convex else 0.1 + 0.9 * count / len(alone))  # most networks end up here
        current[k], size[k] = _alone(problem, int(index[k]), current[k])
        steps[k] = -1
    return current, size / lam, steps


def _alone(problem: Problem, row: int, start: Floats) -> tuple[Floats, float]:
    """One re-solve from scratch: its minimiser and the norm of the gradient there."""
    n, rest = problem.n, problem.rows.take(np.delete(np.arange(problem.n), row))
    theta = problem.model.minimise(rest, problem.lam * n / (n - 1), start)
    gradient = problem.model.sum_gradient(theta[None], rest)[0] / n + problem.lam * theta
    return theta, float(np.linalg.norm(gradient))
