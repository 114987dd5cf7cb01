"""Limited-memory BFGS on many perturbed objectives at once; `dpviz.models.solvers.many.minimise_many` is the way in."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from dpviz.common.arrays import Floats
from dpviz.common.threads import MOST_GROUPS, Each, parallel_sum
from dpviz.models.losses import Loss
from dpviz.models.products import products
from dpviz.models.rows import Rows

Indices = NDArray[np.intp]

_MEMORY = 20  # secant pairs
_PATIENCE = 12  # steps between two looks for slow replicas: a new preconditioner forgets the pairs
_NEAR = 0.5  # largest change of a Hessian's diagonal at which a shared one is about as good as a sampled one


class Batch:
    """R replicas on their way down; arrays have one row per replica and keep their order.

    Attributes:
        theta: (R, d) where they are.
        inverse: (R, d, d) inverse Hessians over `sample`, one per replica, in single precision.
    """

    def __init__(self, loss: Loss, lam: Floats, linear: Floats, theta: Floats, sample: Rows, each: Each) -> None:
        self.loss, self.lam, self.linear, self.theta, self.sample = loss, lam, linear, theta.copy(), sample
        self.each = each
        count, d = theta.shape
        self.inverse = np.empty((count, d, d), np.float32)
        self.steps = np.zeros((_MEMORY, count, d))
        self.changes = np.zeros((_MEMORY, count, d))
        self.rho = np.zeros((_MEMORY, count))  # 1/<step, change>; 0 marks a pair that is not used
        self.last = np.zeros((count, d))  # gradients at theta
        self.precondition(np.arange(count), shared=bool((theta == theta[0]).all()))

    def precondition(self, index: Indices, *, rows: Rows | None = None, shared: bool = False) -> None:
        """Renews the inverse Hessians of some replicas.

        Args:
            rows: rows that stand for all; `sample` by default.
            shared: whether to take the first replica's Hessian for all of them.
        """
        rows = self.sample if rows is None else rows
        self.rho[:, index] = 0.0
        if shared:
            data = _weighted(rows.signed_rows32, self.weights(index[:1], rows)[:, 0])
            inverses = {lam: _inverse(data, lam) for lam in set(self.lam[index].tolist())}
            for r in index:
                self.inverse[r] = inverses[float(self.lam[r])]
            return

        def renew(k: int) -> None:
            data = _weighted(rows.signed_rows32, self.weights(index[k : k + 1], rows)[:, 0])
            self.inverse[index[k]] = _inverse(data, float(self.lam[index[k]]))

        self.each(renew, len(index))

    def weights(self, index: Indices, rows: Rows) -> NDArray[np.float32]:
        """(rows, k) weighted curvatures of the loss at the margins of some replicas."""
        curvature = self.loss.curvature(rows.signed_rows32 @ self.theta[index].T.astype(np.float32))
        return (curvature if rows.weights is None else curvature * rows.weights[:, None]).astype(np.float32, copy=False)

    def share(self, rows: Rows) -> Indices:
        """Gives replicas that are close to the least noisy one the Hessian that this one has over all rows.

        Close are those whose Hessians have nearly the same diagonal, relative to it and λ: rare values count as others do.

        Returns:
            The replicas that are too far for that.
        """
        leader = int(dot(self.linear, self.linear).argmin())
        squares, curvatures = np.square(self.sample.signed_rows32), self.weights(np.arange(len(self.theta)), self.sample)
        diagonal = curvatures.T @ squares / np.float32(len(self.sample))
        apart = (np.abs(diagonal - diagonal[leader]) / (diagonal[leader] + self.lam[:, None])).max(axis=1)
        near = apart <= _NEAR
        near[leader] = False
        if near.sum() * len(self.sample) < len(rows):  # all rows cost more than a sample for each
            return np.arange(len(self.theta))
        self.precondition(np.concatenate([[leader], np.flatnonzero(near)]), rows=rows, shared=True)
        near[leader] = True
        return np.flatnonzero(~near)

    def gradient(self, rows: Rows, kind: type[np.floating], index: Indices, theta: Floats, tick: Callable[[], None]) -> Floats:
        """(k, d) gradients over some rows of the replicas in `index` at the points `theta`, (k, d), in one precision."""
        parts = rows.parts(MOST_GROUPS)
        total = parallel_sum(self.each, lambda k: products(parts[k][1], kind).gradient(theta, self.loss), len(parts))
        tick()
        return total / len(rows) + self.lam[index, None] * theta + self.linear[index]

    def direction(self, index: Indices, gradient: Floats) -> Floats:
        """Minus the approximate inverse Hessians times the gradients (Nocedal, Wright 2006, Algorithm 7.4)."""
        q, weights = gradient.copy(), []
        filled = np.flatnonzero(self.rho[:, index].any(axis=1))
        used = [(self.rho[j, index], self.steps[j, index], self.changes[j, index]) for j in filled]
        for rho, step, change in used:  # newest first
            weight = rho * dot(step, q)
            q -= weight[:, None] * change
            weights.append(weight)
        p = np.matmul(self.inverse[index], q.astype(np.float32)[:, :, None])[:, :, 0].astype(float)
        for (rho, step, change), weight in zip(reversed(used), reversed(weights), strict=True):
            p += (weight - rho * dot(change, p))[:, None] * step
        # rounding in single precision may spoil a direction; the gradient is never spoilt
        uphill = ~(dot(p, gradient) > 0)
        p[uphill] = gradient[uphill] / (self.loss.curvature_bound + self.lam[index[uphill]])[:, None]
        return -p

    def remember(self, index: Indices, step: Floats, change: Floats) -> None:
        """Adds a secant pair to some replicas and forgets their oldest."""
        for store, new in ((self.steps, step), (self.changes, change)):
            store[1:, index] = store[:-1, index]
            store[0, index] = new
        curvature = dot(step, change)
        usable = curvature > 1e-12 * np.sqrt(dot(step, step) * dot(change, change))
        self.rho[1:, index] = self.rho[:-1, index]
        self.rho[0, index] = np.where(usable, 1.0 / np.where(usable, curvature, 1.0), 0.0)

    def descend(
        self,
        rows: Rows,
        kind: type[np.floating],
        enough: Callable[[Indices], Floats],
        tick: Callable[[Floats], None],
        *,
        max_steps: int,
        renew_above: float,
        resume: bool = False,
    ) -> Indices:
        """Moves the replicas until their gradients over the rows are small enough.

        Args:
            kind: precision of the gradients.
            enough: gradient norms that end the descent, for some replicas.
            tick: receives the gradient norms from time to time.
            max_steps: gradients per replica, line searches not counted.
            renew_above: gradient norm above which a slow replica gets a new preconditioner.
            resume: whether to take a first step from the gradients that the last descent ended with, less precise
                ones; none is there before a gradient over the rows says so.

        Returns:
            The replicas that are not there yet.
        """
        active = np.arange(len(self.theta))
        norm = np.full(len(active), np.inf)

        if not resume:
            self.last = self.gradient(rows, kind, active, self.theta, lambda: tick(norm))
        gradient = self.last
        norm = np.sqrt(dot(gradient, gradient))
        for k in range(max_steps):
            if k > 0 or not resume:
                active = active[norm[active] > enough(active)]
            if len(active) == 0:
                break
            step, new = self.search(rows, kind, active, gradient[active], lambda: tick(norm))
            imprecise = k == 0 and resume
            self.remember(active, step, new - gradient[active])
            if imprecise:
                self.rho[0, active] = 0.0  # a difference of a rough and a precise gradient
            self.theta[active] += step
            new_norm = np.sqrt(dot(new, new))
            slow = active[(new_norm > 0.5 * norm[active]) & (new_norm > renew_above)]
            gradient[active], norm[active] = new, new_norm
            if len(slow) and k % _PATIENCE == _PATIENCE - 1:
                self.precondition(slow)
        return active[norm[active] > enough(active)]

    def search(
        self, rows: Rows, kind: type[np.floating], index: Indices, gradient: Floats, report: Callable[[], None]
    ) -> tuple[Floats, Floats]:
        """Steps along the directions, and the gradients there.

        A step is taken when the slope at its end is at most half of the slope at its start, upwards: the approximate
        Wolfe condition (Hager, Zhang 2005), which needs no function values and so not the digits that they lack
        near a minimum. Where the end still slopes down, convexity alone makes it a decrease.
        """
        direction = self.direction(index, gradient)
        start = dot(direction, gradient)
        step_size = np.ones(len(index))
        new = np.empty_like(gradient)
        todo = np.arange(len(index))
        for _ in range(40):
            there = self.theta[index[todo]] + step_size[todo, None] * direction[todo]
            new[todo] = self.gradient(rows, kind, index[todo], there, report)
            end = dot(direction[todo], new[todo])
            far = end > -0.5 * start[todo]
            if not far.any():
                break
            # to where the slope vanishes if it is linear in between
            todo, end = todo[far], end[far]
            step_size[todo] *= np.clip(start[todo] / (start[todo] - end), 0.1, 0.7)
        return step_size[:, None] * direction, new


def _weighted(rows: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """(d, d) mean over rows of weight x row row'."""
    used = weight > 0
    few = 2 * np.count_nonzero(used) < len(used)
    scaled = (rows[used] if few else rows) * np.sqrt((weight[used] if few else weight) / np.float32(len(rows)))[:, None]
    return scaled.T @ scaled


def _inverse(data: NDArray[np.float32], lam: float) -> NDArray[np.float32]:
    """(data + lam I)^-1 from a Cholesky factor; I/lam where single precision finds none."""
    hessian = data.copy()
    hessian[np.diag_indices_from(hessian)] += np.float32(lam)
    factor, failed = lapack.spotrf(hessian, lower=1)
    if failed:
        return np.eye(len(data), dtype=np.float32) / np.float32(lam)
    lower, _ = lapack.spotri(factor, lower=1)
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def dot(a: Floats, b: Floats) -> Floats:
    """Inner products of rows."""
    return np.einsum("ij,ij->i", a, b)
