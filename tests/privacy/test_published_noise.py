"""The noise formulas of Kang et al. and their rules, against plain sums written out here."""

import math

import numpy as np
import pytest

from dpviz.common.validate import InvalidInput
from dpviz.privacy import published_noise as pn

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


def test_strong_convexity_must_be_positive() -> None:
    with pytest.raises(InvalidInput, match="strong_convexity"):
        pn.input_perturbation_sigma(N, T, EPS, DELTA, strong_convexity=0.0)


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
