"""What an event costs, by several accountants, and the noise that a budget needs.

An accountant that is asked what it has no proof for raises `CannotAccount`; it never guesses.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from scipy.special import gammaln, logsumexp

from dpviz.common.validate import InvalidInput, in_range, positive
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.events import (
    CannotAccount,
    Event,
    Gaussian,
    Mixture,
    PureEpsilon,
    Shuffled,
    Step,
    only_step,
    scaled,
    steps_of,
)
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, log_gaussian_delta
from dpviz.privacy.accounting.methods import Method, refuse
from dpviz.privacy.accounting.mixture import mixture_delta, mixture_epsilon, mixture_rdp
from dpviz.privacy.accounting.pld import Pair
from dpviz.privacy.accounting.pld import log_delta as pld_log_delta
from dpviz.privacy.accounting.shuffle import central_epsilon, shuffled_gaussian
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import smallest

_DEPTH = 40.0  # how far below the target ln delta is still told apart
_NEVER = -700.0  # ln of a delta that nobody asks for


def log_delta(
    event: Event, method: Method, epsilon: float, floor: float = _NEVER, directions: tuple[str, ...] = ("remove", "add")
) -> float:
    """ln delta at which an event is (epsilon, delta)-DP.

    Args:
        epsilon: > 0.
        floor: where delta is far below e^floor the answer may be `floor` - 1 instead of the exact value.
        directions: of add/remove that PLD looks at; a guarantee needs both.

    Raises:
        CannotAccount: no proof covers what is asked.
    """
    positive("epsilon", epsilon)
    steps = steps_of(event)
    sampled = any(step.sampling == "poisson" for step in steps)
    for step in steps:
        refuse(step, method)
    if sampled and method.relation is Neighbouring.REPLACE_ONE and method.route == "two-hop":
        one_hop = replace(method, relation=Neighbouring.ADD_REMOVE)
        half = log_delta(event, one_hop, epsilon / 2, floor - epsilon / 2, directions)
        # two hops: delta(eps/2) + e^(eps/2) delta(eps/2)
        return min(0.0, half + epsilon / 2 + math.log1p(math.exp(-epsilon / 2)))
    if len(steps) > 1:
        return rdp.log_delta(_added_up(steps, method), epsilon, method.conversion)
    return _one_kind(steps[0], method, epsilon, floor, directions)


def _one_kind(step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
    event, count = step.event, step.count
    if isinstance(event, PureEpsilon):
        return _pure(event.epsilon, count, epsilon)
    if isinstance(event, Shuffled):
        raise CannotAccount("epsilon", "the theorem on shuffling starts from delta", "Ask for the epsilon at a delta.")
    if isinstance(event, Mixture):
        sens, weights = np.array(event.sensitivities), np.array(event.weights)
        if method.accountant == "rdp":
            orders = np.array(rdp.ORDERS)
            return rdp.log_delta(mixture_rdp(orders, sens, weights, event.sigma), epsilon, method.conversion)
        return math.log(max(mixture_delta(epsilon, sens, weights, event.sigma), math.exp(floor - 1)))
    if step.sampling == "full":
        # the whole batch is in every step: a replacement moves a sum of rows by exactly twice a removal
        return _gaussians(_mu(event, method) * math.sqrt(count), method, epsilon, floor)
    shift = 1 / event.noise_multiplier
    if step.sampling == "without-replacement":
        # Balle, Barthe, Gaboardi 2018, Theorem 9: delta' = (b/n) delta(ln(1 + (e^eps - 1) n/b)) for replacements
        return pld_log_delta(Pair("symmetric", step.rate, 2 * shift), count, epsilon, floor)
    if method.route == "opposite" and method.relation is Neighbouring.REPLACE_ONE:
        return pld_log_delta(Pair("opposite", step.rate, shift), count, epsilon, floor)
    if method.accountant == "rdp":
        return rdp.log_delta(count * rdp.sampled_gaussian(step.rate, event.noise_multiplier), epsilon, method.conversion)
    # neither direction is known to be the larger one after composition
    return max(pld_log_delta(Pair(kind, step.rate, shift), count, epsilon, floor) for kind in directions)


def _gaussians(total: float, method: Method, epsilon: float, floor: float) -> float:
    """`total` is mu of all steps together, sqrt(count) times that of one: exact (Dong, Roth, Su 2022, Corollary 2)."""
    if method.accountant in ("gaussian", "pld", "hockey-stick"):
        return max(float(log_gaussian_delta(epsilon, total)), floor - 1)
    if method.accountant == "rdp":
        return rdp.log_delta(rdp.gaussian(total), epsilon, method.conversion)
    return -((max(epsilon - total**2 / 2, 0.0)) ** 2) / (2 * total**2)  # Bun, Steinke 2016, Proposition 1.3, solved for delta


def _added_up(steps: tuple[Step, ...], method: Method) -> np.ndarray:
    """R(a) at `rdp.ORDERS` of Gaussians of several kinds, under the method's relation (add/remove where one is sampled)."""
    curve = np.zeros(len(rdp.ORDERS))
    for step in steps:
        if not isinstance(step.event, Gaussian) or method.accountant != "rdp":
            raise CannotAccount("event", "different kinds of releases are added up for Gaussians by RDP only", "Use rdp.")
        if step.sampling == "full":
            curve = curve + step.count * rdp.gaussian(_mu(step.event, method))
        else:
            curve = curve + step.count * rdp.sampled_gaussian(step.rate, step.event.noise_multiplier)
    return curve


def _pure(single: float, count: int, epsilon: float) -> float:
    """ln delta of `count` releases that are each `single`-DP: the exact composition.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3: randomised response is the worst case, so delta is the sum over l of
    C(k, l) (e^((k-l) e0) - e^(eps + l e0))_+ / (1 + e^e0)^k.
    """
    ell = np.arange(count + 1)
    gain = (count - ell) * single - (epsilon + ell * single)
    ell, gain = ell[gain > 0], gain[gain > 0]
    if len(ell) == 0:
        return -math.inf
    choose = gammaln(count + 1) - gammaln(ell + 1) - gammaln(count - ell + 1)
    terms = choose + (count - ell) * single + np.log(-np.expm1(-gain)) - count * np.logaddexp(0.0, single)
    return min(0.0, float(logsumexp(terms)))


@lru_cache(maxsize=4096)
def epsilon(event: Event, method: Method, delta: float) -> float:
    """The smallest epsilon >= 0, to a relative 1e-8, at which an event is (epsilon, delta)-DP by this method.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta not in (0, 1).
    """
    target = math.log(in_range("delta", delta, 1e-300, 1 - 1e-12))
    step = steps_of(event)[0]
    if method.accountant == "hockey-stick" and not isinstance(step.event, PureEpsilon):
        step = only_step(event)
        refuse(step, method)
        return _hockey_stick_epsilon(step, method, delta)

    def excess(epsilon: float) -> float:
        return log_delta(event, method, epsilon, target - _DEPTH) - target

    refusal = CannotAccount("noise_multiplier", "the noise is too small for a finite epsilon", "Use more noise.")
    found = smallest(excess, 0.0, tolerance=1e-9, margin=2e-9, limits=(1e-6, 1e304), refusal=refusal)
    return 0.0 if found <= 1e-6 * (1 + 1e-9) and excess(1e-9) <= 0 else found


def _hockey_stick_epsilon(step: Step, method: Method, delta: float) -> float:
    event = step.event
    if isinstance(event, Shuffled) and isinstance(event.event, PureEpsilon):
        return central_epsilon(event.event.epsilon, event.n, delta)
    if isinstance(event, Shuffled):
        assert isinstance(event.event, Gaussian)
        return shuffled_gaussian(event.event.sensitivity / event.event.sigma, event.n, delta).epsilon
    if isinstance(event, Mixture):
        return mixture_epsilon(delta, np.array(event.sensitivities), np.array(event.weights), event.sigma)
    assert isinstance(event, Gaussian)
    return float(gaussian_epsilon(delta, _mu(event, method) * math.sqrt(step.count)))


def _mu(event: Gaussian, method: Method) -> float:
    """Distance over sigma of one full release under the method's relation."""
    return event.sensitivity / event.sigma if method.relation is Neighbouring.REPLACE_ONE else 1 / event.noise_multiplier


@lru_cache(maxsize=4096)
def noise_for(event: Event, method: Method, budget: Budget) -> float:
    """The smallest factor, to a relative 1e-5, by which all noise of an event must be scaled to meet the budget.

    It is the standard deviation where the event is stated with sigma = 1, and the noise multiplier where one row
    contributes 1 as well.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta = 0, which no Gaussian noise can meet.
    """
    if budget.delta <= 0:
        raise InvalidInput("delta", "Gaussian noise cannot give delta = 0", "Choose delta > 0 or a pure-epsilon method.")
    target = math.log(budget.delta)

    def excess(factor: float, directions: tuple[str, ...] = ("remove",)) -> float:
        return log_delta(scaled(event, factor), method, budget.epsilon, target - _DEPTH, directions) - target

    def both(factor: float) -> float:
        return excess(factor, ("remove", "add"))

    cause = f"no noise multiplier meets this budget by {method.accountant}"
    fix = "Choose a larger epsilon, or pld: the orders of RDP end at a few thousand."
    limits, refusal = (1e-130, 1e130), CannotAccount("epsilon", cause, fix)
    search = partial(smallest, step=0.05, tolerance=4e-6, margin=4e-6, limits=limits, refusal=refusal)
    found = search(excess, _guess(event, budget))
    # removing a row is the worse direction in every case seen, which is checked and not assumed
    return found if both(found) <= 0 else search(both, math.log(found))


def _guess(event: Event, budget: Budget) -> float:
    """ln of the factor from the central limit: mu = q sqrt(T (e^(1/z^2) - 1)) (Bu, Dong, Long, Su 2020, Corollary 5)."""
    step = steps_of(event)[-1]
    if not isinstance(step.event, Gaussian):
        return 0.0
    inverse = -math.log(budget.delta) + budget.epsilon / 2
    mu = budget.epsilon / (math.sqrt(2 * inverse + 2 * budget.epsilon) + math.sqrt(2 * inverse))
    ratio = mu / (step.rate * math.sqrt(step.count))
    log_z = -0.5 * math.log(2 * math.log(ratio) if ratio > 1e6 else math.log1p(ratio**2))
    return log_z + math.log(step.event.contribution or step.event.sensitivity / 2) - math.log(step.event.sigma)
