"""Objective perturbation as trained: the solver, the law of the noise, the second noise of approximate minima.

Methods that perturb training rows, once: noise, sensitivity, what holds and what is only claimed.
"""

import dataclasses
import math

import numpy as np
import pytest
from support import make_problem
from support_noise import with_values

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, IndividualBudget, Mechanism, Training, get_mechanism
from dpviz.mechanisms.individual import after_objective_noise
from dpviz.mechanisms.input.dbdp import Descent
from dpviz.mechanisms.objective.amp import split
from dpviz.mechanisms.objective.perturbed_objective import cap_epsilon
from dpviz.models import Rows, feature_noise_of, get_model
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import NotConverged, minimise_many, newton
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, total_variation
from dpviz.privacy.budget import Budget, Status
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
        alone = newton(problem.rows.signed_rows, problem.model.loss, regular[r], linear=b[r])  # type: ignore[attr-defined]
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
    slope = loss.slope(problem.rows.signed_rows @ theta.T)
    norms = np.linalg.norm(slope.T @ problem.rows.signed_rows / 40 + regular[:, None] * theta + b, axis=1)
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


BUDGET = Budget(1.0, 1e-5)


# --- published formulas -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["input-perturbation", "dbdp"])
def test_claims_stay_claims(name: str) -> None:
    cal = dpviz.calibrate(name, n=1000, d=5, epsilon=1, delta=1e-5)
    assert (cal.status, cal.proved_budget, cal.claimed_budget) == (Status.CLAIM, None, BUDGET)
    assert any("abel" in note for note in cal.notes)
    # what does hold: rows of one label differ by 2 at most, so each report is a Gaussian mechanism with mu = 2/sigma
    assert cal.details["same_label_local_mu"] == pytest.approx(2 / cal.noise_scale, rel=1e-12)
    assert cal.details["same_label_local_epsilon"] == pytest.approx(float(gaussian_epsilon(1e-5, 2 / cal.noise_scale)))


def test_shared_noise_has_no_local_guarantee() -> None:
    cal = dpviz.calibrate("input-perturbation", n=1000, d=5, epsilon=1, delta=1e-5, sharing="shared")
    assert not any(key.startswith("same_label") for key in cal.details)
    assert any("difference" in note for note in cal.notes)


# --- how noise on a row reaches its gradient ------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge()], ids=["logistic", "huber"])
@pytest.mark.parametrize(("features", "constant"), [(1, 0.0), (2, 0.0), (5, 0.0), (2, 1.0), (5, 0.7)])
def test_mixed_derivative_against_finite_differences(loss: Logistic | HuberHinge, features: int, constant: float) -> None:
    rng = np.random.default_rng(3)
    h = 1e-5

    def gradient(point: np.ndarray, w: np.ndarray, b: float, y: float) -> np.ndarray:
        slope = loss.slope(np.array(y * (point @ w + constant * b)))
        return y * float(slope) * (np.append(point, constant) if constant else point)

    for _ in range(40):
        x, w = rng.standard_normal(features), 2 * rng.standard_normal(features)
        y, b = float(rng.choice([-1, 1])), float(rng.standard_normal())
        margin = np.array([y * (x @ w + constant * b)])
        if isinstance(loss, HuberHinge) and np.abs(np.abs(1 - margin[0]) - loss.h) < 1e-3:
            continue  # at the kink there is no derivative
        steps = [(gradient(x + h * e, w, b, y) - gradient(x - h * e, w, b, y)) / (2 * h) for e in np.eye(features)]
        singular = np.linalg.svd(np.column_stack(steps), compute_uv=False)
        got = linear_mixed(y * loss.slope(margin), loss.curvature(margin), x[None], w, constant=constant)
        np.testing.assert_allclose(got[0], singular[0], atol=1e-8)


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_gradients_over_batches_are_those_of_each_seed_s_perturbed_rows(
    model_id: str, precision: type[np.floating], tolerance: float
) -> None:
    """With more rows in a batch than are multiplied at once."""
    problem = make_problem(n=2500, d=6, model=model_id)
    rng = np.random.default_rng(1)
    scale = np.array([0.0, 0.1, 2.0])
    theta = rng.standard_normal((2, 3, 6)).astype(precision)
    noise = [rng.standard_normal((2500, 6), dtype=np.float32) for _ in range(2)]
    for size in (1, 2300):
        batches = np.sort([rng.choice(2500, size, replace=False) for _ in range(2)])
        kept = [draw.copy() for draw in noise]
        got = feature_noise_of(problem.model).over_batches(theta, problem.rows, batches, noise, scale)
        np.testing.assert_array_equal(noise, kept)
        for s, index in enumerate(batches):
            for e in range(3):
                copy = Rows(problem.rows.X[index] + scale[e] * noise[s][index].astype(float), problem.rows.y[index])
                expected = problem.model.sum_gradient(theta[s, e : e + 1].astype(float), copy)[0]
                np.testing.assert_allclose(got[s, e], expected, atol=tolerance * size)


def test_dbdp_releases_the_mean_of_its_second_half() -> None:
    problem, setting = make_problem(n=30, d=3), make_problem(n=30, d=3).setting

    def trained(steps: int, average: bool) -> np.ndarray:
        built = get_mechanism("dbdp").from_params({"steps": steps, "step_size": 0.5, "average": average})
        cal = built.calibrate(setting, BUDGET).noiseless()
        return np.asarray(built.fit(Training(problem, [cal], spawn(0, 2))).theta[0])

    for steps in (1, 4, 5):  # of an odd number the larger half
        iterates = [trained(k, False) for k in range(steps // 2 + 1, steps + 1)]
        np.testing.assert_allclose(trained(steps, True), np.mean(iterates, axis=0), rtol=1e-6, atol=1e-9)


# --- Fukuchi --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "bound"), [("logistic", 1.0), ("svm", 3.0)])
def test_report_sensitivity_is_exact(model: str, bound: float) -> None:
    cal = dpviz.calibrate("fukuchi-input", n=100, d=3, epsilon=1, delta=1e-5, model=model)
    assert cal.sensitivity == bound
    base = make_problem(n=10, d=3, model=model)
    built = get_mechanism("fukuchi-input")()

    def distance(x: np.ndarray, y: float, other: np.ndarray, label: float) -> float:
        here, there = base.replace_row(0, x, y), base.replace_row(0, other, label)
        return float(
            np.linalg.norm(
                built.query(here, base.optimum[None], spawn(0, 1)) - built.query(there, base.optimum[None], spawn(0, 1))
            )
        )

    e = np.array([1.0, 0.0, 0.0])
    assert distance(e, 1.0, -e, 1.0) == pytest.approx(bound, rel=1e-12)  # reached
    assert distance(e, 1.0, e, -1.0) == pytest.approx(bound, rel=1e-12)  # by a label alone, too


def test_fukuchi_without_noise_minimises_its_quadratic() -> None:
    problem = make_problem(n=200, d=4)
    built = get_mechanism("fukuchi-input")()
    cal = built.calibrate(problem.setting, BUDGET).noiseless()
    theta = built.fit(Training(problem, [cal], spawn(0, 1))).theta[0, 0]
    X, y, n = problem.rows.X, problem.rows.y, 200
    gradient = (-X.T @ y / 2 + X.T @ X @ theta / 4) / n + problem.lam * theta
    assert np.linalg.norm(gradient) < 1e-12


# --- Kang: input perturbation and DBDP ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["input-perturbation", "dbdp", "fukuchi-input"])
def test_the_noise_that_is_recorded_is_that_of_the_rows_that_are_shown(name: str) -> None:
    problem = make_problem(n=3000, d=4)
    built = get_mechanism(name)()
    cal = built.calibrate(problem.setting, BUDGET)
    stream = spawn(2, 1)[0]
    noisy = built.noisy_rows(problem, cal, stream)
    record = built.fit(Training(problem, [cal], [stream])).record
    unit = 0.5 if name == "fukuchi-input" else 1.0
    np.testing.assert_allclose(record.noise_norm[0, 0], unit * np.linalg.norm(noisy - problem.rows.X, axis=1), rtol=1e-4)
    assert record.timeline[0, 0, 0] == 3000


@pytest.mark.parametrize("sharing", ["per-record", "shared"])
def test_input_perturbation_is_descent_on_the_perturbed_rows(sharing: str, model_id: str) -> None:
    problem = make_problem(n=120, d=3, model=model_id)
    built = get_mechanism("input-perturbation")(sharing=sharing, steps=15, step_size=1.0)
    cals = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.5, 5.0)]
    streams = spawn(1, 2)
    theta = built.fit(Training(problem, cals, streams)).theta
    for e, cal in enumerate(cals):
        for s, stream in enumerate(streams):
            noisy = built.noisy_rows(problem, cal, stream)
            assert noisy is not None
            if sharing == "shared":
                np.testing.assert_allclose(noisy - problem.rows.X, np.tile((noisy - problem.rows.X)[0], (120, 1)), atol=1e-12)
            rows, at = Rows(noisy, problem.rows.y), np.zeros((1, 3))
            for _ in range(15):
                at = at - (problem.model.sum_gradient(at, rows) / 120 + problem.lam * at) / problem.setting.L
            np.testing.assert_allclose(theta[e, s], at[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("n", "epsilon"), [(500, 10.0), (16_000, 1.0), (16_000, 0.5), (50_000, 1.0)])
def test_dbdp_stops_where_longer_training_would_only_meet_the_noise_again(n: int, epsilon: float) -> None:
    """Where r s = 1.256, the root of e^u = 1 + 2u; numbers of steps are tried in ratios of the root of 2."""
    setting = get_model("logistic").setting(n, 27, 1e-6)
    cal = get_mechanism("dbdp")().calibrate(setting, Budget(epsilon, 1e-5))
    descent = cal.values(Descent)
    steps = descent.steps
    assert 5 < steps < 200
    u = 0.95 / 1.9 * setting.beta * cal.noise_scale**2 * steps * descent.step_size * setting.unit_step
    assert 1.256 / 2 <= u <= 1.256 * 2
