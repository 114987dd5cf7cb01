"""Distributions of noise: closed forms against quadrature and draws, and families of which nothing is known."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import gammaincinv, ndtr
from support import make_problem

from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Calibration, Training, protection
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Setting
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE, GAUSSIAN, LAPLACE, Noise


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


def test_what_is_not_known_of_a_family_is_an_error_or_nothing() -> None:
    for unknown in (lambda: LAPLACE.sample(spawn(0, 1), 2), lambda: LAPLACE.prob_positive(1.0, np.ones(1), np.ones(1), 2)):
        with pytest.raises(InvalidInput, match="noise_family"):
            unknown()
    assert LAPLACE.individual(np.ones(1), 1.0, 1e-5, 1.0, 1.0) is None


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
        found[family.id] = protection.individual(mechanism, problem, cal, fit.theta[0], fit.record.at(0))
    assert found["gaussian"] is not None
    assert found["half-normal"] is None
