"""Methods that perturb training rows, once: noise, sensitivity, what holds and what is only claimed."""

import numpy as np
import pytest
from support import make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Training, get_mechanism
from dpviz.mechanisms.input.dbdp import Descent
from dpviz.models import Rows, feature_noise_of, get_model
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import HuberHinge, Logistic
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget, Status

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
