"""One budget for several releases about the same rows: how much each may cost so that all together stay within it.

The privacy cost of choosing settings on private data.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from dpviz.common.validate import InvalidInput, check_integer, number, positive
from dpviz.privacy.accounting.account import epsilon, tightest
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, steps_of
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import largest_argument


def composed_budget(budget: Budget, runs: int, slack: float = 0.0) -> Budget:
    """The budget of `runs` adaptively chosen runs together, the smallest epsilon that the exact composition gives.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3: k runs that are each (eps, delta)-DP are ((k-2i) eps,
    1-(1-delta)^k (1-delta_i))-DP for every i up to k/2; i = 0 is plain addition. No better bound holds for all such runs.

    Args:
        runs: k, 1 to 10,000.
        slack: the largest delta_i that is acceptable beside the runs' own delta, >= 0.
    """
    k = check_integer("runs", runs, 1, 10_000)
    allowed = number("slack", slack)
    best, spent = 0, 0.0
    for i in range(1, k // 2 + 1):
        extra = exact_slack(budget.epsilon, k, i)
        if extra > allowed:
            break
        best, spent = i, extra
    delta = -math.expm1(k * math.log1p(-budget.delta) + math.log1p(-spent))
    # (k - 2i) eps is 0 for even k and i = k/2; a budget is above 0
    return Budget(max((k - 2 * best) * budget.epsilon, 1e-12), min(delta, 1 - 1e-16))


def exact_slack(epsilon: float, k: int, i: int) -> float:
    """The delta of saving 2i epsilon of k runs: delta_i = sum_{l<i} C(k, l) (e^{(k-l) eps} - e^{(k-2i+l) eps}) / (1 + e^eps)^k.

    Above 0 where i is: a price that no double holds is the smallest one, as pure releases must not pass for free.
    """
    ell = np.arange(i)
    log_choose = gammaln(k + 1) - gammaln(ell + 1) - gammaln(k - ell + 1)
    high, low = (k - ell) * epsilon, (k - 2 * i + ell) * epsilon
    terms = log_choose + high + np.log(-np.expm1(low - high))
    price = float(np.exp(logsumexp(terms) - k * np.logaddexp(0.0, epsilon)))
    return max(price, math.ulp(0.0)) if i else 0.0


def random_search(epsilon: float, eta: float = 1.0) -> float:
    """Epsilon of releasing the best of a random number of runs, each of them eps-DP with delta = 0.

    The number of runs must be drawn from a truncated negative binomial distribution with parameter eta > -1 (1: geometric,
    0: logarithmic) and kept secret, and each run must draw its settings from a distribution fixed in advance, its score included
    in what is private: (2 + eta) eps, whatever the mean number of runs (Papernot & Steinke 2022, Theorem 2 with both orders
    going to infinity; Liu & Talwar 2019 for the geometric distribution).
    """
    value = number("eta", eta)
    if value <= -1:
        raise InvalidInput(
            "eta", f"must be above -1, got {value:g}", "Give 1 for the geometric or 0 for the logarithmic distribution."
        )
    return (2 + value) * positive("epsilon", epsilon)


_LEAST = 1e-9  # of the budget


def divide(budget: Budget, parts: int) -> Budget:
    """The largest (epsilon, delta) of each of `parts` releases so that together they are within the budget, whatever they are.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3: (1-2i/k) k releases of eps' add up to (k - 2i) eps' at the price of delta_i. Tried
    are i = 0, plain addition, and every i whose delta_i is at most half of delta.
    """
    k = check_integer("parts", parts, 1, 10_000)
    best = Budget(budget.epsilon / k, _root(budget.delta, 0.0, k))
    for i in range(1, (k - 1) // 2 + 1):
        each = budget.epsilon / (k - 2 * i)
        slack = exact_slack(each, k, i)
        if slack > budget.delta / 2:  # at least half of delta is left for the releases themselves
            break
        best = Budget(each, _root(budget.delta, slack, k))
    return best


def _root(delta: float, slack: float, k: int) -> float:
    """delta' with 1 - (1 - delta')^k (1 - slack) = delta, rounded down."""
    kept = (math.log1p(-delta) - math.log1p(-slack)) / k
    return max(0.0, -math.expm1(kept) * (1 - 1e-12))


def composes(event: Event) -> bool:
    """True where an event and its repetitions have an exact accountant here: one kind of Gaussian release."""
    steps = steps_of(event)
    return len(steps) == 1 and isinstance(steps[0].event, Gaussian) and steps[0].sampling != "fixed"


def divide_exactly(budget: Budget, parts: int, released: Callable[[Budget], Event]) -> Budget:
    """The same for releases that are known: the largest epsilon at the same delta whose releases, repeated, meet the budget.

    Args:
        released: what one part releases when it is calibrated to a budget; one for which `composes` is true.

    Raises:
        InvalidInput: no epsilon is small enough.
    """
    k = check_integer("parts", parts, 1, 10_000)

    def excess(each: float) -> float:
        event = Repeated(released(Budget(each, budget.delta)), k)
        return epsilon(event, tightest(event), budget.delta) / budget.epsilon - 1

    refusal = InvalidInput("epsilon", f"is too small to be divided by {k} classes", "Choose a larger epsilon.")
    limits = (_LEAST * budget.epsilon, budget.epsilon)
    each = largest_argument(excess, math.log(budget.epsilon / k), tolerance=1e-7, margin=1e-7, limits=limits, refusal=refusal)
    return Budget(each, budget.delta)
