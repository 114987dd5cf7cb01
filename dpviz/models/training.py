"""Training a network without privacy, as far down as patience goes."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dpviz.models.rows import Rows
from dpviz.threads import one_blas_thread, processors

if TYPE_CHECKING:
    from dpviz.models.network import Network

Floats = NDArray[np.float64]

_WORK = 3e11  # multiplications that the descent on all rows may cost
_FEWEST, _MOST = 30, 3000  # evaluations of objective and gradient that it is given in any case, and at most
_EPOCHS = 30  # passes in mini-batches before it, where there are many rows
_BATCH = 256
_MANY = 4 * _BATCH
_RATE = 3e-3


def best_of_starts(model: Network, rows: Rows, lam: float, starts: Floats) -> Floats:
    """(m,) what training from each of starts (R, m) leads to, the one of lowest objective.

    Where there are many rows, all starts are first trained together in mini-batches; the best goes on.
    """
    _ = rows.extended, rows.extended32  # made before the workers start
    with one_blas_thread(), ThreadPoolExecutor(processors()) as pool:
        if len(rows) > _MANY:
            starts = _adam(model, rows, lam, starts)
            starts = starts[np.argsort(model.objective(starts, rows, lam), kind="stable")[:1]]
        ends = np.array(list(pool.map(lambda start: polish(model, rows, lam, start), starts)))
        return ends[model.objective(ends, rows, lam).argmin()]


def polish(model: Network, rows: Rows, lam: float, start: Floats) -> Floats:
    """(m,) L-BFGS on all rows from start (m,), to gradients of 1e-8 or as far as the work allowed goes."""
    allowed = min(_MOST, max(_FEWEST, int(_WORK / (4.0 * len(rows) * len(start)))))

    def both(theta: Floats) -> tuple[float, Floats]:
        value, gradient = model.value_and_gradient(theta[None], rows, lam)
        return float(value[0]), gradient[0]

    found = minimize(
        both, start, jac=True, method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": allowed, "maxfun": allowed, "ftol": 0.0, "gtol": 1e-9},
    )  # fmt: skip
    return np.asarray(found.x, float)


def _adam(model: Network, rows: Rows, lam: float, starts: Floats) -> Floats:
    """Kingma & Ba 2015, Algorithm 1, on all starts (R, m) together, with a rate that falls to 0 along a half cosine."""
    theta: NDArray[Any] = starts.astype(np.float32)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    rng, each = np.random.default_rng(0), len(rows) // _BATCH
    for t in range(_EPOCHS * each):
        if t % each == 0:
            order = rng.permutation(len(rows))
        batch = rows.batch(order[t % each * _BATCH :][:_BATCH])
        gradient = (model.sum_gradient(theta, batch) / _BATCH).astype(np.float32) + np.float32(lam) * theta
        first += np.float32(0.1) * (gradient - first)
        second += np.float32(0.001) * (gradient * gradient - second)
        rate = _RATE * 0.5 * (1 + math.cos(math.pi * t / (_EPOCHS * each))) / (1 - 0.9 ** (t + 1))
        theta -= np.float32(rate) * first / (np.sqrt(second * np.float32(1 / (1 - 0.999 ** (t + 1)))) + np.float32(1e-8))
    return theta.astype(float)
