"""Audit with one run: false alarms of mechanisms whose number of right guesses has a known distribution, without sampling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
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


@pytest.mark.parametrize(("canaries", "epsilon"), CASES)
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_canaries_that_are_revealed_with_probability_delta(canaries: int, epsilon: float, delta: float) -> None:
    """Randomised response that shows each canary in clear with probability delta is (epsilon, delta)-DP."""
    right = (1 - delta) / (1 + math.exp(-epsilon)) + delta
    assert alarm_rate(canaries, right, epsilon, delta) <= 0.05


@pytest.mark.parametrize("delta", [1e-4, 1e-3, 1e-2])
def test_everything_revealed_at_once_with_probability_delta(delta: float) -> None:
    """Also (epsilon, delta)-DP; the attacker's count is far from binomial."""
    canaries, epsilon = 200, 1.0
    right = 1 / (1 + math.exp(-epsilon))
    for correct in range(canaries + 1):
        truth = (1 - delta) * float(binom.sf(correct - 1, canaries, right)) + delta
        assert truth <= one_run_p_value(correct, canaries, canaries, epsilon, delta) + 1e-12
    # the control: without the term of delta the p-value is too small
    assert one_run_p_value(canaries, canaries, canaries, epsilon, 0.0) < delta


@pytest.mark.parametrize(
    ("v", "r", "m", "eps", "delta"), [(40, 50, 60, 0.5, 1e-4), (9, 10, 1000, 2.0, 1e-6), (3, 7, 7, 0.0, 0.01)]
)
def test_p_value_is_its_definition(v: int, r: int, m: int, eps: float, delta: float) -> None:
    p = math.exp(eps) / (1 + math.exp(eps))
    mass = [math.comb(r, k) * p**k * (1 - p) ** (r - k) for k in range(r + 1)]
    extra = max(sum(mass[k] for k in range(max(v - i, 0), v)) / i for i in range(1, m + 1))
    expected = min(1.0, sum(mass[v:]) + 2 * m * delta * extra)
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
