"""Noise scales from budgets. Every function here is exact or an upper bound with all constants."""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpviz.common.validate import InvalidInput, positive
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import largest_argument


def log_gaussian_delta(epsilon: float | np.ndarray, mu: float | np.ndarray) -> np.ndarray:
    """ln delta at which a Gaussian mechanism with mu = sensitivity/sigma is (epsilon, delta)-DP.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)  (Balle & Wang 2018, Theorem 8), in log space.
    Shapes broadcast; epsilon may be any real number, mu > 0.
    """
    eps, m = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    first = log_ndtr(m / 2 - eps / m)
    second = eps + log_ndtr(-m / 2 - eps / m)
    with np.errstate(divide="ignore", invalid="ignore"):
        # rounding can make second reach first where delta underflows; the truth there is delta = 0
        return np.where(second < first, first + np.log(-np.expm1(np.minimum(second - first, -0.0))), -np.inf)


def gaussian_delta(epsilon: float | np.ndarray, mu: float | np.ndarray) -> np.ndarray:
    """delta of the Gaussian mechanism; see `log_gaussian_delta`."""
    return np.exp(log_gaussian_delta(epsilon, mu))


def gaussian_mu(budget: Budget) -> float:
    """The largest mu = sensitivity/sigma for which the Gaussian mechanism meets the budget exactly.

    Raises:
        InvalidInput: delta = 0, which no Gaussian noise can meet.
    """
    budget.need_delta()
    target = math.log(budget.delta)

    def excess(mu: float) -> float:
        return float(log_gaussian_delta(budget.epsilon, mu)) - target

    # delta_G -> 0 as mu -> 0, and at mu = 2 sqrt(eps) + 80 it is above any delta < 1 that a double can hold
    most = 2 * math.sqrt(budget.epsilon) + 80
    return largest_argument(excess, math.log(most), step=2.0, even=True, limits=(1e-300, most))


def gaussian_budget(mu: float, like: Budget) -> Budget:
    """The budget of mu-Gaussian DP, less rounding: at the delta of `like`, or at its epsilon where that epsilon would be 0."""
    mu *= 1 - 1e-9
    epsilon = float(gaussian_epsilon(like.delta, mu))
    return Budget(epsilon, like.delta) if epsilon > 0 else Budget(like.epsilon, float(gaussian_delta(like.epsilon, mu)))


def gaussian_sigma(budget: Budget, sensitivity: float) -> float:
    """Standard deviation per coordinate of the exact Gaussian mechanism for an L2 sensitivity.

    >>> round(gaussian_sigma(Budget(1.0, 1e-5), sensitivity=1.0), 3)
    3.731
    """
    return positive("sensitivity", sensitivity) / gaussian_mu(budget)


def gaussian_epsilon(delta: float, mu: np.ndarray | float) -> np.ndarray:
    """The smallest epsilon >= 0 at which Gaussian mechanisms with parameters mu are (epsilon, delta)-DP.

    Args:
        delta: in (0, 1).
        mu: sensitivity/sigma, any shape, each >= 0.

    Returns:
        epsilon, the shape of mu; 0 where total variation is already below delta.
    """
    m = np.atleast_1d(np.asarray(mu, float))
    if not np.all(np.isfinite(m)) or np.any(m < 0):
        raise InvalidInput("mu", "must be finite and at least 0", "Check the sensitivity and the noise scale.")
    if not 0 < delta < 1:
        raise InvalidInput("delta", f"must lie in (0, 1), got {delta:g}", "Give a probability below 1/n.")
    safe = np.maximum(m, 1e-300)
    target = math.log(delta)
    low = np.zeros_like(m)
    # Chernoff: eps = mu^2/2 + mu sqrt(2 ln(1/delta)) is always enough
    high = safe**2 / 2 + safe * math.sqrt(-2 * target)
    for _ in range(100):
        mid = 0.5 * (low + high)
        enough = log_gaussian_delta(mid, safe) <= target
        high = np.where(enough, mid, high)
        low = np.where(enough, low, mid)
        if np.all(high - low <= 1e-15 * high):
            break
    at_zero = log_gaussian_delta(0.0, safe) <= target
    eps = np.where(at_zero | (m == 0), 0.0, high)
    return eps.reshape(np.shape(mu))


def gaussian_detections(mu: float, false_alarms: np.ndarray) -> np.ndarray:
    """The most detections at each rate of false alarms under mu-Gaussian DP (Dong, Roth, Su 2022, eq. (6)).

    >>> gaussian_detections(1.0, np.array([0.0, 0.1, 1.0])).round(3).tolist()
    [0.0, 0.389, 1.0]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(ndtr(ndtri(false_alarms) + mu), float)


def total_variation(mu: float) -> float:
    """2 Phi(mu/2) - 1, of two Gaussians at distance mu; the best guess is right with chance (1 + this)/2.

    >>> round(total_variation(1.0), 4)
    0.3829
    """
    return float(-np.expm1(log_ndtr(-mu / 2) + math.log(2)))
