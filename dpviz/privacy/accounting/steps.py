"""What many noisy gradient steps cost together, by several accountants, and the noise that a budget needs.

An accountant that is asked what it has no proof for raises `CannotAccount`; it never guesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from dpviz.common.validate import InvalidInput, in_range, one_of, positive, whole
from dpviz.common.words import Words
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
from dpviz.privacy.accounting.pld import Pair, log_delta
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import smallest

ACCOUNTANTS = ("pld", "rdp", "zcdp", "gaussian")
SAMPLINGS = ("poisson", "without-replacement", "full", "shuffled")
ROUTES = ("none", "two-hop", "opposite")

_DEPTH = 40.0  # how far below the target ln delta is still told apart


class CannotAccount(InvalidInput):
    """The accountant has no proof for this sampling, neighbouring relation or conversion."""


@dataclass(frozen=True)
class Steps:
    """Noisy gradient sums: each step adds N(0, (z C)^2 I) to a sum to which one row contributes at most C.

    Attributes:
        noise_multiplier: z, finite and above 0; the unit is the contribution of one row, under every relation.
        rate: share of the rows in a batch, in (0, 1].
        count: steps, >= 1.
        sampling: "poisson" every row is in with chance `rate`, independently; "without-replacement" a fresh uniform
            batch of exactly rate x n rows at every step; "full" all rows (rate 1); "shuffled" fixed batches.

    Raises:
        InvalidInput: a value is out of range; NaN, infinite and zero noise included.
    """

    noise_multiplier: float
    rate: float = 1.0
    count: int = 1
    sampling: str = "poisson"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", positive("noise_multiplier", self.noise_multiplier))
        object.__setattr__(self, "rate", in_range("rate", self.rate, 1e-9, 1.0))
        object.__setattr__(self, "count", whole("count", self.count, 1, 10**9))
        one_of("sampling", self.sampling, SAMPLINGS)
        if self.sampling == "full" and self.rate != 1:
            raise InvalidInput("rate", f"must be 1 for full batches, got {self.rate:g}", "Set rate = 1 or another sampling.")


@dataclass(frozen=True)
class Method:
    """How steps are accounted for.

    Attributes:
        accountant: "pld" privacy loss distribution; "rdp"; "zcdp" and "gaussian" (exact) for full batches only.
        relation: neighbouring relation of the result.
        route: how replace-one follows for Poisson batches. "two-hop": remove one row, add another; an (eps, delta(eps))
            curve under add/remove gives (eps, (1 + e^(eps/2)) delta(eps/2)), proved. "opposite": the pair
            (1-q)N(0) + qN(1) against (1-q)N(0) + qN(-1), as dp_accounting's PLD does; that it dominates every
            replacement is not proved here. "none": refuse.
        conversion: of RDP and zCDP, see `rdp.epsilon`.
    """

    accountant: str = "pld"
    relation: Neighbouring = Neighbouring.ADD_REMOVE
    route: str = "none"
    conversion: str = "cks"

    def __post_init__(self) -> None:
        one_of("accountant", self.accountant, ACCOUNTANTS)
        one_of("route", self.route, ROUTES)
        one_of("conversion", self.conversion, rdp.CONVERSIONS)

    @property
    def words(self) -> str:
        """The accountant for people."""
        name = {
            "pld": "privacy loss distribution (tilted FFT, pessimistic grid)",
            "rdp": "Rényi DP of the subsampled Gaussian (Mironov, Talwar, Zhang 2019)",
            "zcdp": "zCDP (Bun, Steinke 2016)",
            "gaussian": "exact composition of Gaussian mechanisms",
        }[self.accountant]
        return f"{name}, {'two hops of add/remove' if self.route == 'two-hop' else self.relation.value}"


def log_delta_of(
    steps: Steps, method: Method, epsilon: float, floor: float = -700.0, directions: tuple[str, ...] = ("remove", "add")
) -> float:
    """ln delta at which the steps together are (epsilon, delta)-DP.

    Args:
        epsilon: > 0.
        floor: where delta is far below e^floor the answer may be `floor` - 1 instead of the exact value.
        directions: of add/remove that PLD looks at; a guarantee needs both.

    Raises:
        CannotAccount: no proof covers what is asked.
    """
    positive("epsilon", epsilon)
    full = steps.rate == 1 and steps.sampling != "shuffled"
    _refuse(steps, method, full)
    replace_one = method.relation is Neighbouring.REPLACE_ONE
    if full and replace_one:
        # the whole batch is in every step: a replacement moves the sum by at most 2C, exactly twice a removal
        return _gaussians(steps.count, 2 / steps.noise_multiplier, method, epsilon, floor)
    if full:
        return _gaussians(steps.count, 1 / steps.noise_multiplier, method, epsilon, floor)
    s = 1 / steps.noise_multiplier
    if steps.sampling == "without-replacement":
        # Balle, Barthe, Gaboardi 2018, Theorem 9: delta' = (b/n) delta(ln(1 + (e^eps - 1) n/b)) for replacements
        return log_delta(Pair("symmetric", steps.rate, 2 * s), steps.count, epsilon, floor)
    if replace_one and method.route == "opposite":
        return log_delta(Pair("opposite", steps.rate, s), steps.count, epsilon, floor)
    if replace_one:
        one_hop = replace(method, relation=Neighbouring.ADD_REMOVE)
        half = log_delta_of(steps, one_hop, epsilon / 2, floor - epsilon / 2, directions)
        # two hops: delta(eps/2) + e^(eps/2) delta(eps/2)
        return min(0.0, half + epsilon / 2 + math.log1p(math.exp(-epsilon / 2)))
    if method.accountant == "rdp":
        curve = steps.count * rdp.sampled_gaussian(steps.rate, steps.noise_multiplier)
        return rdp.log_delta(curve, epsilon, method.conversion)
    # neither direction is known to be the larger one after composition
    return max(log_delta(Pair(kind, steps.rate, s), steps.count, epsilon, floor) for kind in directions)


def _gaussians(count: int, mu: float, method: Method, epsilon: float, floor: float) -> float:
    total = mu * math.sqrt(count)  # Dong, Roth, Su 2022, Corollary 2: exact
    if method.accountant in ("gaussian", "pld"):
        return max(float(log_gaussian_delta(epsilon, total)), floor - 1)
    if method.accountant == "rdp":
        return rdp.log_delta(rdp.gaussian(total), epsilon, method.conversion)
    return -((max(epsilon - total**2 / 2, 0.0)) ** 2) / (2 * total**2)  # Bun, Steinke 2016, Proposition 1.3, solved for delta


def _refuse(steps: Steps, method: Method, full: bool) -> None:
    def stop(cause: Words, fix: Words) -> None:
        raise CannotAccount("accountant", cause, fix)

    if steps.sampling == "shuffled":
        stop(
            f"{method.accountant.upper()} has no bound for shuffled fixed batches; the bound for Poisson batches is not one",
            "Sample Poisson batches, or account for the pass as full batches.",
        )
    if full:
        return
    if method.accountant in ("zcdp", "gaussian"):
        stop(f"{method.accountant} cannot use that batches are sampled", "Use pld or rdp, or full batches.")
    if steps.sampling == "without-replacement":
        if method.relation is not Neighbouring.REPLACE_ONE or method.accountant != "pld":
            stop("batches of fixed size are covered for replace-one by PLD only", "Use pld with replace-one.")
        return
    if method.relation is Neighbouring.REPLACE_ONE:
        if method.route == "none":
            stop(
                "sampled batches under replace-one need a convention, because accountants differ in theirs",
                'Choose route "two-hop" (proved) or "opposite" (PLD only, not proved).',
            )
        if method.route == "opposite" and method.accountant != "pld":
            stop('the route "opposite" exists for PLD only', 'Use pld, or route "two-hop".')


@lru_cache(maxsize=4096)
def epsilon_of(steps: Steps, method: Method, delta: float) -> float:
    """The smallest epsilon >= 0, to 1e-8, at which the steps are (epsilon, delta)-DP by this method.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta not in (0, 1).
    """
    target = math.log(in_range("delta", delta, 1e-300, 1 - 1e-12))

    def excess(epsilon: float) -> float:
        return log_delta_of(steps, method, epsilon, target - _DEPTH) - target

    refusal = CannotAccount("noise_multiplier", "the noise is too small for a finite epsilon", "Use more noise.")
    found = smallest(excess, 0.0, tolerance=1e-9, margin=2e-9, limits=(1e-6, 1e304), refusal=refusal)
    return 0.0 if found <= 1e-6 * (1 + 1e-9) and excess(1e-9) <= 0 else found


@lru_cache(maxsize=4096)
def noise_multiplier_for(
    budget: Budget, method: Method, *, rate: float = 1.0, count: int = 1, sampling: str = "poisson"
) -> float:
    """The smallest noise multiplier, to a relative 1e-5, with which the steps meet the budget.

    Raises:
        CannotAccount: no proof covers what is asked.
        InvalidInput: delta = 0, which no Gaussian noise can meet.
    """
    if budget.delta <= 0:
        raise InvalidInput("delta", "Gaussian noise cannot give delta = 0", "Choose delta > 0 or a pure-epsilon method.")
    target = math.log(budget.delta)

    def excess(z: float, directions: tuple[str, ...] = ("remove",)) -> float:
        return log_delta_of(Steps(z, rate, count, sampling), method, budget.epsilon, target - _DEPTH, directions) - target

    def both(z: float) -> float:
        return excess(z, ("remove", "add"))

    cause = f"no noise multiplier meets this budget by {method.accountant}"
    fix = "Choose a larger epsilon, or pld: the orders of RDP end at a few thousand."
    limits, refusal = (1e-130, 1e130), CannotAccount("epsilon", cause, fix)
    search = partial(smallest, step=0.05, tolerance=4e-6, margin=4e-6, limits=limits, refusal=refusal)
    found = search(excess, _guess(budget, rate, count))
    # removing a row is the worse direction in every case seen, which is checked and not assumed
    return found if both(found) <= 0 else search(both, math.log(found))


def _guess(budget: Budget, rate: float, count: int) -> float:
    """ln z from the central limit: mu = q sqrt(T (e^(1/z^2) - 1)) (Bu, Dong, Long, Su 2020, Corollary 5)."""
    inverse = -math.log(budget.delta) + budget.epsilon / 2
    mu = budget.epsilon / (math.sqrt(2 * inverse + 2 * budget.epsilon) + math.sqrt(2 * inverse))
    ratio = mu / (rate * math.sqrt(count))
    return -0.5 * math.log(2 * math.log(ratio) if ratio > 1e6 else math.log1p(ratio**2))
