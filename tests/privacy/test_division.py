"""One budget for several releases, or for a search among them: exact compositions stay within it, and mistakes do not."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpviz.estimator.guarantee import share, total_budgets
from dpviz.mechanisms import get_mechanism
from dpviz.models import get_model
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.account import epsilon, tightest
from dpviz.privacy.accounting.division import composed_budget, divide, divide_exactly, exact_slack, random_search
from dpviz.privacy.accounting.events import Composed, Event, Gaussian, Mixture, PureEpsilon, Repeated, Sampled
from dpviz.privacy.accounting.repeated_selection import (
    KINDS,
    NegativeBinomial,
    Poisson,
    Repetitions,
    best_of,
    repetitions,
    replace_one_curve,
)
from dpviz.privacy.budget import Budget


def worst_delta(each: Budget, k: int, epsilon: float) -> float:
    """delta of k releases at epsilon, by summing over all outcomes of the worst one (Kairouz, Oh, Viswanath 2015, section 3).

    Randomised response that shows its input with probability delta: outcomes "it is 0", "rather 0", "rather 1", "it is 1".
    """
    e, d = math.exp(each.epsilon), each.delta
    p = np.array([d, (1 - d) * e / (1 + e), (1 - d) / (1 + e), 0.0])
    q = p[::-1]
    total = 0.0
    for outcome in itertools.product(range(4), repeat=k):
        total += max(0.0, math.prod(p[list(outcome)]) - math.exp(epsilon) * math.prod(q[list(outcome)]))
    return total


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget(0.1, 0.01), Budget(4.0, 0.05)])
def test_whatever_the_releases_are_together_they_keep_the_budget(budget: Budget, k: int) -> None:
    each = divide(budget, k)
    assert each.epsilon >= budget.epsilon / k
    assert worst_delta(each, k, budget.epsilon) <= budget.delta * (1 + 1e-9)
    more = Budget(each.epsilon * 1.05, each.delta * 1.05)  # the control
    assert worst_delta(more, k, budget.epsilon) > budget.delta


@pytest.mark.parametrize("classes", [3, 10])
def test_gaussian_models_of_several_classes_keep_the_budget_and_use_it(classes: int) -> None:
    """The joint release is one Gaussian in as many blocks: its delta in closed form, and with 5 % less noise."""
    setting, budget = get_model("logistic").setting(500, 5, 0.01), Budget(1.0, 1e-4)
    mechanism = get_mechanism("output-gaussian")()
    each, how = share(mechanism, setting, budget, classes)
    cal = mechanism.calibrate(setting, each)

    def delta(scale: float) -> float:
        distance = math.sqrt(classes) * 2 / (setting.n * setting.lam) / scale  # every class's minimiser moves by 2G/(n lam)
        a, e = distance / 2, budget.epsilon / distance  # Balle, Wang 2018, Theorem 8
        return float(norm.cdf(a - e) - math.exp(budget.epsilon) * norm.cdf(-a - e))

    assert budget.delta * 0.99 < delta(cal.noise_scale) <= budget.delta * (1 + 1e-6)
    assert delta(0.95 * cal.noise_scale) > budget.delta
    assert "exactly" in how
    assert each.epsilon > divide(budget, classes).epsilon


def slack_of_answers(each: float, k: int, epsilon: float) -> float:
    """delta at epsilon of k randomised responses that are (each, 0)-DP, by the binomial law of the number of true answers."""
    p, j = 1 / (1 + math.exp(-each)), np.arange(k + 1)
    return float(np.maximum(0.0, binom.pmf(j, k, p) - math.exp(epsilon) * binom.pmf(j, k, 1 - p)).sum())


def test_the_division_is_the_best_one_of_the_theorem() -> None:
    """Every (k - 2i) epsilon with its delta from another formula; all kinds of ends occur."""
    used = set()
    deltas = (1e-9, 1e-5, 1e-3, 0.02, 0.05, 0.1, 0.3)
    for whole, k, delta in itertools.product((0.3, 2.0), (1, 2, 3, 4, 5, 6, 7, 9, 30), deltas):
        best, slack = 0, 0.0
        for i in range(1, (k - 1) // 2 + 1):
            price = slack_of_answers(whole / (k - 2 * i), k, whole)
            if price > delta / 2:
                break
            best, slack = i, price
        each = divide(Budget(whole, delta), k)
        assert each.epsilon == pytest.approx(whole / (k - 2 * best), rel=1e-12)
        assert 1 - (1 - each.delta) ** k * (1 - slack) == pytest.approx(delta, rel=1e-6)
        used.add((k % 2, "none" if not best else "all" if best == (k - 1) // 2 else "some", best == 1))
    assert {(1, "all", True), (0, "all", True), (0, "some", True), (1, "none", False), (0, "some", False)} <= used


def test_the_share_of_delta_is_rounded_down() -> None:
    for k, delta in ((2, 1e-5), (3, 1e-9), (7, 1e-5)):
        total = 1 - (1 - Fraction(divide(Budget(1.0, delta), k).delta)) ** k
        assert Fraction(delta) * (1 - Fraction(1, 10**11)) < total <= Fraction(delta)


def test_a_budget_is_divided_among_1_to_10000() -> None:
    """Of 10,000 pure answers 2 epsilon could be saved at a price that no double holds: it is no price of 0."""
    assert divide(Budget(2.0), 1) == Budget(2.0)
    assert divide(Budget(2.0), 10_000) == Budget(2.0 / 10_000)
    assert divide_exactly(Budget(2.0, 1e-5), 1, lambda each: Gaussian(1.0, 5 / each.epsilon)).epsilon <= 2.0
    assert divide_exactly(Budget(2.0, 1e-5), 10_000, lambda each: Gaussian(1.0, 5 / each.epsilon)).epsilon > 2.0 / 10_000


@pytest.mark.parametrize("rate", [None, 0.1])
def test_releases_that_are_known_use_the_whole_budget(rate: float | None) -> None:
    def released(each: Budget) -> Event:
        return Gaussian(1.0, 4 / each.epsilon) if rate is None else Sampled(Gaussian.of_rows(0.5, 0.9 / each.epsilon), rate)

    budget = Budget(2.5, 1e-5)
    each = divide_exactly(budget, 4, released)
    event = Repeated(released(each), 4)
    assert epsilon(event, tightest(event), budget.delta) <= budget.epsilon
    assert epsilon(event, tightest(event), budget.delta) > budget.epsilon * (1 - 1e-5)
    assert each.delta == budget.delta


@pytest.mark.parametrize("k", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("each", [Budget(0.4), Budget(1.5, 1e-3)])
def test_composition_is_the_best_one_of_the_theorem(each: Budget, k: int) -> None:
    """From plain addition to saving all there is to save, with the price of every step from another formula."""
    prices = [0.0] + [slack_of_answers(each.epsilon, k, (k - 2 * i) * each.epsilon) for i in range(1, k // 2 + 1)]
    for i, price in enumerate(prices):
        got = composed_budget(each, k, slack=price * (1 + 1e-9))
        assert got.epsilon == pytest.approx(max((k - 2 * i) * each.epsilon, 1e-12), rel=1e-12)
        assert got.delta == pytest.approx(1 - (1 - each.delta) ** k * (1 - price), rel=1e-9, abs=1e-15)
    assert composed_budget(each, k, slack=0.999).epsilon == got.epsilon
    if k == 9:
        assert prices[2] > 0.01, "large slacks occur"


def test_what_is_composed_is_a_budget_at_its_ends() -> None:
    assert composed_budget(Budget(1.0, 0.9), 10_000).delta == 1 - 1e-16
    assert composed_budget(Budget(1.0), 10_000).epsilon == 10_000


def test_random_search_at_other_distributions() -> None:
    """Papernot and Steinke 2022: (2 + eta) epsilon; the geometric distribution (eta = 1) is the default."""
    assert random_search(0.5) == random_search(0.5, 1.0) == 1.5
    assert random_search(0.5, -0.5) == 0.75


def test_prices_far_below_a_rounding_of_1_keep_their_digits() -> None:
    """delta_1 = (e^(k eps) - e^((k-2) eps))/(1 + e^eps)^k in closed form; nothing saved costs nothing."""
    exact = (math.exp(20) - math.exp(19.8)) / (1 + math.exp(0.1)) ** 200
    assert exact_slack(0.1, 200, 1) == pytest.approx(exact, rel=1e-9, abs=0)
    assert exact_slack(0.1, 200, 0) == 0.0
    assert 0.0 < exact_slack(1e-4, 10_000, 1) < 1e-300


def test_models_that_keep_to_their_share_cost_the_whole_and_others_their_sum() -> None:
    setting = get_model("logistic").setting(100, 3, 0.1)
    cal = get_mechanism("output-gaussian")().calibrate(setting, Budget(1.0, 1e-6))
    each, whole = Budget(1.0, 1e-6), Budget(2.5, 1e-5)
    assert total_budgets(cal, each, whole, 3, pure=False) == (whole, whole)
    assert total_budgets(cal, each, whole, 1, pure=False) == (each, each)
    more = dataclasses.replace(cal, claimed_budget=Budget(1.0, 2e-6), proved_budget=Budget(1.5, 1e-6))
    assert total_budgets(more, each, whole, 3, pure=False) == (Budget(3.0, 6e-6), Budget(4.5, 3e-6))
    pure = get_mechanism("cms-output")().calibrate(setting, Budget(1.0))
    assert total_budgets(pure, Budget(1.0), Budget(2.5), 3, pure=True) == (Budget(2.5), Budget(2.5))
    nothing = get_mechanism("non-private")().calibrate(setting, Budget(1.0))
    assert total_budgets(nothing, each, whole, 3, pure=False) == (None, None)


Floats = np.ndarray
MEANS = (2.0, 10.0, 100.0)


def best(q: Floats, generating: Callable[[Floats], Floats]) -> Floats:
    """Distribution of the largest of K independent outcomes (the last one is best), from the generating function of K."""
    up_to = np.concatenate([[0.0], np.cumsum(q)])
    up_to[-1] = 1.0
    return np.diff(generating(up_to))


def generating(distribution: Repetitions) -> Callable[[Floats], Floats]:
    if isinstance(distribution, Poisson):
        return lambda x: np.exp(distribution.mean * (x - 1))
    eta, gamma = distribution.eta, distribution.gamma
    if eta == 0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def exact_delta(p: Floats, q: Floats, epsilon: float) -> float:
    return float(max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum()))


def pairs(epsilon: float) -> list[tuple[Floats, Floats]]:
    """Pairs of distributions of (model, score) that are epsilon apart: a rare good outcome, a common one, and random ones."""
    found = []
    for rare in (0.001, 0.02, 0.2, 0.5, 0.9):
        good = rare / (rare + (1 - rare) * math.exp(epsilon))
        found += [(np.array([1 - rare, rare]), np.array([1 - good, good]))]
    rng = np.random.default_rng(1)
    for _ in range(20):
        q = rng.dirichlet(np.ones(6))
        signs = np.where(rng.random(6) < 0.5, math.exp(epsilon / 2), math.exp(-epsilon / 2))
        found.append((q, q * signs / (q * signs).sum()))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("single", [0.1, 1.0])
def test_no_search_is_less_private_than_the_bound(kind: str, mean: float, single: float) -> None:
    distribution = repetitions(kind, mean)
    bound = best_of(replace_one_curve(PureEpsilon(single)), distribution, 1e-6)
    for p, q in pairs(single):
        a, b = best(p, generating(distribution)), best(q, generating(distribution))
        if isinstance(distribution, Poisson):  # that no run was made is an outcome, too
            a, b = np.append(a, 1 - a.sum()), np.append(b, 1 - b.sum())
        assert exact_delta(a, b, bound) <= 1e-6


def test_a_fixed_number_of_runs_breaks_it() -> None:
    """The control: the same search with K = 100 always."""
    bound = best_of(replace_one_curve(PureEpsilon(0.1)), repetitions("geometric", 100.0), 1e-6)
    worst = max(exact_delta(best(p, lambda x: x**100), best(q, lambda x: x**100), bound) for p, q in pairs(0.1))
    assert worst > 1e-3


def test_forgetting_the_mean_or_one_run_is_seen() -> None:
    """The control: R(a) alone, as if the best run were the only one."""
    broken = 0
    for p, q in pairs(1.0):
        make = generating(repetitions("geometric", 100.0))
        broken += exact_delta(best(p, make), best(q, make), rdp.epsilon(replace_one_curve(PureEpsilon(1.0)), 1e-6)[0]) > 1e-6
    assert broken


@pytest.mark.parametrize("eta", [-0.5, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("mean", MEANS)
def test_the_number_of_runs_has_the_mean_that_was_asked_for(eta: float, mean: float) -> None:
    distribution = NegativeBinomial.with_mean(mean, eta)
    assert distribution.mean == pytest.approx(mean, rel=1e-6)
    probabilities = distribution.probabilities(200_000)
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    assert probabilities @ np.arange(1, 200_001) == pytest.approx(mean, rel=2e-3)  # the tail beyond
    draws = [distribution.draw(u) for u in np.random.default_rng(3).random(2000)]
    assert min(draws) >= 1
    expected = probabilities[:3]
    counted = np.array([np.mean(np.array(draws) == k) for k in (1, 2, 3)])
    np.testing.assert_allclose(counted, expected, atol=5 * math.sqrt(0.25 / 2000))


def test_the_cost_grows_slowly_with_the_number_of_runs() -> None:
    """Papernot, Steinke 2022: two to three times one run, where K fixed at 1,000 would cost about a thousand times its mu^2."""
    one = replace_one_curve(Gaussian(0.2))
    alone = rdp.epsilon(one, 1e-6)[0]
    for kind in ("geometric", "logarithmic", "negative-binomial"):
        costs = [best_of(one, repetitions(kind, mean), 1e-6) / alone for mean in (2.0, 20.0, 200.0, 1000.0)]
        assert costs == sorted(costs)
        assert 1 < costs[0] < 2
        assert costs[-1] < 3.5


def test_curves_of_events_are_the_textbook_ones() -> None:
    a = np.asarray(rdp.ORDERS)
    np.testing.assert_allclose(replace_one_curve(Gaussian(0.5, 2.0)), a * 0.25**2 / 2)
    np.testing.assert_allclose(replace_one_curve(Repeated(Gaussian(0.5), 4)), a * 1.0**2 / 2)
    pure = replace_one_curve(PureEpsilon(0.5))
    assert (np.diff(pure) >= -1e-12).all()
    assert pure[-1] <= 0.5
    p = math.exp(0.5) / (1 + math.exp(0.5))
    at = list(rdp.ORDERS).index(3.0)
    assert pure[at] == pytest.approx(math.log(p**3 * (1 - p) ** -2 + (1 - p) ** 3 * p**-2) / 2)
    both = replace_one_curve(Composed((Gaussian(0.5), PureEpsilon(0.5))))
    np.testing.assert_allclose(both, replace_one_curve(Gaussian(0.5)) + pure)
    assert np.isfinite(replace_one_curve(Mixture((0.1, 0.2), (0.5, 0.5), 0.3))).all()
    assert (replace_one_curve(Sampled(Gaussian.of_rows(1.0, 2.0), 0.1)) < replace_one_curve(Gaussian.of_rows(1.0, 2.0))).all()
