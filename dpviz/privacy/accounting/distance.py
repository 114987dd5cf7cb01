"""Total variation: how far apart the outputs on two neighbouring datasets are at most, which bounds every attacker.

An attacker who guesses which of two equally likely datasets was used is right with chance (1 + TV)/2 at most.
"""

import math
from collections.abc import Callable

import numpy as np

from dpviz.privacy.noise import GAMMA_SPHERE

_PARTS = 24  # values of epsilon at which a profile is read


def distance_by_profile(log_delta: Callable[[float], float], largest: float) -> float:
    """The smallest of (e^eps - 1 + 2 delta(eps))/(e^eps + 1) (Kairouz, Oh, Viswanath 2015, Theorem 2.1).

    Args:
        log_delta: epsilon > 0 -> ln delta, any upper bound on the privacy profile.
        largest: epsilon up to which the profile is read, > 0.
    """

    def bound(epsilon: float) -> float:
        return math.tanh(epsilon / 2) + 2 * math.exp(log_delta(epsilon)) / (1 + math.exp(min(epsilon, 700.0)))

    return min(1.0, *(bound(float(e)) for e in largest * np.geomspace(1e-5, 1.0, _PARTS)))


def distance_by_divergence(kl: float) -> float:
    """TV from a bound on the Kullback-Leibler divergence, in nats: the smaller of Pinsker's and Bretagnolle and Huber's."""
    return min(math.sqrt(kl / 2), math.sqrt(-math.expm1(-kl)))


def gamma_sphere_distance(distance: float, scale: float, dim: int) -> float:
    """TV of two centres that far apart under noise of density ~ exp(-|b|/scale), exactly.

    The density falls with |b|, so the best guess is the nearer centre, a half-space: |<b, e>| <= distance/2 for the unit
    vector e between the two.
    """
    return 2 * float(GAMMA_SPHERE.prob_positive(scale, np.array(distance / 2), np.ones(()), dim)) - 1
