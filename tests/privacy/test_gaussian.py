"""The exact Gaussian mechanism at its edges, noise against quadrature, and the search for the noise of a budget."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaincinv, ndtr
from support import make_problem

from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, Training, protection
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Setting
from dpviz.privacy import published_noise as pn
from dpviz.privacy.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    log_gaussian_delta,
    total_variation,
)
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE, GAUSSIAN, Noise
from dpviz.privacy.search import largest_argument, smallest


def test_whole_numbers_are_numbers() -> None:
    assert log_gaussian_delta(1, 2) == log_gaussian_delta(1.0, 2.0)
    np.testing.assert_array_equal(gaussian_epsilon(1e-5, np.array([0, 1, 3])), gaussian_epsilon(1e-5, np.array([0.0, 1.0, 3.0])))
    values = gaussian_epsilon(1e-5, 1.0), gaussian_epsilon(1e-5, np.ones((2, 3))), gaussian_delta(np.zeros(4), 1.0)
    assert [np.shape(value) for value in values] == [(), (2, 3), (4,)]


def test_deltas_below_what_a_double_tells_apart_are_zero() -> None:
    assert log_gaussian_delta(1e6, 1e-3) == -math.inf
    assert gaussian_delta(1e6, 1e-3) == 0


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.9])
def test_any_budget_has_its_noise(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(Budget(epsilon, delta))
    assert log_gaussian_delta(epsilon, mu * (1 - 1e-9)) <= math.log(delta) < log_gaussian_delta(epsilon, mu * (1 + 1e-9))
    assert gaussian_sigma(Budget(epsilon, delta), 3.0) == pytest.approx(3 / mu, rel=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 4.0, 60.0, 1e4])
@pytest.mark.parametrize("delta", [1e-250, 1e-5, 0.3])
def test_epsilon_is_the_smallest_that_is_enough(mu: float, delta: float) -> None:
    epsilon = float(gaussian_epsilon(delta, mu))
    if log_gaussian_delta(0.0, mu) <= math.log(delta):
        assert epsilon == 0
        return
    assert log_gaussian_delta(epsilon, mu) <= math.log(delta)
    assert log_gaussian_delta(epsilon * (1 - 1e-9), mu) > math.log(delta)


@pytest.mark.parametrize("mu", [1e-9, 0.3, 2.0, 20.0])
def test_total_variation_is_the_largest_gain_of_any_guess(mu: float) -> None:
    assert total_variation(mu) == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-6, abs=1e-12)
    assert total_variation(mu) == pytest.approx(float(gaussian_delta(0.0, mu)), rel=1e-6)


EPS = (1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)


@pytest.mark.parametrize("epsilon", EPS)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8, 1e-12])
def test_sigma_agrees_with_the_referee(epsilon: float, delta: float) -> None:
    ours = gaussian_sigma(Budget(epsilon, delta), 1.0)
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert float(gaussian_epsilon(delta, 1 / ours)) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("dim", "error"), [(1, 2e-8), (19, 1e-9), (20, 1e-10), (21, 1e-10), (110, 1e-12), (300, 1e-12), (301, 1e-9)]
)
def test_the_closed_form_is_as_exact_as_it_says(dim: int, error: float) -> None:
    margins = np.concatenate([np.linspace(-60, 60, 241), np.geomspace(1e-3, 1e4, 50)])
    # reference: the same mixture with 1,200 nodes
    nodes, weights = np.polynomial.legendre.leggauss(1200)
    u = 0.5 * (nodes + 1)
    variance = 2 * gammaincinv((dim + 1) / 2, u * u * (3 - 2 * u))
    exact = (0.5 * weights * 6 * u * (1 - u)) @ ndtr(margins / np.sqrt(variance)[:, None])
    found = GAMMA_SPHERE.prob_positive(1.0, margins, np.ones(len(margins)), dim)
    np.testing.assert_allclose(found, exact, rtol=0, atol=error)


def test_no_noise_and_empty_rows_have_certain_outcomes() -> None:
    p = GAUSSIAN.prob_positive(0.0, np.array([-1.0, 0.0, 1.0]), np.ones(3), 3)
    assert p.tolist() == [0.0, 1.0, 1.0]
    assert GAUSSIAN.prob_positive(2.0, np.array([0.0]), np.array([0.0]), 3).tolist() == [1.0]


class _HalfNormal(Noise):
    """A family of a package's own, which a method that is derived from one of ours declares."""

    def sample(self, streams: list[np.random.SeedSequence], m: int) -> np.ndarray:
        return np.abs(GAUSSIAN.sample(streams, m))


def _with_noise(cls: type, family: Noise) -> type:
    @dataclass(frozen=True)
    class Derived(cls):  # type: ignore[misc]
        def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
            return replace(super().calibrate(setting, budget), noise_family=family)

    return Derived


@pytest.mark.parametrize("cls", [DPGD, OutputGaussian])
def test_a_derived_method_with_other_noise_has_no_individual_epsilon(cls: type) -> None:
    """The control is the same method with the noise that its individual epsilon is derived for."""
    problem, found = make_problem(n=60, d=3, lam=0.05), {}
    for family in (GAUSSIAN, _HalfNormal("half-normal", "half-normal")):
        mechanism = _with_noise(cls, family)()
        cal = protection.calibrate(mechanism, problem.setting, Budget(1.0, 1e-5))
        fit = mechanism.fit(Training(problem, [cal], spawn(0, 2)))
        found[family.id] = protection.individual(mechanism, problem, cal, fit.theta[0], fit.record.select(0))
    assert found["gaussian"] is not None
    assert found["half-normal"] is None


N, T, EPS, DELTA, G, C = 700, 30, 0.4, 1e-6, 1.7, 2.3
LOG = math.log(1 / DELTA)


def test_formulas_as_printed() -> None:
    facts = {"lipschitz": G, "c": C}
    square = C * G * G * T * LOG / (N * (N - 1) * EPS * EPS)
    assert pn.input_perturbation_sigma(N, T, EPS, DELTA, **facts) ** 2 == pytest.approx(square)
    convex = pn.input_perturbation_sigma(N, T, EPS, DELTA, strong_convexity=0.3, **facts)
    assert convex**2 == pytest.approx(square / math.sqrt(0.3))
    assert pn.dbdp_sigma(0.2, T, EPS, DELTA, **facts) == pytest.approx(C * 0.2 * G * math.sqrt(T * LOG) / EPS)
    assert pn.sgd_sigma(N, T, EPS, DELTA, **facts) == pytest.approx(C * G * math.sqrt(T * LOG) / (N * EPS))
    rule = 2 * math.sqrt(2) * G * 7 * math.sqrt(math.log(1.25 * 7 / DELTA)) / (N * 0.05 * EPS)
    assert pn.contribution_sigma(N, 7, 0.05, EPS, DELTA, lipschitz=G) == pytest.approx(rule)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_lines_9_and_10_are_one_threshold(epsilon: float) -> None:
    radius, delta = 3.0, 1e-3
    threshold = pn.pidp_threshold(radius, epsilon, delta)
    assert threshold == pytest.approx(2 * radius * delta * (1 + math.exp(-epsilon)))

    def as_printed(c: np.ndarray) -> bool:
        grown = 2 * radius * math.exp(epsilon) * delta
        if any(abs(v) >= grown / math.expm1(epsilon) for v in c):
            return False  # line 9
        return all(math.log(grown / (grown - math.expm1(epsilon) * abs(v))) <= 2 * epsilon for v in c)

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 3)) * threshold * 10 ** rng.uniform(-1, 0.5, (2000, 1))
    passes = pn.pidp_passes(rows, radius, epsilon, delta)
    assert passes.shape == (2000,)
    assert 200 < passes.sum() < 1800
    np.testing.assert_array_equal(passes, [as_printed(c) for c in rows])
    np.testing.assert_array_equal(passes, np.abs(rows).max(axis=1) <= threshold)
    beyond = np.array([[0.999999, 0.0], [1.000001, 0.0], [0.0, -1.000001], [0.0, 0.0]]) * threshold
    assert pn.pidp_passes(beyond, radius, epsilon, delta).tolist() == [True, False, False, True]
    assert pn.pidp_passes(beyond.reshape(2, 2, 2), radius, epsilon, delta).tolist() == [[True, False], [False, True]]


def test_ratios_of_line_9() -> None:
    model, change = (
        np.array([[2.0, -1.0, 0.5], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]),
        np.array([[1.0, 0.5, 0.0]] * 2 + [[0, 0, 1.0]]),
    )
    np.testing.assert_allclose(pn.ratio_norm(model, change), [math.sqrt(1.5**2 + 0.5**2 + 1), math.sqrt(4 + 1.5**2 + 1), np.inf])
    np.testing.assert_allclose(pn.largest_log_ratio(model, change), [math.log(2), math.log(2), np.inf])
    # a ratio that is not positive has no logarithm
    turned = np.array([[-1.5, 0.0], [-1.0, 0.0], [-0.999, 0.0]])
    np.testing.assert_allclose(pn.largest_log_ratio(np.ones((3, 2)), turned), [np.inf, np.inf, math.log(1000)], rtol=1e-9)
    assert pn.ratio_norm(np.zeros(3), np.zeros(3)) == pytest.approx(math.sqrt(3))
    assert pn.largest_log_ratio(np.zeros(3), np.zeros(3)) == 0


@settings(max_examples=200)
@given(st.floats(-80, 80), st.floats(-80, 80), st.floats(0.05, 8.0), st.sampled_from([1e-14, 1e-9, 4e-6]))
def test_the_root_is_met_from_above(root: float, start: float, power: float, tolerance: float) -> None:
    def excess(x: float) -> float:
        return power * (root - math.log(x))

    found = smallest(excess, start, tolerance=tolerance)
    assert excess(found) <= 1e-12
    assert abs(math.log(found) - root) <= 2e-12 / power + 3 * tolerance + 1e-14 * (1 + abs(root))


@settings(max_examples=100)
@given(st.floats(-80, 80), st.floats(-80, 80), st.booleans())
def test_the_largest_is_met_from_below(root: float, start: float, even: bool) -> None:
    def excess(x: float) -> float:
        return math.log(x) - root

    found = largest_argument(excess, start, even=even, margin=1e-13)
    assert excess(found) <= 1e-12
    assert abs(math.log(found) - root) <= 2e-12


@pytest.mark.parametrize("jump", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("start", [1e-6, 1.0, 40.0])
def test_jumps_and_infinite_values_are_met_from_above(jump: float, start: float) -> None:
    def excess(x: float) -> float:
        return math.inf if x < jump else -math.inf

    found = smallest(excess, math.log(start))
    assert jump <= found <= jump * (1 + 1e-12)


def test_where_no_noise_is_needed_it_is_the_lowest() -> None:
    assert smallest(lambda x: -1.0, math.log(1.0), limits=(0.25, 1.0)) == 0.25
    assert smallest(lambda x: 2.0 - x, math.log(100.0), limits=(1e-9, 4.0)) == pytest.approx(2.0, rel=1e-13)
