"""Accountants at the ends of their ranges: low rates, few steps, small divergences, budgets that are hardly any."""

import math
from decimal import Decimal, localcontext

import pytest
from scipy.optimize import brentq
from support import noisy_sums

from dpviz.privacy.accounting import account, rdp
from dpviz.privacy.accounting.events import CannotAccount
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
from dpviz.privacy.accounting.methods import Method
from dpviz.privacy.accounting.pld import Pair, log_delta
from dpviz.privacy.budget import Budget, Neighbouring


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


@pytest.mark.parametrize(("q", "z", "delta"), [(2e-3, 1.5, 1e-5), (1e-2, 0.5, 1e-10)])
def test_one_rare_step_is_not_blurred_by_the_grid(q: float, z: float, delta: float) -> None:
    # nearly all losses lie near 0, in a range far smaller than the few that make up delta; removing a row is the worse
    # direction, with the profile q delta_G(ln(1 + (e^eps - 1)/q), 1/z) (Balle, Barthe, Gaboardi 2018, Theorem 9)
    exact = brentq(
        lambda eps: math.log(q / delta) + float(log_gaussian_delta(math.log1p(math.expm1(eps) / q), 1 / z)), 1e-9, 20, xtol=1e-14
    )
    assert exact * (1 - 1e-6) <= account.epsilon(noisy_sums(z, q, 1), Method(), delta) <= exact * (1 + 1e-3)
    assert account.epsilon(noisy_sums(z * 1.05, q, 1), Method(), delta) < exact * (1 - 1e-3), "5 % of noise is seen"


def test_budgets_beyond_the_orders_of_rdp_are_refused() -> None:
    with pytest.raises(CannotAccount, match="rdp"):
        account.noise_for(noisy_sums(1.0, 0.01, 10), Method("rdp"), Budget(1e-3, 1e-12))
    assert account.noise_for(noisy_sums(1.0, 0.01, 10), Method("pld"), Budget(1e-3, 1e-12)) > 1


def test_noise_that_no_grid_resolves_proves_nothing() -> None:
    """Of one step the exact epsilon is above 1e9; the quadrature saw a single point, with no spread."""
    with pytest.raises(CannotAccount, match="too small for a finite epsilon"):
        account.epsilon(noisy_sums(1e-5, 0.5, 4, "without-replacement"), Method("pld", Neighbouring.REPLACE_ONE), 0.25)
    assert log_delta(Pair("symmetric", 0.5, 1e5), 1, 1e12, -30.0) == 0
