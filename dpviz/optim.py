"""Solvers that bring many perturbed objectives to their minimum together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dpviz.losses import Loss

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_SAMPLE = 3072  # rows that approximate a Hessian: cheaper ones slow the descent, dearer ones do not pay
_COARSE = 2e-3  # gradient norm at which the sample's own minimiser says no more about all rows
_MEMORY = 10  # secant pairs
_BLOCK_ELEMENTS = 1 << 18  # rows x replicas at once: fits the processor's cache
_REPLICAS = 256  # solved at once; bounds the memory of their preconditioners
_ULP = 2.0**-53


class NotConverged(RuntimeError):
    """A solver stopped above the gradient norm that its caller's proof needs."""


def minimise_many(
    signed: Floats,
    loss: Loss,
    lam: Floats,
    linear: Floats,
    *,
    start: Floats | None = None,
    tolerance: float = 1e-12,
    strict: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Floats:
    """Minimises (1/n) sum phi(<z_i, theta>) + lam_r/2 |theta|^2 + <b_r, theta> for R pairs (lam_r, b_r) together.

    Limited-memory BFGS on all replicas at once, so that a gradient of each is one column of two matrix products. Each
    replica has its own preconditioner, the inverse of its Hessian over a sample of rows, renewed when progress slows.
    The problem of the sample alone is solved first, roughly. What has converged drops out; what does not is given
    to `newton` with full Hessians. The result is checked in double precision whatever the path.

    Args:
        signed: (n, d) rows z_i = y_i x_i.
        lam: (R,) total l2 regularisation, each > 0.
        linear: (R, d) linear terms b_r.
        start: (d,) or (R, d) starting points; 0 by default.
        tolerance: largest gradient norm that counts as solved. Where rounding of the gradient's own terms,
            about 1e-15 (|b| + lam |theta|), is larger, that counts instead, unless `strict`.
        strict: whether the tolerance holds whatever rounding does.
        progress: told the share of the work done, in [0, 1]; may raise to cancel.

    Returns:
        (R, d) minimisers.

    Raises:
        NotConverged: the tolerance was not reached.
    """
    (n, d), count = signed.shape, len(linear)
    out = np.array(np.broadcast_to(0.0 if start is None else start, linear.shape))
    size = max(1, min(_REPLICAS, (1 << 25) // d**2))
    sample = signed
    if n > 2 * _SAMPLE:
        sample = signed[np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))]
    for first in range(0, count, size):
        part = slice(first, first + size)
        batch = _Batch(loss, lam[part], linear[part], out[part], sample, strict)

        def report(done: float, first: int = first) -> None:
            if progress is not None:
                progress((first + done * min(size, count - first)) / count)

        if sample is not signed:
            batch.descend(sample, max(_COARSE, tolerance), lambda done: report(0.1 * done), fallback=False)
            batch.precondition(np.arange(len(batch.theta)))
        batch.descend(signed, tolerance, report)
        out[part] = batch.theta
    return out


class _Batch:
    """R replicas on their way down; arrays have one row per replica and keep their order."""

    def __init__(self, loss: Loss, lam: Floats, linear: Floats, theta: Floats, sample: Floats, strict: bool) -> None:
        self.loss, self.lam, self.linear, self.theta = loss, lam, linear, theta.copy()
        self.sample, self.strict = sample.astype(np.float32), strict
        count, d = theta.shape
        self.inverse = np.empty((count, d, d), np.float32)
        self.steps = np.zeros((_MEMORY, count, d))
        self.changes = np.zeros((_MEMORY, count, d))
        self.rho = np.zeros((_MEMORY, count))  # 0 marks an unused pair
        same = bool((theta == theta[0]).all())
        self.precondition(np.arange(count), shared=same)

    def precondition(self, index: Indices, *, shared: bool = False) -> None:
        """Renews the inverse Hessians of some replicas; `shared` where all are at the same point."""
        diagonal = np.arange(self.theta.shape[1])
        data: NDArray[np.float32] | None = None
        known: dict[float, NDArray[np.float32]] = {}
        for r in index:
            if data is None or not shared:
                known.clear()
                weight = self.loss.curvature(self.sample @ self.theta[r].astype(np.float32))
                rows = self.sample * np.sqrt(weight / np.float32(len(self.sample)))[:, None]
                data = rows.T @ rows
            lam = float(self.lam[r])
            if lam not in known:
                hessian = data.copy()
                hessian[diagonal, diagonal] += np.float32(lam)
                known[lam] = np.linalg.inv(hessian)
            self.inverse[r] = known[lam]
        self.rho[:, index] = 0.0

    def gradient(self, signed: Floats, index: Indices, theta: Floats, tick: Callable[[], None]) -> Floats:
        """(k, d) gradients of the replicas in `index` at the points `theta`, (k, d)."""
        n, columns = len(signed), np.ascontiguousarray(theta.T)
        size = max(256, _BLOCK_ELEMENTS // len(theta))
        buffer = np.empty((min(size, n), len(theta)))
        total = np.zeros_like(theta)
        for start in range(0, n, size):
            if start % (16 * size) == 0:
                tick()
            rows = signed[start : start + size]
            slope = self.loss.slope_inplace(np.matmul(rows, columns, out=buffer[: len(rows)]))
            total += slope.T @ rows
        return total / n + self.lam[index, None] * theta + self.linear[index]

    def direction(self, index: Indices, gradient: Floats) -> Floats:
        """Minus the approximate inverse Hessians times the gradients (Nocedal, Wright 2006, Algorithm 7.4)."""
        q, weights = gradient.copy(), []
        used = [(self.rho[j, index], self.steps[j, index], self.changes[j, index]) for j in range(_MEMORY)]
        for rho, step, change in used:  # newest first
            weight = rho * _dot(step, q)
            q -= weight[:, None] * change
            weights.append(weight)
        p = np.matmul(self.inverse[index], q.astype(np.float32)[:, :, None])[:, :, 0].astype(float)
        for (rho, step, change), weight in zip(reversed(used), reversed(weights), strict=True):
            p += (weight - rho * _dot(change, p))[:, None] * step
        # rounding in single precision may spoil a direction; the gradient never is
        uphill = _dot(p, gradient) <= 0
        p[uphill] = gradient[uphill] / (self.loss.curvature_bound + self.lam[index[uphill]])[:, None]
        return -p

    def remember(self, index: Indices, step: Floats, change: Floats) -> None:
        """Adds a secant pair to some replicas and forgets their oldest."""
        for store, new in ((self.steps, step), (self.changes, change)):
            store[1:, index] = store[:-1, index]
            store[0, index] = new
        curvature = _dot(step, change)
        usable = curvature > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change))
        self.rho[1:, index] = self.rho[:-1, index]
        self.rho[0, index] = np.where(usable, 1.0 / np.where(usable, curvature, 1.0), 0.0)

    def descend(
        self, signed: Floats, tolerance: float, report: Callable[[float], None], *, max_steps: int = 60, fallback: bool = True
    ) -> None:
        """Moves all replicas until their gradients over `signed` are within tolerance."""
        active = np.arange(len(self.theta))
        self.rho[:] = 0.0
        done = 0.0

        def tick() -> None:
            report(done)

        gradient = self.gradient(signed, active, self.theta, tick)
        norm = np.sqrt(_dot(gradient, gradient))
        first = norm.copy()
        for _ in range(max_steps):
            enough = np.maximum(tolerance, self.rounding(active, len(signed)))
            active = active[norm[active] > enough]
            if len(active) == 0:
                return
            step, new = self.search(signed, active, gradient[active], tick)
            new_norm = np.sqrt(_dot(new, new))
            self.remember(active, step, new - gradient[active])
            self.theta[active] += step
            slow = active[(new_norm > 0.5 * norm[active]) & (new_norm > 1e3 * tolerance)]
            gradient[active], norm[active] = new, new_norm
            if len(slow):
                self.precondition(slow)
            share = np.log(np.maximum(norm, tolerance) / first) / np.log(tolerance / np.maximum(first, 2 * tolerance))
            done = float(np.clip(share, 0.0, 1.0).mean())
        for r in active if fallback else ():
            report(done)
            enough_one = max(tolerance, float(self.rounding(np.array([r]), len(signed))[0]))
            self.theta[r] = _newton_one(
                signed, self.loss, float(self.lam[r]), self.linear[r], self.theta[r], enough_one, max_steps=200
            )

    def rounding(self, index: Indices, n: int) -> Floats:
        """A norm below which rounding of a gradient's own terms hides the rest; 0 where that is no excuse."""
        if self.strict:
            return np.zeros(len(index))
        length = np.sqrt(_dot(self.theta[index], self.theta[index]))
        terms = np.sqrt(_dot(self.linear[index], self.linear[index])) + self.lam[index] * length
        return 8 * _ULP * (terms + self.loss.curvature_bound * length / n)

    def search(self, signed: Floats, index: Indices, gradient: Floats, tick: Callable[[], None]) -> tuple[Floats, Floats]:
        """Steps along the directions, and the gradients there.

        A step is taken when the slope at its end is at most half of the slope at its start, upwards: the approximate
        Wolfe condition (Hager, Zhang 2005, eq. (23)), which needs no function values and so no digits that they
        lack near a minimum. Where the end still slopes down, convexity alone makes it a decrease.
        """
        direction = self.direction(index, gradient)
        start = _dot(direction, gradient)
        length = np.ones(len(index))
        new = np.empty_like(gradient)
        todo = np.arange(len(index))
        for _ in range(40):
            there = self.theta[index[todo]] + length[todo, None] * direction[todo]
            new[todo] = self.gradient(signed, index[todo], there, tick)
            end = _dot(direction[todo], new[todo])
            far = end > -0.5 * start[todo]
            if not far.any():
                break
            # to where the slope vanishes if it is linear in between
            cut = np.clip(start[todo] / (start[todo] - end), 0.1, 0.7)[far]
            todo = todo[far]
            length[todo] *= cut
        return length[:, None] * direction, new


def _dot(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->i", a, b)


def newton(
    signed: Floats,
    loss: Loss,
    lam: float,
    *,
    linear: Floats | None = None,
    start: Floats | None = None,
    tolerance: float = 1e-11,
    max_steps: int = 200,
) -> Floats:
    """Minimises (1/n) sum phi(<z_i, theta>) + lam/2 |theta|^2 + <b, theta> for one or many b.

    Damped Newton with backtracking on each problem; problems that have converged drop out.

    Args:
        signed: (n, d) rows z_i = y_i x_i.
        lam: total l2 regularisation, > 0.
        linear: (R, d) linear terms b; None is one problem with b = 0.
        start: (R, d) or (d,) starting points; 0 by default.
        tolerance: largest gradient norm that counts as solved.

    Returns:
        (R, d) minimisers.

    Raises:
        NotConverged: the tolerance was not reached.
    """
    d = signed.shape[1]
    b = np.zeros((1, d)) if linear is None else np.atleast_2d(linear)
    theta = np.zeros_like(b) if start is None else np.broadcast_to(start, b.shape).copy()
    for r in range(len(b)):
        theta[r] = _newton_one(signed, loss, lam, b[r], theta[r], tolerance, max_steps)
    return theta


def _newton_one(signed: Floats, loss: Loss, lam: float, b: Floats, theta: Floats, tolerance: float, max_steps: int) -> Floats:
    n = len(signed)

    def value(t: Floats, margin: Floats) -> float:
        return float(loss.value(margin).mean() + 0.5 * lam * (t @ t) + b @ t)

    margin = signed @ theta
    current = value(theta, margin)
    for _ in range(max_steps):
        gradient = signed.T @ loss.slope(margin) / n + lam * theta + b
        if np.linalg.norm(gradient) <= tolerance:
            return theta
        weight = loss.curvature(margin)
        active = weight > 0
        rows = signed[active] if not active.all() else signed
        hessian = (rows * (weight[active] / n)[:, None]).T @ rows
        hessian[np.diag_indices_from(hessian)] += lam
        step = cho_solve(cho_factor(hessian), gradient)
        slope = float(gradient @ step)
        length = 1.0
        while True:
            trial = theta - length * step
            trial_margin = signed @ trial
            trial_value = value(trial, trial_margin)
            # rounding hides the last decreases: near the minimum a full step is accepted on equal values
            if trial_value <= current - 1e-4 * length * slope + 1e-14 * abs(current) or length < 1e-10:
                break
            length *= 0.5
        theta, margin, current = trial, trial_margin, trial_value
    gradient = signed.T @ loss.slope(margin) / n + lam * theta + b
    if np.linalg.norm(gradient) <= tolerance:
        return theta
    raise NotConverged(f"gradient norm {np.linalg.norm(gradient):.2e} after {max_steps} Newton steps, needed {tolerance:.0e}")


def conjugate_gradients(
    product: Callable[[Floats], Floats], right: Floats, *, tolerance: float = 1e-10, max_steps: int = 1000
) -> Floats:
    """Solves A x = b for many b at once, A symmetric positive definite and known by its products only.

    Args:
        product: (k, m) -> (k, m), A applied to each row.
        right: (k, m) right-hand sides b.
        tolerance: largest |A x - b| / |b| that counts as solved.

    Returns:
        (k, m) solutions.

    Raises:
        NotConverged: the tolerance was not reached.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    square = np.einsum("ij,ij->i", residual, residual)
    target = tolerance**2 * square
    for _ in range(max_steps):
        active = square > target
        if not active.any():
            return x
        image = product(direction[active])
        alpha = square[active] / np.einsum("ij,ij->i", direction[active], image)
        x[active] += alpha[:, None] * direction[active]
        residual[active] -= alpha[:, None] * image
        new = np.einsum("ij,ij->i", residual[active], residual[active])
        direction[active] = residual[active] + (new / square[active])[:, None] * direction[active]
        square[active] = new
    raise NotConverged(f"conjugate gradients: {int((square > target).sum())} systems left after {max_steps} steps")
