"""Losses and models against finite differences; clipping, weights and blocks against the plain formula."""

from dataclasses import replace

import numpy as np
import pytest
from support import make_problem

from dpviz.models import Rows, get_model
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.solvers.many import NotConverged, newton

LOSSES = [Logistic(), HuberHinge(0.5), HuberHinge(0.1)]
MARGINS = np.array([-800.0, -40, -3, -1, -0.2, 0.0, 0.3, 0.49, 0.7, 1.2, 1.6, 5, 40, 800.0])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_derivatives(loss: Logistic | HuberHinge) -> None:
    h = 1e-6
    slope = (loss.value(MARGINS + h) - loss.value(MARGINS - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(MARGINS), slope, atol=2e-7)
    curvature = (loss.slope(MARGINS + h) - loss.slope(MARGINS - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(MARGINS), curvature, atol=1e-6)
    assert np.isfinite(loss.value(MARGINS)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_declared_bounds_hold_and_are_reached(loss: Logistic | HuberHinge) -> None:
    grid = np.linspace(-60, 60, 400_001)
    assert np.abs(loss.slope(grid)).max() == pytest.approx(loss.slope_bound, rel=1e-6)
    assert loss.curvature(grid).max() == pytest.approx(loss.curvature_bound, rel=1e-6)
    if np.isfinite(loss.third_bound):
        third = np.abs(np.diff(loss.curvature(grid))) / (grid[1] - grid[0])
        assert third.max() == pytest.approx(loss.third_bound, rel=1e-4)
    share = np.abs(loss.slope(grid)) / loss.slope_bound
    below = loss.curvature(grid) <= 4 * share * (1 - share) * loss.curvature_bound + 1e-12
    assert below.all() == loss.sigmoid_slope


def test_a_loss_does_not_inherit_what_was_proved_of_another_slope() -> None:
    class Changed(Logistic):
        pass

    logistic = get_model("logistic")
    assert logistic.setting(10, 2, 0.1).sigmoid_slope
    assert not replace(logistic, loss=Changed()).setting(10, 2, 0.1).sigmoid_slope


@pytest.mark.parametrize("clip_norm", [np.inf, 1.0, 0.3, 0.01])
def test_sum_gradient_is_the_clipped_weighted_sum(model_id: str, clip_norm: float) -> None:
    problem = make_problem(n=700, d=5, model=model_id)
    model, rows = problem.model, problem.rows
    rng = np.random.default_rng(1)
    theta = 3 * rng.standard_normal((600, 5))  # more replicas than fit one block
    weights = (rng.random((700, 600)) < 0.3).astype(float)
    slope = model.loss.slope(rows.y[:, None] * (rows.X @ theta.T)) * rows.y[:, None]  # type: ignore[attr-defined]
    gradients = slope[:, :, None] * rows.X[:, None, :]
    norms = np.linalg.norm(gradients, axis=2)
    np.testing.assert_allclose(model.gradient_norms(theta, rows), norms, atol=1e-12)
    scale = np.minimum(1, clip_norm / np.maximum(norms, 1e-300)) * weights
    expected = (gradients * scale[:, :, None]).sum(axis=0)
    ours = model.sum_gradient(theta, rows, clip_norm=clip_norm, weights=weights)
    np.testing.assert_allclose(ours, expected, atol=1e-10)


@pytest.mark.parametrize("clip_norm", [0.5, 0.95, 0.999])
def test_a_gradient_a_little_longer_than_the_clip_norm_is_shortened(model_id: str, clip_norm: float) -> None:
    """One long gradient among short rows; whether rows are clipped at all is decided by the longest one."""
    x = np.array([[0.1, 0.0], [1.0, 0.0], [0.0, 0.2]])
    model, rows = get_model(model_id), Rows(x, np.ones(3))
    for kind in (np.float64, np.float32):
        theta = np.array([[-20.0, 0.0]], dtype=kind)
        for part in (rows, rows.batch(np.arange(3))):
            only = np.array([[0.0], [1.0], [0.0]])
            moved = np.linalg.norm(model.sum_gradient(theta, part, clip_norm=clip_norm, weights=only))
            assert clip_norm * (1 - 1e-5) < moved <= clip_norm * (1 + 1e-12)


def test_gradient_is_the_derivative_of_the_objective(model_id: str) -> None:
    problem = make_problem(n=200, d=4, model=model_id)
    theta = np.random.default_rng(2).standard_normal((3, 4))
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + problem.lam * theta
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-6
        slope = (problem.objective(theta + step) - problem.objective(theta - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, k], slope, atol=1e-7)


@pytest.mark.parametrize("lam", [1e-5, 1e-2, 1.0])
def test_minimiser_has_no_gradient_left(model_id: str, lam: float) -> None:
    problem = make_problem(n=500, d=6, lam=lam, model=model_id)
    theta = problem.optimum[None]
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + lam * theta
    assert np.linalg.norm(gradient) <= 1e-10


def test_newton_solves_many_linear_terms_and_says_when_it_cannot() -> None:
    problem = make_problem(n=300, d=4)
    b = np.random.default_rng(0).standard_normal((5, 4))
    theta = newton(problem.rows.signed, Logistic(), 0.01, linear=b)
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + 0.01 * theta + b
    assert np.linalg.norm(gradient, axis=1).max() <= 1e-11
    with pytest.raises(NotConverged):
        newton(problem.rows.signed, Logistic(), 0.01, linear=b, max_steps=1)


@pytest.mark.parametrize("where", [-300.0, -20.0, 0.0, 20.0, 300.0])
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge()], ids=lambda loss: loss.name)
def test_sums_over_rows_hold_far_from_zero_and_keep_replicas_apart(loss: Loss, where: float) -> None:
    """Products of e^-m in place of sums of logarithms: neither may leave the range of its numbers."""
    margin = where + np.random.default_rng(0).uniform(-1, 1, (40, 3))
    expected = loss.value(margin).sum(axis=0)
    np.testing.assert_allclose(loss.total(margin.T.copy()), expected, rtol=1e-9, atol=1e-12)
    single = margin.astype(np.float32)
    # e^90 is beyond single precision, and six steps of 5 come back below a clip of 64
    for start, step, clip in ((single, -0.5, 4.0), (single, 0.5, 4.0), (single * np.float32(0.3), -5.0, 64.0)):
        lengths = np.full_like(start, step)
        found = loss.line_sums(start.copy(), lengths.copy(), 7, clip)
        points = [start.astype(float) - k * step for k in range(7)]
        capped = np.array([np.minimum(loss.value(at), clip).sum(axis=0) for at in points])
        np.testing.assert_allclose(found, capped, rtol=1e-5, atol=1e-5)
