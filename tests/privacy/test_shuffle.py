"""Shuffling: the closed form against the exact divergence of the pair it bounds, and the extra delta against its proof."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpviz.privacy.accounting import shuffle
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget


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


def test_extra_delta_covers_the_swap_that_its_proof_makes() -> None:
    """The swapped laws p0', p1', q' of the proof, on random mirrored pairs: pure, above h, and as near as is charged."""
    rng = np.random.default_rng(3)
    e0, n, eps = 0.7, 1000, 0.1
    e, shares = math.exp(e0), []
    for _ in range(500):
        mix = rng.choice([0.3, 0.6, 0.9])
        rough, other = rng.dirichlet(np.full(8, 0.4), 2)
        p0, q = mix * rough + (1 - mix) / 8, mix * other + (1 - mix) / 8
        p1 = p0[::-1]  # mirrored, so that both excesses are the same and the swapped laws stay of mass 1
        laws = (p0, p1, q)
        delta0 = max(np.maximum(a - e * b, 0).sum() for a in laws for b in laws)
        over, under = p0 > e * p1, p1 > e * p0
        most, least = (p0 + p1) * e / (1 + e), (p0 + p1) / (1 + e)  # Dwork, Roth 2014, Lemma 3.17
        p0_, p1_ = np.where(over, most, np.where(under, least, p0)), np.where(over, least, np.where(under, most, p1))
        assert p0_.sum() == pytest.approx(1)
        assert np.all(p0_ <= e * p1_ * (1 + 1e-12))
        moved = np.maximum(p0_ - p0, 0).sum()
        h = (p0_ + p1_) / (2 * e)
        lift, room = np.maximum(h - q, 0), np.maximum(q - h, 0)
        q_ = np.maximum(q, h) - room * lift.sum() / max(room.sum(), 1e-300)
        assert q_.sum() == pytest.approx(1)
        assert np.all(q_ >= h * (1 - 1e-12))
        needed = (1 + math.exp(eps)) * (moved + (n - 1) * lift.sum())
        allowed = shuffle.extra_delta(e0, delta0, n, eps)
        assert needed <= allowed * (1 + 1e-9)
        shares.append(needed / allowed if allowed > 0 else 0.0)
    assert max(shares) > 0.3  # the check can fail: a bound three times smaller is broken


def test_extra_delta_by_hand() -> None:
    a = 1e-9 / (1 + math.e)
    expected = (1 + math.exp(0.2)) * (a + 99 * math.exp(-1) * (1e-9 + a))
    assert shuffle.extra_delta(1.0, 1e-9, 100, 0.2) == pytest.approx(expected, rel=1e-12)


def by_hand(local: float, n: int, delta: float) -> float:
    """Feldman, McMillan, Talwar 2021, Theorem 3.1."""
    grown = math.exp(local)
    return math.log(1 + (grown - 1) / (grown + 1) * (8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n))


def test_the_theorem_and_how_far_it_goes() -> None:
    for n, delta in ((1000, 1e-5), (50_000, 1e-8)):
        limit = math.log(n / (16 * math.log(4 / delta)))
        assert shuffle.largest_local_epsilon(n, delta) == pytest.approx(limit, rel=1e-12)
        assert shuffle.shuffled_epsilon(0.9 * limit, n, delta) == pytest.approx(
            min(0.9 * limit, by_hand(0.9 * limit, n, delta)), rel=1e-12
        )


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
