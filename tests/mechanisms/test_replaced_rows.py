"""A neighbour's models are trained on the neighbour's rows: nothing that was derived from the first dataset is left in them.

An audit that compares a dataset with itself finds no violation of anything.
"""

import numpy as np
import pytest
from support import mostly_long

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Training
from dpviz.models import Rows, get_model, products
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

N, D, AT = 200, 24, 17


@pytest.fixture(autouse=True)
def _small_tables_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_LEAST_ENTRIES", 0)


def one_hot(model: str) -> Problem:
    rng = np.random.default_rng(3)
    X = np.zeros((N, D))
    for part in range(3):
        X[np.arange(N), 8 * part + rng.integers(8, size=N)] = 3**-0.5
    return Problem(Rows(X, np.where(rng.random(N) < 0.5, 1.0, -1.0)), get_model(model), 1e-2)


def trained(problem: Problem, mechanism: str) -> np.ndarray:
    built = dpviz.list_mechanisms()[mechanism]()
    cal = built.calibrate(problem.setting, Budget(1e4, 1e-3))  # little noise, so that a row shows
    fit = built.fit(Training(problem, [cal], spawn(0, 2)))
    return fit.theta if fit.constant_label is None else fit.constant_label


@pytest.mark.parametrize("model", mostly_long(["logistic", "mlp-3"], "logistic"))
@pytest.mark.parametrize("mechanism", ["dp-gd", "dp-sgd", "dp-svrg", "objective-tight", "rsgd", "ldp-gaussian", "majority"])
def test_a_neighbours_model_is_that_of_fresh_rows(mechanism: str, model: str) -> None:
    problem = one_hot(model)
    assert products.uses_kernels(problem.rows) == products.has_kernels()
    if dpviz.list_mechanisms()[mechanism].refusal(problem.setting) is not None:
        return
    before = trained(problem, mechanism)  # fills whatever is kept beside the rows
    x = np.zeros(D)
    x[[1, 9, 23]] = (0.9, -0.3, 0.3)
    neighbour = problem.replace_row(AT, x, -problem.rows.y[AT])
    X, y = problem.rows.X.copy(), problem.rows.y.copy()
    X[AT], y[AT] = x, -y[AT]
    fresh = Problem(Rows(X, y), problem.model, problem.lam)
    np.testing.assert_array_equal(trained(neighbour, mechanism), trained(fresh, mechanism))
    if mechanism != "majority":
        assert (trained(fresh, mechanism) != before).any(), "the row shows"
    np.testing.assert_array_equal(trained(problem, mechanism), before)


@pytest.mark.parametrize("model", ["logistic", "svm", "mlp-3"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_and_losses_of_a_neighbour_are_those_of_fresh_rows(model: str, kind: type[np.floating]) -> None:
    problem = one_hot(model)
    theta = np.random.default_rng(0).standard_normal((4, problem.m)).astype(kind)

    def seen(one: Problem) -> list[np.ndarray]:
        index = np.arange(0, N, 3)
        return [
            one.model.sum_gradient(theta, one.rows, clip_norm=0.3),
            one.model.sum_gradient(theta, one.rows.batch(np.union1d(index, [AT])), clip_norm=0.3),
            one.model.scores(theta.astype(float), one.rows),
            one.model.gradient_norms(theta.astype(float), one.rows),
        ]

    before = seen(problem)
    neighbour = problem.replace_row(AT, np.eye(D)[5], 1.0)
    X, y = problem.rows.X.copy(), problem.rows.y.copy()
    X[AT], y[AT] = np.eye(D)[5], 1.0
    for got, fresh, first in zip(seen(neighbour), seen(Problem(Rows(X, y), problem.model, problem.lam)), before, strict=True):
        np.testing.assert_array_equal(got, fresh)
        assert (got != first).any()
