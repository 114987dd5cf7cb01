"""The parts of a run's cost: they add up, and each has the cause that its name says."""

from dataclasses import replace

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY

import dpviz
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.cost import cost_in_metric, split_cost, train_without_noise, uncertainty
from dpviz.experiments.sweeps import curves

SPEC = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", epsilon=1.0, seeds=5)


@pytest.mark.parametrize("mechanism", ONE_OF_EACH_FAMILY)
@pytest.mark.parametrize("more", [{}, {"class_weight": 5.0}, {"model": "mlp-3"}])
def test_the_cost_is_to_the_same_model_without_privacy_and_its_parts_add_up(mechanism: str, more: dict[str, object]) -> None:
    spec = dpviz.resolve(replace(SPEC, mechanism=mechanism, **more), []).spec
    result = dpviz.run(spec)
    cost = split_cost(spec, result.accuracy)
    assert cost.non_private == result.non_private.accuracy
    assert cost.table()["accuracy"].sum() == pytest.approx(cost.non_private, abs=1e-12)
    assert cost.total == pytest.approx(cost.noise + cost.training)
    assert len(cost.noiseless) == 5


@pytest.mark.parametrize("metric", ["roc-auc", "log-loss"])
def test_another_metric_is_split_in_the_same_way(metric: str) -> None:
    result = dpviz.run(SPEC)
    cost = cost_in_metric(SPEC, split_cost(SPEC, result.accuracy), result.theta, None, metric)
    column, setup = metric.replace("-", "_"), setup_for(SPEC)
    np.testing.assert_array_equal(cost.private, result.metrics[column])
    assert cost.non_private == setup.baselines.loc["non-private", column]
    assert np.isnan(cost.majority)
    assert cost.total == pytest.approx((1 if metric == "roc-auc" else -1) * (cost.non_private - cost.private.mean()))


def test_what_few_test_rows_cannot_tell_apart_is_no_measurable_cost() -> None:
    setup = setup_for(SPEC)
    same = setup.reference.optimum[None]
    assert uncertainty(setup, METRICS["accuracy"], same, None) == 0, "the same model is the same on every row"
    far = split_cost(SPEC, np.zeros(5), models=(-np.repeat(same, 5, axis=0), None))
    assert far.measurable, "the control: the opposite model"
    near = dpviz.run(replace(SPEC, epsilon=10.0))
    assert not split_cost(near.spec, near.accuracy, models=(near.theta, None)).measurable


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


@pytest.mark.parametrize("mechanism", ["rsgd-ar", "dp-gd", "dp-sgd"])
def test_a_point_of_a_sweep_opens_as_the_number_that_was_clicked(mechanism: str) -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism=mechanism, epsilon=3.16, seeds=4)
    sweep = dpviz.SweepSpec(dataset="teaching", mechanisms=[mechanism], epsilons=[1.0, 3.16], seeds=4)
    point = curves.row_at(curves.summarise(dpviz.run_sweep(sweep)), mechanism, 3.16)
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
