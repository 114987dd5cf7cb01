"""Mixtures of Gaussians and shuffled reports: against exact divergences, dp_accounting, and the steps of their proofs."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import binom, norm

from dpviz.privacy.accounting import rdp, shuffle
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_sigma
from dpviz.privacy.accounting.mixture import (
    mixture_delta,
    mixture_epsilon,
    mixture_rdp,
    mixture_rdp_epsilon,
    mixture_rdp_sigma,
    mixture_sigma,
)
from dpviz.privacy.budget import Budget

SPREAD, WEIGHTS = np.array([0.2, 0.5, 1.0, 3.0]), np.array([0.4, 0.3, 0.2, 0.1])
BUDGETS = [Budget(e, d) for e in (0.01, 0.3, 1.0, 8.0, 200.0) for d in (1e-10, 1e-5, 1e-2)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_one_component_is_the_plain_gaussian(budget: Budget) -> None:
    sens, one = np.array([0.7]), np.array([1.0])
    assert mixture_sigma(budget, sens, one) == pytest.approx(gaussian_sigma(budget, 0.7), rel=1e-10)
    assert mixture_rdp_sigma(budget, sens, one) == pytest.approx(rdp.gaussian_sigma(budget, 0.7), rel=1e-8)
    assert mixture_epsilon(budget.delta, sens, one, 2.0) == pytest.approx(float(gaussian_epsilon(budget.delta, 0.35)), rel=1e-9)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_better_accountants_need_less_noise(budget: Budget) -> None:
    exact = mixture_sigma(budget, SPREAD, WEIGHTS)
    improved = mixture_rdp_sigma(budget, SPREAD, WEIGHTS, "improved")
    published = mixture_rdp_sigma(budget, SPREAD, WEIGHTS)
    assert exact <= improved <= published <= rdp.gaussian_sigma(budget, SPREAD.max()) * (1 + 1e-9)
    assert exact <= gaussian_sigma(budget, SPREAD.max())


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_noise_and_budget_invert_each_other(budget: Budget) -> None:
    sigma = mixture_sigma(budget, SPREAD, WEIGHTS)
    assert mixture_delta(budget.epsilon, SPREAD, WEIGHTS, sigma) == pytest.approx(budget.delta, rel=1e-6)
    assert mixture_epsilon(budget.delta, SPREAD, WEIGHTS, sigma) == pytest.approx(budget.epsilon, rel=1e-6)
    # noise that is 5 % too small is seen
    assert mixture_delta(budget.epsilon, SPREAD, WEIGHTS, 0.95 * sigma) > budget.delta * 1.001
    for conversion in ("mironov", "improved"):
        rdp = mixture_rdp_sigma(budget, SPREAD, WEIGHTS, conversion)
        assert mixture_rdp_epsilon(budget.delta, SPREAD, WEIGHTS, rdp, conversion)[0] == pytest.approx(budget.epsilon, rel=1e-7)


def test_delta_is_an_upper_bound_for_a_mixture_that_hides_its_component() -> None:
    sigma, epsilon = 1.5, 0.8
    shifts = SPREAD[:3] * np.array([1.0, -1.0, 1.0])  # replaced rows may pull in different directions
    q = WEIGHTS[:3] / WEIGHTS[:3].sum()
    centres = np.array([0.0, 0.4, -0.3])

    def excess(x: float) -> float:
        first = (q * norm.pdf(x, centres, sigma)).sum()
        second = (q * norm.pdf(x, centres + shifts, sigma)).sum()
        return max(first - math.exp(epsilon) * second, 0.0)

    truth = quad(excess, -30, 30, limit=400, points=[-5, 0, 5])[0]
    bound = mixture_delta(epsilon, SPREAD[:3], q, sigma)
    assert 0 < truth <= bound
    # attained where the component can be read off: the sum of what each gives
    assert bound == pytest.approx(float((q * gaussian_delta(epsilon, SPREAD[:3] / sigma)).sum()), rel=1e-12)


def test_renyi_divergence_and_conversion_agree_with_dp_accounting() -> None:
    orders = np.array([1.5, 2.0, 4.0, 8.0, 20.0, 64.0])
    curve = mixture_rdp(orders, SPREAD, WEIGHTS, 1.5)
    direct = [math.log((WEIGHTS * np.exp(a * (a - 1) * SPREAD**2 / (2 * 1.5**2))).sum()) / (a - 1) for a in orders[:4]]
    np.testing.assert_allclose(curve[:4], direct, rtol=1e-12)
    single = mixture_rdp(orders, np.array([1.0]), np.array([1.0]), 3.0)
    np.testing.assert_allclose(single, orders / 18, rtol=1e-12)
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, single, 1e-5)
    assert rdp.convert(single, orders, 1e-5, "improved").min() == pytest.approx(theirs, rel=1e-9)
    # a finer search over orders can only find less
    assert mixture_rdp_epsilon(1e-5, np.array([1.0]), np.array([1.0]), 3.0, "improved")[0] <= theirs


@pytest.mark.parametrize("conversion", ["mironov", "improved"])
def test_sensitivities_that_are_many_powers_of_ten_apart(conversion: str) -> None:
    # what steps above 2/L make of Algorithm 2; a row that is nearly always harmless costs ln(weight) at most
    budget, sens, weights = Budget(0.0113, 4.4e-11), np.geomspace(1e-30, 1.0, 20), np.full(20, 0.05)
    sigma = mixture_rdp_sigma(budget, sens, weights, conversion)
    orders = 1 + np.geomspace(1, 1e6, 200_001)
    curve = logsumexp((orders * (orders - 1))[:, None] * (sens / sigma) ** 2 / 2, b=weights, axis=1) / (orders - 1)
    reached = rdp.convert(curve, orders, budget.delta, conversion).min()
    assert reached == pytest.approx(budget.epsilon, rel=1e-6)
    worse = logsumexp((orders * (orders - 1))[:, None] * (sens * 1.05 / sigma) ** 2 / 2, b=weights, axis=1) / (orders - 1)
    assert rdp.convert(worse, orders, budget.delta, conversion).min() > budget.epsilon * 1.01


def test_epsilon_of_a_mixture_at_its_ends() -> None:
    """So much noise that delta is met at epsilon 0."""
    places, chances = np.array([1.0, 0.5]), np.array([0.5, 0.5])
    assert mixture_epsilon(1e-6, places, chances, 1e9) == 0.0
    assert mixture_epsilon(1e-6, places, chances, 1e5) > 0


def exact_clones_delta(e0: float, n: int, epsilon: float) -> float:
    """Hockey stick of the pair that the theorem's proof ends in, by summation (not by the closed form).

    C ~ Bin(n - 1, e^-e0) clones, A ~ Bin(C, 1/2); P is (A + 1, C - A) with probability e^e0/(1 + e^e0), else
    (A, C - A + 1); Q the other way round. Only clones within 9 standard deviations are summed, which lowers it.
    """
    p = math.exp(-e0)
    mean, sd = (n - 1) * p, math.sqrt((n - 1) * p * (1 - p))
    total = 0.0
    keep = math.exp(e0) / (1 + math.exp(e0))
    for c in range(max(0, int(mean - 9 * sd)), min(n - 1, int(mean + 9 * sd)) + 1):
        a = np.arange(c + 2)
        up, down = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        first, second = keep * up + (1 - keep) * down, keep * down + (1 - keep) * up
        total += binom.pmf(c, n - 1, p) * np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
    return total


@pytest.mark.parametrize(("e0", "n"), [(0.5, 2000), (1.0, 2000), (2.0, 5000), (3.0, 8000)])
def test_closed_form_is_above_the_exact_pair(e0: float, n: int) -> None:
    delta = 1e-4
    eps = shuffle.shuffled_epsilon(e0, n, delta)
    assert exact_clones_delta(e0, n, eps) <= delta
    # the control: a bound without its factor 8 is no bound
    assert exact_clones_delta(e0, n, eps / 8) > delta


def test_refuses_what_the_theorem_does_not_cover() -> None:
    limit = shuffle.largest_local_epsilon(1000, 1e-6)
    assert shuffle.shuffled_epsilon(limit * (1 - 1e-12), 1000, 1e-6) < limit
    assert shuffle.central_epsilon(limit * 1.001, 1000, 1e-6) == limit * 1.001
    assert shuffle.largest_local_epsilon(100, 1e-6) < 0


@pytest.mark.parametrize("n", [100, 455, 39073, 10**6])
@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 3.0, 10.0])
def test_calibrations_meet_the_central_budget(n: int, eps: float) -> None:
    budget = Budget(eps, 1e-6)
    e0 = shuffle.local_epsilon_for(budget, n)
    assert e0 >= eps
    assert shuffle.central_epsilon(e0, n, 1e-6) <= eps * (1 + 1e-9)
    mu = shuffle.gaussian_mu_for(budget, n)
    assert mu >= gaussian_mu(budget)
    reached = shuffle.shuffled_gaussian(mu, n, 1e-6)
    assert reached.epsilon <= eps * (1 + 1e-9)
    # nothing is given away: 1 % more would break the budget or leave the range of the theorem
    assert shuffle.central_epsilon(1.01 * e0, n, 1e-6) > eps
    assert shuffle.shuffled_gaussian(1.01 * mu, n, 1e-6).epsilon > eps
    if reached.amplified:  # half of delta pays for reports that are not purely private, the theorem gets the other half
        assert reached.extra == shuffle.extra_delta(reached.local_epsilon, reached.local_delta, n, reached.epsilon)
        assert 0.5e-6 * (1 - 1e-6) <= reached.extra <= 0.5e-6 * (1 + 1e-9)
        assert reached.local_delta == pytest.approx(gaussian_delta(reached.local_epsilon, mu), rel=1e-9)
        assert reached.epsilon == pytest.approx(shuffle.shuffled_epsilon(reached.local_epsilon, n, 0.5e-6), rel=1e-9)
    else:
        assert (reached.epsilon, reached.extra) == (float(gaussian_epsilon(1e-6, mu)), 0.0)
        assert math.isnan(reached.local_epsilon + reached.local_delta)


def test_extra_delta_by_hand() -> None:
    a = 1e-9 / (1 + math.e)
    expected = (1 + math.exp(0.2)) * (a + 99 * math.exp(-1) * (1e-9 + a))
    assert shuffle.extra_delta(1.0, 1e-9, 100, 0.2) == pytest.approx(expected, rel=1e-12)


def test_the_theorem_and_how_far_it_goes() -> None:
    """Feldman, McMillan, Talwar 2021, Theorem 3.1."""
    for n, delta in ((1000, 1e-5), (50_000, 1e-8)):
        limit = math.log(n / (16 * math.log(4 / delta)))
        assert shuffle.largest_local_epsilon(n, delta) == pytest.approx(limit, rel=1e-12)
        grown = math.exp(0.9 * limit)
        root = 8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n
        by_hand = math.log(1 + (grown - 1) / (grown + 1) * root)
        assert shuffle.shuffled_epsilon(0.9 * limit, n, delta) == pytest.approx(min(0.9 * limit, by_hand), rel=1e-12)


def test_without_a_delta_a_report_has_the_whole_budget() -> None:
    assert shuffle.local_epsilon_for(Budget(1.5), 1000) == 1.5
    assert shuffle.largest_local_epsilon(1, 0.5) == pytest.approx(math.log(1 / (16 * math.log(8))))


def test_few_reports_of_much_noise_are_amplified_too() -> None:
    """625 reports reach a local epsilon of 0.9 at most, which is enough where a report says next to nothing."""
    assert shuffle.largest_local_epsilon(625, 5e-7) < 1
    shuffled = shuffle.shuffled_gaussian(0.01, 625, 1e-6)
    assert shuffled.amplified
    assert shuffled.epsilon < float(gaussian_epsilon(1e-6, 0.01))


@pytest.mark.parametrize(("epsilon", "n", "delta"), [(0.01, 323, 1e-8), (0.03, 213, 1e-5), (0.03, 140, 1e-3)])
def test_where_shuffling_proves_nothing_better_the_local_epsilon_is_the_central_one(epsilon: float, n: int, delta: float) -> None:
    assert shuffle.largest_local_epsilon(n, delta) > epsilon, "the theorem speaks about it"
    assert shuffle.shuffled_epsilon(epsilon, n, delta) >= epsilon, "and says no more than is known"
    assert shuffle.local_epsilon_for(Budget(epsilon, delta), n) == epsilon
