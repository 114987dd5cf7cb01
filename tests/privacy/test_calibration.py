"""Noise scales against published values, an independent formula and the referee dp-accounting."""

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from scipy import integrate, stats

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_sigma
from dpviz.privacy.budget import Budget, attack_accuracy, corner, default_delta, trade_off

EPS = (1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)


@pytest.mark.parametrize("epsilon", EPS)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8, 1e-12])
def test_sigma_agrees_with_the_referee(epsilon: float, delta: float) -> None:
    ours = gaussian_sigma(Budget(epsilon, delta), 1.0)
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert float(gaussian_epsilon(delta, 1 / ours)) == pytest.approx(epsilon, rel=1e-6)


def test_delta_by_numerical_integration() -> None:
    # delta = integral of (p - e^eps q)_+ for N(mu, 1) against N(0, 1): no formula shared with the code
    for epsilon, mu in ((0.2, 0.3), (1.0, 0.7), (3.0, 2.0)):
        start = mu / 2 + epsilon / mu
        value, _ = integrate.quad(lambda t, e=epsilon, m=mu: stats.norm.pdf(t - m) - math.exp(e) * stats.norm.pdf(t), start, 40)
        assert gaussian_delta(epsilon, mu) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("mu", [float("nan"), float("inf"), -1.0])
def test_nonsense_never_becomes_epsilon_zero(mu: float) -> None:
    with pytest.raises(dpviz.InvalidInput, match="mu"):
        gaussian_epsilon(1e-5, mu)


def test_gaussian_noise_cannot_give_delta_zero() -> None:
    with pytest.raises(dpviz.InvalidInput, match="delta"):
        gaussian_mu(Budget(1.0, 0.0))


@pytest.mark.parametrize("n", [10, 100, 455, 1000, 39_073, 800_000])
def test_default_delta_is_well_below_one_over_n(n: int) -> None:
    assert 0 < default_delta(n) <= 1 / (10 * n)
    assert default_delta(39_073) == pytest.approx(1e-6)


@pytest.mark.parametrize("power", range(4, 12))
def test_default_delta_of_a_power_of_ten_is_not_rounded_below_its_power(power: int) -> None:
    assert default_delta(10**power) == pytest.approx(10.0 ** (-1 - power))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
def test_the_trade_off_bends_where_the_best_bet_is(epsilon: float) -> None:
    budget = Budget(epsilon, 1e-3)
    at = np.array([corner(budget)])
    assert 1 - (at + trade_off(budget, at))[0] / 2 == pytest.approx(attack_accuracy(budget), abs=1e-15)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("epsilon", (0.0, 1e-5)),
        ("epsilon", ("one", 1e-5)),
        ("delta", (1.0, 1.0)),
        ("delta", (1.0, -0.1)),
        ("delta", (1.0, "none")),
    ],
)
def test_a_budget_that_is_none_says_which_number_and_what_to_give(field: str, values: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Budget(*values)
    assert refused.value.field == field
    assert str(refused.value.fix).startswith("Give a p")


def test_a_method_says_which_of_its_parts_is_unknown() -> None:
    for field, values in (
        ("accountant", {"accountant": "abacus"}),
        ("route", {"route": "three-hop"}),
        ("conversion", {"conversion": "none"}),
    ):
        with pytest.raises(InvalidInput) as refused:
            account.epsilon(Gaussian(1.0), Method(**values), 1e-6)
        assert refused.value.field == field
