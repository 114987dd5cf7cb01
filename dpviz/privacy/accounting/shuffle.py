"""Central guarantees of shuffled local reports, with all constants.

n people each send one report of a local randomiser; a shuffler that everyone trusts hides whose report is whose.
Whatever is computed from the shuffled reports is then more private, under replace-one, than one report is.
"""

import math
from dataclasses import dataclass

from dpviz.common.validate import InvalidInput, check_integer, positive
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import largest_argument, smallest


def largest_local_epsilon(n: int, delta: float) -> float:
    """The largest local epsilon for which `shuffled_epsilon` is proved, ln(n/(16 ln(4/delta))); may be negative.

    Feldman, McMillan, Talwar 2021, Theorem 3.1. Print and public code differ in ln(2/delta) and ln(4/delta);
    the stricter one stands here.
    """
    return math.log(check_integer("n", n, 1, 2**62) / (16 * math.log(4 / _probability(delta))))


def shuffled_epsilon(local_epsilon: float, n: int, delta: float) -> float:
    """Central epsilon at delta of n shuffled reports, each pure local_epsilon-LDP.

    eps = ln(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^e0 ln(4/delta)/n) + 8 e^e0/n)), and never more than e0 itself
    (Feldman, McMillan, Talwar, FOCS 2021, Theorem 3.1).

    Raises:
        InvalidInput: local_epsilon is above `largest_local_epsilon`, where the theorem says nothing.
    """
    e0 = positive("local_epsilon", local_epsilon)
    limit = largest_local_epsilon(n, delta)
    if e0 > limit:
        raise InvalidInput(
            "local_epsilon",
            f"{e0:.4g} is above {limit:.4g}, up to which the shuffling theorem holds at n = {n}, delta = {delta:g}",
            "Use more rows, a larger delta or a smaller local epsilon; without the theorem the central epsilon is the local one.",
        )
    return min(e0, _theorem(e0, n, delta))


def central_epsilon(local_epsilon: float, n: int, delta: float) -> float:
    """As `shuffled_epsilon`, and local_epsilon where the theorem says nothing: LDP is replace-one DP of all reports."""
    if local_epsilon > largest_local_epsilon(n, delta):
        return positive("local_epsilon", local_epsilon)
    return shuffled_epsilon(local_epsilon, n, delta)


def local_epsilon_for(budget: Budget, n: int) -> float:
    """The largest local epsilon whose shuffled reports meet a central budget, >= budget.epsilon.

    Where shuffling proves nothing better, that is budget.epsilon itself.
    """
    if budget.delta <= 0:
        return budget.epsilon
    limit = largest_local_epsilon(n, budget.delta)
    if limit <= budget.epsilon:
        return budget.epsilon
    if _theorem(limit, n, budget.delta) <= budget.epsilon:
        return limit
    if _theorem(budget.epsilon, n, budget.delta) >= budget.epsilon:
        return budget.epsilon
    local = largest_argument(
        lambda e0: _theorem(e0, n, budget.delta) - budget.epsilon, math.log(budget.epsilon), limits=(1e-300, limit), margin=1e-12
    )
    return max(budget.epsilon, local)


def extra_delta(local_epsilon: float, local_delta: float, n: int, epsilon: float) -> float:
    """The central delta that (local_epsilon, local_delta)-LDP reports add to that of pure local_epsilon-LDP ones [ours].

    Proof. Let p0, p1 be the reports of the replaced person and q_i those of the others. There are p0', p1' that
    are purely local_epsilon-close and within total variation a = local_delta/(1 + e^e0) of p0, p1 (Dwork, Roth
    2014, Lemma 3.17). The theorem uses of each other person only q_i >= h = e^-e0 (p0' + p1')/2. The part of h
    above q_i weighs at most e^-e0 (local_delta + a); lifting q_i to h there, and taking as much off elsewhere,
    gives q_i' with the property, within that total variation of q_i. Swapping all n distributions costs tau = a + (n - 1)
    e^-e0 (local_delta + a) on either side of the inequality, so delta grows by (1 + e^eps) tau.
    The publication's own version of this case has a larger factor, of order n local_delta (1 + e^eps).
    """
    a = local_delta / (1 + math.exp(local_epsilon))
    tau = a + (n - 1) * math.exp(-local_epsilon) * (local_delta + a)
    return (1 + math.exp(epsilon)) * tau


@dataclass(frozen=True)
class ShuffledGaussian:
    """Central guarantee of shuffled Gaussian reports.

    Attributes:
        epsilon: central epsilon at the delta that was asked for.
        local_epsilon, local_delta: the point of the Gaussian's own curve that the theorem was used at; NaN where
            the theorem gives nothing better than one report's own guarantee.
        extra: part of delta that goes to `extra_delta`.
        amplified: whether shuffling helped.
    """

    epsilon: float
    local_epsilon: float
    local_delta: float
    extra: float
    amplified: bool


def shuffled_gaussian(mu: float, n: int, delta: float) -> ShuffledGaussian:
    """Central guarantee of n shuffled reports v_i + N(0, s^2 I), where mu = (largest |v - v'|)/s.

    A Gaussian is (e0, delta_G(e0))-LDP for every e0 at once (Balle, Wang 2018). The smallest e0 is taken at which
    `extra_delta` is at most delta/2; the theorem for pure reports gets the other half.
    """
    alone = float(gaussian_epsilon(delta, mu))
    nothing = ShuffledGaussian(alone, math.nan, math.nan, 0.0, False)
    limit = largest_local_epsilon(n, delta / 2)
    if limit <= 0:
        return nothing

    def extra(e0: float) -> float:
        return extra_delta(e0, float(gaussian_delta(e0, mu)), n, min(e0, _theorem(e0, n, delta / 2)))

    if extra(limit) > delta / 2:
        return nothing
    # extra falls as e0 grows: delta_G falls faster than e^eps rises
    high = min(limit, smallest(lambda e0: extra(e0) - delta / 2, math.log(limit), limits=(1e-300, 2 * limit)))
    reached = min(high, _theorem(high, n, delta / 2))
    if reached >= alone:
        return nothing
    return ShuffledGaussian(reached, high, float(gaussian_delta(high, mu)), extra(high), True)


def gaussian_mu_for(budget: Budget, n: int) -> float:
    """The largest mu whose shuffled Gaussian reports meet a central budget, at least `gaussian_mu(budget)`."""
    least = gaussian_mu(budget)
    most = least * (1 + math.sqrt(n))  # more than sqrt(n) is beyond what even a sum of n reports would give

    def excess(mu: float) -> float:
        return shuffled_gaussian(mu, n, budget.delta).epsilon - budget.epsilon * (1 + 1e-12)

    return max(least, largest_argument(excess, math.log(least), limits=(least / 2, most)))


def _theorem(e0: float, n: int, delta: float) -> float:
    grown = math.exp(e0) / n
    return math.log1p(math.tanh(e0 / 2) * 8 * (math.sqrt(grown * math.log(4 / delta)) + grown))


def _probability(delta: float) -> float:
    if not 0 < delta < 1:
        raise InvalidInput("delta", f"must lie in (0, 1), got {delta:g}", "Give a probability below 1/n.")
    return delta
