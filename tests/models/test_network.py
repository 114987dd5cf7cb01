"""The network against finite differences, row-by-row sums, reference values and retraining."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import spearmanr
from support import assert_refused, make_problem

import dpviz
from dpviz.common.random import generator, spawn, substreams
from dpviz.influence import influence_of
from dpviz.mechanisms import Training
from dpviz.models import MODELS, Rows, derivatives_of, feature_noise_of, get_model, hidden_layer, line_losses_of, margins
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

LAM = 0.01


@pytest.fixture(scope="module")
def small() -> tuple[Problem, np.ndarray]:
    problem = make_problem(n=60, d=4, lam=LAM, model="mlp")
    streams = np.random.SeedSequence(1).spawn(3)
    start = problem.model.initial(problem.m, streams)
    return problem, start + 0.3 * np.random.default_rng(0).standard_normal(start.shape)


@pytest.fixture(scope="module")
def tumours() -> Problem:
    data = dpviz.load_dataset("breast-cancer", intercept=False)
    return Problem(Rows(data.X, data.y), get_model("mlp-8"), LAM)


def row_by_row(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """(n, R, m) gradients, one row and one replica at a time."""
    one = [problem.rows.take(np.array([i])) for i in range(problem.n)]
    return np.array([[problem.model.sum_gradient(t[None], row)[0] for t in theta] for row in one])


def test_gradient_is_the_derivative_of_the_objective(small: tuple[Problem, np.ndarray]) -> None:
    problem, theta = small
    gradient = problem.model.sum_gradient(theta, problem.rows) / problem.n + LAM * theta
    value, both = problem.model.value_and_gradient(theta, problem.rows, LAM)  # type: ignore[attr-defined]
    two = problem.model.sum_gradient(theta[:2], problem.rows) / problem.n + LAM * theta[:2]
    np.testing.assert_allclose([*both, *two], [*gradient, *gradient[:2]], atol=1e-14)
    np.testing.assert_allclose(value, problem.objective(theta), rtol=1e-14)
    for k in range(problem.m):
        step = np.zeros(problem.m)
        step[k] = 1e-6
        slope = (problem.objective(theta + step) - problem.objective(theta - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, k], slope, atol=1e-8)


@pytest.mark.parametrize("clip_norm", [np.inf, 0.5, 0.01])
def test_ghost_clipping_is_clipping(small: tuple[Problem, np.ndarray], clip_norm: float) -> None:
    problem, theta = small
    gradients = row_by_row(problem, theta)
    norms = np.linalg.norm(gradients, axis=2)
    np.testing.assert_allclose(problem.model.gradient_norms(theta, problem.rows), norms, rtol=1e-12)
    weights = (np.random.default_rng(3).random(norms.shape) < 0.5).astype(float)
    kept = np.minimum(1, clip_norm / norms) * weights
    expected = (gradients * kept[:, :, None]).sum(axis=0)
    seen: list[np.ndarray] = []

    def rule(block: slice, clipped: np.ndarray) -> np.ndarray:
        seen.append(clipped.copy())
        return np.full(clipped.shape, 0.5)

    np.testing.assert_allclose(
        problem.model.sum_gradient(theta, problem.rows, clip_norm=clip_norm, weights=weights, rule=rule),
        0.5 * expected,
        atol=1e-12,
    )
    np.testing.assert_allclose(np.concatenate(seen, axis=1).T, np.minimum(norms, clip_norm) * weights, atol=1e-12)
    single = problem.model.sum_gradient(theta.astype(np.float32), problem.rows, clip_norm=clip_norm, weights=weights)  # type: ignore[arg-type]
    np.testing.assert_allclose(single, expected, atol=2e-6 * min(clip_norm, 2.0) * problem.n)


@pytest.mark.parametrize("model", ["mlp", "logistic", "svm"])
def test_no_row_adds_more_than_the_clip_norm_in_single_precision(model: str) -> None:
    problem = make_problem(n=3000, d=6, model=model)
    theta = np.random.default_rng(0).standard_normal((20, problem.m)) * 5
    for clip_norm in (0.1, 0.3):
        for k in range(0, 3000, 100):
            row = problem.rows.take(np.array([k]))
            sums = problem.model.sum_gradient(theta.astype(np.float32), row, clip_norm=clip_norm)  # type: ignore[arg-type]
            sizes = np.linalg.norm(sums, axis=1)
            assert sizes.max() <= clip_norm
            assert model == "logistic" or sizes.max() > clip_norm * (1 - 1e-4)


def test_score_gradients_curvature_and_products(small: tuple[Problem, np.ndarray]) -> None:
    problem, theta = small
    model, rows = problem.model, problem.rows
    J = derivatives_of(model).score_gradients(theta[0], rows)
    slope, curvature = derivatives_of(model).slopes(theta[0], rows)
    np.testing.assert_allclose((rows.y * slope)[:, None] * J, row_by_row(problem, theta[:1])[:, 0], atol=1e-14)
    H = (J * (curvature / problem.n)[:, None]).T @ J + LAM * np.eye(problem.m)
    v = np.random.default_rng(2).standard_normal((5, problem.m))
    np.testing.assert_allclose(derivatives_of(model).hessian(theta[0], rows, LAM), H, atol=1e-13)
    np.testing.assert_allclose(derivatives_of(model).hessian_product(theta[0], rows, LAM, v), v @ H, atol=1e-12)
    np.testing.assert_allclose(derivatives_of(model).score_products(theta[0], rows, v), J @ v.T, atol=1e-12)
    own = theta[np.arange(60) % 3]  # row i at a network of its own
    np.testing.assert_allclose(derivatives_of(model).score_gradients(own, rows)[0], J[0], atol=1e-14)
    np.testing.assert_allclose(derivatives_of(model).slopes(own, rows)[0][3], slope[3], atol=1e-14)


@pytest.mark.parametrize("shared", [False, True])
def test_noise_on_rows_without_copies_of_them(small: tuple[Problem, np.ndarray], shared: bool) -> None:
    problem, theta = small
    noise, scale = np.random.default_rng(5).standard_normal((1 if shared else 60, 4)), np.array([0.0, 0.5, 4.0])
    expected = [
        problem.model.sum_gradient(t[None], Rows(problem.rows.X + s * noise, problem.rows.y))[0]
        for t, s in zip(theta, scale, strict=True)
    ]
    np.testing.assert_allclose(
        feature_noise_of(problem.model).noisy_gradient(theta, problem.rows, [noise], scale), expected, atol=1e-12
    )


def test_how_noise_on_a_row_reaches_its_gradient(small: tuple[Problem, np.ndarray]) -> None:
    problem, theta = small
    rows = problem.rows.take(slice(0, 3))
    for i in range(3):
        columns = []
        for axis in np.eye(4):
            ends = [Rows(rows.X[i : i + 1] + h * axis, rows.y[i : i + 1]) for h in (1e-6, -1e-6)]
            up, down = (problem.model.sum_gradient(theta[i : i + 1], end)[0] for end in ends)
            columns.append((up - down) / 2e-6)
        expected = np.linalg.norm(np.array(columns), 2)
        assert feature_noise_of(problem.model).data_weights(theta, rows)[i] == pytest.approx(expected, rel=1e-7)


def test_line_losses_are_losses_along_the_line(small: tuple[Problem, np.ndarray]) -> None:
    problem, theta = small
    reach, direction = np.array([0.5, 2.0, 0.0]), np.random.default_rng(4).standard_normal(theta.shape)
    loss = MODELS["logistic"].loss  # type: ignore[attr-defined]
    for clip in (np.inf, 0.7):
        expected = [
            [np.minimum(loss.value(margins(problem.model, (t - k * d)[None], problem.rows)), clip).sum() for k in ks]
            for t, d, ks in zip(theta, direction, np.outer(reach, [0.0, 0.5, 1.0]), strict=True)
        ]
        np.testing.assert_allclose(
            line_losses_of(problem.model)(theta, direction, reach, 3, problem.rows, clip=clip), expected, rtol=1e-5
        )


def test_blocks_of_rows_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a network computes, in one block and in four: a sum that forgets a block would be of the last one alone."""
    problem = make_problem(n=250, d=4, lam=LAM, model="mlp")
    model, rows, m = problem.model, problem.rows, problem.m
    rng = np.random.default_rng(5)
    theta, direction, noise = rng.standard_normal((2, m)), rng.standard_normal((2, m)), rng.standard_normal((250, 4))
    at, reach, scale = theta[0], np.array([0.5, 2.0]), np.array([0.1, 1.0])

    def all_of_it() -> list[np.ndarray]:
        derivatives = derivatives_of(model)
        curvature = derivatives.curvature(at, rows, LAM)
        return [
            *model.measure(theta, rows),
            model.scores(theta, rows),
            model.sum_gradient(theta, rows),
            model.sum_gradient(theta, rows, clip_norm=0.3),
            *model.value_and_gradient(theta, rows, LAM),  # type: ignore[attr-defined]
            model.gradient_norms(theta, rows),
            line_losses_of(model)(theta, direction, reach, 3, rows),
            derivatives.score_products(at, rows, direction),
            derivatives.hessian_product(at, rows, LAM, direction),
            curvature.solve(direction),
            *curvature.quadratic(rows),
            feature_noise_of(model).noisy_gradient(theta, rows, [noise], scale),
            feature_noise_of(model).noisy_gradient(theta, rows, [noise[:1]], scale),
        ]

    whole = all_of_it()
    monkeypatch.setattr(hidden_layer, "_BLOCK_ELEMENTS", 1)  # 64 rows at least
    assert len(model.layer.blocks(250, 1)) == 4  # type: ignore[attr-defined]
    for got, expected in zip(all_of_it(), whole, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-8)


def test_width_is_part_of_the_models_name() -> None:
    wide = get_model("mlp-7")
    assert wide.setting(50, 3, LAM).m == 7 * (3 + 2) + 1
    assert MODELS["mlp"].setting(50, 3, LAM).m == 3 * (3 + 2) + 1
    for bad in ("mlp-0", "mlp-", "mlp-07", "mlp-2.5", "mlp--3", "mlp-9999999", "MLP"):
        assert_refused(get_model, bad)
    assert_refused(get_model, "mlp-5000", match="4096")
    spec = dpviz.RunSpec(dataset="teaching", model="mlp-7", mechanism="dp-gd", seeds=2)
    assert dpviz.run(spec).theta.shape == (2, 7 * 5 + 1)
    assert (
        dpviz.resolve(dpviz.RunSpec(**spec.to_dict())).key()
        == dpviz.resolve(spec).key()
        != dpviz.resolve(dataclasses.replace(spec, model="mlp-8")).key()
    )


@pytest.mark.long
def test_long_training_is_at_a_minimum_and_below_the_linear_model() -> None:
    data = dpviz.load_dataset("teaching")
    rows = Rows(data.X, data.y)
    problem = Problem(rows, MODELS["mlp"], 1e-3)
    gradient = problem.model.sum_gradient(problem.optimum[None], rows)[0] / len(rows) + 1e-3 * problem.optimum
    assert np.linalg.norm(gradient) < 1e-6
    assert problem.optimal_value < Problem(rows, MODELS["logistic"], 1e-3).optimal_value
    # the least value is not known; none of four further starts is better by more than half a percent
    others = problem.model.initial(problem.m, np.random.SeedSequence(99).spawn(4))
    ends = np.array([problem.model.minimise(rows, 1e-3, start) for start in others])
    assert problem.optimal_value <= problem.objective(ends).min() * 1.005


@pytest.mark.parametrize(("solver", "least"), [("dense", 0.99), ("factored", 0.97)])
def test_influence_ranks_rows_as_retraining_does(tumours: Problem, solver: str, least: float) -> None:
    influence = influence_of(tumours, solver=solver)
    assert not influence.exact_curvature
    at = np.arange(0, tumours.n, 12)
    truth = influence.leave_one_out(at, tolerance=1e-4)
    assert np.isinf(truth.certificate).all()
    assert spearmanr(influence.newton_norm[at], truth.norm).statistic > least
    assert 0.8 < np.median(influence.newton_norm[at] / truth.norm) < 1.25
    shuffled = np.random.default_rng(0).permutation(influence.newton_norm)[at]
    assert spearmanr(shuffled, truth.norm).statistic < 0.5


def test_a_start_follows_its_law_and_draws_from_a_stream_that_nothing_else_uses() -> None:
    """Weights of variance 1/inputs in both layers (LeCun 1998), offsets 0; noise and batches come from the first substreams."""
    model, streams = get_model("mlp-9"), spawn(5, 400)
    m = model.setting(100, 6, LAM).m
    starts = model.initial(m, streams)
    W, a, c = model.layer.split(starts)
    inputs = W.shape[2] - 1
    # of 400 starts: the variance of k normal numbers is within 5 sqrt(2/k) of theirs
    for weights, count in ((W[:, :, :-1], inputs), (a, 9)):
        variance = float((weights**2).mean()) * count
        assert abs(variance - 1) < 5 * (2 / weights.size) ** 0.5
        assert abs(float(weights.mean())) < 5 * (1 / (count * weights.size)) ** 0.5
    assert not W[:, :, -1].any()
    assert not np.asarray(c).any()
    assert len(np.unique(starts, axis=0)) == len(starts)
    for stream, start in zip(streams[:20], starts, strict=False):
        drawn = start[: 9 * 7].reshape(9, 7)[:, :-1].ravel() * inputs**0.5  # standard draws of the first layer
        for other in (stream, *substreams(stream, 7)):  # a replica's own stream, and those of batches, noise and choices
            numbers = generator(other).standard_normal(100)
            assert not np.isclose(drawn[:, None], numbers, rtol=1e-9).any(), "no number is used twice"


@pytest.mark.parametrize("mechanism", ["dp-sgd", "dp-lssgd"])
def test_training_begins_at_a_start_that_no_row_decides(mechanism: str) -> None:
    first, second = make_problem(n=30, d=3, model="mlp-4", seed=1), make_problem(n=30, d=3, model="mlp-4", seed=2)
    built = dpviz.list_mechanisms()[mechanism].from_params({"sampling_rate": 0.5, "epochs": 1.0})
    streams, begun = spawn(3, 4), []
    for problem in (first, second):
        cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
        path = built.fit(Training(problem, [cal], streams)).record.path
        begun.append(path[0, :, 0])
    np.testing.assert_array_equal(begun[0], begun[1])
    assert len(np.unique(begun[0], axis=0)) == 4
    known = first.model.from_one_start(7)
    np.testing.assert_array_equal(known.initial(first.m, streams), np.tile(known.initial(first.m, streams[:1]), (4, 1)))
    assert (known.initial(first.m, streams[:1]) != first.model.from_one_start(8).initial(first.m, streams[:1])).any()
