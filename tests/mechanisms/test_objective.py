"""Objective perturbation as trained: the solver, the law of the noise, the second noise of approximate minima."""

import dataclasses
import math

import numpy as np
import pytest
from support import make_problem
from support_noise import with_values

from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, IndividualBudget, Mechanism, Training, get_mechanism
from dpviz.mechanisms.individual import after_objective_noise
from dpviz.mechanisms.objective.amp import split
from dpviz.mechanisms.objective.perturbed_objective import cap_epsilon
from dpviz.models import get_model
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import NotConverged, minimise_many, newton
from dpviz.privacy.accounting.gaussian import total_variation
from dpviz.privacy.budget import Budget
from dpviz.privacy.objective import PerturbedObjective

OBJECTIVE = ("cms-objective", "kst-objective", "objective-tight", "amp")


def gradient(problem: Problem, theta: np.ndarray, lam: np.ndarray, linear: np.ndarray) -> np.ndarray:
    return problem.model.sum_gradient(theta, problem.rows) / problem.n + lam[:, None] * theta + linear


def perturbed(problem: Problem, count: int, low: float, high: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Regularisations and linear terms whose lengths span [low, high]."""
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((count, problem.m))
    b *= (np.geomspace(low, high, count) / np.linalg.norm(b, axis=1))[:, None]
    return problem.lam * rng.choice([1.0, 3.0], size=count), b


# ---- the solver -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 2000, 9000])  # below, at and above what is solved on a sample first
@pytest.mark.parametrize("lam", [1e-3, 1e-1])
def test_every_gradient_is_within_tolerance(model_id: str, n: int, lam: float) -> None:
    problem = make_problem(n=n, d=12, lam=lam, model=model_id)
    regular, b = perturbed(problem, 25, 1e-4, 3.0)
    theta = minimise_many(problem.rows, problem.model.loss, regular, b)  # type: ignore[attr-defined]
    assert np.linalg.norm(gradient(problem, theta, regular, b), axis=1).max() <= 1e-12
    for r in (0, 12, 24):
        alone = newton(problem.rows.signed, problem.model.loss, regular[r], linear=b[r])  # type: ignore[attr-defined]
        np.testing.assert_allclose(theta[r], alone[0], atol=1e-8)


def test_the_check_of_gradients_can_fail() -> None:
    problem = make_problem(n=9000, d=12, lam=1e-3)
    regular, b = perturbed(problem, 4, 1e-2, 1.0)
    theta = minimise_many(problem.rows, Logistic(), regular, b, tolerance=1e-9)
    norms = np.linalg.norm(gradient(problem, theta, regular, b), axis=1)
    assert 1e-12 < norms.max() <= 1e-9


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5)], ids=["logistic", "huber"])
def test_hard_problems_are_solved_or_refused(loss: Loss) -> None:
    # few rows, little regularisation, long noise: rounding of |b| alone is above 1e-12
    problem = make_problem(n=40, d=20, lam=1e-5)
    regular, b = perturbed(problem, 8, 1.0, 1000.0)
    theta = minimise_many(problem.rows, loss, regular, b)
    slope = loss.slope(problem.rows.signed @ theta.T)
    norms = np.linalg.norm(slope.T @ problem.rows.signed / 40 + regular[:, None] * theta + b, axis=1)
    length = np.linalg.norm(theta, axis=1)
    limit = 1e-15 * (np.linalg.norm(b, axis=1) + regular * length + length / 40)
    assert (norms <= np.maximum(1e-12, limit)).all()
    with pytest.raises(NotConverged):
        minimise_many(problem.rows, loss, regular, b, strict=True, tolerance=1e-16)


# ---- what is trained --------------------------------------------------------------------------------------------------


def calibrated(name: str, problem: Problem, *epsilons: float, **params: object) -> tuple[Mechanism, list[Calibration]]:
    built = get_mechanism(name).from_params(params)
    return built, [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in epsilons]


def test_amp_refuses_a_minimum_that_rounding_keeps_from_its_gradient_norm() -> None:
    problem = make_problem(n=40, d=5, lam=1e-2)
    built, (cal,) = calibrated("amp", problem, 1.0, stop_power=2.5)
    loud = dataclasses.replace(cal, noise_scale=1e16)  # the gradient of so long a term is rounded to about 0.1
    with pytest.raises(NotConverged):
        built.fit(Training(problem, [loud], spawn(0, 20)))
    built.fit(Training(problem, [cal], spawn(0, 20)))


def test_amp_stops_at_a_gradient_norm_that_depends_on_n_alone() -> None:
    problem = make_problem(n=9000, d=10, lam=1e-2)
    for power in (1.0, 2.0):
        built, cals = calibrated("amp", problem, 0.1, 10.0, stop_power=power)
        gamma = 9000.0**-power
        assert {c.details["gamma"] for c in cals} == {gamma}
        quiet = [with_values(c, sigma_output=lambda _: 0.0) for c in cals]
        theta = built.fit(Training(problem, quiet, spawn(0, 2))).theta
        draws = np.stack([np.random.Generator(np.random.PCG64(s)).standard_normal(problem.m) for s in spawn(0, 2)])
        for e, cal in enumerate(cals):
            # the noise behind the released minimum, by its stationarity
            b = -(problem.model.sum_gradient(theta[e], problem.rows) + cal.details["Lam"] * theta[e])
            left = b - cal.noise_scale * draws
            assert np.linalg.norm(left / problem.n, axis=1).max() <= gamma * (1 + 1e-6)


def test_individual_epsilon_is_that_of_the_released_minimiser() -> None:
    problem = make_problem(n=60)
    assert not any(issubclass(get_mechanism(name), IndividualBudget) for name in ("cms-objective", "amp"))
    for name in ("objective-tight", "kst-objective"):
        built, (cal,) = calibrated(name, problem, 1.0)
        fit = built.fit(Training(problem, [cal], spawn(0, 2)))
        found = built.individual(problem, cal, fit.theta[0], fit.record)  # type: ignore[attr-defined]
        expected = after_objective_noise(problem, fit.theta[0], cal.details["Lam"], cal.noise_scale)
        np.testing.assert_array_equal(found.epsilon, expected.epsilon)
        assert found.epsilon.shape == (2, 60)


# ---- numbers of the calibrations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 99.0, 101.0, 1e3, 1e6])
def test_amp_splits_epsilon_as_its_proof_needs(epsilon: float) -> None:
    """Iyengar et al. 2019, Algorithm 1 requires eps_1 - eps_3 < 1; below that the share is the one of their code."""
    share = split(epsilon)
    assert 0 < share < 1
    assert epsilon * (1 - share) < 1
    if epsilon * 0.01 < 0.9:
        code = min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99)
        assert share == code or epsilon * (1 - code) >= 0.999


def test_a_budget_is_kept_up_to_rounding_and_no_further() -> None:
    budget = Budget(2.0, 1e-5)
    assert cap_epsilon(budget, 2.0 * (1 + 5e-10)) is budget
    assert cap_epsilon(budget, 2.0 * (1 + 2e-9)) == Budget(2.0 * (1 + 2e-9), 1e-5)


def test_joint_slack_is_called_balanced_where_it_is_that() -> None:
    built = get_mechanism("cms-objective")()
    found = {name: built.value("slack", get_model(name).setting(50, 4, 0.1)) for name in ("logistic", "svm")}
    assert found == {"logistic": "joint", "svm": "balanced"}


@pytest.mark.parametrize("epsilon", [0.001, 1.0])
@pytest.mark.parametrize("name", OBJECTIVE)
def test_calibrations_say_how_much_curvature_and_regularisation_cost(name: str, epsilon: float) -> None:
    problem = make_problem(n=50, d=4, lam=0.1)
    _, (cal,) = calibrated(name, problem, epsilon)
    total = cal.details["Lam"]
    assert total >= 50 * 0.1
    unit = 50 if name == "cms-objective" else 1  # of the mean there, of the sum elsewhere
    assert unit * cal.details["Delta"] == pytest.approx(total - 50 * 0.1)
    assert cal.details["J"] == pytest.approx(math.log(1 + 0.25 / total))
    if name == "cms-objective" and epsilon < 0.01:
        assert cal.details["J"] == pytest.approx(epsilon / 2), "just enough regularisation for half of epsilon"
        assert epsilon - cal.details["eps_prime"] < 0.71 * epsilon / 2, "less is taken: slope and curvature are bounded together"
        _, (published,) = calibrated(name, problem, epsilon, slack="published")
        assert published.details["J"] == pytest.approx(epsilon / 4), "each of two terms"
    if name == "kst-objective":
        assert cal.details["zeta"] == cal.sensitivity
        reached = PerturbedObjective(G=1.0, beta=0.25, Lam=total, bound="one-sided").epsilon(1e-5, cal.noise_scale)
        assert cal.details["certified_epsilon"] == pytest.approx(reached)
        assert f"ε = {reached:.3g}" in cal.notes[0]
    assert (total > 5.0) == (epsilon < 0.01 or name == "kst-objective"), "regularisation is raised where epsilon is small"


@pytest.mark.parametrize("noise", ["exact", "published"])
def test_the_distance_of_amp_counts_all_of_its_second_release(noise: str) -> None:
    """Against the same without it: the output noise differs by the total variation of two Gaussians its sensitivity apart."""
    setting, mechanism = make_problem(n=200, d=3).setting, get_mechanism("amp")(noise=noise, output_share=0.3)  # type: ignore[call-arg]
    cal = mechanism.calibrate(setting, Budget(1.0, 1e-5))
    alone = with_values(cal, sigma_output=lambda _: 1e12)
    second = total_variation(cal.details["output_sensitivity"] / cal.details["sigma_output"])
    assert second > 0.01
    found = [mechanism.distance(setting, each) for each in (cal, alone)]  # type: ignore[attr-defined]
    assert found[0] - found[1] == pytest.approx(second, rel=1e-6)
