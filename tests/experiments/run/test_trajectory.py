"""Training step by step: the iterates are those of the run itself."""

import numpy as np

import dpviz
from dpviz.experiments.run.setup import calibration_of, setup_for
from dpviz.experiments.run.trajectory import trajectory

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, epsilon=0.5, params={"steps": 12, "step_size": 1.0})


def test_the_last_iterate_is_the_run_and_the_first_its_start() -> None:
    found = trajectory(SPEC, frames=6)
    assert found.steps[0] == 0
    assert found.steps[-1] == found.total == 12
    assert len(found.steps) <= 6
    made = dpviz.run(SPEC)
    np.testing.assert_allclose(found.theta[-1], made.theta, rtol=1e-12)
    np.testing.assert_allclose(found.accuracy[-1], made.accuracy)
    np.testing.assert_allclose(found.objective[-1], made.objective, rtol=1e-12)
    assert not found.theta[0].any()
    for metric in ("roc-auc", "recall-at-precision=0.7"):
        np.testing.assert_allclose(found.measured(metric)[-1], made.metrics_in([metric]).to_numpy()[:, 0])


def test_one_step_is_the_noisy_gradient_step_of_the_whole_run() -> None:
    """Without clipping the first two iterates differ by eta (gradient + N(0, sigma^2)); noise of another T would not fit."""
    found = trajectory(SPEC, frames=12)
    problem, calibration = setup_for(SPEC).problem, calibration_of(SPEC)
    zero = np.zeros((1, problem.m))
    gradient = problem.model.sum_gradient(zero, problem.rows, clip_norm=1.0)[0] / problem.n
    length = calibration.details["step_size"] * problem.setting.unit_step
    noise = (-found.theta[1] / length - gradient) / calibration.noise_scale
    again = trajectory(SPEC, frames=12)
    assert (found.theta == again.theta).all()
    weak = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, epsilon=5.0, params=SPEC.params)
    other = trajectory(weak, frames=12)
    scale = calibration_of(weak).noise_scale
    np.testing.assert_allclose((-other.theta[1] / length - gradient) / scale, noise, rtol=1e-6, atol=1e-9)
    assert 0.05 < np.abs(noise).mean() < 3


def test_methods_that_release_only_their_last_model_have_none() -> None:
    assert trajectory(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)) is None
