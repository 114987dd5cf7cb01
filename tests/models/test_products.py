"""Sums over rows by kernels are those of numpy to rounding; no contribution exceeds the clip norm."""

import numpy as np
import pytest
from support import mostly_long

import dpviz
from dpviz.common import threads
from dpviz.common.random import BatchIndices, generator, poisson_batches, spawn
from dpviz.mechanisms import Training, all_rows, get_mechanism
from dpviz.models import Rows, feature_noise_of, get_model, line_losses_of, products
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.problem import Problem
from dpviz.models.row_budget import RowBudget
from dpviz.models.solvers import minibatch
from dpviz.privacy.budget import Budget
from tests.models.tables import D, N, PseudoHuber, needs_kernels, pair

KINDS: list[tuple[type[np.floating], float]] = [(np.float32, 3e-6), (np.float64, 1e-13)]


LOSSES = [Logistic(), HuberHinge(0.3), PseudoHuber(width=0.7)]
EACH = [(loss, *kind) for loss in LOSSES for kind in KINDS]


@pytest.mark.parametrize(("loss", "kind", "error"), mostly_long(EACH, EACH[0], EACH[3], EACH[5]))  # a kernel is compiled for each
@pytest.mark.parametrize("replicas", mostly_long([1, 20, 130], 20))
def test_gradients_are_those_of_numpy(replicas: int, loss: Loss, kind: type[np.floating], error: float) -> None:
    rows, dense = pair()
    theta = 3 * np.random.default_rng(0).standard_normal((replicas, D))
    some = np.random.default_rng(1).integers(N, size=300)
    for mine, others in ((rows, dense), (rows.batch(some), dense.batch(some))):
        for clip_norm in (np.inf, 0.25):
            expected = products.Products(others, np.float64).gradient(theta, loss, clip_norm)
            found = products.products(mine, kind).gradient(theta, loss, clip_norm)
            np.testing.assert_allclose(found, expected, rtol=0, atol=error * len(others))
    if products.has_kernels():
        assert type(products.products(rows, kind)) is not products.Products


@pytest.mark.parametrize(("kind", "error"), mostly_long(KINDS, KINDS[1]))
def test_weights_and_rules_of_any_kind_are_applied(kind: type[np.floating], error: float) -> None:
    rows, dense = pair()
    rng = np.random.default_rng(0)
    theta, weights = 3 * rng.standard_normal((20, D)), rng.random((N, 20))

    def rule(block: slice, norms: np.ndarray) -> np.ndarray:
        return (norms < 0.2).astype(norms.dtype)

    for more in ({"rule": rule}, {"weights": weights.astype(kind)}, {"weights": weights < 0.5}, {"weights": weights[:, :1]}):
        found, expected = (
            get_model("logistic").sum_gradient(theta.astype(kind), r, clip_norm=0.25, **more) for r in (rows, dense)
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=error * N)


@pytest.mark.parametrize(("kind", "error"), KINDS)
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_sums_over_batches_are_those_of_gathered_rows(model: str, kind: type[np.floating], error: float) -> None:
    rows, dense = pair()
    theta = 3 * np.random.default_rng(2).standard_normal((5, 3, D))
    batches = [poisson_batches(N, 0.1)(generator(stream))(0) for stream in spawn(3, 4)] + [np.empty(0, np.intp)]
    for clip_norm in (np.inf, 0.2):
        found = get_model(model).sum_batches(theta, rows, BatchIndices.join(batches), clip_norm=clip_norm, precision=kind)
        for s, index in enumerate(batches):
            expected = get_model(model).sum_gradient(theta[s], dense.take(index), clip_norm=clip_norm)
            np.testing.assert_allclose(found[s], expected, rtol=0, atol=error * N)


@needs_kernels
def test_what_registers_held_before_is_no_warning() -> None:
    """OpenBLAS 0.3.31 with AVX-512 raised a warning in one of 1,000 such products after products in double precision."""
    rng = np.random.default_rng(0)
    for size in rng.integers(1, 32, 10_000):
        rows, column = (rng.normal(size=shape).astype(np.float32) for shape in ((size, 5), (5, 1)))
        expected = rows.astype(float) @ column.astype(float)
        np.testing.assert_allclose(products.matmul(rows, column), expected, atol=1e-4)


def test_what_does_not_fit_is_refused_before_memory_is_touched() -> None:
    rows, _ = pair()
    theta = np.zeros((2, 3, D))
    for wrong in ([np.array([0]), np.array([N])], [np.array([-1]), np.array([0])], [np.array([0])]):
        with pytest.raises(IndexError):
            products.products(rows, np.float32).batches(theta, BatchIndices.join(wrong), Logistic())
    for shape in ((2, D - 1), (2, D + 1)):
        with pytest.raises(ValueError, match="broadcast"):
            products.products(rows, np.float64).gradient(np.zeros(shape), Logistic())
    for bounds in ([0, 5, 5, N], [0, N + 1], [1, N], [0, N - 1]):
        with pytest.raises(ValueError, match="one after the other"):
            products.products(rows, np.float64).descend(
                Logistic(), np.full(1, 0.1), np.ones((1, 3)), bounds, monitor=lambda share: None
            )
    with pytest.raises(IndexError):
        products.products(rows, np.float64).descend(
            Logistic(), np.full(1, 0.1), np.ones((1, 3)), [0, N], np.arange(1, N + 1), monitor=lambda _: None
        )


@pytest.mark.parametrize("clip_norm", [0.05, 0.2])
def test_no_row_adds_more_than_the_clip_norm(clip_norm: float) -> None:
    """Row by row in single precision, as batches and as tables; the control is the sum that is not scaled down."""
    rows, dense = pair(400)
    theta = 5 * np.random.default_rng(2).standard_normal((400, 1, D))
    batches, model = BatchIndices.join([np.array([i]) for i in range(400)]), get_model("logistic")
    for table in (rows, dense):
        alone = model.sum_batches(theta, table, batches, clip_norm=clip_norm, precision=np.float32)
        longest = np.linalg.norm(alone, axis=2).max()
        assert longest <= clip_norm
        assert longest / (1 - 2.0**-20) > clip_norm * (1 - 1e-9)
    lengths = []
    for i in range(60):
        row = Rows(rows.X[i : i + 1], rows.y[i : i + 1])
        row.compute_once("sparse", lambda: True)
        lengths.append(np.linalg.norm(model.sum_gradient(theta[:5, 0].astype(np.float32), row, clip_norm=clip_norm), axis=1))
    assert np.max(lengths) <= clip_norm
    assert np.max(lengths) / (1 - 2.0**-20) > clip_norm * (1 - 1e-9)


def test_sums_of_very_many_rows_lose_no_row() -> None:
    """Of 2^18 equal rows in single precision: adding up the groups in single precision too would lose many rows."""
    rows, most = np.full((1 << 18, 2), 0.1, np.float32), float(np.float32(0.1))
    ones, exact = np.ones((1, len(rows)), np.float32), len(rows) * most
    assert np.abs(products.short_sums(ones, rows) - exact).max() < 0.5 * most
    parts = (ones.reshape(1, -1, 64).transpose(1, 0, 2) @ rows.reshape(-1, 64, 2)).sum(axis=0)
    assert np.abs(parts - exact).max() > most, "the control"
    table = Rows(np.full((1 << 16, 2), 0.1), np.ones(1 << 16))
    table.compute_once("sparse", lambda: True)
    found = products.products(table, np.float32).gradient(np.zeros((1, 2)), Logistic())
    assert np.abs(found + 0.5 * 0.1 * (1 << 16)).max() < 0.5 * 0.05


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_right_predictions_are_counted(loss: Loss) -> None:
    rows, dense = pair()
    theta = 40 * np.random.default_rng(4).standard_normal((20, D))
    theta[0] = 0.0  # a score of 0 predicts +1
    margins = dense.signed_rows @ theta.T
    expected = ((margins > 0) | ((margins == 0) & (dense.y > 0)[:, None])).sum(axis=0)
    for table in (rows, dense):
        total, right = products.products(table, np.float64).losses(theta, loss)
        np.testing.assert_allclose(total, loss.value(margins).sum(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(right, expected)
        assert right[0] == (dense.y > 0).sum()


@pytest.mark.parametrize("length", [0.5, 400.0])
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_losses_along_lines_are_those_of_their_points(model: str, length: float) -> None:
    """Near ones by two exponentials, and far ones whose e^-m is no number in single precision."""
    rows, dense = pair()
    theta, direction = length * np.random.default_rng(5).standard_normal((2, 20, D))
    for clip in (np.inf, 3.0, 0.8):
        points = [theta - k / 5 * 0.7 * direction for k in range(6)]
        expected = [np.minimum(get_model(model).loss.value(dense.signed_rows @ at.T), clip).sum(axis=0) for at in points]
        for table in (rows, dense):
            found = line_losses_of(get_model(model))(theta, direction, np.full(20, 0.7), 6, table, clip=clip)
            np.testing.assert_allclose(found.T, expected, rtol=2e-4 if length > 1 else 3e-6)


def test_no_loss_along_a_line_counts_for_more_than_the_clip() -> None:
    rows, dense = pair(1000)
    away = -200 * np.abs(np.random.default_rng(5).standard_normal((1, D))) * rows.signed_rows[:1]
    for table in (rows, dense):
        for clip in (0.01, 0.3, 1.0, 17.0):
            found = line_losses_of(get_model("logistic"))(away, away, np.ones(1), 3, table.take(slice(0, 1)), clip=clip)
            assert clip * (1 - 1e-4) < found.max() <= clip


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("each", [1, 10, 23])
@pytest.mark.parametrize("shared", [False, True])
def test_noise_of_rows_enters_their_margins_and_the_sums(each: int, kind: type[np.floating], shared: bool) -> None:
    rows, dense = pair()
    rng = np.random.default_rng(3)
    theta, scale = rng.standard_normal((3 * each, D)), rng.random(3 * each)
    noise, own = rng.standard_normal((3, 1 if shared else N, D)), feature_noise_of(get_model("logistic"))
    expected = []
    for s, draw in enumerate(noise):
        for at, sigma in zip(theta[each * s : each * (s + 1)], scale[each * s : each * (s + 1)], strict=True):
            x = dense.X + sigma * draw
            expected.append((dense.y * Logistic().slope(dense.y * (x @ at))) @ x)
    for table in (rows, dense):
        found = own.noisy_gradient(theta.astype(kind), table, noise, scale)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 if kind is np.float64 else 3e-6 * N)
        if not shared:
            at = theta.astype(kind)
            parts = [own.noisy_gradient(at, part, noise[:, k : k + len(part)], scale) for k, part in table.parts(3)]
            assert len(parts) == 3
            np.testing.assert_allclose(sum(parts), expected, rtol=0, atol=1e-10 if kind is np.float64 else 3e-6 * N)


@pytest.mark.parametrize("budgets", mostly_long([1, 5, 20], 5))
def test_descents_are_those_of_numpy(budgets: int) -> None:
    rows, dense = pair(600)
    orders, steps = minibatch.permutations(spawn(4, 3), 600), np.random.default_rng(5).random((budgets, 12))
    found, expected = (
        minibatch.minibatch_descent(Problem(table, get_model("svm"), 0.01), steps, 4, orders, average_every=2)
        for table in (rows, dense)
    )
    assert expected.shape == (budgets, 3, D)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_no_row_has_spent_more_than_is_counted(kind: type[np.floating]) -> None:
    steps, theta = 300, np.zeros((20, D), kind)  # all slopes are 1/2
    squares = np.square(pair()[0].norms.astype(kind).astype(np.longdouble) / 2)
    nearest = np.zeros(N, kind)
    for _ in range(steps):
        nearest += squares.astype(kind)
    assert (nearest < steps * squares).any(), "the control: sums rounded to the nearest number are below the truth"
    for table in pair():
        rule = RowBudget(N, 20, 1.0, precision=kind)
        for _ in range(steps):
            products.products(table, kind).gradient(theta, Logistic(), rule=rule)
        share = rule.spent[:, :20] / (steps * squares[:, None])
        assert 1 <= share.min() <= share.max() < 1 + 6 * steps * np.finfo(kind).eps


@pytest.mark.parametrize("name", mostly_long(["dp-gd", "renyi-filter", "dp-agd", "input-perturbation"], "renyi-filter"))
def test_bits_do_not_depend_on_the_processors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are summed in as many parts on every machine, in single precision as large tables are."""
    monkeypatch.setattr(all_rows, "_SINGLE_FROM", 0)
    monkeypatch.setattr(all_rows, "_PART", N * D * 2)
    problem = Problem(pair()[0], get_model("logistic"), 0.01)
    mechanism, ends = dpviz.list_mechanisms()[name](), []
    calibrations = [mechanism.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.5, 3.0, 9.0)]
    for processors in (1, 2, 4):
        monkeypatch.setattr(threads, "processors", lambda here=processors: here)
        ends.append(mechanism.fit(Training(problem, calibrations, spawn(6, 7))).theta)
    np.testing.assert_array_equal(ends[1], ends[0])
    np.testing.assert_array_equal(ends[2], ends[0])


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("mechanism", mostly_long(["dp-sgd", "dp-svrg", "dp-lssgd", "bolt-on-psgd"], "dp-sgd"))
def test_a_model_does_not_depend_on_other_seeds(mechanism: str, record: bool) -> None:
    built = get_mechanism(mechanism).from_params({} if mechanism == "bolt-on-psgd" else {"clip_norm": 0.5})
    for table in pair(1100):
        problem, streams = Problem(table, get_model("logistic"), 0.01), spawn(0, 5)
        calibrations = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.5, 5.0)]
        together = built.fit(Training(problem, calibrations, streams, record=record)).theta
        alone = [built.fit(Training(problem, calibrations, [one], record=record)).theta for one in streams]
        np.testing.assert_array_equal(np.concatenate(alone, axis=1), together)


@needs_kernels
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bits_of_a_replica_do_not_depend_on_the_others(kind: type[np.floating]) -> None:
    rows, _ = pair()
    theta = np.random.default_rng(0).standard_normal((130, D))
    whole = products.products(rows, kind).gradient(theta, Logistic(), 0.3)
    for some in (slice(0, 1), slice(5, 25), slice(100, 130)):
        np.testing.assert_array_equal(products.products(rows, kind).gradient(theta[some], Logistic(), 0.3), whole[some])
