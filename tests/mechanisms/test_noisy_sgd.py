"""Noisy SGD: training against double precision, smoothing, and what descent foretells."""

import math

import numpy as np
import pytest
from support import make_problem

from dpviz.common.random import generator, poisson_batches, spawn
from dpviz.mechanisms import Training
from dpviz.mechanisms.gradient import dp_lssgd
from dpviz.mechanisms.gradient.dp_lssgd import DPLSSGD, smooth
from dpviz.privacy.budget import Budget


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_noiseless_training_is_the_recursion(smoothing: float) -> None:
    """Against a plain double-precision loop over the recorded batches."""
    problem = make_problem(n=300, d=6)
    mechanism = DPLSSGD(sampling_rate=0.1, epochs=3.0, clip_norm=0.4, smoothing=smoothing, step_size=1.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    fit = mechanism.fit(Training(problem, [cal], spawn(5, 1)))
    from dpviz.common.random import substreams

    draw = poisson_batches(300, 0.1)(generator(substreams(spawn(5, 1)[0], 2)[0]))
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


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 300])
def test_long_and_short_gradients_are_smoothed_alike(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = np.random.default_rng(1).standard_normal((2, 3, m)), []
    for short in (0, 1000):
        monkeypatch.setattr(dp_lssgd, "_SHORT", short)
        found.append(smooth(rows, 0.7))
    assert found[0].shape == rows.shape
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13)
