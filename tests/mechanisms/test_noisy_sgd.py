"""Noisy SGD: training against double precision, smoothing, and what descent foretells."""

import math

import numpy as np
import pytest
from support import make_problem

from dpviz.common.random import PoissonBatches, generator, spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training
from dpviz.mechanisms.gradient import dp_lssgd
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.gradient.dp_lssgd import DPLSSGD, smooth
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


def test_single_precision_and_batches_give_the_same_gradient(model_id: str) -> None:
    problem = make_problem(n=700, d=6, model=model_id)
    rng = np.random.default_rng(0)
    theta = 3 * rng.standard_normal((5, 6))
    index = np.sort(rng.choice(700, 300, replace=False))
    for clip in (math.inf, 0.3):
        exact = problem.model.sum_gradient(theta, problem.rows.take(index), clip_norm=clip)
        np.testing.assert_array_equal(problem.model.sum_gradient(theta, problem.rows.batch(index), clip_norm=clip), exact)
        single = problem.model.sum_gradient(theta.astype(np.float32), problem.rows.batch(index), clip_norm=clip)
        assert single.dtype == np.float64
        shorter = 1 - 2.0**-20  # of every contribution, so that rounding makes none longer than the clip norm
        assert 0 < np.linalg.norm(single - shorter * exact) < 2e-7 * len(index)
        assert np.linalg.norm(single) < np.linalg.norm(exact)
    batch = problem.rows.batch(index)
    assert len(batch) == 300
    np.testing.assert_array_equal(batch.X, problem.rows.X[index])
    np.testing.assert_array_equal(batch.signed, problem.rows.signed[index])
    np.testing.assert_array_equal(batch.norms, problem.rows.norms[index])


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_noiseless_training_is_the_recursion(smoothing: float) -> None:
    """Against a plain double-precision loop over the recorded batches."""
    problem = make_problem(n=300, d=6)
    mechanism = DPLSSGD(sampling_rate=0.1, epochs=3.0, clip_norm=0.4, smoothing=smoothing, step_size=1.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    fit = mechanism.fit(Training(problem, [cal], spawn(5, 1)))
    from dpviz.common.random import substreams

    draw = PoissonBatches(300, 0.1)(generator(substreams(spawn(5, 1)[0], 2)[0]))
    theta, visits = np.zeros(6), np.zeros(300)
    for t in range(mechanism.step_count(problem.setting)):
        index = draw(t)
        visits[index] += 1
        gradient = np.zeros(6)
        for i in index:
            z = problem.rows.signed[i]
            g = -z / (1 + math.exp(z @ theta))
            gradient += g * min(1.0, 0.4 / max(np.linalg.norm(g), 1e-300))
        direction = gradient / 30 + problem.lam * theta
        matrix = np.eye(6) * (1 + 2 * smoothing) - smoothing * (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0))
        theta = theta - problem.setting.unit_step * np.linalg.solve(matrix, direction)
    np.testing.assert_allclose(fit.theta[0, 0], theta, atol=1e-5)
    np.testing.assert_array_equal(fit.record.visits[0, 0], visits)


def test_removing_a_row_moves_the_sum_by_at_most_one_contribution() -> None:
    problem = make_problem(n=30)
    mechanism = DPSGD(relation="add-remove", clip_norm=0.5, sampling_rate=0.5)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    theta = np.random.default_rng(0).standard_normal((1, problem.m))
    moved = []
    for k in range(200):
        gone = problem.replace_row(k % 30, np.zeros(problem.m), 1.0)  # a row of zeros contributes nothing
        moved.append(np.linalg.norm(mechanism.query(problem, theta, spawn(k, 1)) - mechanism.query(gone, theta, spawn(k, 1))))
    assert max(moved) <= cal.sensitivity * (1 + 1e-9)
    assert max(moved) > cal.sensitivity * 0.5


def test_too_many_steps_are_refused_before_they_start() -> None:
    with pytest.raises(InvalidInput, match="epochs"):
        DPSGD(sampling_rate=1e-4, epochs=1000.0, step_size=1.0).calibrate(make_problem().setting, Budget(1.0, 1e-5))


def test_smoothing_inverts_the_circulant_laplacian() -> None:
    impulse = np.eye(6)[0]
    np.testing.assert_allclose(smooth(impulse, 1.0), [0.45, 0.175, 0.075, 0.05, 0.075, 0.175], rtol=1e-12)
    kept = DPLSSGD().calibrate(get_model("logistic").setting(1000, 101, 1e-3), Budget(1.0, 1e-5)).details["noise_power_kept"]
    assert kept == pytest.approx(3 / 5**1.5, rel=1e-6)
    odd = np.random.default_rng(0).standard_normal((3, 7))
    matrix = 3 * np.eye(7) - np.roll(np.eye(7), 1, 0) - np.roll(np.eye(7), -1, 0)
    np.testing.assert_allclose(smooth(odd, 1.0) @ matrix, odd, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 300])
def test_long_and_short_gradients_are_smoothed_alike(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = np.random.default_rng(1).standard_normal((2, 3, m)), []
    for short in (0, 1000):
        monkeypatch.setattr(dp_lssgd, "_SHORT", short)
        found.append(smooth(rows, 0.7))
    assert found[0].shape == rows.shape
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13)


def test_what_descent_foretells_is_the_recursion_of_its_steps() -> None:
    """One step leaves 1 - mu eta (2 - L eta) of the excess and adds L eta^2 d scale^2/2: the bound after T of them."""
    setting, built = make_problem(n=500, d=4, lam=0.1).setting, DPGD(steps=7, step_size=0.5, clip_norm=1.0)
    eta, start, left, scale = 0.5 * setting.unit_step, 0.4, 0.4, 0.02
    bound = start
    for _ in range(7):
        bound *= 1 - setting.mu * eta * (2 - setting.L * eta)
        left *= 1 - setting.mu * eta * (2 - setting.L * eta)
        bound += setting.L * eta**2 * setting.m * scale**2 / 2
    theory = built.excess_theory(setting, scale, start, np.full(setting.m, setting.L))
    assert theory["bound"] == pytest.approx(bound, rel=1e-12)
    assert theory["of the bound, start not yet forgotten"] == pytest.approx(left, rel=1e-12)
    r = 1 - eta * setting.L  # along curvature L in every direction
    variance = (eta * scale) ** 2 * (1 - r**14) / (1 - r**2)
    assert theory["near the minimum"] == pytest.approx(setting.m * setting.L * variance / 2, rel=1e-12)
    assert DPGD(steps=7, step_size=0.5, clip_norm=setting.G / 2).excess_theory(setting, scale, start, np.ones(setting.m)) == {}


def test_without_noise_every_seed_of_descent_gets_the_one_model_there_is() -> None:
    problem, built = make_problem(n=60, d=3, lam=0.1), DPGD(steps=5, step_size=0.5, clip_norm=1.0)
    quiet = [built.calibrate(problem.setting, Budget(e, 1e-5)).noiseless() for e in (1.0, 5.0)]
    theta = built.fit(Training(problem, quiet, spawn(4, 3), record=False)).theta
    assert theta.shape == (2, 3, problem.m)
    assert (theta == theta[:1, :1]).all()
    here = np.zeros((1, problem.m))
    for _ in range(5):
        slope = problem.model.sum_gradient(here, problem.rows) / problem.n + 0.1 * here
        here = here - 0.5 * problem.setting.unit_step * slope
    np.testing.assert_allclose(theta[0, 0], here[0], rtol=1e-9)
