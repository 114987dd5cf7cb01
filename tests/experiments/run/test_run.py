"""Runs and sweeps: what they return, and the same numbers computed in another way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as referee
from sklearn.linear_model import LogisticRegression
from support import Cancelled, cancel_after

import dpviz
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import setup_for

SPEC = dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", seeds=4, epsilon=2.0, params={"steps": 50, "step_size": 1.0})


def test_metrics_are_those_of_the_released_models() -> None:
    result = dpviz.run(SPEC)
    split, data = result.setup.split, result.setup.dataset
    scores, y = result.theta @ data.X[split.test].T, data.y[split.test]
    assert result.metrics["roc_auc"].to_list() == pytest.approx([referee.roc_auc_score(y, s) for s in scores])
    chances = 1 / (1 + np.exp(-scores))
    assert result.metrics["brier"].to_list() == pytest.approx([referee.brier_score_loss(y, p) for p in chances])
    np.testing.assert_allclose(result.metrics["accuracy"], result.accuracy, rtol=1e-14)
    base = result.setup.baselines
    assert base.loc["non-private", "accuracy"] == pytest.approx(result.non_private.accuracy)
    assert base.loc["majority", "accuracy"] == pytest.approx(result.majority.accuracy)
    assert base.loc["majority", "balanced_accuracy"] == 0.5


def test_a_released_label_and_a_hinge_have_no_metrics_of_what_they_do_not_give() -> None:
    label = dpviz.run(dpviz.RunSpec("teaching", mechanism="majority", seeds=3)).metrics
    hinge = dpviz.run(dpviz.RunSpec("teaching", "svm", "output-gaussian", seeds=3)).metrics
    for metric in METRICS.values():
        assert label[metric.column].isna().all() == (metric.needs != "labels"), metric.id
        assert hinge[metric.column].isna().all() == (metric.needs == "probabilities"), metric.id


def test_expected_balanced_accuracy_is_the_mean_over_many_draws() -> None:
    result = dpviz.run(dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=0.3, seeds=4000))
    drawn = result.metrics["balanced_accuracy"]
    assert abs(drawn.mean() - result.expected_balanced_accuracy) < 4 * drawn.std() / 4000**0.5


def test_numbers_recomputed_from_the_released_parameters() -> None:
    result = dpviz.run(SPEC)
    ds = dpviz.load_dataset(SPEC.dataset, scaling="automatic")
    split = ds.split(0)
    x, y = ds.X[split.train], ds.y[split.train]
    margins = y[:, None] * (x @ result.theta.T)
    objective = np.log1p(np.exp(-margins)).mean(axis=0) + dpviz.resolve(SPEC).lam / 2 * (result.theta**2).sum(axis=1)
    np.testing.assert_allclose(result.objective, objective, rtol=1e-10)
    np.testing.assert_allclose(result.instances["margin"], margins.mean(axis=1), rtol=1e-9)
    predicted = np.where(ds.X[split.test] @ result.theta.T >= 0, 1, -1)
    np.testing.assert_allclose(result.accuracy, (predicted == ds.y[split.test][:, None]).mean(axis=0))


def test_non_private_agrees_with_scikit_learn() -> None:
    spec = dpviz.RunSpec(dataset="breast-cancer", mechanism="non-private", lam=1e-2)
    result, shared = dpviz.run(spec), setup_for(spec)
    rows, n = shared.problem.rows, shared.problem.n
    peer = LogisticRegression(C=1 / (n * 1e-2), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(rows.X, rows.y)
    np.testing.assert_allclose(result.theta[0], peer.coef_[0], atol=1e-5)
    assert result.accuracy[0] == result.non_private.accuracy == peer.score(shared.test.X, shared.test.y)


def test_progress_of_training_without_privacy_and_its_cancel() -> None:
    told: list[float] = []
    spec = dpviz.RunSpec(dataset="census-2000", model="mlp-3", seeds=2)
    dpviz.run(spec, monitor=told.append)
    assert told == sorted(told)
    assert min(told) < 0.1
    assert max(told) <= 1
    other = replace(spec, lam=0.0021)
    with pytest.raises(Cancelled):
        dpviz.run(other, monitor=cancel_after(0.2))
    assert "optimum" not in setup_for(other).problem.__dict__
    assert math.isfinite(dpviz.run(other).objective.mean())


def test_divergence_is_an_error_that_says_what_to_do() -> None:
    spec = dpviz.RunSpec("iris", "svm", "dp-gd", lam=100.0, params={"step_size": 10.0, "steps": 2000})
    with pytest.raises(dpviz.InvalidInput, match="step size"):
        dpviz.run(spec)


def test_majority_predicts_one_label_and_can_be_private() -> None:
    plain = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="majority"))
    assert (plain.accuracy == plain.majority.accuracy).all()
    assert plain.calibration.proved_budget is None
    private = dpviz.run(
        dpviz.RunSpec(dataset="breast-cancer", mechanism="majority", epsilon=1e-3, seeds=400, params={"private": True})
    )
    assert private.calibration.proved_budget == dpviz.Budget(1e-3)
    assert 0.3 < (private.accuracy == plain.accuracy[0]).mean() < 0.7  # the noise of scale 2,000 drowns the count
