"""Sums over all rows whose rows are shared by threads: the same sums to rounding, and rules that see each row once."""

import gc
import weakref

import numpy as np
import pytest

from dpviz.common.random import spawn
from dpviz.mechanisms import all_rows
from dpviz.mechanisms.all_rows import AllRows, seeds_together
from dpviz.mechanisms.base import Training
from dpviz.models import Rows, get_model, products
from dpviz.models.problem import Problem
from tests.support import make_problem

N, D, R, CLIP = 1001, 4, 3, 0.2


@pytest.fixture(params=[1, 2, 3, 100])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many parts the rows are to be shared in; more than four are not made."""
    problem = make_problem(n=N, d=D)
    monkeypatch.setattr(all_rows, "_PART", problem.n * problem.m * R // request.param)
    return min(request.param, 4)


def used(problem: Problem) -> int:
    """In how many parts the rows were shared."""
    return max((len(kept) for name, kept in problem.rows._derived.items() if name.endswith(" parts")), default=1)


def test_gradients_are_those_of_all_rows_at_once(parts: int) -> None:
    problem = make_problem(n=N, d=D)
    theta = np.random.default_rng(0).standard_normal((R, problem.m))
    seen = np.zeros((R, N))

    def rule(block: slice, norms: np.ndarray) -> np.ndarray:
        assert norms.shape[1] == block.stop - block.start
        seen[:, block] += norms
        return (np.arange(N)[block] % 2).astype(norms.dtype)[None]

    kept = np.zeros((R, N))

    def all_at_once(block: slice, norms: np.ndarray) -> np.ndarray:
        kept[:, block] += norms
        return (np.arange(N)[block] % 2).astype(norms.dtype)[None]

    with AllRows(problem, R) as rows:
        for _ in range(2):
            np.testing.assert_allclose(
                rows.gradient(theta, CLIP), problem.model.sum_gradient(theta, problem.rows, clip_norm=CLIP), rtol=0, atol=1e-12
            )
        odd = rows.gradient(theta, CLIP, rule)
    expected = problem.model.sum_gradient(theta, problem.rows, clip_norm=CLIP, rule=all_at_once)
    assert used(problem) == parts
    np.testing.assert_allclose(odd, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen, kept, rtol=1e-12)
    assert (seen > 0).all()


@pytest.mark.parametrize(("model_id", "lengths"), [("logistic", [10]), ("mlp", [2, 3, 2, 3])])
def test_seeds_of_linear_models_train_in_one_group(model_id: str, lengths: list[int]) -> None:
    problem = Problem(make_problem(n=60, d=D).rows, get_model(model_id), 1e-2)
    found = seeds_together(Training(problem, [], spawn(0, 10)))
    assert [part.stop - part.start for part in found] == lengths


@pytest.mark.parametrize("thin", [True, False])
def test_rows_are_let_go_of_at_once_with_all_that_they_derived(thin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows that wait for the next collection are memory that the next training does not have."""
    monkeypatch.setattr(products, "_LEAST_ENTRIES", 0)
    n, d = 4100, 20
    X = np.eye(d)[np.arange(n) % d] if thin else np.full((n, d), d**-0.5)
    problem = Problem(Rows(X, np.where(np.arange(n) % 3, 1.0, -1.0)), get_model("logistic"), 0.1)
    monkeypatch.setattr(all_rows, "_PART", n * d)
    monkeypatch.setattr(all_rows, "_SINGLE_FROM", 0)
    with AllRows(problem, R) as rows:
        rows.gradient(np.zeros((R, d)), 1.0)
        rows.noisy_gradients(np.ones((1, n, d), np.float32), np.ones(R))(np.zeros((R, d)))
    problem.measure(np.zeros((R, d)))
    assert len(problem.rows.parts(3)) == 3
    alive = [weakref.ref(each) for each in (problem.rows, *(part for _, part in problem.rows.parts(3)))]
    gc.disable()
    try:
        del problem, rows
        assert [each() for each in alive] == [None] * 4
    finally:
        gc.enable()
