"""Accountants against closed forms and against dp_accounting."""

from __future__ import annotations

import itertools
import logging
import math

import dp_accounting as da
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.integrate import quad
from scipy.stats import norm
from support import mostly_long, noisy_sums

from dpviz.privacy.accounting import account, rdp
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu, log_gaussian_delta
from dpviz.privacy.accounting.pld import Pair, _tilt, log_delta
from dpviz.privacy.accounting.tables import options
from dpviz.privacy.budget import Budget, Neighbouring, Status

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE_ONE


def test_zcdp_conversions_are_those_of_rdp() -> None:
    orders = tuple(1 + np.geomspace(1e-2, 1e4, 200_000))
    curve = np.asarray(orders) * 0.05
    assert rdp.zcdp_epsilon(0.05, 1e-6) == pytest.approx(rdp.epsilon(curve, 1e-6, "improved", orders)[0], rel=1e-7)
    plain = 0.05 + 2 * math.sqrt(0.05 * math.log(1e6))  # Bun, Steinke 2016, Proposition 1.3
    assert plain == pytest.approx(rdp.epsilon(curve, 1e-6, "mironov", orders)[0], rel=1e-7)
    rho = rdp.zcdp_rho(Budget(1, 1e-8))
    assert rho + 2 * math.sqrt(rho * math.log(1e8)) == pytest.approx(1.0, rel=1e-12)


def test_rdp_curve_and_its_delta_are_inverse() -> None:
    curve = 300 * rdp.sampled_gaussian(0.05, 2.0)
    for conversion in rdp.CONVERSIONS:
        eps, _ = rdp.epsilon(curve, 1e-6, conversion)
        assert rdp.log_delta(curve, eps, conversion) == pytest.approx(math.log(1e-6), rel=1e-12)


def one_step(pair: Pair, eps: float) -> float:
    """delta(eps) of a pair by quadrature."""

    def density(parts: tuple[tuple[float, float], ...], y: float) -> float:
        return sum(w * float(norm.pdf(y - m)) for w, m in parts)

    edge = float(pair.threshold(np.array([eps]))[0])
    return float(quad(lambda y: density(pair.p, y) - math.exp(eps) * density(pair.q, y), edge, 40, limit=300)[0])


@pytest.mark.parametrize("kind", ["remove", "add", "opposite"])
@pytest.mark.parametrize(("q", "s", "eps"), [(0.1, 1.0, 0.05), (0.3, 2.0, 0.2), (0.9, 0.5, 0.3)])
def test_one_step_matches_quadrature_from_above(kind: str, q: float, s: float, eps: float) -> None:
    pair = Pair(kind, q, s)
    exact = one_step(pair, eps)
    assert 0 <= math.exp(log_delta(pair, 1, eps, -60.0)) / exact - 1 < 2e-3


def test_thresholds_invert_losses() -> None:
    y = np.linspace(-6, 9, 31)
    for pair in (Pair("remove", 0.2, 1.5), Pair("add", 0.2, 1.5), Pair("opposite", 0.2, 1.5), Pair("opposite", 1.0, 0.7)):
        np.testing.assert_allclose(pair.threshold(pair.loss(y)), y, atol=1e-9)
    rare, far = Pair("opposite", 1e-12, 3.0), np.linspace(10, 14, 9)
    np.testing.assert_allclose(rare.threshold(rare.loss(far)), far, atol=1e-9)


@pytest.mark.parametrize("kind", ["remove", "add", "symmetric"])
@pytest.mark.parametrize(("mu", "count", "eps"), [(0.05, 400, 2.0), (0.05, 400, 9.0), (0.02, 10_000, 30.0), (3.0, 1, 4.0)])
def test_gaussian_composition_is_never_below_the_exact_value(kind: str, mu: float, count: int, eps: float) -> None:
    exact = float(log_gaussian_delta(eps, mu * math.sqrt(count)))
    found = log_delta(Pair(kind, 1.0, mu), count, eps, exact - 40)
    assert 0 <= found - exact < 5e-3 * max(1.0, abs(exact) / 10), "tail probabilities keep their relative precision"


@pytest.mark.parametrize("kind", ["remove", "add", "symmetric"])
def test_far_below_the_floor_nothing_is_composed(kind: str) -> None:
    pair = Pair(kind, 0.1, 0.2)
    assert log_delta(pair, 10, 5.0, -20.0) == -21.0
    assert log_delta(pair, 10, 0.01, -20.0) > -20.0


@pytest.mark.parametrize(("steps", "epsilon"), [(100, 0.3), (100, 1.2), (3, 0.05), (10_000, 11.0), (1000, 40.0)])
def test_the_tilt_puts_the_mean_of_the_composed_loss_on_epsilon(steps: int, epsilon: float) -> None:
    """For a loss of which all moments are known: Poisson with a mean of 0.001."""

    def moments(theta: float) -> tuple[float, float, float]:
        return 1e-3 * math.expm1(theta), 1e-3 * math.exp(theta), 1e-3 * math.exp(theta)

    theta = _tilt(moments, steps, epsilon, -1e6)
    mean = steps * moments(theta)[1]
    # a twentieth of the spread, or as near as a bracket of 1e-3 around theta comes
    assert abs(mean - epsilon) <= 0.051 * math.sqrt(mean) + 1e-3 * mean * (theta + 1)


@pytest.mark.parametrize(("count", "sigma"), [(1, 0.8), (1, 5.0), (40, 12.0)])
def test_zcdp_and_exact_gaussians_are_their_closed_forms(count: int, sigma: float) -> None:
    """epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun, Steinke 2016, Proposition 1.3), never below the exact curve."""
    event, mu = Repeated(Gaussian(1.0, sigma), count), math.sqrt(count) / sigma
    rho = mu**2 / 2
    for epsilon in (rho + 0.1, rho + 1.0, 3 * rho + 4.0):
        found = account.log_delta(event, Method("zcdp", REPLACE), epsilon)
        assert rho + 2 * math.sqrt(rho * -found) == pytest.approx(epsilon, rel=1e-12)
        exact = float(log_gaussian_delta(epsilon, mu))
        assert account.log_delta(event, Method("gaussian", REPLACE), epsilon) == exact
        assert exact < found
        # where delta is below what is asked about, the answer is below it as well
        assert account.log_delta(event, Method("gaussian", REPLACE), epsilon, floor=exact + 5.0) < exact + 5.0
    assert account.log_delta(event, Method("zcdp", REPLACE), rho / 2) == 0.0


def test_the_classical_gaussian_is_proved_below_epsilon_one_only() -> None:
    """sigma = Delta sqrt(2 ln(1.25/delta))/epsilon (Dwork, Roth 2014, Theorem A.1), for epsilon < 1."""
    for epsilon, status in ((0.5, Status.PROVED), (1.0, Status.CLAIM), (3.0, Status.CLAIM)):
        first = options(Gaussian(2.0), Budget(epsilon, 1e-5))[0]
        assert first.status is status
        assert first.sigma == pytest.approx(2 * math.sqrt(2 * math.log(1.25e5)) / epsilon, rel=1e-12)
        assert bool(first.note) is (status is Status.CLAIM)


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_a_replacement_costs_more_than_a_removal_and_less_than_a_removal_and_an_addition(accountant: str) -> None:
    """Two hops give (1 + e^(eps/2)) delta(eps/2), proved by the triangle inequality alone."""
    steps = noisy_sums(2.0, 0.05, 300)
    for eps in (0.5, 2.0, 8.0):
        once = account.log_delta(steps, Method(accountant, ADD), eps)
        hops = account.log_delta(steps, Method(accountant, ADD), eps / 2) + math.log1p(math.exp(eps / 2))
        assert once < account.log_delta(steps, Method(accountant, REPLACE), eps) <= min(0.0, hops)


def noise(rate: float, steps: int, epsilon: float, accountant: str = "pld") -> float:
    return account.noise_for(noisy_sums(1.0, rate, steps), Method(accountant, REPLACE), Budget(epsilon, 1e-5))


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 50.0])
def test_sampling_never_needs_more_noise_than_full_batches(accountant: str, epsilon: float) -> None:
    full = noise(1.0, 20, epsilon, accountant)
    by_rate = [noise(rate, 20, epsilon, accountant) for rate in (0.5, 0.87, 0.95, 0.999)]
    # epsilon of the grid of losses is within 2e-4
    assert all(a <= b * (1 + 3e-4) for a, b in itertools.pairwise([*by_rate, full]))
    assert by_rate[-1] == pytest.approx(full, rel=2e-3)


@pytest.mark.parametrize(
    ("rate", "epsilon"), mostly_long(itertools.product((0.1, 0.6, 0.95), (1e-3, 0.3, 1.0)), (0.1, 0.3), (0.95, 1.0))
)
def test_no_replacement_costs_more_than_is_proved(rate: float, epsilon: float) -> None:
    """One batch with N(0, z^2), the row anywhere in [-1, 1]: every divergence by integration is below the bound.

    That of opposite rows is the bound itself; half the distance, or a removal, would not cover it.
    """
    z, x = 1.3, np.linspace(-30.0, 30.0, 200_001)

    def divergence(row: float, other: float) -> float:
        p, q = ((1 - rate) * norm.pdf(x, 0.0, z) + rate * norm.pdf(x, at, z) for at in (row, other))
        return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), x))

    truth = divergence(1.0, -1.0)
    proved = {a: math.exp(account.log_delta(noisy_sums(z, rate), Method(a, REPLACE), epsilon)) for a in ("pld", "rdp")}
    assert proved["rdp"] >= truth
    assert truth * (1 - 1e-9) <= proved["pld"] <= truth * 1.002 + 1e-12
    ends = np.linspace(-1.0, 1.0, 7)
    assert max(divergence(row, other) for row in ends for other in ends) <= proved["pld"]
    for too_little in (Method("pld", ADD), Method("pld", REPLACE)):
        noise = z if too_little.relation is ADD else 2 * z
        assert math.exp(account.log_delta(noisy_sums(noise, rate), too_little, epsilon)) < truth


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("eps", [0.01, 1.0, 10.0, 1e4])
def test_noise_meets_the_budget_and_wastes_little(accountant: str, relation: Neighbouring, eps: float) -> None:
    method = Method(accountant, relation)
    z = account.noise_for(noisy_sums(1.0, 0.05, 200), method, Budget(eps, 1e-6))
    assert account.log_delta(noisy_sums(z, 0.05, 200), method, eps) <= math.log(1e-6)
    assert account.log_delta(noisy_sums(z * (1 - 1e-3), 0.05, 200), method, eps) > math.log(1e-6)


@pytest.mark.parametrize(("relation", "distance"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_full_batches_get_the_exact_noise_and_replacing_a_row_is_twice_as_far(relation: Neighbouring, distance: float) -> None:
    """Also by Rényi divergence, where dp_accounting does not double the distance."""
    budget = Budget(1.0, 1e-5)
    for accountant in ("pld", "gaussian"):
        z = account.noise_for(noisy_sums(1.0, 1.0, 50), Method(accountant, relation), budget)
        assert z == pytest.approx(distance * math.sqrt(50) / gaussian_mu(budget), rel=2e-5)
    renyi = account.epsilon(noisy_sums(1.0), Method("rdp", relation), 1e-5)
    assert renyi == pytest.approx(rdp.epsilon(rdp.gaussian(distance), 1e-5)[0], rel=1e-7)


@pytest.mark.parametrize(("q", "z", "count"), [(0.01, 1.0, 1000), (0.1, 3.0, 200), (0.1, 0.6, 100)])
def test_pld_of_a_replacement_is_the_one_of_dp_accounting(q: float, z: float, count: int) -> None:
    logging.getLogger().setLevel(logging.ERROR)
    event, relation = da.PoissonSampledDpEvent(q, da.GaussianDpEvent(z)), da.NeighboringRelation.REPLACE_ONE
    accountant = PLDAccountant(relation, value_discretization_interval=1e-4).compose(event, count)
    theirs = accountant.get_epsilon(1e-5)  # above the truth by less than 1e-4 on this grid
    ours = account.epsilon(noisy_sums(z, q, count), Method("pld", REPLACE), 1e-5)
    assert theirs * (1 - 1e-4) <= ours <= theirs * 1.002
    # the comparison can fail: 5 % too little noise is seen
    assert account.epsilon(noisy_sums(z * 1.05, q, count), Method("pld", REPLACE), 1e-5) < theirs * (1 - 1e-4)
