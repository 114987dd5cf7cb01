"""Curves of an event: Rényi divergence over the order, the best order, and the detections that no attacker exceeds."""

import math
from functools import lru_cache

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.account import Method, epsilon, log_delta, tightest
from dpviz.privacy.accounting.accountants.base import full_release_mu
from dpviz.privacy.accounting.accountants.rdp import curve_of_steps
from dpviz.privacy.accounting.distance import distance_by_divergence
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Mixture, Shuffled, single_step, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_detections, total_variation
from dpviz.privacy.accounting.mixture import mixture_rdp, mixture_rdp_epsilon
from dpviz.privacy.budget import Neighbouring

_REAL_ORDERS = 1 + np.geomspace(0.05, 1000, 241)
_NEAR_ZERO = 1e-5  # an epsilon at which (epsilon, delta(epsilon)) says of even guesses what delta(0) does, to 3e-6
_LOW_RATE = 2e-3


def renyi(event: Event) -> tuple[Floats, Floats]:
    """(orders, R at each): the RDP curve of an event of one kind under replace-one.

    Raises:
        CannotAccount: the event holds several kinds of releases, or no Gaussian noise.
    """
    step = single_step(event)
    if isinstance(step.event, Mixture):
        return _REAL_ORDERS, mixture_rdp(_REAL_ORDERS, *step.event.parts, step.event.sigma)
    if not isinstance(step.event, Gaussian) or step.sampling not in ("full", "poisson"):
        raise CannotAccount("event", "no Rényi curve is known for this release", "Use another accountant.")
    if step.sampling == "poisson":
        return np.array(rdp.ORDERS), step.count * rdp.opposite_rows(step.rate, 1 / step.event.noise_multiplier)
    return _REAL_ORDERS, _REAL_ORDERS * (step.mu) ** 2 / 2


def best_order(event: Event, delta: float, conversion: str) -> tuple[float, float]:
    """(order, epsilon) at the minimum over the orders of `renyi`; "mironov" or "improved".

    Over all real orders where every row is in each release.
    """
    step = single_step(event)
    if isinstance(step.event, Mixture):
        return mixture_rdp_epsilon(delta, *step.event.parts, step.event.sigma, conversion)[::-1]
    if isinstance(step.event, Gaussian) and step.sampling == "full":
        return mixture_rdp_epsilon(delta, np.array([step.total]), np.ones(1), step.event.sigma, conversion)[::-1]
    orders, curve = renyi(event)
    values = rdp.convert(curve, orders, delta, conversion)
    k = int(np.argmin(values))
    return float(orders[k]), float(values[k])


def advantage(event: Event, relation: Neighbouring = Neighbouring.REPLACE_ONE, pure: float = 0.0) -> float:
    """The most by which detections can exceed false alarms, in [0, 1], by the tightest proof under a neighbouring relation.

    A total variation distance: exact for one sensitivity and full batches. Otherwise that of (epsilon, delta(epsilon)) at
    an epsilon near 0, (e^eps - 1 + 2 delta)/(e^eps + 1) (Kairouz, Oh, Viswanath 2015, Theorem 2.1): one delta instead of
    the many of `detections`, whose curve has its largest distance there. Releases of several kinds: by the Rényi divergence
    near order 1. Shuffled reports: by the report alone, from which the others follow.

    Args:
        pure: as for `detections`.
    """
    if isinstance(event, Shuffled):
        return advantage(event.event, relation, pure)
    steps, method = steps_of(event), tightest(event, relation)
    if len(steps) > 1:
        # a Rényi divergence grows with its order and is the Kullback-Leibler divergence at 1
        distance = distance_by_divergence(float(curve_of_steps(steps, method).min()))
        return min(1.0, distance + math.tanh(pure / 2))  # total variations add up
    step = steps[0]
    if isinstance(step.event, Gaussian) and step.sampling == "full" and not pure:
        return total_variation(math.sqrt(step.count) * full_release_mu(step.event, method))

    def by(e: float) -> float:
        return min(1.0, math.tanh((e + pure) / 2) + 2 * math.exp(log_delta(event, method, e)) / (1 + math.exp(e + pure)))

    most = by(_NEAR_ZERO)
    # at low rates PLD is loose near 0, and a larger epsilon says more
    return min(most, by(most / 4)) if step.rate < _LOW_RATE else most


def detections(
    event: Event, false_alarms: Floats, relation: Neighbouring = Neighbouring.REPLACE_ONE, pure: float = 0.0
) -> Floats:
    """The most that any attacker can detect at each rate of false alarms, 1 - f, by the tightest proof under a relation.

    Exact for one sensitivity and full batches (Dong, Roth, Su 2022, Theorem 2.7), otherwise from delta(eps) at many eps, the
    larger one of both directions of a pair: every single one bounds the attacker, whichever of the two runs is tested against
    the other (Dong, Roth, Su 2022, Proposition 2.13), so a grid errs in the attacker's favour.

    Args:
        pure: epsilon of releases beside the event with delta = 0, which adds to each epsilon (Dwork, Roth 2014, Theorem 3.16).
    """
    a, step, method = np.asarray(false_alarms, float), single_step(event), tightest(event, relation)
    if isinstance(step.event, Gaussian) and step.sampling == "full" and not pure:
        return gaussian_detections(math.sqrt(step.count) * full_release_mu(step.event, method), a)
    missed = np.zeros_like(a)
    for e, d in ((pure + own, d) for own, d in _profile(event, method)):
        missed = np.maximum(missed, np.maximum(1 - d - np.exp(e) * a, np.exp(-e) * (1 - d - a)))
    return 1 - missed


@lru_cache(maxsize=256)
def _profile(event: Event, method: Method) -> tuple[tuple[float, float], ...]:
    """(epsilon, delta(epsilon)) at 50 epsilons; with many releases of small batches it takes seconds."""
    top = max(epsilon(event, method, 1e-9), 1e-3)
    grid = (_NEAR_ZERO, *np.geomspace(top * 1e-3, top, 49).tolist())
    return tuple((e, math.exp(log_delta(event, method, e))) for e in grid)
