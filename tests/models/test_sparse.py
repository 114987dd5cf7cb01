"""Tables that are mostly zeros are multiplied without their zeros: the same sums to rounding, and no row above the clip norm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dpviz
from dpviz.common import threads
from dpviz.common.random import spawn
from dpviz.mechanisms import all_rows
from dpviz.mechanisms.base import Training
from dpviz.models import Rows, feature_noise_of, get_model, line_losses_of, linear, sparse
from dpviz.models import rows as models_rows
from dpviz.models.compiled import loops
from dpviz.models.compiled.rows import CompiledRows
from dpviz.models.problem import Problem
from dpviz.models.solvers import minibatch
from dpviz.privacy.budget import Budget

N, D, R = 700, 24, 5


@pytest.fixture(params=["compiled", "scipy"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Products by compiled loops, and as they are without numba."""
    monkeypatch.setenv("DPVIZ_COMPILED", "1" if request.param == "compiled" else "0")
    loops.cache_clear()
    yield request.param
    loops.cache_clear()


def products(table: np.ndarray) -> sparse.Products:
    """The products of a table as rows without their zeros have them."""
    return CompiledRows.of(table) if loops() is not None else sparse.SparseRows.of(table)


def summed(table: np.ndarray, weights: np.ndarray, most: int = sparse.SINGLE_ROWS) -> np.ndarray:
    """(d,) sums of the rows of a table times weights (b,)."""
    total = np.zeros((table.shape[1], 1))
    products(table).add(weights[:, None], total, most)
    return total[:, 0]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, model_id: str) -> tuple[Problem, Problem]:
    """The same one-hot rows twice: with their zeros, and without."""
    rng = np.random.default_rng(3)
    X = np.zeros((N, D))
    for part in range(3):
        X[np.arange(N), 8 * part + rng.integers(8, size=N)] = rng.random(N) + 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(N) < 0.3, 1.0, -1.0)
    dense, thin = (Problem(Rows(X, y), get_model(model_id), 1e-2) for _ in range(2))
    assert not dense.rows.sparse
    monkeypatch.setattr(sparse, "_LEAST_ENTRIES", 0)
    assert thin.rows.sparse
    return dense, thin


def test_sums_are_the_same(tables: tuple[Problem, Problem]) -> None:
    dense, thin = tables
    rng = np.random.default_rng(0)
    theta, weights = 3 * rng.standard_normal((R, D)), rng.random((N, R))
    index = np.sort(rng.choice(N, 300, replace=False))

    def rule(block: slice, norms: np.ndarray) -> np.ndarray:
        return (norms < 0.2).astype(norms.dtype)

    for clip in (np.inf, 0.25):
        for kind, tolerance in ((np.float64, 1e-13), (np.float32, 2e-7)):
            at = theta.astype(kind)
            for rows, others in ((thin.rows, dense.rows), (thin.rows.batch(index), dense.rows.batch(index))):
                full = len(rows) == N
                for more in ({}, {"rule": rule}, {"weights": weights.astype(kind)} if full else {}):
                    got = thin.model.sum_gradient(at, rows, clip_norm=clip, **more)  # type: ignore[arg-type]
                    expected = dense.model.sum_gradient(at, others, clip_norm=clip, **more)  # type: ignore[arg-type]
                    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * len(rows))


def test_sums_of_very_many_rows_lose_no_row() -> None:
    """Of 2^18 equal rows in single precision: adding up the groups in single precision too would lose many rows."""
    rows, most = np.full((1 << 18, 2), 0.1, np.float32), float(np.float32(0.1))
    ones = np.ones((1, len(rows)), np.float32)
    exact = len(rows) * most
    assert np.abs(sparse.short_sums(ones, rows) - exact).max() < 0.5 * most
    assert np.abs(summed(rows, ones[0]) - exact).max() < 0.5 * most
    parts = (ones.reshape(1, -1, sparse.SINGLE_ROWS).transpose(1, 0, 2) @ rows.reshape(-1, sparse.SINGLE_ROWS, 2)).sum(axis=0)
    assert np.abs(parts - exact).max() > most, "the control"


@pytest.mark.parametrize(("many", "d", "count"), [(1, 3, 2), (700, 24, 5), (5_003, 90, 20), (3_000, 130, 200), (900, 400, 300)])
def test_products_of_groups_of_rows_are_written_where_they_are_wanted(many: int, d: int, count: int) -> None:
    rng = np.random.default_rng(1)
    rows, columns = rng.standard_normal((many, d)), rng.standard_normal((d, count))
    place = np.full((many, count), np.nan)
    assert sparse.products(rows, columns, out=place) is place
    np.testing.assert_allclose(place, rows @ columns, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sparse.products(rows, columns), place, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("rows", "each", "size"), [(5_003, 1_800, 501), (64, 10, 64), (300, 10_000, 100), (300, 10**7, 300)])
def test_groups_of_rows_are_large_and_about_equal(rows: int, each: int, size: int) -> None:
    """At most a million multiplications a group, in as few groups as that allows; where a row is large, all stay together."""
    assert sparse._together(rows, each) == size


def test_no_row_adds_more_than_the_clip_norm(tables: tuple[Problem, Problem]) -> None:
    """Row by row in single precision; the control is the sum without the shortening, which is longer for some row."""
    _, thin = tables
    theta = (4 * np.random.default_rng(1).standard_normal((R, D))).astype(np.float32)
    lengths = []
    for i in range(60):
        row = Rows(thin.rows.X[i : i + 1], thin.rows.y[i : i + 1])
        assert row.sparse
        lengths.append(np.linalg.norm(thin.model.sum_gradient(theta, row, clip_norm=0.05), axis=1))
    assert np.max(lengths) <= 0.05
    assert np.max(lengths) / (1 - 2.0**-20) > 0.05 * (1 - 1e-9)


def test_noise_on_features_and_line_losses_are_the_same(tables: tuple[Problem, Problem]) -> None:
    dense, thin = tables
    rng = np.random.default_rng(2)
    theta, direction = rng.standard_normal((2, R, D))
    scale, reach = rng.random(R), np.full(R, 0.7)
    for noise in (rng.standard_normal((N, D)), rng.standard_normal((1, D))):
        got, expected = (
            feature_noise_of(p.model).noisy_gradient(
                theta, p.rows, [feature_noise_of(p.model).prepared(p.rows, noise.copy())], scale
            )
            for p in (thin, dense)
        )
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)
    for clip in (np.inf, 0.8):
        got, expected = (line_losses_of(p.model)(theta, direction, reach, 6, p.rows, clip=clip) for p in (thin, dense))
        np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_small_blocks_hold_their_rows_and_give_the_same_sums(
    tables: tuple[Problem, Problem], model_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of the tests are one block: a mistake beyond the first, or in a block of another size, would not be seen."""
    dense, thin = tables
    for module in (models_rows, linear):
        monkeypatch.setattr(module, "BLOCK_ROWS", 233)  # the last block has one row
    for block in (slice(0, N), slice(0, 233), slice(233, 466), slice(699, N), slice(3, 50), slice(640, N)):
        for kind in (np.float32, np.float64):
            part, one = thin.rows.products(kind, block), thin.rows.columns(np.eye(D, dtype=kind))
            found = part.margins(one, np.empty((len(part), one.shape[1]), kind))
            np.testing.assert_array_equal(found[:, :D], dense.rows.signed[block].astype(kind))
    rng = np.random.default_rng(5)
    theta, direction = rng.standard_normal((2, R, D))
    for clip in (np.inf, 0.8):
        got, expected = (line_losses_of(p.model)(theta, direction, np.full(R, 0.7), 6, p.rows, clip=clip) for p in (thin, dense))
        np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_noise_on_features_in_single_precision(tables: tuple[Problem, Problem]) -> None:
    rng = np.random.default_rng(6)
    theta, noise, scale = rng.standard_normal((R, D)), rng.standard_normal((N, D)), rng.random(R)
    found = {}
    for single in (False, True):
        at = theta.astype(np.float32 if single else np.float64)
        for name, problem in zip(("dense", "thin"), tables, strict=True):
            own = feature_noise_of(problem.model)
            prepared = own.prepared(problem.rows, noise.astype(np.float32) if single else noise.copy(), at.dtype.type)
            found[name, single] = own.noisy_gradient(at, problem.rows, [prepared], scale)
    for name, single in found:
        np.testing.assert_allclose(found[name, single], found["dense", False], rtol=0, atol=N * 3e-6 if single else 1e-10)


def test_training_in_batches_is_the_same(tables: tuple[Problem, Problem]) -> None:
    dense, thin = tables
    orders = minibatch.permutations(spawn(4, 3), N)
    steps = np.outer([0.5, 0.1], np.ones(12))
    got, expected = (minibatch.minibatch_descent(p, steps, 4, orders, average_every=2) for p in (thin, dense))
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-13)


def test_shorter_trainings_are_the_beginnings_of_the_longest(tables: tuple[Problem, Problem]) -> None:
    for problem in tables:
        ends = minibatch.minibatch_descent(problem, np.full(9, 0.6), 1, stops=[3, 9, 3])
        each = [minibatch.minibatch_descent(problem, np.full(t, 0.6), 1) for t in (3, 9, 3)]
        np.testing.assert_array_equal(ends, each)


@pytest.mark.parametrize("name", ["dp-gd", "renyi-filter", "dp-sgd", "dp-svrg", "outpert-gd", "input-perturbation", "dbdp"])
def test_mechanisms_train_the_same_models(name: str, tables: tuple[Problem, Problem]) -> None:
    mechanism = dpviz.list_mechanisms()[name]()
    calibrations = [mechanism.calibrate(tables[0].setting, Budget(e, 1e-5)) for e in (0.5, 5.0)]
    got, expected = (mechanism.fit(Training(p, calibrations, spawn(6, 2))) for p in tables)
    np.testing.assert_allclose(got.theta, expected.theta, rtol=0, atol=1e-5 * np.abs(expected.theta).max())


@pytest.mark.parametrize(("name", "parts"), [("dp-gd", [4]), ("renyi-filter", [4]), ("dp-agd", [4]), ("input-perturbation", [4])])
def test_bits_do_not_depend_on_the_processors(
    name: str, parts: list[int], tables: tuple[Problem, Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are summed in as many parts on every machine, in single precision as large tables are."""
    monkeypatch.setattr(all_rows, "_SINGLE_FROM", 0)
    monkeypatch.setattr(all_rows, "_PART", N * D * 2)
    mechanism, ends = dpviz.list_mechanisms()[name](), []
    calibrations = [mechanism.calibrate(tables[1].setting, Budget(e, 1e-5)) for e in (0.5, 3.0, 9.0)]
    for processors in (1, 2, 4):
        monkeypatch.setattr(threads, "processors", lambda here=processors: here)
        ends.append(mechanism.fit(Training(tables[1], calibrations, spawn(6, 7))).theta)
    there = loops()
    most = 4 if there is None else -(-N // there.NOISY)  # blocks of noise lie in one part each
    assert most > 2
    assert [len(each) for each in tables[1].rows._parts.values()] == [min(count, most) for count in parts]
    np.testing.assert_array_equal(ends[1], ends[0])
    np.testing.assert_array_equal(ends[2], ends[0])


def test_sums_in_single_precision_are_short_where_a_column_has_its_entries_together() -> None:
    """Behind a 1, terms of 2^-25 are lost until the sum goes on in double: at most 63 of them, wherever the entries are."""
    table = np.zeros((2048, 3), np.float32)
    table[:, 0] = table[700:900, 1] = table[::50, 2] = 1
    weights = np.full(2048, 2.0**-25, np.float32)
    weights[[0, 700]] = 1
    lost = {most: table.astype(float).T @ weights - summed(table, weights, most) for most in (64, 1024)}
    assert (lost[64] <= 2 * 63 * 2.0**-25).all(), "behind each of two 1s"
    assert lost[1024][1] > 150 * 2.0**-25, "the control: 200 entries in one sum"
