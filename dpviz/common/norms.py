"""Norms of rows that neither overflow nor underflow, so that no finite row escapes a bound on its norm.

The square of an entry above 1e154 is infinite and that of one below 1e-162 is 0, so |x| computed as it stands is infinite, 0 or
inexact, and x / |x| is 0, NaN or longer than 1. Rows with such a norm are divided by their largest entry first, which leaves
their direction. All other rows are computed as ever, to the last bit.
"""

import numpy as np

from dpviz.common.arrays import Floats

_LEAST, _MOST = 1e-140, 1e140  # norms between them are exact to rounding


def split_norms(x: Floats) -> tuple[Floats, Floats, Floats]:
    """((n, d) rows of the same direction, (n,) their norms, (n,) what the rows were divided by): |x| is norm times divisor.

    The rows are `x` itself where no norm is out of range.

    >>> rows, norms, divisors = split_norms(np.array([[3e200, 4e200], [3.0, 4.0], [0.0, 5e-324]]))
    >>> norms.tolist(), divisors.tolist()
    ([1.25, 5.0, 1.0], [4e+200, 1.0, 5e-324])
    """
    with np.errstate(over="ignore", under="ignore"):
        norms = np.linalg.norm(x, axis=1)
    divisors = np.ones(len(x))
    odd = np.flatnonzero(~((norms >= _LEAST) & (norms <= _MOST)))
    largest = np.abs(x[odd]).max(axis=1, initial=0.0)
    odd, largest = odd[largest > 0], largest[largest > 0]
    if len(odd):
        x = x.copy()
        x[odd] /= largest[:, None]
        norms[odd], divisors[odd] = np.linalg.norm(x[odd], axis=1), largest
    return x, norms, divisors


def unit(x: Floats) -> Floats:
    """(n, d) each row divided by its norm; rows of zeros stay zero. Row by row, so it costs no privacy.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    rows, norms, _ = split_norms(x)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0)[:, None])


def row_norms(x: Floats, radius: float = 1.0) -> Floats:
    """(n,) norms in units of `radius`, infinite where they are beyond double precision."""
    _, norms, divisors = split_norms(x)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(norms * divisors / radius)


def scale_into_ball(x: Floats, radius: float = 1.0) -> Floats:
    """(n, d) rows of x / radius, those longer than 1 clipped to norm 1.

    >>> scale_into_ball(np.array([[1.5e308, 0.0], [0.3, 0.4]]), 0.5).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    """
    with np.errstate(over="ignore", under="ignore"):
        z = x if radius == 1 else x / radius
        norms = np.linalg.norm(z, axis=1)
    far = np.flatnonzero(~(norms <= _MOST))
    norms[far], directions = 1.0, unit(x[far])
    # a tiny row stays as it is: its computed norm is at most 1 whatever its last bits are
    inside = z / np.maximum(1.0, norms)[:, None]
    inside[far] = directions
    return np.asarray(inside)


def add_intercept(x: Floats, constant: float) -> Floats:
    """(x, c)/sqrt(1 + c²): a constant feature c that keeps rows of norm <= 1 in the unit ball; with c = 0 the rows as they are.

    The intercept is regularised with the rest; otherwise the objective would not be strongly convex and every
    output- and objective-perturbation guarantee would be void.

    >>> add_intercept(np.array([[1.0, 0.0]]), 1.0).round(3).tolist()
    [[0.707, 0.0, 0.707]]
    """
    if constant == 0:
        return x
    made = np.hstack([x, np.full((len(x), 1), constant)])
    made /= np.hypot(1.0, constant)
    return made
