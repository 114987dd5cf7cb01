"""Audit with one run: false alarms of mechanisms whose number of right guesses has a known distribution, without sampling."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from dpviz.common.validate import InvalidInput
from dpviz.privacy.one_run_audit import one_run_epsilon_lower_bound, one_run_p_value

CASES = [(50, 1.0), (1000, 0.3), (1000, 3.0), (5000, 5.0)]


def alarm_rate(canaries: int, right: float, epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> float:
    """P[the bound exceeds epsilon] where every guess is right with probability `right`, independently."""
    counts = np.arange(canaries + 1)
    # the bound grows with the count, so the counts that raise an alarm are an upper set: found by bisection
    low, high = -1, canaries + 1
    while high - low > 1:
        middle = (low + high) // 2
        alarm = one_run_epsilon_lower_bound(middle, canaries, canaries, delta, confidence) > epsilon
        low, high = (low, middle) if alarm else (middle, high)
    return float(binom.pmf(counts[counts >= high], canaries, right).sum())


@pytest.mark.parametrize(("canaries", "epsilon"), CASES)
def test_randomised_response_is_the_worst_case_and_raises_few_alarms(canaries: int, epsilon: float) -> None:
    right = 1 / (1 + math.exp(-epsilon))
    assert alarm_rate(canaries, right, epsilon) <= 0.05
    assert alarm_rate(canaries, right, epsilon) > 0.005, "the bound is not far from exact"
    # the control: a mechanism that is worse than its claim is seen more often
    worse = 1 / (1 + math.exp(-(epsilon + 0.5)))
    assert alarm_rate(canaries, worse, epsilon) > 2 * 0.05


def test_ends_of_the_one_run_bound() -> None:
    assert one_run_p_value(1, 1, 1, math.log(3)) == pytest.approx(0.75)
    # 60 of 100 refute epsilon = 0, but not where the release may fail with delta
    assert one_run_p_value(60, 100, 100, 0.0) < 0.05
    assert one_run_epsilon_lower_bound(60, 100, 100) > 0
    assert one_run_epsilon_lower_bound(60, 100, 100, 0.01) == 0.0


@pytest.mark.parametrize(
    ("v", "r", "m", "eps", "delta"), [(40, 50, 60, 0.5, 1e-4), (9, 10, 1000, 2.0, 1e-6), (3, 7, 7, 0.0, 0.01)]
)
def test_p_value_is_its_definition(v: int, r: int, m: int, eps: float, delta: float) -> None:
    p = math.exp(eps) / (1 + math.exp(eps))
    mass = [math.comb(r, k) * p**k * (1 - p) ** (r - k) for k in range(r + 1)]
    expected = min(1.0, sum(mass[v:]) + m * delta * sum(mass[v:]) * sum(mass[:v]) / (v * mass[v]))
    assert one_run_p_value(v, r, m, eps, delta) == pytest.approx(expected, rel=1e-10)


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


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"correct": 11}, "correct"),
        ({"guesses": 200}, "guesses"),
        ({"canaries": 0}, "canaries"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_bad_input_is_named(given: dict[str, float], field: str) -> None:
    values = {"correct": 5, "guesses": 10, "canaries": 100, "epsilon": 1.0, "delta": 0.0} | given
    with pytest.raises(InvalidInput, match=field):
        one_run_p_value(**values)  # type: ignore[arg-type]


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
