"""The exact Gaussian mechanism at its edges: tiny and huge budgets, bounds of delta, no noise needed, arrays and numbers."""

import math

import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from scipy import stats

from dpviz.privacy.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    log_gaussian_delta,
    total_variation,
)
from dpviz.privacy.budget import Budget, default_delta


def test_whole_numbers_are_numbers() -> None:
    assert log_gaussian_delta(1, 2) == log_gaussian_delta(1.0, 2.0)
    np.testing.assert_array_equal(gaussian_epsilon(1e-5, np.array([0, 1, 3])), gaussian_epsilon(1e-5, np.array([0.0, 1.0, 3.0])))
    values = gaussian_epsilon(1e-5, 1.0), gaussian_epsilon(1e-5, np.ones((2, 3))), gaussian_delta(np.zeros(4), 1.0)
    assert [np.shape(value) for value in values] == [(), (2, 3), (4,)]


def test_deltas_below_what_a_double_tells_apart_are_zero() -> None:
    assert log_gaussian_delta(1e6, 1e-3) == -math.inf
    assert gaussian_delta(1e6, 1e-3) == 0


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.9])
def test_any_budget_has_its_noise(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(Budget(epsilon, delta))
    assert log_gaussian_delta(epsilon, mu * (1 - 1e-9)) <= math.log(delta) < log_gaussian_delta(epsilon, mu * (1 + 1e-9))
    assert gaussian_sigma(Budget(epsilon, delta), 3.0) == pytest.approx(3 / mu, rel=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 4.0, 60.0, 1e4])
@pytest.mark.parametrize("delta", [1e-250, 1e-5, 0.3])
def test_epsilon_is_the_smallest_that_is_enough(mu: float, delta: float) -> None:
    epsilon = float(gaussian_epsilon(delta, mu))
    if log_gaussian_delta(0.0, mu) <= math.log(delta):
        assert epsilon == 0
        return
    assert log_gaussian_delta(epsilon, mu) <= math.log(delta)
    assert log_gaussian_delta(epsilon * (1 - 1e-9), mu) > math.log(delta)


def test_where_no_privacy_is_lost_epsilon_is_zero() -> None:
    assert gaussian_epsilon(1e-5, 0.0) == 0
    # total variation 2 Phi(mu/2) - 1 below delta
    assert gaussian_epsilon(0.4, 1.0) == 0
    assert gaussian_epsilon(0.38, 1.0) > 0


@pytest.mark.parametrize("mu", [1e-9, 0.3, 2.0, 20.0])
def test_total_variation_is_the_largest_gain_of_any_guess(mu: float) -> None:
    assert total_variation(mu) == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-6, abs=1e-12)
    assert total_variation(mu) == pytest.approx(float(gaussian_delta(0.0, mu)), rel=1e-6)


EPS = (1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)


@pytest.mark.parametrize("epsilon", EPS)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8, 1e-12])
def test_sigma_agrees_with_the_referee(epsilon: float, delta: float) -> None:
    ours = gaussian_sigma(Budget(epsilon, delta), 1.0)
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert float(gaussian_epsilon(delta, 1 / ours)) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("n", [10, 100, 455, 1000, 39_073, 800_000])
def test_default_delta_is_well_below_one_over_n(n: int) -> None:
    assert 0 < default_delta(n) <= 1 / (10 * n)
    assert default_delta(39_073) == pytest.approx(1e-6)


@pytest.mark.parametrize("power", range(4, 12))
def test_default_delta_of_a_power_of_ten_is_not_rounded_below_its_power(power: int) -> None:
    assert default_delta(10**power) == pytest.approx(10.0 ** (-1 - power))
