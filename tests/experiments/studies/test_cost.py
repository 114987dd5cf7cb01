"""The parts of a run's cost, models that are no better than the majority label, and trials of other settings."""

from dataclasses import replace

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY

import dpviz
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.cost import Cost, cost_in_metric, split_cost, train_without_noise, uncertainty
from dpviz.experiments.studies.majority_baseline import Cause, guessing, looks_no_better, training_loss_note
from dpviz.experiments.studies.trials import trials
from dpviz.experiments.sweeps import curves

SPEC = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", epsilon=1.0, seeds=5)


@pytest.mark.parametrize("mechanism", ONE_OF_EACH_FAMILY)
@pytest.mark.parametrize("more", [{}, {"class_weight": 5.0}, {"model": "mlp-3"}])
def test_the_cost_is_to_the_same_model_without_privacy_and_its_parts_add_up(mechanism: str, more: dict[str, object]) -> None:
    spec = dpviz.resolve(replace(SPEC, mechanism=mechanism, **more), []).spec
    result = dpviz.run(spec)
    cost = split_cost(result)
    assert cost.non_private == result.non_private.accuracy
    assert cost.table()["accuracy"].sum() == pytest.approx(cost.non_private, abs=1e-12)
    assert cost.total == pytest.approx(cost.noise + cost.training)
    assert len(cost.noiseless) == 5


@pytest.mark.parametrize("metric", ["roc-auc", "log-loss"])
def test_another_metric_is_split_in_the_same_way(metric: str) -> None:
    result = dpviz.run(SPEC)
    cost = cost_in_metric(result, split_cost(result), metric)
    column, setup = metric.replace("-", "_"), setup_for(SPEC)
    np.testing.assert_array_equal(cost.private, result.metrics[column])
    assert cost.non_private == setup.baselines.loc["non-private", column]
    assert np.isnan(cost.majority)
    assert cost.total == pytest.approx((1 if metric == "roc-auc" else -1) * (cost.non_private - cost.private.mean()))


def test_what_few_test_rows_cannot_tell_apart_is_no_measurable_cost() -> None:
    setup = setup_for(SPEC)
    same = setup.reference.optimum[None]
    assert uncertainty(setup, METRICS["accuracy"], same, None) == 0, "the same model is the same on every row"
    near = dpviz.run(replace(SPEC, epsilon=10.0))
    assert not split_cost(near).measurable
    far = replace(near, theta=-np.repeat(same, 5, axis=0))
    assert split_cost(far).measurable, "the control: the opposite model"


def test_less_noise_moves_the_noise_part_alone() -> None:
    costs = [
        split_cost(dpviz.run(s)) for s in (replace(SPEC, epsilon=e, params={"steps": 20, "step_size": 1.9}) for e in (0.05, 1e4))
    ]
    assert costs[0].noise > 0.05 > abs(costs[1].noise)
    np.testing.assert_array_equal(costs[0].noiseless, costs[1].noiseless)
    assert costs[0].training == costs[1].training


def test_short_training_is_called_training() -> None:
    short = replace(SPEC, epsilon=1e5, params={"steps": 1, "step_size": 0.01, "clip_norm": 0.001})
    long = replace(SPEC, epsilon=1e5, params={"steps": 500})
    dataset = replace(short, dataset="breast-cancer"), replace(long, dataset="breast-cancer")
    lost = [split_cost(dpviz.run(s)).training for s in dataset]
    assert lost[0] > 0.1 > abs(lost[1])


@pytest.mark.parametrize("mechanism", ["rsgd-ar", "dp-gd", "dp-sgd"])
def test_a_point_of_a_sweep_opens_as_the_number_that_was_clicked(mechanism: str) -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism=mechanism, epsilon=3.16, seeds=4)
    sweep = dpviz.SweepSpec(dataset="teaching", mechanisms=[mechanism], epsilons=[1.0, 3.16], seeds=4)
    point = curves.row_at(curves.summarise(dpviz.run_sweep(sweep)), mechanism, 3.16)
    made = dpviz.run(spec)
    cost = split_cost(made)
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
        np.testing.assert_allclose(split_cost(result).noiseless, split_cost(alone).noiseless, atol=0.01)


COST = Cost(np.array([0.60, 0.58]), np.array([0.80]), 0.85, majority=0.59)
DESCENT = dpviz.RunSpec("breast-cancer", mechanism="dp-gd")


def test_a_method_that_cannot_learn_more_says_why_instead() -> None:
    """At epsilon = 10 the local method gives breast-cancer's rows the larger class, and does so without any noise."""
    spec = dpviz.RunSpec("breast-cancer", mechanism="ldp-duchi", epsilon=10.0, seeds=3, row_scaling="unit")
    result = dpviz.run(spec)
    found = guessing(result, ["accuracy"], result.metrics, result.setup.baselines)["accuracy"]
    assert found.cause is Cause.TRAINING
    assert "p/(1 − p)" in found.fix
    assert "p/(1 − p)" in " ".join(result.calibration.notes)
    short = replace(COST, private=np.array([0.70, 0.72]), noiseless=np.array([0.73]))
    for other in (replace(spec, params={"release": "gradient"}), replace(spec, params={"training": "plain"}), DESCENT):
        assert "p/(1 − p)" not in str(training_loss_note(short, other, 1e-4))
    assert "p/(1 − p)" in str(training_loss_note(short, spec, 1e-4))


def test_a_run_is_set_beside_the_majority_label_in_every_metric_that_is_asked_for() -> None:
    bad = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="cms-output", epsilon=0.01, seed=4, seeds=3))
    found = guessing(bad, ("accuracy", "balanced-accuracy", "roc-auc", "log-loss"), bad.metrics, bad.setup.baselines)
    assert "accuracy" in found
    assert not {"roc-auc", "log-loss"} & set(found), "the majority label has no value there, or less is better"
    floor = bad.setup.baselines.at["majority", "balanced_accuracy"]
    assert ("balanced-accuracy" in found) == (bad.expected_value("balanced-accuracy") <= floor + 0.0005)
    good = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="dp-gd", epsilon=10.0, seeds=3))
    for run, there in ((bad, True), (good, False)):
        assert looks_no_better(run.spec, run.theta, "accuracy") == there
        assert not looks_no_better(run.spec, run.theta, "roc-auc")
    assert not guessing(good, ("accuracy", "balanced-accuracy", "f1"), good.metrics, good.setup.baselines)


TRIED = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=0.5, seeds=4)


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("log-loss", -1)])
def test_gains_are_those_of_the_same_draws_and_the_best_comes_first(metric: str, sign: int) -> None:
    found = trials(TRIED, metric)
    assert [trial.gain for trial in found] == sorted((trial.gain for trial in found), reverse=True)
    base = dpviz.run(TRIED).metrics[METRICS[metric].column]
    for trial in found:
        better = sign * (dpviz.run(trial.spec).metrics[METRICS[metric].column] - base).to_numpy()
        assert trial.gain == float(better.mean())
        assert trial.helps == (better.mean() > 2 * np.std(better, ddof=1) / 2)


def test_a_larger_lambda_helps_where_noise_on_the_minimiser_is_large_and_nothing_helps_elsewhere() -> None:
    noisy = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=10.0, lam=1e-3, seeds=10, row_scaling="unit")
    assert [trial.spec.lam for trial in trials(noisy) if trial.helps] == [0.01]
    short = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=0.5, lam=1e-3, seeds=10, row_scaling="unit")
    assert not any(trial.helps for trial in trials(short))
