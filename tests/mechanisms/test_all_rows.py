"""Sums over all rows whose rows are shared by threads: the same sums to rounding, and rules that see each row once."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.mechanisms.gradient import shared
from dpviz.mechanisms.gradient.shared import AllRows
from dpviz.models import get_model, line_losses_of
from dpviz.models.problem import Problem
from tests.support import make_problem

N, D, R, CLIP = 1001, 4, 3, 0.2


@pytest.fixture(params=[1, 2, 3, 100])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many parts the rows are to be shared in; more than four are not made."""
    problem = make_problem(n=N, d=D)
    monkeypatch.setattr(shared, "_PART", problem.n * problem.m * R // request.param)
    return min(request.param, 4)


def used(problem: Problem) -> int:
    """In how many parts the rows were shared."""
    return max(problem.rows._parts, default=1)


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


def test_losses_along_lines_are_those_of_all_rows_at_once(parts: int) -> None:
    problem = make_problem(n=N, d=D)
    theta, direction = np.random.default_rng(1).standard_normal((2, R, problem.m))
    reach = np.array([0.5, 1.0, 2.0])
    with AllRows(problem, R) as rows:
        found = rows.line_losses(theta, direction, reach, 5, 3.0)
    expected = line_losses_of(problem.model)(theta, direction, reach, 5, problem.rows, clip=3.0)
    assert used(problem) == parts
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rows_of_networks_are_not_shared_but_their_seeds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_PART", 1)
    plain = make_problem(n=60, d=D)
    problem = Problem(plain.rows, get_model("mlp"), 1e-2)
    theta = np.zeros((R, problem.m))
    with AllRows(problem, R) as rows:
        np.testing.assert_array_equal(rows.gradient(theta, CLIP), problem.model.sum_gradient(theta, problem.rows, clip_norm=CLIP))
    assert used(problem) == 1
