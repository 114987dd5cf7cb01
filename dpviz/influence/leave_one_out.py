"""Exact retraining without a row, or with another row in its place: many re-solves as one computation.

The retrained objective keeps the divisor n, which is public: F_{-i} = F - phi(m_i)/n. All re-solves share one
factorised Hessian; each corrects it by the rows that leave and enter (Woodbury), so that an iteration costs one
gradient. Replicas that do not settle are solved one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, silent
from dpviz.models import Model, Rows, Setting, derivatives_of
from dpviz.models.problem import Problem

Solve = Callable[[Floats], Floats]

_CHUNK = 1 << 23  # rows x re-solves whose margins are worked on between two reports of progress
_MAX_STEPS = 30
_ROUNDING = 2e-15  # gradients of mean losses are not exact beyond this
_NETWORK = 1e-8  # gradient at which a model without a unique minimiser counts as trained: its own training goes no further


@dataclass(frozen=True, eq=False)
class Retrained:
    """Minimisers after a row was removed or replaced, for k rows. Positions count training rows from 0.

    Attributes:
        index: (k,) positions of the rows.
        theta: (k, m) minimisers without row i (or with its replacement).
        base: (m,) the minimiser with all rows.
        certificate: (k,) proved bound on the length of the error of each theta: |gradient|/lam, by strong convexity
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
        """(k,) lengths of `change`."""
        return np.linalg.norm(self.change, axis=1)

    def rank_correlation(self, lengths: Floats) -> float:
        """Spearman's rank correlation of (k,) predicted norms with `norm`, in [-1, 1]."""
        from scipy.stats import spearmanr  # a fifth of a second, which the first page does not need

        return float(spearmanr(lengths, self.norm).statistic)

    def on_loss(self, rows: Rows) -> Floats:
        """(k,) changes of the mean loss over `rows`, without the regulariser."""
        before = self.model.measure(self.base[None], rows)[0]
        return self.model.measure(self.theta, rows)[0] - before

    def on_scores(self, rows: Rows) -> Floats:
        """(k, t) changes of the scores of t rows."""
        before = self.model.scores(self.base[None], rows)
        return (self.model.scores(self.theta, rows) - before).T


@dataclass(frozen=True, eq=False)
class Correction:
    """Inverse Hessians of k problems that differ from a shared one by r rows that left or entered.

    H_new = H + P' diag(weight) P and H_new^{-1} v = u - Q' (I + D K)^{-1} D (P u), u = H^{-1} v, Q = P H^{-1},
    K = P Q', D = diag(weight)  (Woodbury; for r = 1 it is Sherman-Morrison and D K = -leverage).

    Attributes:
        P: (k, r, m) score gradients.
        Q: (k, r, m) P H^{-1}.
        weight: (k, r) curvature/n, negative for rows that left.
    """

    P: Floats
    Q: Floats
    weight: Floats

    @cached_property
    def _middle(self) -> Floats:
        kernel = self.weight[:, :, None] * np.einsum("krm,ksm->krs", self.P, self.Q)
        eye = np.eye(self.weight.shape[1])
        return np.linalg.solve(eye + kernel, self.weight[:, :, None] * eye)

    def solve(self, solve: Solve, right: Floats, at: NDArray[np.bool_]) -> Floats:
        """(k, m) H_new^{-1} right, for the problems `at`."""
        u = solve(right)
        inner = np.einsum("krs,ksm,km->kr", self._middle[at], self.P[at], u)
        return u - np.einsum("krm,kr->km", self.Q[at], inner)


def retrain(
    problem: Problem,
    theta: Floats,
    solve: Solve,
    index: NDArray[np.intp],
    replacement: Rows | None = None,
    *,
    rescale: bool = False,
    tolerance: float = 1e-9,
    monitor: Monitor = silent,
) -> Retrained:
    """Minimisers without each of the rows `index`, or with each replaced by its row of `replacement`.

    Args:
        problem: the training problem.
        theta: (m,) its minimiser.
        solve: (k, m) -> (k, m), the inverse of the Hessian at theta.
        index: (k,) positions of training rows.
        replacement: k rows, or None to remove.
        rescale: divide the loss of the remaining rows by n - 1 instead of the public n, as Kang-PIDP's
            definition of theta_{-z} does. Not for replacements.
        tolerance: gradient of the retrained objective, relative to the gradient of the row that is removed.
        monitor: receives progress; raises to cancel.
    """
    size = max(16, _CHUNK // problem.n)
    parts = []
    for start in range(0, len(index), size):
        part = slice(start, start + size)

        def report(share: float, start: int = start) -> None:
            monitor((start + share * min(size, len(index) - start)) / max(len(index), 1))

        rows = None if replacement is None else replacement.take(part)
        parts.append(_chunk(problem, theta, solve, index[part], rows, rescale, tolerance, report))
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


def correction(problem: Problem, theta: Floats, solve: Solve, leaving: Rows, entering: Rows | None) -> Correction:
    """The change of the Hessian at theta for each row that leaves and, if any, the row that enters in its place."""
    P, weight, derivatives = [], [], derivatives_of(problem.model)
    for rows, sign in ((leaving, -1.0), (entering, 1.0)):
        if rows is not None:
            P.append(derivatives.score_gradients(theta, rows))
            weight.append(sign * derivatives.slopes(theta, rows)[1] / problem.n)
    return Correction(np.stack(P, axis=1), np.stack([solve(p) for p in P], axis=1), np.stack(weight, axis=1))


def error_bound(setting: Setting, zeta: float | None = None) -> float:
    """Kang-PIDP Theorem 4: |theta_{-z} - theta* - c_z| <= (2 L G + C G^2 / zeta) / (zeta^2 n^2).

    L, G and C are bounds for one row's loss. With those of the data part and zeta = lam the bound holds for IF with
    the divisor n kept [ours: with weight w on row i, theta(w) has |theta''| <= the bound, since every Hessian on the
    way is at least lam I; Taylor's remainder is even half of it]. The publication asks zeta <= |H| at theta* only,
    which does not carry the proof: the smallest eigenvalue is needed, at all weights between.

    Args:
        zeta: lower bound on the eigenvalues of the Hessian; lam by default.

    Returns:
        The bound; infinite where the loss has a kinked slope (SVM), where the theorem says nothing.
    """
    floor = setting.lam if zeta is None else zeta
    return (2 * setting.beta * setting.G + setting.third * setting.G**2 / floor) / (floor**2 * setting.n**2)


def _chunk(
    problem: Problem,
    theta: Floats,
    solve: Solve,
    index: NDArray[np.intp],
    replacement: Rows | None,
    rescale: bool,
    tolerance: float,
    report: Callable[[float], None],
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    model, n = problem.model, problem.n
    # (1/(n-1)) sum + lam/2 |theta|^2 has the minimiser of (1/n) sum + (lam (n-1)/n)/2 |theta|^2
    lam = problem.lam * (n - 1) / n if rescale else problem.lam
    leaving = problem.rows.take(index)
    fixed = correction(problem, theta, solve, leaving, replacement)

    def gradient(t: Floats, at: NDArray[np.bool_]) -> Floats:
        total = model.sum_gradient(t, problem.rows) - row_gradients(model, t, leaving.take(np.flatnonzero(at)))
        if replacement is not None:
            total += row_gradients(model, t, replacement.take(np.flatnonzero(at)))
        return total / n + lam * t

    everyone = np.ones(len(index), bool)
    removed = row_gradients(model, theta, leaving)
    if replacement is not None:
        removed = removed - row_gradients(model, theta, replacement)
    removed = removed / n + (problem.lam - lam) * theta
    target = np.maximum(tolerance * np.linalg.norm(removed, axis=1), _ROUNDING if model.convex else _NETWORK)
    current = theta + fixed.solve(solve, removed, everyone)  # the Newton step
    size = np.full(len(index), np.inf)
    steps = np.zeros(len(index), np.intp)
    active, stuck = everyone.copy(), np.zeros(len(index), bool)
    for step in range(_MAX_STEPS):
        report((step / 4 if step < 4 else 0.99) * (1.0 if model.convex else 0.1))
        g = gradient(current[active], active)
        new = np.linalg.norm(g, axis=1)
        # the shared Hessian is close to the true one: each step shortens the gradient by much, or something is wrong
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
        current[k], size[k] = _alone(problem, int(index[k]), replacement, int(k), lam, current[k])
        steps[k] = -1
    return current, size / lam, steps


def _alone(problem: Problem, row: int, replacement: Rows | None, k: int, lam: float, start: Floats) -> tuple[Floats, float]:
    """One re-solve from scratch: its minimiser and the length of the gradient there."""
    n = problem.n
    if replacement is None:
        rest, share = problem.rows.take(np.delete(np.arange(n), row)), (n - 1) / n
    else:
        rest, share = problem.rows.replace_row(row, replacement.X[k], float(replacement.y[k])), 1.0
    theta = problem.model.minimise(rest, lam / share, start)
    gradient = problem.model.sum_gradient(theta[None], rest)[0] / n + lam * theta
    return theta, float(np.linalg.norm(gradient))
