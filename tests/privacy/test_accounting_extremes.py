"""Accountants at the ends of their ranges: low rates, few steps, small divergences, budgets that are hardly any."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import brentq
from support import noisy_sums

from dpviz.common.validate import InvalidInput
from dpviz.privacy import individual
from dpviz.privacy.accounting import account, rdp, tables
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import CannotAccount, Composed, Gaussian, PureEpsilon, Repeated, Sampled
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
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


def test_delta_falls_with_epsilon_at_low_rates() -> None:
    values = [log_delta(Pair("remove", 1e-3, 1.0), 20, eps, -60.0) for eps in np.linspace(0.05, 0.8, 16)]
    assert all(b < a for a, b in itertools.pairwise(values))


def test_budgets_beyond_the_orders_of_rdp_are_refused() -> None:
    with pytest.raises(CannotAccount, match="rdp"):
        account.noise_for(noisy_sums(1.0, 0.01, 10), Method("rdp"), Budget(1e-3, 1e-12))
    assert account.noise_for(noisy_sums(1.0, 0.01, 10), Method("pld"), Budget(1e-3, 1e-12)) > 1


def test_noise_that_no_grid_resolves_proves_nothing() -> None:
    """Of one step the exact epsilon is above 1e9; the quadrature saw a single point, with no spread."""
    with pytest.raises(CannotAccount, match="too small for a finite epsilon"):
        account.epsilon(noisy_sums(1e-5, 0.5, 4, "without-replacement"), Method("pld", Neighbouring.REPLACE_ONE), 0.25)
    assert log_delta(Pair("symmetric", 0.5, 1e5), 1, 1e12, -30.0) == 0


@pytest.mark.parametrize("budget", [Budget(1e-3, 0.01), Budget(0.03, 0.5), Budget(1e-3, 1e-6), Budget(50.0, 1e-12)], ids=str)
def test_every_accountant_answers_at_odd_budgets(budget: Budget) -> None:
    found = {option.name: option.sigma for option in tables.options(Gaussian(1.0), budget)}
    assert found["Exact Gaussian"] <= found["RDP, improved conversion"] <= found["RDP, Mironov's conversion"] * (1 + 1e-9)
    # Canonne, Kamath, Steinke 2020, Proposition 12, at the noise found: the best real order gives the budget's epsilon
    a = 1 + np.geomspace(1e-4, 1e7, 400_001)

    def reached(sigma: float) -> float:
        return float(np.min(a / (2 * sigma**2) + np.log1p(-1 / a) - (math.log(budget.delta) + np.log(a)) / (a - 1)))

    assert reached(found["RDP, improved conversion"]) == pytest.approx(budget.epsilon, rel=1e-5, abs=1e-7)
    assert reached(0.95 * found["RDP, improved conversion"]) > budget.epsilon * 1.01


def test_a_comparison_without_sampling_is_that_of_full_steps() -> None:
    ignored, *others = tables.options(Repeated(Sampled(Gaussian.of_rows(3.0), 0.01), 10), Budget(1.0, 1e-5))
    full = {o.name: o.sigma for o in tables.options(Repeated(Gaussian.of_rows(3.0), 10), Budget(1.0, 1e-5))}
    assert ignored.sigma == pytest.approx(full["Exact Gaussian"])
    assert r"\sigma" in ignored.formula
    assert all(not option.sigma > ignored.sigma for option in others)


def test_rows_with_small_gradients_get_no_more_individual_epsilon_than_they_spend() -> None:
    # the exact sum of Mironov, Talwar, Zhang (2019) per step, against chords between knots
    shares, q, z, steps = np.array([[0.002, 0.0005, 0.001, 0.003]]), 0.0065, 0.68, 1458
    one_step = sum(rdp.sampled_gaussian(q, z / u, individual.ORDERS) for u in shares[0])
    exact = float(rdp.epsilons(one_step * steps, 1e-6, individual.ORDERS))
    path = individual.PoissonPath(Sampled(Gaussian.of_rows(1.0, z), q))
    found = float(rdp.epsilons(path.divergence(shares)[0] * steps, 1e-6, individual.ORDERS))
    assert exact * (1 - 1e-9) <= found <= 1.02 * exact
    # 5 % of gradient is seen where it matters
    shares, exact = 0.5 * np.ones((1, 100)), 100 * rdp.sampled_gaussian(q, z / 0.5, individual.ORDERS)
    assert float(rdp.epsilons(path.divergence(1.05 * shares)[0], 1e-6, individual.ORDERS)) > 1.03 * float(
        rdp.epsilons(exact, 1e-6, individual.ORDERS)
    )


def test_pure_releases_are_not_added_up_as_gaussians_nor_sampled() -> None:
    sums = Gaussian.of_rows(1.0, 1.3)
    kinds = Composed((sums, Repeated(Sampled(sums, 0.01), 20), PureEpsilon(0.3)))
    with pytest.raises(CannotAccount):
        account.epsilon(kinds, Method("rdp", Neighbouring.ADD_REMOVE, "none"), 1e-6)
    with pytest.raises(InvalidInput, match="Gaussian"):
        Sampled(PureEpsilon(0.3), 0.01)  # type: ignore[arg-type]
