"""Losses and models against finite differences; clipping, weights and blocks against the plain formula."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from support import make_problem

from dpviz.models import MODELS, Rows, derivatives_of, get_model
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.problem import accuracy
from dpviz.models.rows import gram
from dpviz.models.solvers.many import NotConverged, conjugate_gradients, newton

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


def test_logistic_slope_is_minus_expit_of_minus_margin() -> None:
    np.testing.assert_allclose(Logistic().slope(MARGINS), -expit(-MARGINS), rtol=1e-15, atol=0)


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


@pytest.mark.parametrize("lam", [1e-5, 1e-2, 1.0])
def test_minimiser_has_no_gradient_left(model_id: str, lam: float) -> None:
    problem = make_problem(n=500, d=6, lam=lam, model=model_id)
    theta = problem.optimum[None]
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + lam * theta
    assert np.linalg.norm(gradient) <= 1e-10


def test_newton_solves_many_linear_terms_and_says_when_it_cannot() -> None:
    problem = make_problem(n=300, d=4)
    b = np.random.default_rng(0).standard_normal((5, 4))
    theta = newton(problem.rows.signed_rows, Logistic(), 0.01, linear=b)
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + 0.01 * theta + b
    assert np.linalg.norm(gradient, axis=1).max() <= 1e-11
    with pytest.raises(NotConverged):
        newton(problem.rows.signed_rows, Logistic(), 0.01, linear=b, max_steps=1)


def test_a_score_of_zero_is_predicted_positive() -> None:
    rows = Rows(np.zeros((3, 2)), np.array([1.0, 1.0, -1.0]))
    assert accuracy(MODELS["logistic"], np.zeros((1, 2)), rows)[0] == pytest.approx(2 / 3)


def test_only_a_likelihood_gives_probabilities() -> None:
    margins = np.array([0.0, 1.0, 30.0])
    assert get_model("logistic").loss.probability(margins) == pytest.approx(1 / (1 + np.exp(-margins)))
    assert get_model("svm").loss.probability(margins) is None


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


def test_an_optimum_is_searched_for_once_also_with_a_monitor(monkeypatch: pytest.MonkeyPatch, model_id: str) -> None:
    problem = make_problem(n=60, d=3, model=model_id)
    told: list[float] = []
    problem.find_optimum(told.append)
    assert problem.solved
    monkeypatch.setattr(type(problem.model), "minimise", lambda *given, **more: pytest.fail("searched for a second time"))
    problem.find_optimum(told.append)
    value = problem.objective(np.stack([problem.optimum, problem.optimum + 1e-3, problem.optimum - 1e-3]))
    assert value[0] == problem.optimal_value == value.min()


def test_linear_scores_of_one_model_and_of_a_model_for_each_row() -> None:
    problem = make_problem(n=12, d=3)
    found = derivatives_of(problem.model)
    theta = np.random.default_rng(0).standard_normal((12, problem.m))
    np.testing.assert_allclose(found.row_scores(theta[0], problem.rows), problem.rows.X @ theta[0])
    by_row = [problem.rows.X[i] @ theta[i] for i in range(12)]
    np.testing.assert_allclose(found.row_scores(theta, problem.rows), by_row)


def test_conjugate_gradients_solve_or_say_how_many_are_left() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    matrix, right = root @ root.T + np.eye(6), rng.standard_normal((3, 6))
    right[1] = 0.0
    found = conjugate_gradients(lambda x: x @ matrix, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right.T).T, atol=1e-7)
    loose = conjugate_gradients(lambda x: x @ matrix, right, tolerance=0.3)
    left = np.linalg.norm(loose @ matrix - right, axis=1)[::2] / np.linalg.norm(right, axis=1)[::2]
    assert ((left > 0.2) & (left <= 0.3)).all(), "no step more than the tolerance needs"
    with pytest.raises(NotConverged, match="2 systems left after 2 steps"):
        conjugate_gradients(lambda x: x @ matrix, right, max_steps=2)


def test_products_of_many_weighted_rows_are_those_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.standard_normal((5000, 7)), np.maximum(rng.standard_normal(5000), 0.0)
    expected = rows.T @ (rows * weight[:, None])
    np.testing.assert_allclose(gram(rows, weight), expected, rtol=1e-11)
    monkeypatch.setattr("dpviz.models.rows._SHARED", 5000 * 49)
    np.testing.assert_allclose(gram(rows, weight), expected, rtol=1e-11)
    np.testing.assert_array_equal(gram(rows[:0], weight[:0]), np.zeros((7, 7)))


def test_a_sample_of_rows_is_the_same_at_each_call_and_has_no_row_twice() -> None:
    X, y = np.random.default_rng(0).standard_normal((50, 3)), np.where(np.arange(50) % 3, 1.0, -1.0)
    rows = Rows(X.copy(), y)
    sample, again = rows.sample(40), Rows(X, y).sample(40)
    assert rows.sample(40) is sample, "kept with what it derives"
    X[:, 2] = np.arange(50) == 31  # alone it holds this column
    rare = Rows(X, y).sample(7)
    (at,) = np.flatnonzero(rare.X[:, 2])
    assert rare.weights[at] == rare.weights.min() < rare.weights.mean() == pytest.approx(1)
    np.testing.assert_array_equal(sample.X, again.X)
    signed = rows.signed_rows32.astype(float)
    places = [int(np.flatnonzero((signed == x).all(axis=1))[0]) for x in sample.X]
    assert np.all(np.diff(places) > 0), "in order, each once"
    np.testing.assert_array_equal(sample.y, 1.0)
