"""Audit with one run, by (epsilon, delta) and by f-DP: against linear programs, exact mechanisms, and planted mistakes."""

import itertools
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
from dpviz.privacy.one_run_audit import (
    one_run_epsilon_lower_bound,
    one_run_gaussian_epsilon,
    one_run_mu_lower_bound,
    one_run_p_value,
    possible,
)


def test_ends_of_the_one_run_bound() -> None:
    assert one_run_p_value(1, 1, 1, math.log(3)) == pytest.approx(0.75)
    # 60 of 100 refute epsilon = 0, but not where the release may fail with delta
    assert one_run_p_value(60, 100, 100, 0.0) < 0.05
    assert one_run_epsilon_lower_bound(60, 100, 100) > 0
    assert one_run_epsilon_lower_bound(60, 100, 100, 0.01) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_p_value_grows_with_epsilon_where_it_is_small_and_falls_with_right_guesses(delta: float) -> None:
    for correct in (60, 80, 99, 100):
        values = np.array([one_run_p_value(correct, 100, 500, e, delta) for e in np.linspace(0, 8, 400)])
        small = values <= 0.45
        assert (np.diff(values)[small[1:]] >= 0).all()
    for a, b in itertools.pairwise(one_run_p_value(v, 100, 500, 1.0, delta) for v in range(101)):
        assert b <= a + 1e-15


def test_the_bound_is_where_the_p_value_reaches_the_level() -> None:
    bound = one_run_epsilon_lower_bound(95, 100, 1000, 1e-6)
    assert 1.5 < bound < math.log(95 / 5)
    assert one_run_p_value(95, 100, 1000, bound, 1e-6) == pytest.approx(0.05, rel=1e-6)
    assert one_run_p_value(95, 100, 1000, bound, 1e-6) <= 0.05
    assert one_run_epsilon_lower_bound(95, 100, 1000, 1e-6, confidence=0.99) < bound
    assert one_run_epsilon_lower_bound(95, 100, 1000, 1e-4) < bound, "a larger delta explains more"
    assert one_run_epsilon_lower_bound(52, 100, 1000) == 0.0
    # all of r right: P[B >= r] = p^r
    whole = one_run_epsilon_lower_bound(100, 100, 100)
    assert whole == pytest.approx(-math.log(0.05 ** (-1 / 100) - 1), rel=1e-7)


def largest_probability(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest P[right guesses >= correct] over ALL (epsilon, delta)-DP mechanisms, by linear programming.

    A mechanism and its attacker together map coins to guesses. Averaging over permutations and flips of the coins keeps
    (epsilon, delta) (the divergence is jointly convex) and the probability, so only the law Q_k of the number of right guesses
    among r is free. Flipping one coin leaves the m - r unguessed alone and turns k right guesses into k - 1 or k + 1:
    sum_k (k Q_k - e^eps (r-k+1) Q_(k-1))_+ + sum_k ((r-k) Q_k - e^eps (k+1) Q_(k+1))_+ <= m delta.
    """
    r, grow = guesses, math.exp(epsilon)
    k = np.arange(1, r + 1)
    size = r + 1
    rows = np.zeros((2 * r, size + 2 * r))
    rows[k - 1, k], rows[k - 1, k - 1] = k, -grow * (r - k + 1)
    rows[r + k - 1, k - 1], rows[r + k - 1, k] = r - k + 1, -grow * k
    rows[np.arange(2 * r), size + np.arange(2 * r)] = -1.0
    total = np.concatenate([np.zeros(size), np.ones(2 * r)])
    goal = -np.concatenate([(np.arange(size) >= correct).astype(float), np.zeros(2 * r)])
    found = linprog(
        goal,
        A_ub=np.vstack([rows, total]),
        b_ub=np.append(np.zeros(2 * r), canaries * delta),
        A_eq=np.concatenate([np.ones(size), np.zeros(2 * r)])[None],
        b_eq=[1.0],
    )
    assert found.status == 0
    return float(-found.fun)


def published(v: int, r: int, m: int, epsilon: float, delta: float) -> float:
    """The bound of Steinke, Nasr, Jagielski 2023, section 5, as in their published code."""
    p = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, p))
    return float(binom.sf(v - 1, r, p) + 2 * m * delta * (below / np.arange(1, v + 1)).max())


@pytest.mark.parametrize(("r", "m"), [(10, 40), (40, 40)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_p_value_is_the_largest_probability_of_any_mechanism(r: int, m: int, epsilon: float) -> None:
    for v in (r // 2, round(r / (1 + math.exp(-epsilon))), r - r // 10, r):
        for delta in (0.0, 1e-6, 1e-4):
            truth, ours = largest_probability(v, r, m, epsilon, delta), one_run_p_value(v, r, m, epsilon, delta)
            assert truth == pytest.approx(ours, rel=1e-6, abs=1e-8)
            if v > r / (1 + math.exp(-epsilon)) and delta > 0:
                assert ours <= published(v, r, m, epsilon, delta), "the paper's bound is looser where it is used"
        # a delta so large that everything may be revealed
        assert largest_probability(v, r, m, epsilon, 0.02) <= one_run_p_value(v, r, m, epsilon, 0.02) * (1 + 1e-6)


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


def test_guesses_no_better_than_coins_show_nothing() -> None:
    assert one_run_mu_lower_bound(50, 100, 1000) == 0.0
    assert one_run_gaussian_epsilon(50, 100, 1000, 1e-5) == 0.0
    assert one_run_mu_lower_bound(0, 10, 10) == 0.0
    assert one_run_mu_lower_bound(100, 100, 100) > 1.5


def test_the_bound_grows_with_right_guesses_and_falls_with_confidence() -> None:
    found = [one_run_mu_lower_bound(v, 100, 200) for v in range(60, 101, 10)]
    assert found == sorted(found)
    assert one_run_mu_lower_bound(80, 100, 200, 0.99) < one_run_mu_lower_bound(80, 100, 200, 0.9)


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


@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(80, 100, 1000), (38, 40, 40), (9, 10, 100)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_bound_on_mu_is_where_so_many_right_guesses_become_possible(
    correct: int, guesses: int, canaries: int, confidence: float
) -> None:
    """With the error probability that is left: a little less mu refutes them, a little more does not."""
    bound = one_run_mu_lower_bound(correct, guesses, canaries, confidence)
    for factor, known in ((0.99, False), (1.01, True)):
        assert possible(correct, guesses, canaries, 1 - confidence, gaussian(factor * bound)) is known
