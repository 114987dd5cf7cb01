"""The exact Gaussian mechanism at its edges: tiny and huge budgets, bounds of delta, no noise needed, arrays and numbers."""

import math

import numpy as np
import pytest
from scipy import stats

from dpviz.common.validate import InvalidInput
from dpviz.privacy.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    log_gaussian_delta,
    total_variation,
)
from dpviz.privacy.budget import Budget


def test_whole_numbers_are_numbers() -> None:
    assert log_gaussian_delta(1, 2) == log_gaussian_delta(1.0, 2.0)
    np.testing.assert_array_equal(gaussian_epsilon(1e-5, np.array([0, 1, 3])), gaussian_epsilon(1e-5, np.array([0.0, 1.0, 3.0])))
    assert np.shape(gaussian_epsilon(1e-5, 1.0)) == ()
    assert gaussian_epsilon(1e-5, np.ones((2, 3))).shape == (2, 3)
    assert gaussian_delta(np.zeros(4), 1.0).shape == (4,)


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


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, -0.1])
def test_delta_must_be_a_probability_between_the_certain_ones(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        gaussian_epsilon(delta, 1.0)


@pytest.mark.parametrize("mu", [1e-9, 0.3, 2.0, 20.0])
def test_total_variation_is_the_largest_gain_of_any_guess(mu: float) -> None:
    assert total_variation(mu) == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-6, abs=1e-12)
    assert total_variation(mu) == pytest.approx(float(gaussian_delta(0.0, mu)), rel=1e-6)
