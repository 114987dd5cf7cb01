"""Solvers that bring many perturbed objectives to their minimum together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dpviz.losses import Loss

Floats = NDArray[np.float64]


class NotConverged(RuntimeError):
    """A solver stopped above the gradient norm that its caller's proof needs."""


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
