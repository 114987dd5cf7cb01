"""The parts of a run's cost: they add up, and each has the cause that its name says."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as referee
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import ONE_OF_EACH_FAMILY

import dpviz
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.studies.cost import in_metric, split_cost, train_without_noise
from dpviz.experiments.sweeps import curves

SPEC = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", epsilon=1.0, seeds=5)


@pytest.mark.parametrize("mechanism", ONE_OF_EACH_FAMILY)
def test_the_parts_add_up_to_the_ordinary_model(mechanism: str) -> None:
    spec = replace(SPEC, mechanism=mechanism)
    result = dpviz.run(spec)
    cost = split_cost(spec, result.accuracy)
    assert cost.ordinary is not None
    assert cost.table()["accuracy"].sum() == pytest.approx(cost.ordinary, abs=1e-12)
    assert cost.table()["accuracy"][0] == pytest.approx(result.accuracy.mean())
    assert len(cost.noiseless) == 5


@pytest.mark.parametrize("metric", ["roc-auc", "log-loss"])
def test_another_metric_is_split_in_the_same_way(metric: str) -> None:
    result = dpviz.run(SPEC)
    cost = in_metric(SPEC, split_cost(SPEC, result.accuracy), result.theta, None, metric)
    column, setup = metric.replace("-", "_"), setup_for(SPEC)
    np.testing.assert_array_equal(cost.private, result.metrics[column])
    assert cost.non_private == setup.baselines.loc["non-private", column]
    assert np.isnan(cost.majority)
    assert cost.ordinary is not None
    y, scores = setup.test.y, setup.ordinary_scores
    referees = {"roc-auc": referee.roc_auc_score(y, scores), "log-loss": referee.log_loss(y, 1 / (1 + np.exp(-scores)))}
    assert cost.ordinary == pytest.approx(referees[metric])
    lost = cost.table()[column][1:].sum()
    assert cost.private.mean() + (lost if metric == "roc-auc" else -lost) == pytest.approx(cost.ordinary)


def ordinary_accuracy(setup: Setup) -> float:
    """Test accuracy of the ordinary model."""
    assert setup.ordinary_scores is not None
    return float(((setup.ordinary_scores >= 0) == (setup.test.y > 0)).mean())


def test_less_noise_moves_the_noise_part_alone() -> None:
    costs = [
        split_cost(s, dpviz.run(s).accuracy)
        for s in (replace(SPEC, epsilon=e, params={"steps": 20, "step_size": 1.9}) for e in (0.05, 1e4))
    ]
    assert costs[0].noise > 0.05 > abs(costs[1].noise)
    np.testing.assert_array_equal(costs[0].noiseless, costs[1].noiseless)
    assert costs[0].training == costs[1].training


def test_short_training_is_called_training() -> None:
    short = replace(SPEC, epsilon=1e5, params={"steps": 1, "step_size": 0.01, "clip_norm": 0.001})
    long = replace(SPEC, epsilon=1e5, params={"steps": 500})
    dataset = replace(short, dataset="breast-cancer"), replace(long, dataset="breast-cancer")
    lost = [split_cost(s, dpviz.run(s).accuracy).training for s in dataset]
    assert lost[0] > 0.1 > abs(lost[1])


def test_the_ordinary_model_is_a_pipeline_of_scikit_learn() -> None:
    setup = setup_for(dpviz.RunSpec(dataset="breast-cancer"))
    frame, train, test = setup.dataset.frame.iloc[:, :-1], setup.split.train, setup.split.test
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    pipeline.fit(frame.iloc[train], setup.dataset.y[train])
    assert ordinary_accuracy(setup) == pytest.approx(pipeline.score(frame.iloc[test], setup.dataset.y[test]))
    exact = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000, tol=1e-9))
    scores = exact.fit(frame.iloc[train], setup.dataset.y[train]).decision_function(frame.iloc[test])
    np.testing.assert_allclose(setup.ordinary_scores, scores, atol=1e-3)


@pytest.mark.parametrize("mechanism", ["rsgd-ar", "dp-gd", "dp-sgd"])
def test_a_point_of_a_sweep_opens_as_the_number_that_was_clicked(mechanism: str) -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism=mechanism, epsilon=3.16, seeds=4)
    sweep = dpviz.SweepSpec(dataset="teaching", mechanisms=[mechanism], epsilons=[1.0, 3.16], seeds=4)
    point = curves.at(curves.summarise(dpviz.run_sweep(sweep)), mechanism, 3.16)
    made = dpviz.run(spec)
    cost = split_cost(spec, made.accuracy, expected=made.expected_accuracy)
    assert cost.mean == pytest.approx(point["mean"], abs=1e-12)
    assert cost.mean + cost.noise == pytest.approx(cost.noiseless.mean(), abs=1e-12)


@pytest.mark.parametrize("model", ["logistic", "mlp-3"])
def test_the_twin_of_each_seed_is_the_one_that_it_has_alone(model: str) -> None:
    """Full batches without noise: one training may stand for all seeds only where all seeds start at one point."""
    spec = replace(SPEC, model=model, seeds=3, params={"steps": 7})
    calibration = dpviz.run(replace(spec, seeds=1)).calibration
    theta = train_without_noise(spec, calibration).theta[0]
    alone = train_without_noise(replace(spec, seeds=1), calibration).theta[0]
    np.testing.assert_allclose(theta[0], alone[0], rtol=1e-12)
    assert theta.shape == (3, alone.shape[1])
    assert (np.ptp(theta, axis=0).max() > 0.01) == (model == "mlp-3")


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH_FAMILY if name != "non-private"] + ["dp-sgd", "dp-agd"])
def test_twins_that_train_along_are_those_trained_alone(name: str) -> None:
    spec = dpviz.RunSpec(dataset="breast-cancer", mechanism=name, epsilon=2.0, seeds=3)
    beside = dpviz.run_epsilons(spec, [0.5, 2.0], instances=False, noiseless_runs=True)
    for result, alone in zip(beside, dpviz.run_epsilons(spec, [0.5, 2.0], instances=False), strict=True):
        np.testing.assert_allclose(result.theta, alone.theta, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.accuracy, alone.accuracy, atol=0.01)
        assert result.expected_accuracy == pytest.approx(alone.expected_accuracy)
        assert alone.noiseless_run is None
        fit = train_without_noise(result.spec, result.calibration)
        if name == "dp-agd":  # ends next to the minimum, where rounding decides which step size is best
            objective = setup_for(spec).problem.objective
            np.testing.assert_allclose(objective(result.noiseless_run.theta), objective(fit.theta[0]), rtol=1e-3)
        else:
            np.testing.assert_allclose(result.noiseless_run.theta, fit.theta[0], rtol=1e-5, atol=1e-6)
        cost, of_noiseless = (
            split_cost(result.spec, result.accuracy, result.calibration, noiseless_run=one)
            for one in (None, result.noiseless_run)
        )
        np.testing.assert_allclose(of_noiseless.noiseless, cost.noiseless, atol=0.01)
