"""Training a network without privacy, as far down as patience goes."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, throttle
from dpviz.common.threads import map_streams, thread_settings
from dpviz.models.base import Model, regulariser
from dpviz.models.rows import Rows

#: theta (R, m) -> (R,) objectives over all rows and (R, m) their gradients
Objective = Callable[[Floats], tuple[Floats, Floats]]

_WORK = 3e11  # multiplications that the descent on all rows may cost
_FEWEST, _MOST = 30, 3000  # evaluations of objective and gradient that it is given in any case, and at most
_EPOCHS = 30  # passes in mini-batches before it, where there are many rows
_BATCH = 256
_MANY = 4 * _BATCH
_RATE = 3e-3
_USUAL = 300.0  # evaluations after which most descents are more than half over


def best_of_starts(model: Model, objective: Objective, rows: Rows, lam: float, starts: Floats, monitor: Monitor) -> Floats:
    """(m,) what training from each of starts (R, m) leads to, the one of lowest objective.

    Where there are many rows, all starts are first trained together in mini-batches; the best goes on.

    Args:
        monitor: receives progress in the caller's thread; raises to cancel.
    """
    model.prepare(rows)
    model.prepare(rows, np.float32)
    first = 0.0
    with thread_settings():
        if len(rows) > _MANY:
            first = 0.7
            starts = _adam(model, rows, lam, starts, lambda share: monitor(first * share))
            starts = starts[[_lowest(model, rows, lam, starts)]]

        def descend(k: int, tick: Monitor) -> Floats:
            evaluations, report = itertools.count(1), throttle(tick)
            # when a descent ends is not known: the bar approaches its end
            return polish(objective, len(rows), starts[k], lambda: report(1 - 0.5 ** (next(evaluations) / _USUAL)))

        ends = np.array(map_streams(descend, len(starts), lambda share: monitor(first + (1 - first) * share)))
        return ends[_lowest(model, rows, lam, ends)]


def _lowest(model: Model, rows: Rows, lam: float, theta: Floats) -> int:
    """The parameters among theta (R, m) with the lowest objective."""
    return int((model.measure(theta, rows)[0] + regulariser(theta, lam)).argmin())


def polish(objective: Objective, n: int, start: Floats, count: Callable[[], None] = lambda: None) -> Floats:
    """(m,) L-BFGS on all n rows from start (m,), to gradients of 1e-8 or as far as the work allowed goes.

    Args:
        count: called at every evaluation; raises to stop.
    """
    allowed = min(_MOST, max(_FEWEST, int(_WORK / (4.0 * n * len(start)))))

    def both(theta: Floats) -> tuple[float, Floats]:
        count()
        value, gradient = objective(theta[None])
        return float(value[0]), gradient[0]

    minimum = minimize(
        both,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": allowed, "maxfun": allowed, "ftol": 0.0, "gtol": 1e-9},
    )
    return np.asarray(minimum.x, float)


def _adam(model: Model, rows: Rows, lam: float, starts: Floats, monitor: Monitor) -> Floats:
    """Kingma & Ba 2015, Algorithm 1, on all starts (R, m) together, with a rate that falls to 0 along a half cosine."""
    theta: NDArray[Any] = starts.astype(np.float32)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    rng, each = np.random.default_rng(0), len(rows) // _BATCH
    for t in range(_EPOCHS * each):
        if t % each == 0:
            order = rng.permutation(len(rows))
            monitor(t / (_EPOCHS * each))
        batch = rows.batch(order[t % each * _BATCH :][:_BATCH])
        gradient = (model.sum_gradient(theta, batch) / _BATCH).astype(np.float32) + np.float32(lam) * theta
        first += np.float32(0.1) * (gradient - first)
        second += np.float32(0.001) * (gradient * gradient - second)
        rate = _RATE * 0.5 * (1 + math.cos(math.pi * t / (_EPOCHS * each))) / (1 - 0.9 ** (t + 1))
        theta -= np.float32(rate) * first / (np.sqrt(second * np.float32(1 / (1 - 0.999 ** (t + 1)))) + np.float32(1e-8))
    return theta.astype(float)
