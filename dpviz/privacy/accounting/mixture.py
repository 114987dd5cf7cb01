"""Mixtures of Gaussian mechanisms: with probability q_j, independent of the data, the sensitivity is Delta_j.

This is what a secret random permutation makes of mini-batch SGD with output noise: the replaced row falls into batch j
with probability |B_j|/n, and batch j has its own sensitivity (Chen, Lee, Kifer, AISTATS 2019, section 4.2).

Two proofs are offered. Renyi: Lemma 3 and Proposition 3 of that paper, and a conversion. Hockey-stick [ours]: the
divergence that defines (epsilon, delta) is jointly convex, hence delta(eps) <= sum_j q_j delta_G(eps, Delta_j/sigma),
which needs no conversion and is never worse.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, positive
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu, log_gaussian_delta
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import smallest

_UP = 1e-12  # noise is rounded up by this share


def mixture_delta(epsilon: float, sensitivities: Floats, weights: Floats, sigma: float) -> float:
    """delta at which the mixture is proved (epsilon, delta)-DP, by joint convexity of the hockey-stick divergence [ours].

    Args:
        sensitivities: (m,) Delta_j > 0.
        weights: (m,) q_j >= 0 that sum to 1.
        sigma: noise standard deviation, > 0.
    """
    sens, q = _checked(sensitivities, weights)
    return math.exp(_log_delta(epsilon, sens, q, positive("sigma", sigma)))


def mixture_sigma(budget: Budget, sensitivities: Floats, weights: Floats) -> float:
    """The smallest sigma at which `mixture_delta` meets the budget."""
    sens, q = _checked(sensitivities, weights)
    mu, target = gaussian_mu(budget), math.log(budget.delta)
    low, high = sens.min() / mu, sens.max() / mu  # every component misses, and every component meets the budget
    if high <= low * (1 + _UP):
        return float(high)
    needed = smallest(
        lambda sigma: _log_delta(budget.epsilon, sens, q, sigma) - target,
        math.log(high),
        step=math.log(high) - math.log(low),
        tolerance=1e-15,
        even=True,
        limits=(low, 2 * high),
    )
    return float(min(needed * (1 + _UP), high))


def mixture_epsilon(delta: float, sensitivities: Floats, weights: Floats, sigma: float) -> float:
    """The smallest epsilon >= 0 at which `mixture_delta` is at most delta, in (0, 1)."""
    sens, q = _checked(sensitivities, weights)
    scale, target = positive("sigma", sigma), math.log(delta)
    high = float(gaussian_epsilon(delta, sens.max() / scale))
    if high == 0 or _log_delta(0.0, sens, q, scale) <= target:
        return 0.0
    if _log_delta(high, sens, q, scale) >= target:  # one component carries all the weight
        return high
    epsilon = smallest(lambda e: _log_delta(e, sens, q, scale) - target, math.log(high), limits=(1e-300, 2 * high))
    return float(min(epsilon * (1 + _UP), high))


def mixture_rdp(alpha: Floats | float, sensitivities: Floats, weights: Floats, sigma: float) -> Floats:
    """Renyi divergence bound ln(sum_j q_j exp(a(a-1) Delta_j^2/(2 sigma^2)))/(a-1) (Chen 2019, Proposition 3), a > 1.

    Returns:
        the shape of alpha
    """
    sens, q = _checked(sensitivities, weights)
    a = np.asarray(alpha, float)
    if not (a > 1).all():
        raise InvalidInput("alpha", "must be above 1", "Give orders above 1.")
    return _rdp(a, sens, q, positive("sigma", sigma))


def mixture_rdp_epsilon(
    delta: float, sensitivities: Floats, weights: Floats, sigma: float, conversion: str = "mironov"
) -> tuple[float, float]:
    """(epsilon, alpha): the smallest epsilon over real orders alpha and the order that gives it."""
    sens, q = _checked(sensitivities, weights)
    scale = positive("sigma", sigma)

    def epsilon(log_order: Floats | float) -> Floats:
        a = 1 + np.exp(np.asarray(log_order, float))
        return np.minimum(rdp.convert(_rdp(a, sens, q, scale), a, delta, conversion), 1e300)

    # the best order for the largest sensitivity alone is 1 + sqrt(2 ln(1/delta)) sigma/Delta
    centre = math.log(math.sqrt(-2 * math.log(delta)) * scale / sens.max())
    # nearer to 1 than e^-16 no order gives an epsilon of use, and R loses its digits
    grid = max(centre, -8.0) + np.linspace(-8.0, 8.0, 65)
    k = int(np.clip(np.argmin(epsilon(grid)), 1, len(grid) - 2))
    minimum = minimize_scalar(epsilon, bounds=(grid[k - 1], grid[k + 1]), method="bounded", options={"xatol": 1e-11})
    return float(minimum.fun), 1 + math.exp(minimum.x)


def mixture_rdp_sigma(budget: Budget, sensitivities: Floats, weights: Floats, conversion: str = "mironov") -> float:
    """The smallest sigma at which Proposition 3 with a conversion gives the budget."""
    sens, q = _checked(sensitivities, weights)
    single = rdp.gaussian_sigma(budget, 1.0)
    high = float(single * sens.max() * (1 + _UP))  # enough by either conversion
    # the improved conversion can ask for much less than Mironov's; sensitivities can be hundreds of powers of ten apart
    step = min(math.log(high) - math.log(single * sens.min()) + 1.0, 50.0)

    def excess(sigma: float) -> float:
        return mixture_rdp_epsilon(budget.delta, sens, q, sigma, conversion)[0] - budget.epsilon

    return min(high, smallest(excess, math.log(high), step=step, even=True) * (1 + _UP))


def _log_delta(epsilon: float, sens: Floats, q: Floats, sigma: float) -> float:
    return float(logsumexp(log_gaussian_delta(epsilon, sens / sigma), b=q))


def _rdp(alpha: Floats | float, sens: Floats, q: Floats, sigma: float) -> Floats:
    a = np.asarray(alpha, float)[..., None]
    return logsumexp(a * (a - 1) * (sens / sigma) ** 2 / 2, b=q, axis=-1) / (a[..., 0] - 1)


def _checked(sensitivities: Floats, weights: Floats) -> tuple[Floats, Floats]:
    sens, q = np.atleast_1d(np.asarray(sensitivities, float)), np.atleast_1d(np.asarray(weights, float))
    if sens.ndim != 1 or len(sens) == 0 or not (np.isfinite(sens).all() and (sens > 0).all()):
        raise InvalidInput("sensitivities", "must be finite numbers above 0", "Check the step size and the number of epochs.")
    if q.shape != sens.shape or not (q >= 0).all() or abs(q.sum() - 1) > 1e-9:
        raise InvalidInput("weights", "must be probabilities, one per sensitivity, that sum to 1", "Give |B_j|/n.")
    return sens, q
