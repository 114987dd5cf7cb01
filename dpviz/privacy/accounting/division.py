"""One budget for several releases about the same rows: how much each may cost so that all together stay within it."""

import math
from collections.abc import Callable

from dpviz.common.validate import InvalidInput, check_integer
from dpviz.privacy.accounting.account import epsilon
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, steps_of
from dpviz.privacy.accounting.methods import tightest
from dpviz.privacy.accounting.selection import exact_slack
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import largest_argument

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
