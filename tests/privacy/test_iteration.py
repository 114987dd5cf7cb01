"""Amplification by iteration: against exact distributions of small trainings, the published theorem, and a numeric optimum."""

import numpy as np
import pytest
from scipy.optimize import nnls

from dpviz.mechanisms import get_mechanism
from dpviz.models import get_model
from dpviz.privacy.accounting.account import Method, noise_for
from dpviz.privacy.accounting.events import Mixture
from dpviz.privacy.accounting.gaussian import gaussian_delta, gaussian_sigma
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.sensitivity.iteration import iteration

MU, L = 0.2, 1.0
STEPS = np.array([1.0, 0.5, 0.25])


def linear_pair(slopes: np.ndarray, jumps: np.ndarray, noises: np.ndarray) -> float:
    """The exact m of x <- slope x + N(0, noise^2) against the same with jumps added: both ends are Gaussian."""
    apart = variance = 0.0
    for slope, jump, noise in zip(slopes, jumps, noises, strict=True):
        apart, variance = slope * apart + jump, slope**2 * variance + noise**2
    return abs(apart) / variance**0.5


@pytest.mark.parametrize("position", [1, 2, 5])
def test_the_bound_of_one_pass_is_attained(position: int) -> None:
    """Batches up to the row's own forget what came before (curvature 1/eta); later ones contract as little as they may."""
    eta, m, nu, G = 1.0, 5, 3, 0.7
    bound = iteration(np.array([eta]), m, nu, MU, L, G)[0][position - 1]
    k = np.arange(1, m + 1)
    slopes = np.where(k <= position, 1 - eta * L, 1 - eta * MU)
    exact = linear_pair(slopes, np.where(k == position, 2 * eta * G / nu, 0.0), np.full(m, eta))
    assert bound == pytest.approx(exact, rel=1e-12)
    assert bound / 2 < exact, "G in the place of 2G would be too little"


def test_theorem_23_where_nothing_contracts() -> None:
    """2 G^2 alpha/(sigma^2 (n + 1 - t)), Feldman et al. 2018, for row t of n in batches of one row."""
    n = 40
    found, spread = iteration(np.array([1.7]), n, 1, 0.0, L, 0.3)
    assert found**2 / 2 == pytest.approx(2 * 0.3**2 / (n - np.arange(n)), rel=1e-12)
    assert spread == pytest.approx(1.7 * np.sqrt(n))


@pytest.mark.parametrize("steps", [STEPS, STEPS[::-1], np.array([0.3, 1.9, 0.05])])
def test_the_shifts_are_the_best_that_the_theorem_allows(steps: np.ndarray) -> None:
    """The least |a/eta| whose distance left to hide is >= 0 after every step and 0 at the end, by Lawson and Hanson's LDP."""
    m, nu = 3, 2
    eta = np.repeat(steps, m)
    rho = np.maximum(abs(1 - eta * MU), abs(1 - eta * L))
    carried = np.array([[np.prod(rho[i + 1 : k + 1]) if i <= k else 0.0 for i in range(len(eta))] for k in range(len(eta))])
    found, _ = iteration(steps, m, nu, MU, L)
    for j in range(m):
        apart = carried @ np.where(np.arange(len(eta)) % m == j, 2 * eta / nu, 0.0)
        hidden = carried * eta
        rows, least = np.vstack([-hidden, hidden[-1]]), np.r_[-apart, apart[-1]]
        system, target = np.vstack([rows.T, least]), np.r_[np.zeros(len(eta)), 1.0]
        residual = system @ nnls(system, target)[0] - target
        assert found[j] == pytest.approx(np.linalg.norm(residual[:-1] / residual[-1]), rel=1e-9)


def test_exact_densities_of_a_training_that_bends_stay_below_the_bound() -> None:
    """Two epochs of rows with saturating losses, projected on an interval; the replaced row pushes with all its strength."""
    x = np.linspace(-9, 9, 721)
    steps, sigma, half = np.array([1.0, 0.8]), 1.1, 1.5
    rows = [lambda w: np.tanh(w - 0.5) * (1 - MU) + MU * w, None]  # slopes in [MU, L]

    def density(sign: float, place: int) -> np.ndarray:
        p = np.where(abs(x) < 1e-9, 1.0, 0.0)
        for eta in steps:
            for k in range(2):
                w = np.clip(x, -half, half)
                slope = sign + MU * w if k == place else rows[0](w)  # type: ignore[misc]
                kernel = np.exp(-(((x[:, None] - (w - eta * slope)) / (eta * sigma)) ** 2) / 2)
                p = kernel @ p
                p /= p.sum()
        return p

    found, _ = iteration(steps, 2, 1, MU, L)
    for place, bound in enumerate(found / sigma):
        p, q = density(1.0, place), density(-1.0, place)
        order = 3.0
        renyi = np.log((p**order * q ** (1 - order)).sum()) / (order - 1)
        assert renyi <= order * bound**2 / 2
        share = [np.maximum(p - np.exp(e) * q, 0).sum() / gaussian_delta(e, bound) for e in (0.0, 0.5, 1.0, 2.0)]
        assert max(share) <= 1
        assert np.maximum(p - np.exp(0.5) * q, 0).sum() > gaussian_delta(0.5, 0.4 * bound), "0.4 of the bound is too little"


def test_steps_that_are_too_long_to_contract_count_as_they_stretch() -> None:
    eta, m = 2.5, 4
    k = np.arange(1, m + 1)
    stretch = linear_pair(np.full(m, 1 - eta * L), np.where(k == 1, 2 * eta, 0.0), np.where(k == 1, eta, 1e-9))
    claimed = (2 / np.sqrt(m + 1 - k))[0]
    assert stretch > claimed, "with noise early, Theorem 23 would be wrong here"
    exact = linear_pair(np.full(m, 1 - eta * L), np.where(k == 2, 2 * eta, 0.0), np.full(m, eta))
    assert exact <= iteration(np.array([eta]), m, 1, MU, L)[0][1]


def test_noise_in_steps_lies_between_noise_at_the_end_and_published_iterates() -> None:
    setting, budget = get_model("logistic").setting(3000, 20, 1e-2), Budget(1.0, 1e-5)
    method = Method("hockey-stick", Neighbouring.REPLACE_ONE)
    for name in ("rsgd", "nsgd"):
        mechanism = get_mechanism(name).from_params({"batch_size": 300, "epochs": 7}).settled(setting, budget)
        noisy = mechanism.noise_in_steps(setting)
        end, last, every = (noise_for(e, method, budget) for e in (mechanism.releases(setting), noisy.last, noisy.every))
        assert end < last * noisy.spread < every * noisy.spread
        own = iteration(mechanism._epoch_steps(setting, 7), 10, 300, setting.mu, setting.L, setting.G)[0]
        assert (own >= mechanism.position_sensitivities(setting) / noisy.spread * (1 - 1e-9)).all()
        if name == "rsgd":
            assert isinstance(noisy.last, Mixture)
            assert noisy.last.sensitivities == pytest.approx(own)
            assert noisy.last.weights == pytest.approx([0.1] * 10)
        else:
            assert noisy.last.sensitivity == pytest.approx(own.max())
        assert noise_for(noisy.every, method, budget) == pytest.approx(gaussian_sigma(budget, np.sqrt(7) * 2 / 300), rel=1e-4)
    averaged = get_mechanism("rsgd-ar").from_params({}).settled(setting, budget)
    assert averaged.noise_in_steps(setting) is None


def test_steps_that_spread_runs_apart_overflow_nothing() -> None:
    """Beyond 2/L every step multiplies distances: from 1,000 of them on their square is above all doubles."""
    bounds, spread = iteration(np.full(4, 3.7), 100, 1, MU, L)
    few, _ = iteration(np.full(1, 3.7), 100, 1, MU, L)
    assert np.isfinite(bounds).all()
    assert np.isfinite(spread)
    assert few[-1] == pytest.approx(2.0), "the last batch of one pass has its own noise only"
