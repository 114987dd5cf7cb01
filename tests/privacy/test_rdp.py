"""Rényi DP of the sampled Gaussian at whole and fractional orders, against quadrature in many digits and dp_accounting."""

import itertools
import logging
import math
from decimal import Decimal, localcontext

import dp_accounting as da
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from support import mostly_long, noisy_sums

from dpviz.privacy.accounting import account, rdp
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import Gaussian, Repeated, Sampled
from dpviz.privacy.accounting.rdp import log_excess_moments
from dpviz.privacy.budget import Neighbouring


def exact(q: float, z: float, order: float, digits: int = 40) -> float:
    """ln(A - 1) = ln E[(1 - q + q r)^a - 1 - a q (r - 1)] by adaptive quadrature in many digits."""
    with mpmath.workdps(digits):
        rate, scale, a = mpmath.mpf(q), mpmath.mpf(z), mpmath.mpf(order)

        def integrand(u: mpmath.mpf) -> mpmath.mpf:
            t = rate * mpmath.expm1(u / scale - 1 / (2 * scale**2))
            return ((1 + t) ** a - 1 - a * t) * mpmath.exp(-u * u / 2)

        last = max(order, 2.0) / z + 20
        pieces = mpmath.linspace(-20, last, 2 + int((last + 20) / min(8 * z, 3)))
        return float(mpmath.log(mpmath.quad(integrand, pieces, maxdegree=5) / mpmath.sqrt(2 * mpmath.pi)))


POINTS = [
    (0.01, 0.5, 1.01),
    (0.01, 0.5, 2.3),
    (1e-6, 0.7, 1.5),
    (1e-9, 0.4, 4.7),
    (0.3, 0.9, 10.9),
    (0.9, 1.2, 1.05),
    (0.05, 0.2, 3.5),
    (1e-4, 1.5, 7.3),
    (0.5, 0.3, 1.9),
]


@pytest.mark.parametrize(("q", "z", "order"), POINTS)
def test_fractional_moments_are_exact_and_rounded_up(q: float, z: float, order: float) -> None:
    truth, orders = exact(q, z, order), np.array([order])
    assert 0 <= log_excess_moments(q, z, orders)[0] - truth <= 3e-10 + 3e-14 * abs(truth)
    assert log_excess_moments(q, 1.05 * z, orders)[0] < truth - 1e-3, "the comparison sees 5 % of noise"


def test_moments_of_order_2_in_closed_form() -> None:
    """q^2 (e^(1/z^2) - 1), down to noise at which the steps of the quadrature are smallest, and where it is 1."""
    for q, z in (*itertools.product((1e-6, 0.3), (0.0501, 0.06, 0.1, 0.3, 1.0, 5.0)), (0.5, 1 / math.sqrt(math.log(5)))):
        truth = 2 * math.log(q) + 1 / z**2 + math.log(-math.expm1(-1 / z**2))
        assert 0 <= log_excess_moments(q, z, np.array([2.0]))[0] - truth <= 3e-10 + 3e-14 * abs(truth)


@pytest.mark.parametrize(("q", "z"), [(1e-300, 1e100), (1e-308, 0.1), (5e-324, 5.0)])
def test_moments_too_small_for_a_float_are_numbers_still(q: float, z: float) -> None:
    found = log_excess_moments(q, z, np.array([1.5, 2.0, 8.0]))
    assert np.isfinite(found).all()
    assert (np.exp(found) == 0).all()


TINY = [(1e-9, 1.02), (1e-6, 1.06), (0.01, 1.4), (0.5, 1.9), (1e-4, 2.5)]


@pytest.mark.parametrize(("q", "order"), mostly_long(TINY, *TINY[:2]))
def test_closed_bounds_of_tiny_noise_are_bounds_and_tight(q: float, order: float) -> None:
    truth = exact(q, 0.04, order, digits=24)
    assert 0 <= log_excess_moments(q, 0.04, np.array([order]))[0] - truth <= 1e-3 * abs(truth) + 0.05
    # the bound joins the quadrature without a step downwards
    assert log_excess_moments(q, 0.0499, np.array([order]))[0] >= log_excess_moments(q, 0.0501, np.array([order]))[0]


@pytest.mark.parametrize("q", [1e-12, 1e-6, 0.01, 0.5, 1 - 1e-9])
def test_divergences_rise_with_the_order_and_fall_with_noise(q: float) -> None:
    curves = [rdp.sampled_gaussian(q, z) for z in (1e-20, 1e-3, 0.049, 0.051, 0.1, 0.5, 1.0, 7.0, 1e3, 1e8)]
    for curve in curves:
        assert np.isfinite(curve).all()
        assert (np.diff(curve) >= -3e-10 * curve[1:]).all(), "whole and fractional orders lie on one line"
    for louder, quieter in itertools.pairwise(curves):
        assert (quieter <= louder).all()
        assert (quieter < louder).any()


@pytest.mark.parametrize("z", [0.3, 1.0, 20.0])
def test_a_rate_of_one_is_the_whole_batch(z: float) -> None:
    """In the orders that were asked for, and as the limit of rates below 1."""
    orders = (1.5, 2.0, 7.0)
    whole = rdp.sampled_gaussian(1.0, z, orders)
    np.testing.assert_allclose(whole, np.array(orders) / (2 * z**2), rtol=1e-12)
    np.testing.assert_allclose(rdp.sampled_gaussian(1 - 1e-9, z, orders), whole, rtol=1e-6)


@pytest.mark.parametrize(("q", "z", "count"), [(0.01, 0.5, 100), (0.1, 0.8, 100), (0.001, 0.4, 1000)])
def test_renyi_epsilon_is_never_below_the_privacy_loss_distribution(q: float, z: float, count: int) -> None:
    steps = noisy_sums(z, q, count)
    tight = account.epsilon(steps, Method("pld"), 1e-5)
    assert tight <= account.epsilon(steps, Method("rdp"), 1e-5) <= 1.4 * tight


def test_many_curves_at_once_are_each_one_alone() -> None:
    """With one that releases nothing beside others: theirs stay."""
    curves = np.stack([rdp.gaussian(mu) for mu in (0.5, 2.0, 1e-6)] + [np.zeros(len(rdp.ORDERS))]).reshape(2, 2, -1)
    for delta in (1e-3, 1e-9):
        alone = [[rdp.epsilon(curve, delta)[0] for curve in row] for row in curves]
        alone[1][1] = 0.0
        np.testing.assert_array_equal(rdp.epsilons(curves, delta), alone)
    orders = (2, 3, 7)
    curve = rdp.gaussian(1.0, orders)
    assert rdp.epsilons(curve[None], 1e-5, orders).tolist() == [rdp.epsilon(curve, 1e-5, orders=orders)[0]]


def test_moments_of_hardly_any_noise_are_rounded_up() -> None:
    """ln A = a ((a - 1)/(2 z^2) + ln q) but for less than e^-(10^4); a number of 10^9 has a rounding of 10^-7."""
    q, orders = 0.3, np.linspace(2.0, 20.0, 37)
    for z in np.geomspace(1e-4, 1e-2, 7).tolist():
        found = log_excess_moments(q, z, orders)
        for a, value in zip(orders.tolist(), found.tolist(), strict=True):
            with mpmath.workdps(40):
                order = mpmath.mpf(a)
                truth = order * ((order - 1) / (2 * mpmath.mpf(z) ** 2) + mpmath.log(mpmath.mpf(q)))
                above = mpmath.mpf(value) - truth
            assert 0 <= above <= 2e-10 + 1e-13 * truth


@pytest.mark.parametrize(("rate", "shift"), [(0.01, 1.0), (0.3, 2.0), (0.9, 0.7), (0.05, 3.9), (1e-3, 0.05)])
@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
@pytest.mark.parametrize("largest", [4.0, 0.01])
def test_opposite_rows_agree_with_quadrature_from_above(
    rate: float, shift: float, order: float, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the shift is too large for the sum, the bound that stands instead is above it as well."""
    monkeypatch.setattr(rdp, "_LARGEST_SHIFT", largest)

    def log_density(y: float, sign: int) -> float:
        return float(np.logaddexp(math.log1p(-rate) - y * y / 2, math.log(rate) - (y - sign * shift) ** 2 / 2))

    def integrand(y: float) -> float:
        return math.exp(order * log_density(y, 1) + (1 - order) * log_density(y, -1)) / math.sqrt(2 * math.pi)

    end, peaks = (2 * order + 1) * shift + 12, [0.0, shift, order * shift]
    exact = math.log(quad(integrand, -end, end, points=peaks, limit=1000, epsabs=0, epsrel=1e-12)[0]) / (order - 1)
    (ours,) = rdp.opposite_rows(rate, shift, (order,))
    assert exact * (1 - 1e-9) <= ours
    assert largest < shift or ours <= exact * (1 + 1e-9) + 4e-12


def test_no_replacement_is_further_apart_than_opposite_rows() -> None:
    """The divergences of random replacements in the plane, and a control: shorter opposite rows are exceeded."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(*[np.linspace(-9, 9, 361)] * 2)

    def mixture(rate: float, at: np.ndarray) -> np.ndarray:
        return (1 - rate) * np.exp(-(x**2 + y**2) / 2) + rate * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 2)

    def divergence(rate: float, u: np.ndarray, v: np.ndarray, factor: float) -> float:
        return float(np.maximum(mixture(rate, u) - factor * mixture(rate, v), 0).sum()) * 0.05**2 / (2 * math.pi)

    exceeded = 0
    for _ in range(60):
        rate, s, factor = rng.uniform(0.05, 0.95), rng.uniform(0.3, 2.5), math.exp(rng.uniform(-1, 1.5))
        angles, lengths = rng.uniform(0, 2 * math.pi, 2), s * np.sqrt(rng.choice([1.0, rng.random()], 2))
        u, v = lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        apart, end = divergence(rate, u, v, factor), np.array([s, 0.0])
        assert apart <= divergence(rate, end, -end, factor) + 1e-9
        exceeded += apart > divergence(rate, 0.8 * end, -0.8 * end, factor) + 1e-9
    assert exceeded > 5


@pytest.mark.parametrize(("rate", "z", "steps"), [(0.01, 1.0, 1000), (0.1, 3.0, 100)])
def test_opposite_rows_are_near_their_privacy_loss(rate: float, z: float, steps: int) -> None:
    event = Repeated(Sampled(Gaussian.of_rows(1.0, z), rate), steps)
    epsilon = rdp.epsilon(steps * rdp.opposite_rows(rate, 1 / z), 1e-6)[0]
    exact = account.epsilon(event, Method("pld", Neighbouring.REPLACE_ONE), 1e-6)
    assert exact <= epsilon <= 1.1 * exact
    assert epsilon == pytest.approx(account.epsilon(event, Method("rdp", Neighbouring.REPLACE_ONE), 1e-6), rel=1e-6)


@pytest.mark.parametrize(("q", "z", "order"), [(1.4e-6, 15.4, 2), (1e-4, 30.0, 17), (1e-3, 1.0, 64), (0.2, 2.0, 255)])
def test_small_divergences_keep_their_digits(q: float, z: float, order: int) -> None:
    # the sum of Mironov, Talwar, Zhang (2019) in 60 digits
    with localcontext(prec=60):
        rate, scale = Decimal(q), Decimal(z)
        terms = (
            math.comb(order, k) * (1 - rate) ** (order - k) * rate**k * (k * (k - 1) / (2 * scale**2)).exp()
            for k in range(order + 1)
        )
        exact = float(sum(terms, Decimal(0)).ln() / (order - 1))
    assert rdp.sampled_gaussian(q, z, (order,))[0] == pytest.approx(exact, rel=1e-11, abs=0)
    assert rdp.sampled_gaussian(q, z * 1.05, (order,))[0] < exact * 0.95


@pytest.mark.parametrize(("z", "count"), [(0.3, 1), (0.5, 100), (1.5, 10_000), (6.0, 10_000)])
def test_epsilon_is_that_of_dp_accounting(z: float, count: int) -> None:
    """Theirs adds up the absolute values of a signed series, so ours may be lower; the control is without fractional orders."""
    logging.getLogger().setLevel(logging.ERROR)
    accountant = RdpAccountant(neighboring_relation=da.NeighboringRelation.ADD_OR_REMOVE_ONE)
    theirs = accountant.compose(da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(z)), count).get_epsilon(1e-5)
    assert account.epsilon(noisy_sums(z, 0.01, count), Method("rdp"), 1e-5) == pytest.approx(theirs, rel=5e-3)
    whole = rdp.epsilon(count * rdp.sampled_gaussian(0.01, z, rdp.WHOLE_ORDERS), 1e-5, orders=rdp.WHOLE_ORDERS)[0]
    assert whole > (1.3 if z == 0.5 else 1 - 1e-9) * theirs
