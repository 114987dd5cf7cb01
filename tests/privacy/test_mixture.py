"""Mixtures of Gaussians: reference values, dp_accounting as referee, and the order of the three accountants."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from dpviz.privacy.accounting.mixture import (
    mixture_delta,
    mixture_epsilon,
    mixture_rdp,
    mixture_rdp_epsilon,
    mixture_rdp_sigma,
    mixture_sigma,
    rdp_to_epsilon,
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
    rdp = mixture_rdp(orders, SPREAD, WEIGHTS, 1.5)
    direct = [math.log((WEIGHTS * np.exp(a * (a - 1) * SPREAD**2 / (2 * 1.5**2))).sum()) / (a - 1) for a in orders[:4]]
    np.testing.assert_allclose(rdp[:4], direct, rtol=1e-12)
    single = mixture_rdp(orders, np.array([1.0]), np.array([1.0]), 3.0)
    np.testing.assert_allclose(single, orders / 18, rtol=1e-12)
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, single, 1e-5)
    assert rdp_to_epsilon(orders, single, 1e-5, "improved").min() == pytest.approx(theirs, rel=1e-9)
    # a finer search over orders can only find less
    assert mixture_rdp_epsilon(1e-5, np.array([1.0]), np.array([1.0]), 3.0, "improved")[0] <= theirs


@pytest.mark.parametrize("conversion", ["mironov", "improved"])
def test_sensitivities_that_are_many_powers_of_ten_apart(conversion: str) -> None:
    # what steps above 2/L make of Algorithm 2; a row that is nearly always harmless costs ln(weight) at most
    budget, sens, weights = Budget(0.0113, 4.4e-11), np.geomspace(1e-30, 1.0, 20), np.full(20, 0.05)
    sigma = mixture_rdp_sigma(budget, sens, weights, conversion)
    orders = 1 + np.geomspace(1, 1e6, 200_001)
    curve = logsumexp((orders * (orders - 1))[:, None] * (sens / sigma) ** 2 / 2, b=weights, axis=1) / (orders - 1)
    reached = rdp_to_epsilon(orders, curve, budget.delta, conversion).min()
    assert reached == pytest.approx(budget.epsilon, rel=1e-6)
    worse = logsumexp((orders * (orders - 1))[:, None] * (sens * 1.05 / sigma) ** 2 / 2, b=weights, axis=1) / (orders - 1)
    assert rdp_to_epsilon(orders, worse, budget.delta, conversion).min() > budget.epsilon * 1.01


def test_epsilon_of_a_mixture_at_its_ends() -> None:
    """So much noise that delta is met at epsilon 0."""
    places, chances = np.array([1.0, 0.5]), np.array([0.5, 0.5])
    assert mixture_epsilon(1e-6, places, chances, 1e9) == 0.0
    assert mixture_epsilon(1e-6, places, chances, 1e5) > 0
