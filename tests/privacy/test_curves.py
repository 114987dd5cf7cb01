"""The largest distance between detections and false alarms: by its formula, beside the truth, and at low rates."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from support import mostly_long, noisy_sums

from dpviz.privacy.accounting import curves, events
from dpviz.privacy.accounting.account import log_delta, tightest


def by_formula(event: curves.Event, e: float) -> float:
    """Kairouz, Oh, Viswanath 2015, Theorem 2.1."""
    delta = math.exp(log_delta(event, tightest(event), e))
    return (math.exp(e) - 1 + 2 * delta) / (math.exp(e) + 1)


@pytest.mark.parametrize(("rate", "count"), mostly_long([(0.3, 1), (0.01, 40), (1e-3, 1)], (0.3, 1), (0.01, 40)))
def test_the_advantage_is_that_of_one_epsilon(rate: float, count: int) -> None:
    event = noisy_sums(0.7, rate, count)
    near = by_formula(event, 1e-5)
    expected = min(near, by_formula(event, near / 4)) if rate < 2e-3 else near
    assert curves.advantage(event) == pytest.approx(expected, rel=1e-9)
    alarms = np.linspace(0.0, 1.0, 2001)
    largest = float((curves.detections(event, alarms) - alarms).max())
    assert curves.advantage(event) == pytest.approx(largest, rel=2e-3), "the curve's largest distance"


@pytest.mark.parametrize("rate", mostly_long([0.3, 1e-3], 0.3))
def test_the_advantage_over_one_batch_is_exact(rate: float) -> None:
    """A row is in the batch with probability q: q N(m) + (1 - q) N(0) and the same with m' differ by q TV(N(m), N(m')).

    One row for another moves a sum by twice what a row more or less does; two hops would allow twice the distance of one.
    """

    def distance(mu: float) -> float:
        return rate * (2 * float(norm.cdf(mu / 2)) - 1)

    assert distance(2 / 0.7) * (1 - 1e-9) <= curves.advantage(noisy_sums(0.7, rate)) <= 1.01 * distance(2 / 0.7)
    assert 1.2 * distance(2 / 0.7) < 2 * distance(1 / 0.7), "by two hops"


def test_the_advantage_over_releases_of_several_kinds_is_at_least_that_of_each() -> None:
    parts = noisy_sums(0.9, 1.0), noisy_sums(2.0, 0.1, 3)
    both = curves.advantage(events.Composed(parts))
    assert max(map(curves.advantage, parts)) <= both < 1.0
    assert both < curves.advantage(events.Composed((*parts, *parts)))
