"""Sums over batches of many replicas are those of gathered batches, and training in step gives the same models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dpviz.common.random import Drawn, PoissonBatches, generator, spawn
from dpviz.mechanisms import Training, get_mechanism
from dpviz.mechanisms.gradient import noisy_sgd
from dpviz.models import Rows, get_model
from dpviz.models import sparse as sparse_products
from dpviz.models.compiled import loops
from dpviz.models.many_batches import ManyBatches
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget


@pytest.fixture(autouse=True)
def small_tables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros are left out of small tables too."""
    monkeypatch.setattr(sparse_products, "_LEAST_ENTRIES", 0)


@pytest.fixture
def without_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DPVIZ_COMPILED", "0")
    loops.cache_clear()
    yield
    loops.cache_clear()


def table(*, sparse: bool, n: int = 3000, d: int = 12) -> Rows:
    """Rows in the unit ball; seven in eight entries are zeros where sparse."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, d)) * (rng.random((n, d)) < (0.125 if sparse else 1.0))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    return Rows(x, rng.choice([-1.0, 1.0], n))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("model", "clip_norm"), [("logistic", np.inf), ("logistic", 0.2), ("svm", 0.3)])
def test_sums_are_those_of_gathered_batches(sparse: bool, model: str, clip_norm: float) -> None:
    rows, seeds, budgets = table(sparse=sparse), 5, 3
    trained = get_model(model)
    many = trained.many_batches
    assert many is not None
    theta = np.random.default_rng(2).standard_normal((seeds, budgets, rows.X.shape[1]))
    batches = [PoissonBatches(len(rows), 0.1)(generator(stream))(0) for stream in spawn(3, seeds - 1)] + [np.empty(0, np.intp)]
    lengths: list[list[np.ndarray]] = [[] for _ in range(seeds)]
    got = many.sums(theta, rows, Drawn.of(batches), clip_norm, lengths)
    assert rows.sparse is sparse
    for s, index in enumerate(batches):
        part = rows.take(index)
        assert got[s] == pytest.approx(trained.sum_gradient(theta[s], part, clip_norm=clip_norm), abs=2e-4)
        norms = np.minimum(trained.gradient_norms(theta[s], part), clip_norm)
        assert np.concatenate(lengths[s], axis=1) == pytest.approx(norms.T, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("clip_norm", [0.1, 0.3])
def test_no_row_adds_more_than_the_clip_norm(clip_norm: float) -> None:
    rows = table(sparse=True, n=400)
    many = get_model("logistic").many_batches
    assert many is not None
    theta = 5 * np.random.default_rng(2).standard_normal((len(rows), 1, rows.X.shape[1]))
    alone = many.sums(theta, rows, Drawn.of([np.array([i]) for i in range(len(rows))]), clip_norm)
    longest = np.linalg.norm(alone, axis=2).max()
    assert 0.999 * clip_norm < longest <= clip_norm


@pytest.mark.parametrize(
    ("mechanism", "params"),
    [
        ("dp-sgd", {"clip_norm": 0.5}),
        ("dp-sgd", {"batches": "reshuffled", "epochs": 3.0}),
        ("dp-lssgd", {}),
        ("song-sgd", {"batch": 300}),
    ],
)
def test_training_in_step_gives_the_models_of_training_one_by_one(
    mechanism: str, params: dict[str, object], monkeypatch: pytest.MonkeyPatch, without_compiled_loops: None
) -> None:
    problem = Problem(table(sparse=True), get_model("logistic"), 0.01)
    built = get_mechanism(mechanism).from_params(params)
    training = Training(problem, [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.5, 5.0)], spawn(0, 41))
    monkeypatch.setattr(noisy_sgd, "MOST_IN_STEP", 30)
    asked: list[int] = []

    def pays(rows: Rows, share: float, seeds: int, budgets: int) -> bool:
        asked.append(seeds)
        return True

    monkeypatch.setattr(ManyBatches, "pays", staticmethod(pays))
    together = built.fit(training)
    monkeypatch.setattr(ManyBatches, "pays", staticmethod(lambda *facts: False))
    alone = built.fit(training)
    assert asked
    assert min(asked) > 10
    scale = np.abs(alone.theta).max()
    assert together.theta == pytest.approx(alone.theta, abs=2e-5 * scale)
    assert together.record.visits is not None
    assert alone.record.visits is not None
    assert np.array_equal(together.record.visits, alone.record.visits)
    assert (together.record.clipped is None) == (alone.record.clipped is None)
    if together.record.clipped is not None and alone.record.clipped is not None:
        # rounding decides on which side of the clip norm a gradient lies that is as long as that
        assert np.nanmax(np.abs(together.record.clipped - alone.record.clipped)) <= 0.05
    if together.record.path is not None:
        assert together.record.path == pytest.approx(alone.record.path, abs=2e-5 * scale)


@pytest.mark.parametrize(
    ("budgets", "precision", "tolerance"),
    [*((many, np.float32, 2e-4) for many in (1, 3, 16, 50, 70)), (3, np.float64, 1e-11)],  # each is compiled for seconds
)
@pytest.mark.parametrize(("model", "clip_norm"), [("logistic", np.inf), ("logistic", 0.2), ("svm", 0.3)])
def test_sums_of_compiled_loops_are_those_of_dense_batches(
    budgets: int, precision: type[np.floating], tolerance: float, model: str, clip_norm: float
) -> None:
    rows, seeds, trained = table(sparse=True), 4, get_model(model)
    many = trained.many_batches
    assert many is not None
    assert many.compiled(rows)
    dense = Rows(rows.X, rows.y)
    dense.__dict__["sparse"] = False
    theta = np.random.default_rng(2).standard_normal((seeds, budgets, rows.X.shape[1]))
    batches = [PoissonBatches(len(rows), 0.1)(generator(stream))(0) for stream in spawn(3, seeds - 1)] + [np.empty(0, np.intp)]
    got = many.sums(theta, rows, Drawn.of(batches), clip_norm, precision=precision)
    for s, index in enumerate(batches):
        expected = trained.sum_gradient(theta[s], dense.take(index), clip_norm=clip_norm)
        np.testing.assert_allclose(got[s], expected, rtol=0, atol=tolerance)
    single = np.random.default_rng(3).integers(len(rows), size=seeds)
    alone = many.sums(5 * theta, rows, Drawn.of([np.array([i]) for i in single]), 0.1)
    assert np.linalg.norm(alone, axis=2).max() <= 0.1
    for wrong in ([*batches[:-1], np.array([len(rows)])], [*batches[:-1], np.array([-1])], batches[:-1]):
        with pytest.raises(IndexError):
            many.sums(theta, rows, Drawn.of(wrong), clip_norm)


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("mechanism", ["dp-sgd", "dp-svrg", "dp-lssgd"])
def test_a_model_of_compiled_loops_does_not_depend_on_other_seeds(mechanism: str, record: bool) -> None:
    problem, streams = Problem(table(sparse=True), get_model("logistic"), 0.01), spawn(0, 9)
    built = get_mechanism(mechanism).from_params({"clip_norm": 0.5})
    calibrations = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.5, 5.0)]
    together = built.fit(Training(problem, calibrations, streams, record=record)).theta
    alone = [built.fit(Training(problem, calibrations, [one], record=record)).theta for one in streams]
    np.testing.assert_array_equal(np.concatenate(alone, axis=1), together)
    other = built.fit(Training(problem, calibrations, streams, record=not record)).theta
    np.testing.assert_allclose(other, together, rtol=0, atol=1e-5)


def test_it_pays_where_many_seeds_have_large_batches() -> None:
    rows = table(sparse=False)
    assert ManyBatches.pays(rows, 0.1, seeds=50, budgets=1)
    assert not ManyBatches.pays(rows, 0.1, seeds=10, budgets=1), "too narrow"
    few = Rows(np.ones((569, 31)), np.ones(569))
    assert ManyBatches.pays(few, 0.1, seeds=30, budgets=1)
    assert not ManyBatches.pays(few, 0.1, seeds=5, budgets=10), "as much work with positions as with gathering"
    wide = Rows(np.ones((20_000, 100)), np.ones(20_000))
    assert ManyBatches.pays(wide, 0.1, seeds=50, budgets=1)
    assert not ManyBatches.pays(wide, 0.01, seeds=50, budgets=1), "too sparse"
    assert not ManyBatches.pays(wide, 0.1, seeds=6, budgets=10), "a gathered batch has work for ten models"


def test_groups_depend_on_nothing_but_the_numbers() -> None:
    for seeds, budgets in ((1, 1), (64, 1), (100, 1), (7, 10), (130, 3), (2, 500)):
        groups = noisy_sgd._groups(seeds, budgets)
        assert [i for part in groups for i in range(seeds)[part]] == list(range(seeds))
    assert [part.stop - part.start for part in noisy_sgd._groups(100, 1)] == [50, 50]
