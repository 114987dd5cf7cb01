"""Every row counts once, the last ones too: sums over numbers of rows around the sizes of the blocks in which rows are read."""

import numpy as np
import pytest

from dpviz.models import Rows, get_model, products
from dpviz.models.problem import Problem
from dpviz.models.row_budget import RowBudget

D, R = 30, 5
#: rows beyond a whole number of blocks of 64 to 4,096 rows
SIZES = (1, 2, 63, 64, 65, 255, 256, 257, 511, 513, 1023, 1024, 1025, 1026, 2049, 4097)


@pytest.fixture(autouse=True, params=["without zeros", "with zeros"])
def _tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without zeros":
        monkeypatch.setattr(products, "_LEAST_ENTRIES", 0)


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """One-hot rows of different lengths and numbers of entries, so that no row can stand for another."""
    rng = np.random.default_rng(n)
    X = np.zeros((n, D))
    for part in range(3):
        here = rng.random(n) < (1.0, 0.7, 0.4)[part]
        X[here, 10 * part + rng.integers(10, size=here.sum())] = 0.2 + 0.35 * rng.random(here.sum())
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def by_row(X: np.ndarray, y: np.ndarray, theta: np.ndarray, clip: float) -> tuple[np.ndarray, np.ndarray]:
    """(R, n, d) clipped gradients of the logistic loss and their (R, n) lengths, from the formula."""
    slope = -1 / (1 + np.exp((theta @ X.T) * y))
    g = (slope * y)[:, :, None] * X
    norms = np.linalg.norm(g, axis=2)
    g *= np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, :, None]
    return g, np.minimum(norms, clip)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_of_gradients_hold_every_row_once(n: int, kind: type[np.floating]) -> None:
    X, y = table(n)
    theta = np.random.default_rng(0).standard_normal((R, D)).astype(kind).astype(float)
    problem = Problem(Rows(X, y), get_model("logistic"), 1e-2)
    tolerance = {np.float64: 1e-12, np.float32: 2e-6}[kind]  # type: ignore[index]
    for clip in (np.inf, 0.2):
        expected, _ = by_row(X, y, theta, clip)
        got = problem.model.sum_gradient(theta.astype(kind), problem.rows, clip_norm=clip)
        np.testing.assert_allclose(got, expected.sum(axis=1), rtol=0, atol=tolerance * max(1, n**0.5))
        index = np.unique(np.r_[np.arange(0, n, 3), n - 1])
        got = problem.model.sum_gradient(theta.astype(kind), problem.rows.batch(index), clip_norm=clip)
        np.testing.assert_allclose(got, expected[:, index].sum(axis=1), rtol=0, atol=tolerance * max(1, n**0.5))


@pytest.mark.parametrize("n", SIZES)
def test_budgets_of_rows_are_those_of_their_own_gradients(n: int) -> None:
    """Three steps of rows that leave when their squares add up to more than a budget, in single precision."""
    X, y = table(n)
    rng, clip, budget = np.random.default_rng(1), 0.3, 0.1
    problem = Problem(Rows(X, y), get_model("logistic"), 1e-2)
    rule, spent, left = RowBudget(n, R, budget, slack=1e-6, precision=np.float32), np.zeros((R, n)), 0
    for _ in range(3):
        theta = rng.standard_normal((R, D)).astype(np.float32)
        g, norms = by_row(X, y, theta.astype(float), clip)
        spent += norms**2
        near = (np.abs(spent / budget - 1) < 1e-4).sum(axis=1)  # rows of which rounding decides
        assert near.max() <= 1 + n // 500
        expected = (g * (spent <= budget)[:, :, None]).sum(axis=1)
        got = problem.model.sum_gradient(theta, problem.rows, clip_norm=clip, rule=rule)
        assert (np.abs(got - expected).max(axis=1) <= 2e-5 * max(1, n**0.5) + clip * near).all()
        assert (np.abs(rule.end_step() - (spent <= budget).sum(axis=1)) <= near).all()
        left += int((spent > budget).sum())
    assert left > 0 or n < 3, "some have used up their budget"


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_one_long_row_among_short_ones_is_clipped(kind: type[np.floating]) -> None:
    """Whether anything has to be clipped depends on the longest row, not on most of them."""
    n = 300
    X, y = table(n)
    X *= 0.1
    X[17] = np.eye(D)[3]
    theta = np.zeros((R, D))
    theta[:, 3] = -8.0 * y[17]  # the slope of that row is nearly 1
    problem = Problem(Rows(X, y), get_model("logistic"), 1e-2)
    expected, norms = by_row(X, y, theta, 0.5)
    assert (norms[:, 17] == 0.5).all()
    assert (np.delete(norms, 17, axis=1) < 0.2).all()
    for rows, part in ((problem.rows, slice(None)), (problem.rows.batch(np.arange(10, 30)), slice(10, 30))):
        got = problem.model.sum_gradient(theta.astype(kind), rows, clip_norm=0.5)
        np.testing.assert_allclose(got, expected[:, part].sum(axis=1), rtol=0, atol=1e-5)
