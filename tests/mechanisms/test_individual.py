"""Epsilon of one person against the exact privacy loss and reference values, with controls."""

import sys

import numpy as np
import pytest
from scipy.stats import binom
from support import make_problem
from support_individual import individual

import dpviz
from dpviz.common.random import spawn
from dpviz.influence import influence_of
from dpviz.mechanisms import IndividualBudget, Training
from dpviz.mechanisms.individual import after_objective_noise
from dpviz.models import derivatives_of
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import newton
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import gamma_output, gaussian_epsilons, gaussian_output, objective_ex_post, objective_publishable


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
def test_every_mechanism_with_individual_epsilon(mechanism: str, model_id: str) -> None:
    spec = dpviz.RunSpec("teaching", model_id, mechanism, seeds=3, lam=0.01)
    result = dpviz.run(spec)
    found = result.individual
    if found is None:
        return
    refined = {"refined": True} if "refined" in spec.build().knobs() else {}
    if refined:
        sharper = dpviz.run(dpviz.RunSpec("teaching", model_id, mechanism, seeds=3, lam=0.01, params=refined)).individual
        assert sharper.replace.max() <= spec.epsilon * (1 + 1e-6)
    n = result.setup.problem.n
    assert found.epsilon.shape in ((1, n), (3, n))
    assert np.isfinite(found.epsilon).all()
    assert (found.epsilon >= 0).all()
    assert "reveals data" in found.caveat
    if found.replace is not None:
        assert (found.replace >= found.epsilon).all()
        proved = result.calibration.proved_budget
        # no replacement costs a person more than the worst case that is proved for all rows
        assert proved is None or found.replace.max() <= proved.epsilon * (1 + 1e-6)
    if result.record is not None and result.record.path is not None:  # what the rows' gradients were depends on the rows
        assert any("without that proof" in words for words in found.conditions)
    without = dpviz.run_epsilons(spec, [1.0], instances=False)[0]
    assert without.individual is None


def test_output_values_are_exact_leave_one_out_distances() -> None:
    problem = make_problem(n=50, d=4, lam=0.05)
    truth = influence_of(problem).leave_one_out().norm
    gaussian = individual("output-gaussian", problem)
    sigma = dpviz.list_mechanisms()["output-gaussian"]().calibrate(problem.setting, Budget(1.0, 1e-5)).noise_scale
    np.testing.assert_allclose(gaussian.epsilon[0], gaussian_epsilon(1e-5, truth / sigma), rtol=1e-6)
    pure = individual("cms-output", problem)
    np.testing.assert_allclose(pure.epsilon[0], truth / (2 / (50 * 0.05)), rtol=1e-6)
    assert pure.delta == 0


def test_bound_over_replacements_holds_for_the_worst_we_can_find(model_id: str) -> None:
    problem = make_problem(n=20, d=2, lam=0.1, model=model_id)
    removal = influence_of(problem).leave_one_out([4]).norm
    reach = problem.setting.G / (problem.n * problem.lam)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    others = [problem.replace_row(4, np.array([np.cos(a), np.sin(a)]), y) for a in angle for y in (1.0, -1.0)]
    moved = max(float(np.linalg.norm(other.optimum - problem.optimum)) for other in others)
    bound = float(np.minimum(removal + reach, 2 * reach)[0])
    assert moved <= bound
    assert moved > 0.4 * bound  # a bound planted too small by the factor 2.5 would be broken


def test_large_data_uses_the_newton_step_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(n=60, d=4, lam=0.05)
    exact = individual("output-gaussian", problem)
    monkeypatch.setattr(sys.modules["dpviz.mechanisms.individual"], "_EXACT_WORK", 0)
    quick = individual("output-gaussian", problem)
    assert "exact" in exact.method
    assert "not a bound" in quick.method
    np.testing.assert_allclose(quick.epsilon, exact.epsilon, rtol=0.02)


@pytest.mark.parametrize("delta", [1e-3, 1e-10])
@pytest.mark.parametrize("largest", [1e-4, 0.1, 5.0, 40.0])
def test_many_values_at_once_agree_with_the_exact_ones(delta: float, largest: float) -> None:
    mu = largest * np.random.default_rng(0).random((3, 2000)) ** 3
    exact = gaussian_epsilon(delta, mu)
    assert np.all(np.abs(gaussian_epsilons(delta, mu) - exact) <= 1e-8 * (1 + exact))


def objective_perturbed(problem: Problem, lam_sum: float, sigma: float, seed: int) -> np.ndarray:
    noise = sigma * np.random.default_rng(seed).standard_normal(problem.m)
    return newton(problem.rows.signed, problem.model.loss, lam_sum / problem.n, linear=noise / problem.n)[0]  # type: ignore[attr-defined]


def log_density(problem: Problem, keep: np.ndarray, theta: np.ndarray, lam_sum: float, sigma: float) -> float:
    """ln p(theta) of objective perturbation on the kept rows, by change of variables, constants left out."""
    signed, loss = problem.rows.signed[keep], problem.model.loss  # type: ignore[attr-defined]
    noise = -(signed.T @ loss.slope(signed @ theta) + lam_sum * theta)
    jacobian = (signed * loss.curvature(signed @ theta)[:, None]).T @ signed + lam_sum * np.eye(len(theta))
    return float(-(noise @ noise) / (2 * sigma**2) + np.linalg.slogdet(jacobian)[1])


def test_objective_perturbation_is_the_exact_log_ratio(model_id: str) -> None:
    problem = make_problem(n=40, d=3, model=model_id, seed=2)
    lam_sum, sigma = 2.5, 3.0
    theta = np.stack([objective_perturbed(problem, lam_sum, sigma, s) for s in range(3)])
    found = after_objective_noise(problem, theta, lam_sum, sigma)
    assert found is not None
    everyone = np.ones(40, bool)
    for s in range(3):
        full = log_density(problem, everyone, theta[s], lam_sum, sigma)
        for i in range(0, 40, 7):
            ratio = full - log_density(problem, everyone & (np.arange(40) != i), theta[s], lam_sum, sigma)
            assert found.epsilon[s, i] == pytest.approx(abs(ratio), rel=1e-9, abs=1e-12)


def test_publishable_bound_covers_the_loss_as_often_as_it_says() -> None:
    problem = make_problem(n=25, d=3, seed=5)
    lam_sum, sigma, rho, runs = 2.0, 1.5, 0.2, 2000
    noise = sigma * np.random.default_rng(1).standard_normal((runs, 3))
    theta = newton(problem.rows.signed, problem.model.loss, lam_sum / 25, linear=noise / 25)  # type: ignore[attr-defined]
    found = after_objective_noise(problem, theta, lam_sum, sigma, rho)
    broken = (found.epsilon > found.publishable).sum(axis=0).max()
    limit = binom.isf(1e-6 / 25, runs, rho)
    assert broken <= limit
    # the check can fail: without the Gaussian quantile the bound breaks too often
    slope, curvature = derivatives_of(problem.model).slopes(theta[0], problem.rows)
    useless = objective_publishable(slope, curvature, problem.rows.norms, lam_sum, sigma, 1.0)
    assert (found.epsilon > useless).sum(axis=0).max() > limit


def test_publishable_bound_at_rows_of_any_length_and_noise_of_any_size() -> None:
    """Against the formula by hand: 2.326347874 is the 99 % point of the normal law; the slope, not the length, is squared."""
    one = np.ones(1)
    at = objective_publishable(0.5 * one, 0.25 * one, 3.0 * one, 10.0, 0.7, 0.02)[0]
    by_hand = np.log(1 + 0.25 * 9 / 10) + 1.5**2 / (2 * 0.49) + 1.5 * 2.3263478740408408 / 0.7
    assert at == pytest.approx(by_hand, rel=1e-12)


def test_ex_post_values_of_a_row_without_gradient_are_zero() -> None:
    zero = np.zeros(1)
    assert objective_ex_post(zero, zero, np.ones(1), np.ones(1), np.ones(1), 1.0)[0] == 0
    assert gamma_output(zero, 1.0)[0][0] == 0
    with pytest.raises(dpviz.InvalidInput, match="sigma"):
        gaussian_output(zero, 0.0, 1e-5)


def test_another_row_in_the_place_of_a_row_moves_the_model_by_both_but_never_beyond_the_sensitivity() -> None:
    """change + reach by the triangle inequality, capped at what no replacement exceeds; at other numbers than 1."""
    change, delta = np.array([0.1, 0.4, 0.0]), 1e-4
    for cap, moved in ((9.0, change + 0.3), (0.5, [0.4, 0.5, 0.3])):
        alone, replaced = gaussian_output(change, 0.2, delta, 0.3, cap)
        np.testing.assert_allclose(replaced, gaussian_epsilon(delta, np.array(moved) / 0.2), rtol=1e-9)
        np.testing.assert_allclose(alone, gaussian_epsilon(delta, change / 0.2), rtol=1e-9)
        pure, replaced = gamma_output(change, 0.2, 0.3, cap)
        np.testing.assert_allclose(replaced, np.array(moved) / 0.2, rtol=1e-12)
        np.testing.assert_allclose(pure, change / 0.2, rtol=1e-12)


@pytest.mark.parametrize("name", [k for k, c in dpviz.list_mechanisms().items() if issubclass(c, IndividualBudget)])
def test_without_noise_nobody_has_an_epsilon(name: str) -> None:
    problem = make_problem(n=40, d=3, lam=0.05)
    built = dpviz.list_mechanisms()[name]()
    quiet = built.calibrate(problem.setting, Budget(1.0, 0.0 if built.pure else 1e-5)).noiseless()
    fit = built.fit(Training(problem, [quiet], spawn(0, 2)))
    found = built.individual(problem, quiet, fit.theta[0], fit.record.at(0))
    assert found is None or not np.isfinite(found.epsilon).any()
