"""Compiled loops give what numpy gives, to rounding, on every number of replicas; they are asked with arrays that fit only."""

from __future__ import annotations

import importlib.util
from typing import Any

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from dpviz.common.random import Drawn, generator, normals_of_numpy, poisson_of_numpy, spawn
from dpviz.models import Rows, feature_noise_of, get_model, line_losses_of, sparse
from dpviz.models import rows as models_rows
from dpviz.models.compiled import draws, loops, pcg
from dpviz.models.compiled import rows as compiled
from dpviz.models.compiled.noise import Strips, noisy_gradient
from dpviz.models.compiled.phrases import MOST, in_phrases
from dpviz.models.compiled.rows import (
    CompiledRows,
    Descent,
    in_lanes,
    loss_of,
    network_sums,
    parts_of,
)
from dpviz.models.losses import HuberHinge, Logistic, Loss
from dpviz.models.row_budget import RowBudget
from dpviz.models.solvers import minibatch
from tests.support import make_problem

B, D = 331, 11
KINDS: list[tuple[type[np.floating], float]] = [(np.float32, 3e-7), (np.float64, 1e-15)]


def within(rows: CompiledRows, columns: Any, loss: Loss, norms: Any, clip_norm: float, *budget: Any) -> tuple[Any, Any]:
    """(d, W) sums of the gradients of rows within a budget (spent, unit, limit), and how many rows there are."""
    total, took = rows.sums_at(rows.spelled(columns), loss, norms, clip_norm, budget)
    return rows.shared(total), took


@pytest.fixture(autouse=True)
def small_tables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "_LEAST_ENTRIES", 0)


def table(b: int = B, d: int = D, seed: int = 0, full: int = 1) -> np.ndarray:
    """b rows in the unit ball, at most one in four entries of which is not 0; in so many columns nine in ten."""
    rng, often = np.random.default_rng(seed), np.full(d, 1 / 12 if full else 1 / 6)
    often[1 : 4 * full : 4] = 0.9
    x = rng.standard_normal((b, d)) * (rng.random((b, d)) < often)
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]


def lanes(theta: np.ndarray) -> np.ndarray:
    """(d, W) parameters (R, d) in whole lanes."""
    out = np.zeros((theta.shape[1], in_lanes(len(theta))), theta.dtype)
    out[:, : len(theta)] = theta.T
    return out


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), HuberHinge(h=0.1)])
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_slopes_are_those_of_the_loss(loss: Loss, kind: Any, error: float) -> None:
    margin = np.concatenate([np.linspace(-120, 120, 20_001), np.linspace(-2, 2, 10_001)]).astype(kind)
    found = CompiledRows.of(margin[:, None]).slopes(np.ones((1, 1), kind), loss, np.empty((len(margin), 1), kind))[:, 0]
    expected = np.asarray(loss.slope(margin.astype(float)))
    near = np.abs(margin) < 80 if kind is np.float32 else np.ones(len(margin), bool)
    scale = 1.0 if isinstance(loss, Logistic) else 1 / (2 * loss.h)  # a slope is as exact as the margin, times the curvature
    assert (np.abs(found - expected) <= error * (np.abs(expected) + (0 if scale == 1 else scale)))[near].all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(error, scale * error))
    ends = CompiledRows.of(np.array([[np.nan], [np.inf], [-np.inf]], kind)).slopes(
        np.ones((1, 1), kind), loss, np.empty((3, 1), kind)
    )
    assert np.isnan(ends[0, 0]), "what is not a number is no slope"
    np.testing.assert_allclose(ends[1:, 0], [0.0, -1.0], atol=1e-30)


@pytest.mark.parametrize("width", [1, 16, 32, 48, 64, 80, 112, 144, 1104])
def test_parts_cover_all_lanes_once(width: int) -> None:
    covered = [at for first, many in parts_of(width) for at in range(first, first + many)]
    assert covered == list(range(width))
    assert all(many == 1 or (many % 16 == 0 and many <= 128) for _, many in parts_of(width))
    assert len(parts_of(width)) == (1 if width == 1 else -(-width // 128))


@pytest.mark.parametrize(
    ("replicas", "few", "many"), [(1, 1, 1), (2, 4, 16), (4, 4, 16), (10, 12, 16), (20, 20, 32), (32, 32, 32), (33, 48, 48)]
)
def test_few_replicas_in_double_precision_leave_fewer_lanes_empty(replicas: int, few: int, many: int) -> None:
    assert (in_lanes(replicas, True), in_lanes(replicas)) == (few, many)
    assert parts_of(few) == [(0, few)]


@pytest.mark.parametrize("full", [0, 2])
@pytest.mark.parametrize("replicas", [1, 2, 16, 20, 33, 64, 80, 100, 150])
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_margins_and_sums_are_those_of_dense_rows(replicas: int, kind: Any, error: float, full: int) -> None:
    rng = np.random.default_rng(1)
    x, theta = table(full=full).astype(kind), rng.standard_normal((replicas, D)).astype(kind)
    assert CompiledRows.of(x).shape == (B, D, full)
    some = rng.integers(B, size=2 * B)[::2]  # not next to each other in memory, and some rows twice
    for rows, at in (
        (CompiledRows.of(x), slice(None)),
        (CompiledRows.of(x).take(some), some),
        (CompiledRows.of(x).cut(slice(3, 40)), slice(3, 40)),
    ):
        columns = lanes(theta)
        margins = rows.margins(columns, np.full((len(rows), columns.shape[1]), np.nan, kind))
        np.testing.assert_allclose(margins[:, :replicas], x[at] @ theta.T, rtol=0, atol=20 * error)
        weights = rng.standard_normal(margins.shape).astype(kind)
        for most in (1, 7, 64):
            total = np.ones((D, columns.shape[1]))
            rows.add(weights, total, most)
            np.testing.assert_allclose(total - 1, x[at].T.astype(float) @ weights, rtol=0, atol=300 * error)


def test_rows_in_another_order_are_those_rows_and_parts_of_parts_too() -> None:
    x, order = table(), np.random.default_rng(2).permutation(B)
    some, again = order[:90], order[order < 90][::2]
    rows = CompiledRows.of(x)
    for found, expected in (
        (rows.ordered(order), x[order]),
        (rows.take(some).take(again), x[some][again]),
        (rows.take(some).ordered(again), x[some][again]),
        (rows.take(some).cut(slice(5, 60)), x[some][5:60]),
    ):
        assert len(found) == len(expected)
        margins = found.margins(lanes(np.eye(D)), np.empty((len(found), 16)))
        np.testing.assert_array_equal(margins[:, :D], expected)


@pytest.mark.parametrize("way", ["columns", "rows"])
def test_sums_in_single_precision_are_short(way: str) -> None:
    """Behind a 1, terms of 2^-25 are lost until the sum goes on in double precision: at most 63 of them."""
    x = np.zeros((1100, 1), np.float32)
    x[:512] = 1  # so few that the column is not a full one
    weights = np.zeros((1100, 1), np.float32)
    weights[:512], weights[0] = 2.0**-25, 1
    rows = CompiledRows.of(x) if way == "columns" else CompiledRows.of(x).take(np.arange(1100))
    lost = {}
    for most in (64, 512):
        total = np.zeros((1, 1))
        rows.add(weights, total, most)
        lost[most] = 1 + 511 * 2.0**-25 - total[0, 0]
    assert lost[64] <= 63 * 2.0**-25
    assert lost[512] > 400 * 2.0**-25, "the control: one sum of all"


def test_arrays_that_do_not_fit_are_refused_before_memory_is_touched() -> None:
    rows, good = CompiledRows.of(table().astype(np.float32)), np.zeros((D, 16), np.float32)
    out = np.empty((B, 16), np.float32)
    for columns, place in (
        (good[:-1], out),
        (good, out[:-1]),
        (good, out[:, :15]),
        (good.astype(float), out),
        (good, np.empty((16, B), np.float32).T),
    ):
        with pytest.raises(ValueError, match="in the place of"):
            rows.margins(columns, place)
    for weights, total in ((out[:-1], np.zeros((D, 16))), (out, np.zeros((D - 1, 16))), (out, np.zeros((D, 16), np.float32))):
        with pytest.raises(ValueError, match="in the place of"):
            rows.add(weights, total)
    for index in ([0, B], [-1]):
        with pytest.raises(IndexError):
            rows.take(np.array(index))
    with pytest.raises(ValueError, match="one after the other"):
        Descent(CompiledRows.of(table()), Logistic(), [0, 5, 5, B], np.ones((3, 1)), 0.1, 0)
    for ends in ([0, B + 1], [1, B], [0, B - 1]):
        with pytest.raises(ValueError, match="one after the other"):
            Descent(table(), Logistic(), ends, np.ones((3, 1)), 0.1, 0)
    with pytest.raises(ValueError, match="in the place of"):
        Descent(table().astype(np.float32), Logistic(), [0, B], np.ones((3, 1)), 0.1, 0)


@pytest.mark.parametrize("full", [0, 2])
@pytest.mark.parametrize("replicas", [1, 16, 20, 100])
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge()])
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_sums_of_gradients_are_those_of_dense_rows(replicas: int, loss: Loss, kind: Any, error: float, full: int) -> None:
    rng, many = np.random.default_rng(8), 3 * lanes_module().BLOCK + 5
    x, theta = table(many, full=full).astype(kind), rng.standard_normal((replicas, D)).astype(kind)
    norms, some = np.linalg.norm(x, axis=1), rng.integers(many, size=many // 2)
    for rows, at in ((CompiledRows.of(x), np.arange(many)), (CompiledRows.of(x).take(some), some)):
        for clip_norm in (np.inf, 0.2):
            slopes = np.asarray(loss.slope(x[at].astype(float) @ theta.T))
            length = np.abs(slopes) * norms[at, None]
            slopes *= np.minimum(1, clip_norm / np.maximum(length, 1e-30))
            assert (length > 0.2).any()
            assert (length < 0.2).any()
            for most in (1, 7, 64):
                found = rows.gradient(lanes(theta), loss, norms, clip_norm, most)
                np.testing.assert_allclose(found[:, :replicas].T, slopes.T @ x[at], rtol=0, atol=3000 * error)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("way", ["columns", "rows"])
def test_sums_of_gradients_in_single_precision_are_short(way: str, full: bool) -> None:
    """Behind one slope near -1, slopes near -2^-25 are lost until the sum goes on in double precision: at most 63 of them."""
    many = lanes_module().BLOCK
    x = np.ones((many if full else 2 * many + 1, 2), np.float32)
    x[many:] = 0  # so many that no column is a full one
    x[0, 0], x[1:many, 0] = -30.0, 25 * np.log(2)
    rows = CompiledRows.of(x) if way == "columns" else CompiledRows.of(x).take(np.arange(len(x)))
    assert rows.shape[2] == (2 if full else 0)
    lost = {}
    for most in (64, many):
        total = rows.gradient(lanes(np.array([[1.0, 0.0]], np.float32)), Logistic(), np.ones(len(x)), np.inf, most)[1, 0]
        lost[most] = 1 + (many - 1) * 2.0**-25 + total
    assert abs(lost[64]) <= 64 * 2.0**-25
    assert lost[many] > (many - 70) * 2.0**-25, "the control: one sum of all"


def test_lanes_begin_where_cache_lines_do() -> None:
    for shape in ((3,), (7, 16), (2, 3, 16)):
        for kind in (np.float32, np.float64):
            found = compiled.aligned(shape, kind)
            assert found.shape == shape
            assert found.dtype == kind
            assert found.ctypes.data % 64 == 0
            assert found.flags.c_contiguous
            assert not found.any()


def lanes_module() -> Any:
    there = loops()
    assert there is not None
    return there


@pytest.mark.parametrize(("n", "d"), [(1, 1), (300, D), (512, 16), (1030, 19)])
def test_noise_in_blocks_is_the_noise(n: int, d: int) -> None:
    noise, there = np.random.default_rng(9).standard_normal((n, d), np.float32), lanes_module()
    blocks = Strips.of(noise).blocks
    row_by_row = blocks.transpose(0, 1, 3, 2).reshape(-1, blocks.shape[2])
    np.testing.assert_array_equal(row_by_row[:n, :d], noise)
    assert not row_by_row[n:].any()
    assert not row_by_row[:, d:].any(), "what is not there adds nothing"
    assert len(row_by_row) % there.NOISY == 0
    assert row_by_row.shape[1] % there.TILE_DEEP == 0
    part = Strips.of(noise)[(n - 1) // there.NOISY * there.NOISY : n]
    np.testing.assert_array_equal(part.blocks, blocks[-1:])
    for wrong in (slice(1, n), slice(0, n - 1)):
        if wrong.stop % there.NOISY or wrong.start:
            with pytest.raises(ValueError, match="do not begin at row"):
                Strips.of(noise)[wrong]


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge()])
@pytest.mark.parametrize(("n", "each", "draws"), [(3, 1, 1), (300, 10, 1), (600, 16, 2), (513, 20, 3), (257, 47, 1), (300, 5, 7)])
@pytest.mark.parametrize("way", [CompiledRows.of, Strips.of])
def test_noise_of_rows_enters_their_margins_and_the_sums(way: Any, loss: Loss, n: int, each: int, draws: int) -> None:
    rng, x = np.random.default_rng(3), table(n).astype(np.float32)
    noise = [rng.standard_normal((n, D), np.float32) for _ in range(draws)]
    theta, moved = rng.standard_normal((2, each * draws, D), np.float32)
    common, own = noisy_gradient(way(x), theta, moved, [Strips.of(one) for one in noise], loss, 64)
    for s, one in enumerate(noise):
        mine = slice(each * s, each * (s + 1))
        slopes = np.asarray(loss.slope((x @ theta[mine].T + one @ moved[mine].T).astype(float)))
        np.testing.assert_allclose(common[mine], slopes.T @ x, rtol=0, atol=2e-3)
        np.testing.assert_allclose(own[mine], slopes.T @ one, rtol=0, atol=5e-3)


def test_sums_of_rows_beside_their_noise_are_short() -> None:
    """As in `test_sums_of_gradients_in_single_precision_are_short`."""
    many = lanes_module().BLOCK
    x = np.ones((many, 2), np.float32)
    x[0, 0], x[1:, 0] = -30.0, 25 * np.log(2)
    theta, noise, lost = np.array([[1.0, 0.0]], np.float32), Strips.of(np.zeros((many, 2), np.float32)), {}
    for most in (64, many):
        total, _ = noisy_gradient(CompiledRows.of(x), theta, theta, [noise], Logistic(), most)
        lost[most] = 1 + (many - 1) * 2.0**-25 + total[0, 1]
    assert abs(lost[64]) <= 64 * 2.0**-25
    assert lost[many] > (many - 70) * 2.0**-25, "the control: one sum of all"


@pytest.mark.parametrize("shared", [False, True])
def test_rows_with_their_zeros_are_multiplied_in_strips_where_they_are_many(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, replicas, rng = 1500, 6, np.random.default_rng(7)
    x = rng.standard_normal((n, D))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    theta, scale = rng.standard_normal((replicas, D)).astype(np.float32), rng.random(replicas)
    noise = rng.standard_normal((2, 1 if shared else n, D)).astype(np.float32)
    own, found = feature_noise_of(get_model("logistic")), {}
    for least in (n * D + 1, n * D):
        monkeypatch.setattr(models_rows, "_MANY_ENTRIES", least)
        rows = Rows(x, y)
        assert not rows.sparse
        draws = [own.prepared(rows, one.copy(), np.float32) for one in noise]
        assert all(isinstance(draw, Strips) == (rows.many and not shared) for draw in draws)
        found[least] = sum(
            own.noisy_gradient(theta, part, [draw if shared else draw[first : first + len(part)] for draw in draws], scale)
            for first, part in rows.parts(3)
        )
        assert len(rows.parts(3)) == 3
    np.testing.assert_allclose(found[n * D], found[n * D + 1], rtol=0, atol=2e-3)


def test_noise_that_does_not_fit_is_refused() -> None:
    rows, theta = CompiledRows.of(table().astype(np.float32)), np.zeros((2, D), np.float32)
    for shape in ((B - 1, D), (B, D - 1)):
        with pytest.raises(ValueError, match="noise of"):
            noisy_gradient(rows, theta, theta, [Strips.of(np.zeros(shape, np.float32))], Logistic(), 64)
    noise = Strips.of(np.zeros((B, D), np.float32))
    for which in (CompiledRows.of(table().astype(np.float32)), noise):
        for wrong in (np.zeros((3, D), np.float32), np.zeros((2, D), np.float32)[:1]):
            with pytest.raises(ValueError, match="parameters for 2 draws"):
                noisy_gradient(which, wrong, theta, [noise, noise], Logistic(), 64)
    with pytest.raises(ValueError, match="parameters for 1 draws"):
        noisy_gradient(Strips.of(np.zeros((B, D + 1), np.float32)), theta, theta, [noise], Logistic(), 64)
    with pytest.raises(ValueError, match="chosen from others"):
        noisy_gradient(rows.take(np.arange(B)), theta, theta, [noise], Logistic(), 64)
    with pytest.raises(ValueError, match="in the place of"):
        noisy_gradient(CompiledRows.of(table()), theta, theta, [noise], Logistic(), 64)


@pytest.mark.parametrize("full", [0, 2])
@pytest.mark.parametrize(("replicas", "count", "together"), [(1, 1, 1), (5, 2, 5), (40, 7, 8), (140, 21, 3)])
def test_losses_along_lines_are_those_of_their_points(full: int, replicas: int, count: int, together: int) -> None:
    rng, n, some = np.random.default_rng(4), 1500, np.random.default_rng(5).integers(1500, size=700)
    x = table(n, full=full).astype(np.float32)
    theta, step = (
        each.astype(np.float32) for each in (4 * rng.standard_normal((replicas, D)), rng.standard_normal((replicas, D)))
    )
    top, rows = Logistic.most_odds(2.0), CompiledRows.in_phrases(x)
    assert rows.shape[2] == full
    for mine, at in ((rows, np.arange(n)), (rows.take(some), some)):
        found = mine.line_losses(lanes(theta), lanes(step), together, count, top)[:replicas]
        points = (theta - k * step.astype(float) for k in range(count))
        losses = [Logistic().value(x[at].astype(float) @ point.T) for point in points]
        assert max(each.max() for each in losses) > 2.0
        expected = np.array([np.minimum(each, 2.0).sum(axis=0) for each in losses])
        np.testing.assert_allclose(found, expected.T, rtol=1e-6)


def test_losses_along_lines_that_are_not_numbers_stay_so() -> None:
    rows, columns = CompiledRows.of(table(40).astype(np.float32)), np.zeros((D, 16), np.float32)
    columns[:, 3] = np.nan
    found = rows.line_losses(columns, np.zeros((D, 16), np.float32), 4, 3, Logistic.most_odds(2.0))
    assert np.isnan(found[3]).all()
    np.testing.assert_allclose(found[[0, 4, 15]], 40 * np.log(2), rtol=1e-6)


@pytest.mark.parametrize("length", [1.0, 300.0])
def test_line_losses_are_those_of_dense_rows(length: float) -> None:
    """Long parameters leave the range of single precision, where compiled loops are not asked."""
    rng = np.random.default_rng(5)
    x, y = table(), rng.choice([-1.0, 1.0], B)
    theta, direction = length * rng.standard_normal((2, 5, D))
    dense = Rows(x, y)
    dense.__dict__["sparse"] = False
    model = get_model("logistic")
    found, expected = (
        line_losses_of(model)(theta, direction, np.full(5, 0.5), 6, rows, clip=3.0) for rows in (Rows(x, y), dense)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("way", ["without zeros", "dense"])
@pytest.mark.parametrize("budgets", [1, 3, 20])
def test_descent_is_that_of_products(budgets: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "dense":
        monkeypatch.setattr(sparse, "_LEAST_ENTRIES", 1 << 40)
        monkeypatch.setattr(minibatch, "_FEW", 20 * B)
    problem, rng = make_problem(n=B, d=4), np.random.default_rng(6)
    thin = type(problem)(Rows(table(), rng.choice([-1.0, 1.0], B)), problem.model, problem.lam)
    dense = type(problem)(Rows(thin.rows.X, thin.rows.y), problem.model, problem.lam)
    dense.rows.__dict__["sparse"] = False
    monkeypatch.setattr(type(dense.rows), "many", property(lambda rows: rows is thin.rows))
    assert thin.rows.compiled is (way == "without zeros")
    steps, orders = rng.random((budgets, 35)), minibatch.permutations(spawn(4, 3), B)
    for average in (0, 2):
        found, expected = (minibatch.minibatch_descent(p, steps, 7, orders, average_every=average) for p in (thin, dense))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    reports: list[float] = []
    minibatch.minibatch_descent(thin, steps, 7, orders, monitor=reports.append)
    assert reports[-1] == 1.0


def test_long_descents_report_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minibatch, "_REPORT_ENTRIES", 300)
    problem, reports = make_problem(n=B, d=4), list[float]()
    thin = type(problem)(Rows(table(), np.ones(B)), problem.model, problem.lam)
    minibatch.minibatch_descent(thin, np.full(21, 0.1), 7, monitor=reports.append)
    assert len(reports) > 5
    assert sorted(reports) == reports


@pytest.fixture(params=["mlp-1", "mlp-5", "mlp-130"])
def network(request: pytest.FixtureRequest) -> tuple[Any, Rows, np.ndarray]:
    """A network, rows that are multiplied by compiled loops, and parameters of seven replicas in single precision."""
    rng = np.random.default_rng(7)
    rows = Rows(table(700, 40), rng.choice([-1.0, 1.0], 700))
    assert rows.compiled
    model = get_model(request.param)
    theta = rng.standard_normal((7, model.setting(700, 40, 1e-3).m)) / 2
    return model, rows, theta.astype(np.float32)


@pytest.mark.parametrize("clip_norm", [np.inf, 1.0, 0.2])
def test_sums_of_networks_are_those_in_double_precision(network: tuple[Any, Rows, np.ndarray], clip_norm: float) -> None:
    model, rows, theta = network
    some = np.sort(np.random.default_rng(8).permutation(700)[:313])
    for part in (rows, rows.batch(some)):
        single, double = (model.sum_gradient(theta.astype(kind), part, clip_norm=clip_norm) for kind in (np.float32, float))
        assert np.linalg.norm(single - double) < 5e-6 * np.linalg.norm(double)
        seen: list[np.ndarray] = []

        def rule(block: slice, norms: np.ndarray, seen: list[np.ndarray] = seen) -> np.ndarray:
            seen.append(norms)
            return np.ones(1, norms.dtype)

        ruled = model.sum_gradient(theta, part, clip_norm=clip_norm, rule=rule)
        assert np.linalg.norm(ruled - double) < 5e-6 * np.linalg.norm(double)
        assert np.concatenate(seen, axis=1).max() <= clip_norm * (1 + 1e-6)


def test_no_row_of_a_network_adds_more_than_the_clip_norm(network: tuple[Any, Rows, np.ndarray]) -> None:
    model, rows, theta = network
    lengths = np.array(
        [np.linalg.norm(model.sum_gradient(theta, rows.batch(np.array([i])), clip_norm=0.3), axis=1) for i in range(0, 700, 7)]
    )
    assert lengths.max() <= 0.3
    assert lengths.max() / (1 - 2.0**-18) > 0.3 * (1 - 1e-6), "the control: without the shortening some are longer"


def test_a_network_that_diverged_is_seen(network: tuple[Any, Rows, np.ndarray]) -> None:
    model, rows, theta = network
    theta[3] = np.nan
    found = model.sum_gradient(theta, rows, clip_norm=1.0)
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


def test_parts_of_rows_add_up_to_all_of_them(network: tuple[Any, Rows, np.ndarray]) -> None:
    model, rows, theta = network
    parts = [part for _, part in rows.parts(3)]
    assert len(parts) == 3
    total = sum(model.sum_gradient(theta, part, clip_norm=0.2) for part in parts)
    np.testing.assert_allclose(total, model.sum_gradient(theta, rows, clip_norm=0.2), rtol=0, atol=1e-4)


def test_networks_that_do_not_fit_are_refused() -> None:
    rows, one, _ = Rows(table(700, 40), np.ones(700)).for_networks
    theta = np.zeros((2, 9 * 41 + 10), np.float32)
    assert network_sums(rows, theta, 9, one, one, 1.0, 64).shape == theta.shape
    with pytest.raises(ValueError, match="in the place of"):
        network_sums(rows, theta, 8, one, one, 1.0, 64)
    with pytest.raises(ValueError, match="in the place of"):
        network_sums(rows, theta, 9, one[:699], one, 1.0, 64)
    with pytest.raises(ValueError, match="in the place of"):
        network_sums(rows, theta.astype(float), 9, one, one, 1.0, 64)
    with pytest.raises(ValueError, match="no multiple of 32"):
        network_sums(rows, theta, 9, one, one, 1.0, 65)


def test_the_tangent_is_that_of_numpy() -> None:
    x = np.concatenate([np.linspace(-12, 12, 20_001), np.geomspace(1e-30, 1, 2_001), [-1e30, np.inf, np.nan]]).astype(np.float32)
    x = np.concatenate([x, np.zeros(-len(x) % 16, np.float32)])
    found, there = np.empty_like(x), compiled.loops()
    assert there is not None

    @numba.njit
    def work(x: Any, out: Any) -> None:
        for i in range(0, len(x), 16):
            there.store(out, i, there.tangent_of(there.load(x, i, 16)))

    work(x, found)
    np.testing.assert_allclose(found, np.tanh(x.astype(float)), rtol=3.5e-7, atol=0)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1001])
def test_random_bits_are_those_of_numpy(size: int) -> None:
    rng = generator(spawn(1, 1)[0])
    rng.integers(2**16)  # an upper half is left
    state, out = pcg.state_of(rng), np.empty(size, np.uint64)
    for _ in range(3):
        assert [pcg.next_half(state) >> 16 for _ in range(3)] == rng.integers(0, 2**16, 3).tolist()
        pcg.fill(state, out)
        np.testing.assert_array_equal(out, rng.bit_generator.random_raw(size))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 10_007])
@pytest.mark.parametrize(("coarse", "fine"), [(0, 1), (700, 0), (6553, 39321), (32767, 65535), (65535, 40000)])
def test_poisson_batches_are_those_of_numpy(n: int, coarse: int, fine: int) -> None:
    """With 10,007 rows, every seventh batch has ties, some several."""
    streams = spawn(5, 3)
    fast, slow = (draw([generator(s) for s in streams], n, coarse, fine) for draw in (draws.poisson, poisson_of_numpy))
    assert isinstance(fast, draws.Poisson)
    for _ in range(40):
        one, other = fast(), slow()
        np.testing.assert_array_equal(one.index, other.index)
        np.testing.assert_array_equal(one.cuts, other.cuts)
        assert [len(batch) for batch in one] == np.diff(one.cuts).tolist()


def test_poisson_batches_find_room_when_they_are_larger_than_expected() -> None:
    streams, n = spawn(6, 5), 500
    fast, slow = (draw([generator(s) for s in streams], n, 40_000, 7) for draw in (draws.Poisson, poisson_of_numpy))
    fast._out = np.empty(n, np.intp)
    for _ in range(3):
        np.testing.assert_array_equal(fast().index, slow().index)
    assert len(fast._out) > n


def test_generators_of_other_classes_are_left_to_numpy() -> None:
    other = [np.random.Generator(np.random.Philox(3)), np.random.default_rng(3)]
    assert not isinstance(draws.poisson(other, 100, 6553, 0), draws.Poisson)
    single = draws.normals()(np.random.Generator(np.random.Philox(3)), np.float32)
    assert not isinstance(single, draws.Normals)
    expected = np.random.Generator(np.random.Philox(3)).standard_normal(9, dtype=np.float32)
    np.testing.assert_array_equal(single((9,)), expected)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_normal_draws_are_those_of_numpy_bit_by_bit(precision: type[np.floating]) -> None:
    """Some 100,000 of these draws are not decided by their first random number, and some 3,000 are in the last layer."""
    (stream,) = spawn(17, 1)
    fast, numpy_ = draws.Normals(generator(stream), precision), generator(stream)
    for shape in ((1,), (3, 5), (7,), (40_000, 300), (2, 1), (0,), (129, 3)):
        np.testing.assert_array_equal(fast(shape), numpy_.standard_normal(shape, dtype=precision))


def test_without_numbas_tables_numpy_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(draws.normals()(np.random.default_rng(0), np.float64), draws.Normals)
    with monkeypatch.context() as patch:
        patch.setattr(draws.sys, "byteorder", "big")
        assert draws.normals() is normals_of_numpy
    monkeypatch.delattr("numba.np.random._constants.wi_float")
    assert draws.normals() is normals_of_numpy


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    loops.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("dpviz.models.compiled.find_spec", lambda name: None if name == "numba" else importlib.util.find_spec(name))
        assert loops() is None
        assert loss_of(Logistic()) is None
        assert not Rows(table(), np.ones(B)).compiled
    loops.cache_clear()
    assert loops() is not None
    assert loss_of(Logistic()) == (compiled.loops().LOGISTIC, 0.0)  # type: ignore[union-attr]


def one_hot(n: int, seed: int = 0) -> np.ndarray:
    """Rows of three categories, of which the second often says the third, and a number; with lengths of their own."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(4, size=n), rng.integers(3, size=n)
    third = np.where(rng.random(n) < 0.9, second, rng.integers(3, size=n))
    x = np.zeros((n, D))
    for start, chosen in ((0, first), (4, second), (7, third)):
        x[np.arange(n), start + chosen] = 1.0
    x[:, 10] = rng.random(n) * (rng.random(n) < 0.9)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_in_phrases_are_the_same_rows_in_fewer_entries(kind: Any) -> None:
    x = (one_hot(1500) * np.where(np.arange(1500) % 3, 1.0, -1.0)[:, None]).astype(kind)
    plain, (rows, phrases) = csr_array(x), in_phrases(csr_array(x))
    assert 1 <= len(phrases) <= MOST
    assert rows.nnz < 0.75 * plain.nnz
    assert rows.shape == (1500, D + len(phrases))
    assert (phrases < np.arange(D, D + len(phrases))[:, None]).all(), "a phrase is made of columns before it"
    identity = np.zeros((D + len(phrases), D), kind)
    identity[:D] = np.eye(D)
    lanes_module().spell(identity.reshape(-1), phrases.reshape(-1), D)
    np.testing.assert_array_equal(rows @ identity, x, "margins are those of the rows")
    weights = np.random.default_rng(1).standard_normal((1500, 3))
    sums = rows.T.astype(float) @ weights
    lanes_module().share(sums.reshape(-1), phrases.reshape(-1), 3)
    assert not sums[D:].any(), "they are handed on"
    np.testing.assert_allclose(sums[:D], x.T.astype(float) @ weights, atol=1e-11)


def test_only_equal_entries_are_a_phrase() -> None:
    n = 1024
    x = np.zeros((n, 3))
    x[:, 0], x[:, 1], x[:, 2] = 0.5, 0.25, 0.5
    x[0, 2] = -0.5  # another value in one row
    rows, phrases = in_phrases(csr_array(x))
    np.testing.assert_array_equal(np.sort(phrases, axis=1), [[0, 2]])
    assert rows.nnz == 2 * n + 1
    assert rows[[0]].nnz == 3


def test_pairs_of_phrases_are_phrases() -> None:
    x = np.zeros((512, 5))
    x[:, :3] = 0.5  # always together
    x[:256, 3], x[256:, 4] = 0.25, 0.125
    rows, phrases = in_phrases(csr_array(x))
    assert len(phrases) == 2
    assert phrases.max() == 5, "the first phrase is in the second"
    assert rows.nnz == 2 * 512


def test_rare_pairs_and_wide_tables_stay_as_they_are() -> None:
    x = np.zeros((2560, 4))
    x[:, 0] = 0.5
    x[:9, 1] = 0.5  # one in 284 rows; a phrase must be in one of 256
    x[:10, 2] = 0.5
    _, phrases = in_phrases(csr_array(x))
    assert [sorted(pair) for pair in phrases.tolist()] == [[0, 2]]
    wide = csr_array(np.ones((8, 1025)))
    rows, none = in_phrases(wide)
    assert rows is wide
    assert len(none) == 0


@pytest.mark.parametrize("width", [1, 16, 32])
def test_descents_on_rows_in_phrases_are_those_on_the_rows(width: int) -> None:
    ends, lengths = [0, 200, 401, 600], np.random.default_rng(5).random((7, width))
    ways = [make(one_hot(600)) for make in (CompiledRows.of, CompiledRows.in_phrases)] + [one_hot(600)]
    assert [len(way._phrases) > 0 for way in ways[:2]] == [False, True]
    assert ways[1].shape[2] > 0
    found = []
    for way in ways:
        descent = Descent(way, Logistic(), ends, lengths, 0.1, 3)
        for first, last in ((0, 4), (4, 7)):
            descent.go(first, last)
        found.append(descent.w)
    assert np.ptp(found[0]) > 0.01
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-14)


def test_full_columns_are_those_of_most_rows_and_not_too_many() -> None:
    x = np.random.default_rng(6).standard_normal((100, 14))
    x[50:, 0], x[51:, 1] = 0, 0
    x[:49, 0] = 0  # one of a hundred
    rows = CompiledRows.of(x)
    np.testing.assert_array_equal(rows._table.which, [2, 3, 4, 5, 6, 7, 8, 9], "of those with as many entries the first")
    np.testing.assert_array_equal(rows._table.full, x[:, 2:10])
    np.testing.assert_array_equal(rows._table.rest.toarray()[:, [0, 1, 10, 13]], x[:, [0, 1, 10, 13]])
    half = CompiledRows.of(x[:, :2])
    np.testing.assert_array_equal(half._table.which, [1], "51 of 100")


def test_batches_of_rows_in_phrases_are_those_of_the_rows() -> None:
    x, rng = one_hot(600).astype(np.float32), np.random.default_rng(3)
    plain, norms = CompiledRows.of(x), np.linalg.norm(x, axis=1)
    rows = CompiledRows.in_phrases(one_hot(600)).to_single()
    theta, batches = rng.standard_normal((3, 20, D)).astype(np.float32), [np.flatnonzero(rng.random(600) < 0.4) for _ in range(3)]
    for clip_norm in (np.inf, 0.3):
        one, other = (compiled.batch_sums(r, theta, Drawn.of(batches), norms, Logistic(), clip_norm, 64) for r in (plain, rows))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
    for d in (D - 1, D + 1):
        with pytest.raises(ValueError, match="parameters"):
            compiled.batch_sums(rows, np.zeros((3, 2, d), np.float32), Drawn.of(batches), norms, Logistic(), 1.0, 64)


@pytest.mark.parametrize("part", [slice(None), slice(256, 900)])
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_products_of_rows_in_phrases_are_those_of_the_rows(part: slice, kind: Any, error: float) -> None:
    x, rng = one_hot(1200), np.random.default_rng(2)
    rows = CompiledRows.in_phrases(x)
    rows = (rows if kind is np.float64 else rows.to_single()).cut(part)
    x, theta = x[part].astype(kind), rng.standard_normal((20, D)).astype(kind)
    columns, some = lanes(theta), rng.integers(len(x), size=100)
    for mine, at in ((rows, np.arange(len(x))), (rows.take(some), some)):
        margins = mine.margins(columns, np.empty((len(at), 32), kind))[:, :20]
        np.testing.assert_allclose(margins, x[at] @ theta.T, rtol=0, atol=20 * error)
        total, weights = np.ones((D, 32)), rng.standard_normal((len(at), 32)).astype(kind)
        mine.add(weights, total)
        np.testing.assert_allclose(total - 1, x[at].T.astype(float) @ weights, rtol=0, atol=900 * error)
        slopes = np.asarray(Logistic().slope(x[at].astype(float) @ theta.T))
        found = mine.gradient(columns, Logistic(), np.ones(len(x)), np.inf)
        np.testing.assert_allclose(found[:, :20], x[at].T @ slopes, rtol=0, atol=900 * error)


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(h=0.3)])
@pytest.mark.parametrize("replicas", [1, 20, 100])
def test_losses_and_right_predictions_are_counted(loss: Loss, replicas: int) -> None:
    rng, n = np.random.default_rng(4), 700
    x, theta = table(n), 40 * rng.standard_normal((replicas, D))
    theta[0] = 0.0  # a score of 0 predicts +1
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    rows = Rows(x, y)
    value, right = get_model("logistic" if isinstance(loss, Logistic) else "svm").measure(theta, rows)
    signed, least = CompiledRows.of(rows.signed), np.where(y > 0, -5e-324, 0.0)
    total, hits = signed.losses(lanes(theta), loss, least)
    margins = rows.signed @ theta.T
    np.testing.assert_allclose(total[:replicas], loss.value(margins).sum(axis=0), rtol=1e-12)
    expected = ((margins > 0) | ((margins == 0) & (y > 0)[:, None])).sum(axis=0)
    np.testing.assert_array_equal(hits[:replicas], expected)
    assert hits[0] == (y > 0).sum() > 0
    np.testing.assert_array_equal(right, expected / n)
    if isinstance(loss, Logistic):
        np.testing.assert_allclose(value * n, total[:replicas], rtol=1e-12)
    for wrong in (least[:-1], least.astype(np.float32)):
        with pytest.raises(ValueError, match=r"limits|in the place of"):
            signed.losses(lanes(theta), loss, wrong)


def test_losses_of_far_margins_are_numbers_and_what_is_none_stays_none() -> None:
    rows = CompiledRows.of(np.array([[1.0], [-1.0], [0.5]]))
    for margin in (900.0, -900.0, 1e5):
        total, _ = rows.losses(np.array([[margin]]), Logistic(), np.zeros(3))
        np.testing.assert_allclose(total[0], Logistic().value(np.array([margin, -margin, margin / 2])).sum(), rtol=1e-14)
    total, right = rows.losses(np.array([[np.nan]]), Logistic(), np.zeros(3))
    assert np.isnan(total[0])
    assert right[0] == 0


@pytest.mark.parametrize("clip_norm", [np.inf, 0.3])
@pytest.mark.parametrize(("kind", "error", "whole"), [(*case, False) for case in KINDS] + [(np.float32, KINDS[0][1], True)])
def test_rows_that_have_used_up_their_budget_add_nothing(clip_norm: float, kind: Any, error: float, whole: bool) -> None:
    rng, n, replicas = np.random.default_rng(5), 1300, 20
    x = table(n).astype(kind)
    norms, rows = np.linalg.norm(x, axis=1), CompiledRows.of(x)
    rule, by_hand = RowBudget(n, replicas, 0.09, whole=whole), np.zeros((n, replicas))
    for everyone in (True, False, False):
        rule.all = everyone
        theta = rng.standard_normal((replicas, D)).astype(kind)
        slopes = np.asarray(Logistic().slope(x.astype(float) @ theta.T))
        slopes *= np.minimum(1, clip_norm / np.maximum(np.abs(slopes) * norms[:, None], 1e-30))
        by_hand += (slopes * norms[:, None]) ** 2
        there = (by_hand <= 0.09) | everyone
        assert everyone or (np.abs(by_hand - 0.09) > 1e-6).all(), "rounding decides nothing here"
        spent = (rule.spent, rule.unit, rule.limit)
        total, active = within(rows, lanes(theta), Logistic(), norms, clip_norm, *spent)
        np.testing.assert_allclose(total[:, :replicas], x.T @ (slopes * there), rtol=0, atol=3000 * error)
        np.testing.assert_array_equal(active[:replicas], there.sum(axis=0))
        # whole numbers end somewhere: one square counts as two budgets at most
        most = 2 * 0.09 if whole else np.inf
        counted = np.minimum(rule.spent[:, :replicas] / rule.unit, most)
        np.testing.assert_allclose(counted, np.minimum(by_hand, most), rtol=0, atol=10 * error)
    assert 0 < there.sum() < there.size
    with pytest.raises(ValueError, match="in the place of"):
        within(rows, lanes(theta), Logistic(), norms, clip_norm, rule.spent[:-1], rule.unit, 1.0)


@pytest.mark.parametrize("way", ["loops", "numpy"])
def test_budgets_in_whole_numbers_are_rounded_up_and_never_begin_again(way: str) -> None:
    x = np.full((16, 1), 0.3, np.float32)
    norms, rows = np.abs(x[:, 0]), CompiledRows.of(x)
    rule = RowBudget(16, 16, 5 * 0.0225, whole=True)  # at 0 a gradient is 0.15 long
    units, stayed = 0, []
    for _ in range(40):
        if way == "loops":
            spent = (rule.spent, rule.unit, rule.limit)
            within(rows, np.zeros((1, 16), np.float32), Logistic(), norms, np.inf, *spent)
        else:
            rule(slice(0, 16), np.full((16, 16), np.float32(0.5) * norms[0]))
        one = int(np.ceil(np.float32(0.15) ** 2 * np.float32(rule.unit)))
        units = min(units + one, 2**31)
        assert (np.abs(rule.spent.astype(float) - units) <= 64).all()
        assert (rule.spent >= units - 64).all()
        stayed.append(rule.spent.max() <= rule.limit)
    assert stayed[:4] == [True] * 4
    assert not any(stayed[5:]), "in steps 21 to 40 too, when more than all that can be counted was asked for"
    assert (rule.spent == 2**31).all()


def test_what_is_not_a_number_spends_nothing() -> None:
    rows, rule = CompiledRows.of(np.ones((16, 1), np.float32)), RowBudget(16, 16, 1.0, whole=True)
    columns = np.full((1, 16), np.nan, np.float32)
    total, active = within(rows, columns, Logistic(), np.ones(16), np.inf, rule.spent, rule.unit, rule.limit)
    assert np.isnan(total).all()
    assert (active == 16).all()
    assert (rule.spent == 0).all()
    assert (rule(slice(0, 16), np.full((16, 16), np.nan, np.float32)) == 1).all()
    assert (rule.spent == 0).all()


@pytest.mark.parametrize("whole", [False, True])
def test_a_budget_is_kept_the_same_way_by_loops_and_by_the_rule(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n, replicas = 900, 5
    rows = Rows(one_hot(n), np.where(np.arange(n) % 2, 1.0, -1.0))
    theta, found = np.random.default_rng(6).standard_normal((3, replicas, D)), {}
    for way in ("1", "0"):
        monkeypatch.setenv("DPVIZ_COMPILED", way)
        loops.cache_clear()
        mine, rule, ends = Rows(rows.X, rows.y), RowBudget(n, replicas, 0.5, whole=whole), []
        for at, everyone in zip(theta.astype(np.float32 if whole else float), (True, False, False), strict=True):
            rule.all = everyone
            halves = [rule.part(0, 512), rule.part(512, n - 512)]
            for (first, part), half in zip([(0, mine.take(slice(0, 512))), (512, mine.take(slice(512, n)))], halves, strict=True):
                part.__dict__["sparse"] = True
                total = get_model("logistic").sum_gradient(at, part, clip_norm=0.6, rule=half)
                assert first in (0, 512)
                ends.append(total)
            ends.append(rule.take_active()[:, None])
            assert not rule.active.any()
        found[way] = ends
        assert (rule.spent[:, :replicas] > 0).all(), "every row has spent something of its own"
    loops.cache_clear()
    assert 0 < found["1"][-1].min() < n, "some rows are out, and some are in"
    for a, b in zip(found["1"], found["0"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-4 if whole else 1e-10)
