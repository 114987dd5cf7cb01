"""Solvers that bring many perturbed objectives to their minimum together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import Each, Team, processors, thread_settings
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows, gram
from dpviz.models.solvers.lbfgs import Batch, Indices, dot

_SAMPLE = 3072  # rows that approximate a Hessian: fewer slow the descent, more do not pay
_COARSE = 2e-3  # gradient norm at which the sample's own minimiser says no more about all rows
_REPLICAS = 256  # solved at once; bounds the memory of their preconditioners
_THREADS_FROM_ROWS, _THREADS_FROM_WIDTH = 10_000, 1000  # measured: below either one thread is up to three times faster
_ULP = 2.0**-53
_EVERY, _SOME_ROWS, _NEAR = 8, 32, 1e-4  # which rows come first, how many for each parameter there must be, and their tolerance
TOLERANCE = 1e-11  # gradient norm at which `newton` takes a minimiser for exact; sensitivities of minimisers add what it leaves
_SINGLE = 6e-9  # measured: single precision leaves about this x (30 + |theta|) of a gradient that is a mean of many rows


class NotConverged(FloatingPointError):
    """A solver stopped above the gradient norm that its caller's proof needs."""


def minimise_many(
    rows: Rows, loss: Loss, lam: Floats, linear: Floats, tolerance: float = 1e-12, strict: bool = False, monitor: Monitor = ignore
) -> Floats:
    """Minimises (1/n) sum phi(<z_i, theta>) + lam_r/2 |theta|^2 + <b_r, theta> for R pairs (lam_r, b_r) together.

    Limited-memory BFGS on all replicas at once, so that a gradient of each is one column of two matrix products. Each
    replica has its own preconditioner, the inverse of its Hessian over a sample of rows, renewed when progress slows.
    The problem of the sample alone is solved first, roughly, then that of all rows as far as single precision
    carries, then in double precision. What has converged drops out; what does not is given to `newton` with full
    Hessians. Whatever the path, a result counts by its gradient in double precision.

    Args:
        rows: z_i = y_i x_i.
        lam: (R,) total l2 regularisation, each > 0.
        linear: (R, d) linear terms b_r.
        tolerance: largest gradient norm that counts as solved. Where rounding of the gradient's own terms,
            about 1e-15 (|b| + lam |theta|), is larger, that counts instead, unless `strict`.
        strict: whether the tolerance holds whatever rounding does.
        monitor: receives progress; raises to cancel.

    Returns:
        (R, d) minimisers.

    Raises:
        NotConverged: the tolerance was not reached.
    """
    n, d = rows.X.shape
    size, out, large = max(1, min(_REPLICAS, (1 << 25) // d**2)), np.zeros(linear.shape), n > 2 * _SAMPLE
    sample = rows.sample(_SAMPLE) if large else None
    with _threads(n, min(size, len(linear)) * d) as each:
        for first in range(0, len(linear), size):
            part = slice(first, first + size)
            batch = Batch(loss, lam[part], linear[part], out[part], rows if sample is None else sample, each)

            def tick(norm: Floats, first: int = first) -> None:
                # from gradient norm 1 to the tolerance, on a logarithmic scale
                share = np.log(np.clip(norm, tolerance, 1.0)) / np.log(min(tolerance, 0.5))
                monitor((first + float(share.mean()) * min(size, len(linear) - first)) / len(linear))

            _solve(batch, rows, sample, tolerance, strict, tick)
            out[part] = batch.theta
    return out


def _solve(batch: Batch, rows: Rows, sample: Rows | None, tolerance: float, strict: bool, tick: Callable[[Floats], None]) -> None:
    """Brings one batch to its minima; without a sample where all rows are few."""

    def coarse(index: Indices) -> Floats:
        return np.full(len(index), max(_COARSE, tolerance))

    def rough(index: Indices) -> Floats:
        return np.maximum(tolerance, _SINGLE * (30.0 + np.sqrt(dot(batch.theta[index], batch.theta[index]))))

    def precise(index: Indices) -> Floats:
        if strict:
            return np.full(len(index), tolerance)
        return np.maximum(tolerance, _rounding(batch, index, len(rows)))

    if sample is not None:
        batch.descend(sample, np.float32, coarse, tick, max_steps=40, renew_above=1.0)
        batch.precondition(batch.share(rows))
        batch.descend(rows, np.float32, rough, tick, max_steps=20, renew_above=1e-6)
    left = batch.descend(rows, np.float64, precise, tick, max_steps=60, renew_above=1e3 * tolerance, resume=sample is not None)
    for r in left:
        tick(np.full(1, tolerance))
        enough = float(precise(np.array([r]))[0])
        problem = rows.signed_rows, batch.loss, float(batch.lam[r]), batch.linear[r], batch.theta[r]
        batch.theta[r] = _newton_one(*problem, enough, 200, rows.weights)


@contextmanager
def _threads(rows: int, width: int) -> Iterator[Each]:
    """Threads that each run BLAS on their own, or the calling one alone where they would only wait for the interpreter.

    Products of a few hundred rows are too small for BLAS's own threads, which wait for each other busily.

    Args:
        width: parameters of all replicas together, columns of a product.
    """
    pays = rows >= _THREADS_FROM_ROWS and width >= _THREADS_FROM_WIDTH
    with thread_settings(), Team(processors() if pays else 1) as team:
        yield team.each


def _rounding(batch: Batch, index: Indices, n: int) -> Floats:
    """A norm below which rounding of a gradient's own terms hides the rest."""
    norm = np.sqrt(dot(batch.theta[index], batch.theta[index]))
    terms = np.sqrt(dot(batch.linear[index], batch.linear[index])) + batch.lam[index] * norm
    return 8 * _ULP * (terms + batch.loss.curvature_bound * norm / n)


def newton(
    signed: Floats,
    loss: Loss,
    lam: float,
    *,
    linear: Floats | None = None,
    start: Floats | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = 200,
    weights: Floats | None = None,
) -> Floats:
    """Minimises (1/n) sum phi(<z_i, theta>) + lam/2 |theta|^2 + <b, theta> for one or many b.

    Damped Newton with backtracking on each problem, from the minimum over every eighth row where there are many and no
    start is given.

    Args:
        signed: (n, d) rows z_i = y_i x_i.
        lam: total l2 regularisation, > 0.
        linear: (R, d) linear terms b; None is one problem with b = 0.
        start: (R, d) or (d,) starting points; 0 by default.
        tolerance: largest gradient norm that counts as solved.
        weights: (n,) of the losses; None for 1.

    Returns:
        (R, d) minimisers.

    Raises:
        NotConverged: the tolerance was not reached.
    """
    d = signed.shape[1]
    b = np.zeros((1, d)) if linear is None else np.atleast_2d(linear)
    theta = np.zeros_like(b) if start is None else np.broadcast_to(start, b.shape).copy()
    # steps on some rows cost little, and few are left for all rows
    some = np.ascontiguousarray(signed[::_EVERY]) if start is None and len(signed) >= _EVERY * _SOME_ROWS * d else None
    with thread_settings():  # more gain nothing here
        for r in range(len(b)):
            if some is not None:
                with suppress(NotConverged):
                    part = None if weights is None else weights[::_EVERY]
                    theta[r] = _newton_one(some, loss, lam, b[r], theta[r], _NEAR, max_steps, part)
            theta[r] = _newton_one(signed, loss, lam, b[r], theta[r], tolerance, max_steps, weights)
    return theta


def _newton_one(
    signed: Floats,
    loss: Loss,
    lam: float,
    b: Floats,
    theta: Floats,
    tolerance: float,
    max_steps: int,
    weights: Floats | None = None,
) -> Floats:
    n = len(signed)
    w: Floats | float = 1.0 if weights is None else weights

    def value(t: Floats, margin: Floats) -> float:
        return float((w * loss.value(margin)).mean() + 0.5 * lam * (t @ t) + b @ t)

    margin = signed @ theta
    current = value(theta, margin)
    for _ in range(max_steps + 1):
        gradient = signed.T @ (w * loss.slope(margin)) / n + lam * theta + b
        if np.linalg.norm(gradient) <= tolerance:
            return theta
        hessian = gram(signed, w * loss.curvature(margin) / n)
        hessian[np.diag_indices_from(hessian)] += lam
        step = cho_solve(cho_factor(hessian), gradient)
        slope = float(gradient @ step)
        step_size = 1.0
        while True:
            trial = theta - step_size * step
            trial_margin = signed @ trial
            trial_value = value(trial, trial_margin)
            # rounding hides the last decreases: near the minimum a full step is accepted on equal values
            if trial_value <= current - 1e-4 * step_size * slope + 1e-14 * abs(current) or step_size < 1e-10:
                break
            step_size *= 0.5
        theta, margin, current = trial, trial_margin, trial_value
    raise NotConverged(
        f"gradient norm {np.linalg.norm(gradient):.2e} after {max_steps} Newton steps, needed {tolerance:.0e}. Take a larger λ."
    )


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
