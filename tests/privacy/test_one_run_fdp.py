"""The audit in one run by f-DP: against linear programming, exact mechanisms, and planted mistakes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri
from scipy.stats import binom

import dpviz
from dpviz.auditing import audit_one_run
from dpviz.auditing.one_run import axis_canaries
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.one_run_audit import one_run_gaussian_epsilon, one_run_mu_lower_bound, possible

Inverse = Callable[[float], float]


def gaussian(mu: float) -> Inverse:
    return lambda x: float(ndtr(ndtri(x) - mu))


def lines(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """(slope, height) of the lines of which 1 - f is the least, under (epsilon, delta)-DP (Dong, Roth, Su 2022, eq. (3))."""
    e = math.exp(epsilon)
    return [(e, delta), (1 / e, 1 - (1 - delta) / e)]


def inverse_of(epsilon: float, delta: float) -> Inverse:
    return lambda x: max(0.0, *((x - height) / slope for slope, height in lines(epsilon, delta)))


def largest(v: int, r: int, m: int, inverse: Inverse) -> float:
    """The largest probability of v right guesses that `possible` allows."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(v, r, m, middle, inverse) else (low, middle)
    return low


def by_linear_program(v: int, r: int, m: int, epsilon: float, delta: float) -> float:
    """max sum_(k>=v) a_k over distributions with r_j <= B(h_(j-1)) for all j."""
    k, rows, limits = np.arange(r + 1), [], []
    for j in range(1, r + 1):
        right, wrong = np.where(k >= j, k, 0) / m, np.where(k >= j - 1, r - k, 0) / m
        for slope, height in lines(epsilon, delta):
            rows.append(right - slope * wrong)
            limits.append(height)
    found = linprog(-(k >= v).astype(float), A_ub=rows, b_ub=limits, A_eq=[np.ones(r + 1)], b_eq=[1.0])
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.01), (2.0, 0.1)])
@pytest.mark.parametrize(("r", "m"), [(3, 3), (5, 8), (8, 8)])
def test_the_recursion_is_the_optimum_of_the_linear_program(epsilon: float, delta: float, r: int, m: int) -> None:
    for v in range(1, r + 1):
        exact = by_linear_program(v, r, m, epsilon, delta)
        assert min(1.0, largest(v, r, m, inverse_of(epsilon, delta))) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_what_an_exact_gaussian_mechanism_does_is_possible(mu: float) -> None:
    """All coins guessed by the sign of N(+-mu/2, 1): W is binomial with chance Phi(mu/2)."""
    m = 40
    for v in range(m + 1):
        chance = float(binom.sf(v - 1, m, ndtr(mu / 2)))
        if 1e-12 < chance < 1:
            assert possible(v, m, m, chance, gaussian(mu))


def test_what_correlated_mechanisms_do_is_possible() -> None:
    """Revealing all coins at once with chance delta is (0, delta)-DP for each; randomised response is (epsilon, 0)-DP."""
    m, delta = 20, 0.03
    assert possible(m, m, m, delta + (1 - delta) * 2.0**-m, lambda x: max(0.0, x - delta))
    assert not possible(m, m, m, 1.5 * delta, lambda x: max(0.0, x - delta))
    right = 1 / (1 + math.exp(-1.0))
    for v in range(1, m + 1):
        assert possible(v, m, m, float(binom.sf(v - 1, m, right)), inverse_of(1.0, 0.0))


def bounds(mu: float, m: int, r: int, audits: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Lower bounds on mu, and the right guesses, where the evidence on every canary is N(+-mu/2, 1)."""
    rng = np.random.default_rng(seed)
    correct = np.empty(audits, int)
    for k in range(audits):
        coins = rng.random(m) < 0.5
        evidence = np.where(coins, mu / 2, -mu / 2) + rng.standard_normal(m)
        guessed = np.argsort(-np.abs(evidence))[:r]
        correct[k] = ((evidence[guessed] > 0) == coins[guessed]).sum()
    known = {int(v): one_run_mu_lower_bound(int(v), r, m) for v in np.unique(correct)}
    return np.array([known[int(v)] for v in correct]), correct


def test_a_thousand_audits_of_an_exact_gaussian_raise_no_more_alarms_than_declared_and_mistakes_are_seen() -> None:
    mu, m, r = 1.0, 1000, 100
    honest, _ = bounds(mu, m, r, 1000)
    assert (honest > mu).mean() <= 0.05
    assert honest.mean() > 0.5 * mu  # it is no bound that never says anything
    weak, _ = bounds(3 * mu, m, r, 100)  # a third of the noise that the claim needs
    assert (weak > mu).mean() > 0.95


def test_guesses_no_better_than_coins_show_nothing() -> None:
    assert one_run_mu_lower_bound(50, 100, 1000) == 0.0
    assert one_run_gaussian_epsilon(50, 100, 1000, 1e-5) == 0.0
    assert one_run_mu_lower_bound(0, 10, 10) == 0.0
    assert one_run_mu_lower_bound(100, 100, 100) > 1.5


def test_the_bound_grows_with_right_guesses_and_falls_with_confidence() -> None:
    found = [one_run_mu_lower_bound(v, 100, 200) for v in range(60, 101, 10)]
    assert found == sorted(found)
    assert one_run_mu_lower_bound(80, 100, 200, 0.99) < one_run_mu_lower_bound(80, 100, 200, 0.9)


@pytest.mark.parametrize("arguments", [(1, 0, 5), (1, 6, 5), (7, 6, 8), (-1, 5, 5)])
def test_bad_counts_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(dpviz.InvalidInput):
        one_run_mu_lower_bound(*arguments)


def test_methods_with_declared_gaussian_noise_have_it_and_others_do_not() -> None:
    budget = Budget(4.0, 1e-5)
    mechanism = OutputGaussian()
    result = audit_one_run(mechanism, axis_canaries(mechanism, get_model("svm"), budget, 300, 0.1), budget)
    assert result.calibration.mu == pytest.approx(gaussian_mu(budget))
    assert result.gaussian_epsilon_lower == one_run_gaussian_epsilon(result.correct, result.guesses, 300, 1e-5)
    assert result.epsilon_lower < result.gaussian_epsilon_lower < 4  # type: ignore[operator]
    other = dpviz.list_mechanisms()["cms-output"]()
    pure = audit_one_run(other, axis_canaries(other, get_model("svm"), budget, 50, 0.1), budget)
    assert pure.gaussian_epsilon_lower is None
