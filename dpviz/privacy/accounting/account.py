"""The cost of an event by any accountant, and the noise that a budget needs.

An accountant that is asked what it has no proof for raises `CannotAccount`; it never guesses.

The accounting methods that are proved, and the tightest one for an event.
"""

import math
from functools import lru_cache, partial

from dpviz.common.validate import check_range, positive
from dpviz.privacy.accounting.accountants.base import Method, get_accountant, list_accountants
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, PureEpsilon, Step, scale_noise, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import smallest

__all__ = ["HOCKEY_STICK", "Method", "describe", "tightest"]

#: the tightest proof under replace-one for releases of one kind of which every row is part
HOCKEY_STICK = Method("hockey-stick", Neighbouring.REPLACE_ONE)


def tightest(event: Event, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> Method:
    """The accountant with the smallest proved epsilon under a neighbouring relation."""
    steps = steps_of(event)
    if len(steps) > 1:
        return Method("rdp", relation)
    if relation is Neighbouring.ADD_REMOVE or steps[0].sampling in ("poisson", "without-replacement"):
        return Method("pld", relation)
    return HOCKEY_STICK


def describe(method: Method) -> str:
    """The method for people."""
    return f"{get_accountant(method.accountant).words}, {method.relation.value}"


_DEPTH = 40.0  # how far below the target ln delta is still distinguished
_NEVER = -700.0  # ln of a delta that is never asked for


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
    accountant, steps = get_accountant(method.accountant), steps_of(event)
    for step in steps:
        refuse(step, method)
    if len(steps) > 1:
        return accountant.log_delta_of_kinds(steps, method, epsilon)
    return accountant.log_delta(steps[0], method, epsilon, floor, directions)


def refuse(step: Step, method: Method) -> None:
    """Raises `CannotAccount`, with cause and fix, where the method has no proof for this kind of release."""
    accountant, replace_one = get_accountant(method.accountant), method.relation is Neighbouring.REPLACE_ONE

    def stop(cause: str, fix: str) -> None:
        raise CannotAccount("accountant", cause, fix)

    if not isinstance(step.event, accountant.kinds):
        able = [name for name, other in list_accountants().items() if isinstance(step.event, other.kinds)]
        stop(f"{accountant.label} has no proof for {type(step.event).__name__} releases", f"Use {' or '.join(able)}.")
    if not isinstance(step.event, Gaussian):
        if not replace_one:
            stop("what removing a row changes is not known for these releases", "Use replace-one.")
        if step.count > 1 and not isinstance(step.event, PureEpsilon):
            stop("these releases are accounted for once and not repeated", "Account for one of them.")
    accountant.refuse(step, method)


@lru_cache(maxsize=4096)
def epsilon(event: Event, method: Method, delta: float) -> float:
    """The smallest epsilon >= 0, to a relative 1e-8, at which an event is (epsilon, delta)-DP by this method.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta not in (0, 1).

    >>> from dpviz.privacy.accounting.events import Gaussian, Repeated, Sampled
    >>> dp_sgd = Repeated(Sampled(Gaussian.of_rows(1.0, 1.0), 0.01), 1000)  # 1,000 Poisson batches of 1 % of the rows
    >>> round(epsilon(dp_sgd, Method("pld"), delta=1e-5), 3)
    1.828
    >>> round(epsilon(dp_sgd, Method("rdp"), delta=1e-5), 3)
    2.101
    """
    target = math.log(check_range("delta", delta, 1e-300, 1 - 1e-12))
    steps = steps_of(event)
    for step in steps:
        refuse(step, method)
    own = get_accountant(method.accountant).epsilon(steps[0], method, delta) if len(steps) == 1 else None
    if own is not None:
        return own

    def excess(epsilon: float) -> float:
        return log_delta(event, method, epsilon, target - _DEPTH) - target

    refusal = CannotAccount(
        "noise_multiplier", "the noise is too small for a finite epsilon", "Use more noise, that is a smaller epsilon."
    )
    smallest_epsilon = smallest(excess, 0.0, tolerance=1e-9, margin=2e-9, limits=(1e-6, 1e304), refusal=refusal)
    return 0.0 if smallest_epsilon <= 1e-6 * (1 + 1e-9) and excess(1e-9) <= 0 else smallest_epsilon


@lru_cache(maxsize=4096)
def noise_for(event: Event, method: Method, budget: Budget) -> float:
    """The smallest factor, to a relative 1e-5, by which all noise of an event must be scaled to meet the budget.

    It is the standard deviation where the event is stated with sigma = 1, and the noise multiplier where one row
    contributes 1 as well.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta = 0, which no Gaussian noise can meet.

    >>> from dpviz.privacy.accounting.events import Gaussian, Repeated, Sampled
    >>> round(noise_for(Repeated(Sampled(Gaussian.of_rows(1.0, 1.0), 0.01), 1000), Method("pld"), Budget(1.0, 1e-5)), 3)
    1.415
    """
    budget.need_delta()
    target = math.log(budget.delta)

    def excess(factor: float, directions: tuple[str, ...] = ("remove",)) -> float:
        return log_delta(scale_noise(event, factor), method, budget.epsilon, target - _DEPTH, directions) - target

    cause = f"no noise multiplier meets this budget by {method.accountant}"
    fix = "Choose a larger epsilon, or pld: the orders of RDP end at a few thousand."
    limits, refusal = (1e-130, 1e130), CannotAccount("epsilon", cause, fix)
    search = partial(smallest, step=0.05, tolerance=4e-6, margin=4e-6, limits=limits, refusal=refusal)
    noise = search(excess, _guess(event, method, budget))
    # removing a row is the worse direction in every case seen, which is checked and not assumed
    return noise if excess(noise, ("add",)) <= 0 else search(lambda factor: excess(factor, ("remove", "add")), math.log(noise))


def _guess(event: Event, method: Method, budget: Budget) -> float:
    """ln of the factor from the central limit: mu = q sqrt(T (e^(1/z^2) - 1)) (Bu, Dong, Long, Su 2020, Corollary 5)."""
    step = steps_of(event)[-1]
    if not isinstance(step.event, Gaussian):
        return 0.0
    moves = 2 if method.relation is Neighbouring.REPLACE_ONE else 1  # a replaced row moves a sum twice as far as a removed one
    ratio = gaussian_mu(budget) / (moves * step.rate * math.sqrt(step.count))
    log_z = -0.5 * math.log(2 * math.log(ratio) if ratio > 1e6 else math.log1p(ratio**2))
    return log_z + math.log(step.event.contribution or step.event.sensitivity / 2) - math.log(step.event.sigma)
