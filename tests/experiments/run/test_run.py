"""Runs: what they return, the same numbers computed in another way; measures of usefulness against scikit-learn."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as referee
from sklearn.linear_model import LogisticRegression
from support import Cancelled, assert_refused, cancel_after

import dpviz
from dpviz.common import memory
from dpviz.common.random import spawn
from dpviz.experiments.run import metrics
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.trajectory import trajectory
from dpviz.mechanisms import Calibration, Fit, Mechanism, Training, get_mechanism
from dpviz.models import Setting

SPEC = dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", seeds=4, epsilon=2.0, params={"steps": 50, "step_size": 1.0})


def test_numbers_are_those_of_the_released_models() -> None:
    result, data = dpviz.run(SPEC), dpviz.load_dataset(SPEC.dataset, scaling="automatic")
    split, base = data.split(0), result.setup.baselines
    margins = data.y[split.train][:, None] * (data.X[split.train] @ result.theta.T)
    objective = np.log1p(np.exp(-margins)).mean(axis=0) + dpviz.resolve(SPEC).lam / 2 * (result.theta**2).sum(axis=1)
    np.testing.assert_allclose(result.objective, objective, rtol=1e-10)
    np.testing.assert_allclose(result.instances["margin"], margins.mean(axis=1), rtol=1e-9)
    scores, y = result.theta @ data.X[split.test].T, data.y[split.test]
    np.testing.assert_allclose(result.accuracy, (np.where(scores >= 0, 1, -1) == y).mean(axis=1))
    np.testing.assert_allclose(result.metrics["accuracy"], result.accuracy, rtol=1e-14)
    assert result.metrics["roc_auc"].to_list() == pytest.approx([referee.roc_auc_score(y, s) for s in scores])
    chances = 1 / (1 + np.exp(-scores))
    assert result.metrics["brier"].to_list() == pytest.approx([referee.brier_score_loss(y, p) for p in chances])
    assert base.loc["non-private", "accuracy"] == pytest.approx(result.non_private.accuracy)
    assert base.loc["majority", "accuracy"] == pytest.approx(result.majority.accuracy)
    assert base.loc["majority", "balanced_accuracy"] == 0.5


def test_a_result_keeps_its_rows_and_what_the_app_keeps_of_it_does_not() -> None:
    rng = np.random.default_rng(0)
    rows = dpviz.dataset(rng.normal(size=(200, 2)), rng.integers(0, 2, 200), ranges=(-4, 4))
    spec = dpviz.RunSpec(rows, mechanism="dp-gd", seeds=2)
    result = dpviz.run(spec)
    kept = dpviz.Result(**result.without_rows())
    before = kept.metrics
    for cache in list(memory._caches):
        cache.clear()
    assert result.metrics.equals(before)
    assert_refused(kept.metrics_in, ["accuracy"], field="dataset", match="does not hold")


def test_a_released_label_and_a_hinge_have_no_metrics_of_what_they_do_not_give() -> None:
    label = dpviz.run(dpviz.RunSpec("teaching", mechanism="majority", seeds=3)).metrics
    hinge = dpviz.run(dpviz.RunSpec("teaching", "svm", "output-gaussian", seeds=3)).metrics
    for metric in metrics.METRICS.values():
        assert label[metric.column].isna().all() == (metric.needs != "labels"), metric.id
        assert hinge[metric.column].isna().all() == (metric.needs == "probabilities"), metric.id


def test_expected_balanced_accuracy_is_the_mean_over_many_draws() -> None:
    result = dpviz.run(dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=0.3, seeds=4000))
    drawn = result.metrics["balanced_accuracy"]
    assert abs(drawn.mean() - result.expected_value("balanced-accuracy")) < 4 * drawn.std() / 4000**0.5


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
    assert_refused(dpviz.run, spec, match="step size")


def test_majority_predicts_one_label_and_can_be_private() -> None:
    plain = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="majority"))
    assert (plain.accuracy == plain.majority.accuracy).all()
    assert plain.calibration.proved_budget is None
    private = dpviz.run(
        dpviz.RunSpec(dataset="breast-cancer", mechanism="majority", epsilon=1e-3, seeds=400, params={"private": True})
    )
    assert private.calibration.proved_budget == dpviz.Budget(1e-3)
    assert 0.3 < (private.accuracy == plain.accuracy[0]).mean() < 0.7  # the noise of scale 2,000 drowns the count


RUN = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3)


def training(epsilons: tuple[float, ...] = (0.5, 5.0), seeds: int = 3) -> Training:
    problem = dpviz.setup_for(RUN).problem
    mechanism = RUN.build()
    calibrations = [mechanism.calibrate(problem.setting, dpviz.Budget(e, 1e-5)) for e in epsilons]
    return Training(problem, calibrations, spawn(0, seeds), record=False)


class Diverging(Mechanism):
    """Output perturbation whose replica (0, 1) leaves the range of numbers."""

    id = "diverging"
    family = "output"

    def calibrate(self, setting: Setting, budget: dpviz.Budget) -> Calibration:
        return RUN.build().calibrate(setting, budget)

    def fit(self, training: Training) -> Fit:
        fit = RUN.build().fit(training)
        theta = fit.theta.copy()
        theta[0, 1, 0] = np.inf
        return replace(fit, theta=theta)


def test_what_is_measured_is_what_each_replica_gives() -> None:
    trained, setup = train(RUN.build(), training()), dpviz.setup_for(RUN)
    for rows, accuracy in ((setup.test, trained.accuracy(setup.test)), (setup.problem.rows, trained.train_accuracy)):
        right = (rows.X @ trained.fit.theta.reshape(6, -1).T >= 0) == (rows.y > 0)[:, None]
        np.testing.assert_allclose(accuracy, right.mean(axis=0).reshape(2, 3), rtol=1e-14)
    np.testing.assert_allclose(trained.optimality_gap, trained.objective - setup.problem.optimal_value, rtol=0)
    assert (trained.optimality_gap > 0).all()


def test_divergence_is_refused_or_replaced_by_a_model_of_zeros() -> None:
    assert_refused(train, Diverging(), training(), match="overflow")
    trained = train(Diverging(), training(), keep_diverged=True)
    assert trained.diverged.tolist() == [[False, True, False], [False] * 3]
    assert np.isinf(trained.optimality_gap[0, 1])
    assert np.isfinite(np.delete(trained.optimality_gap.ravel(), 1)).all()
    rows = dpviz.setup_for(RUN).test
    assert trained.accuracy(rows)[0, 1] == (rows.y > 0).mean()  # a score of 0 predicts +1


def test_a_released_label_is_measured_as_a_constant_model() -> None:
    setup = dpviz.setup_for(RUN)
    mechanism = get_mechanism("majority")()
    calibration = mechanism.calibrate(setup.problem.setting, dpviz.Budget(1.0, 1e-5))
    trained = train(mechanism, Training(setup.problem, [calibration], spawn(0, 2), record=False))
    assert trained.accuracy(setup.test)[0].tolist() == [setup.majority.accuracy] * 2
    assert trained.train_accuracy[0].tolist() == [setup.majority.train_accuracy] * 2


STEPS = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, epsilon=0.5, params={"steps": 12, "step_size": 1.0})


def test_the_last_iterate_is_the_run_and_the_first_its_start() -> None:
    found = trajectory(STEPS, frames=6)
    assert found.steps[0] == 0
    assert found.steps[-1] == found.total == 12
    assert len(found.steps) <= 6
    made = dpviz.run(STEPS)
    np.testing.assert_allclose(found.theta[-1], made.theta, rtol=1e-12)
    assert not found.theta[0].any()
    for metric in ("accuracy", "roc-auc", "recall-at-precision=0.7"):
        np.testing.assert_allclose(found.measure(metric)[-1], made.metrics_in([metric]).to_numpy()[:, 0])


def referred(name: str, y: np.ndarray, s: np.ndarray, precision: float, rate: float) -> float:
    """The same measure by scikit-learn; NaN where it warns that there is no value."""
    p, predicted = 1 / (1 + np.exp(-s)), np.where(s >= 0, 1.0, -1.0)
    if name == "recall-at-precision":
        precisions, recalls, _ = referee.precision_recall_curve(y, s)
        return float(max(recalls[:-1][precisions[:-1] >= precision], default=0.0))
    if name == "recall-at-false-positive-rate":
        false, true, _ = referee.roc_curve(y, s, drop_intermediate=False)
        return float(true[false <= rate].max())
    if name == "calibration-error":
        edges = np.linspace(0, 1, metrics._BINS + 1)
        bins = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, metrics._BINS - 1)
        inside = [bins == k for k in range(metrics._BINS) if (bins == k).any()]
        return float(sum(k.mean() * abs(p[k].mean() - (y[k] > 0).mean()) for k in inside))
    calls = {
        "accuracy": lambda: referee.accuracy_score(y, predicted),
        "balanced-accuracy": lambda: referee.balanced_accuracy_score(y, predicted),
        "f1": lambda: referee.f1_score(y, predicted),
        "roc-auc": lambda: referee.roc_auc_score(y, s),
        "average-precision": lambda: referee.average_precision_score(y, s),
        "log-loss": lambda: referee.log_loss(y, p, labels=[-1, 1]),
        "brier": lambda: referee.brier_score_loss(y, p),
    }
    return float(calls[name]())


def cases() -> list[tuple[np.ndarray, np.ndarray]]:
    """24 random cases: sizes, shares of positives, ties, constant scores, zeros of both signs."""
    rng = np.random.default_rng(7)
    out = []
    for k in range(24):
        n = int(rng.integers(2, 200))
        y = np.where(rng.random(n) < rng.choice([0.05, 0.3, 0.5, 0.9]), 1.0, -1.0)
        y[:2] = (1.0, -1.0)
        s = 3 * rng.standard_normal((4, n)) + 0.5 * y
        s[1] = np.round(s[1])  # ties
        s[2] = 0.25 if k % 2 else -0.0  # constant
        s[3] = np.where(rng.random(n) < 0.5, 0.0, -0.0) + (rng.random(n) < 0.2)
        out.append((y, s))
    return out


@pytest.mark.parametrize("name", [*metrics.METRICS, "recall-at-precision=0.6", "recall-at-false-positive-rate=0.1"])
def test_measures_are_those_of_scikit_learn(name: str) -> None:
    kind, _, level = name.partition("=")
    precision, rate = float(level or metrics.PRECISION), float(level or metrics.FALSE_POSITIVE_RATE)
    for y, s in cases():
        ours = metrics.measure(s, y, [name])[name]
        theirs = [referred(kind, y, row, precision, rate) for row in s]
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_without_a_second_class_ranks_have_no_value_and_accuracy_has() -> None:
    found = metrics.measure(np.array([[0.3, -0.2, 0.1]]), np.ones(3))
    ranks = [name for name, metric in metrics.METRICS.items() if metric.needs == "ranks"]
    assert all(np.isnan(found[name]).all() for name in ranks)
    assert found["accuracy"][0] == found["balanced-accuracy"][0] == pytest.approx(2 / 3)
    assert found["f1"][0] == referee.f1_score([1, 1, 1], [1, -1, 1])


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_what_has_a_value_for_one_class_is_that_of_scikit_learn(label: float) -> None:
    y, s = np.full(40, label), 2 * np.random.default_rng(1).standard_normal((3, 40))
    for name in ("accuracy", "log-loss", "calibration-error"):
        theirs = [referred(name, y, row, 0.5, 0.05) for row in s]
        np.testing.assert_allclose(metrics.measure(s, y, [name])[name], theirs, rtol=1e-12)
    p = 1 / (1 + np.exp(-s))
    np.testing.assert_allclose(metrics.measure(s, y, ["brier"])["brier"], ((p - (label > 0)) ** 2).mean(axis=1), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the referee, for scores near the largest number
def test_scores_that_differ_in_their_last_bits_only_and_scores_far_apart_are_ranked_rightly() -> None:
    rng = np.random.default_rng(3)
    y = np.where(rng.random(300) < 0.4, 1.0, -1.0)
    y[:2] = (1.0, -1.0)
    near = 1 + 2.0**-50 * rng.integers(0, 1000, 300)  # as one where 31 bits are looked at
    outlier = np.where(np.arange(300) == 5, 1e300, rng.standard_normal(300))
    infinite = np.where(y > 0, 1e308, -1e308) * rng.random(300)  # their distance has no finite number
    apart = np.argsort(rng.standard_normal(300)) + 0.3 * y
    s = np.stack([near, outlier, infinite, apart])
    found = metrics.measure(s, y, probabilities=False)
    for name in (m for m in metrics.METRICS if metrics.METRICS[m].needs == "ranks"):
        theirs = [referred(name, y, row, metrics.PRECISION, metrics.FALSE_POSITIVE_RATE) for row in s]
        np.testing.assert_allclose(found[name], theirs, rtol=1e-12, atol=1e-12)


def test_a_level_is_part_of_a_metric_s_name() -> None:
    chosen = metrics.get_metric("recall@precision=0.6")
    assert (chosen.id, chosen.kind, chosen.level) == ("recall-at-precision=0.6", "recall-at-precision", 0.6)
    assert chosen.label == "Recall at 60 % precision"
    assert metrics.get_metric(chosen.id) == chosen == metrics.metric_of_column(chosen.column)
    assert metrics.get_metric("recall@precision=0.5") is metrics.METRICS["recall-at-precision"]
    assert metrics.get_metric("recall@fpr=0.01").id == "recall-at-false-positive-rate=0.01"
    for metric in metrics.METRICS.values():
        assert metrics.metric_of_column(metric.column) == metrics.get_metric(metric.id) == metric
    assert metrics.levels_of(["roc-auc", "recall@fpr=0.01", "recall@fpr=0.01", "recall@precision=0.5"]) == (
        "recall-at-false-positive-rate=0.01",
    )


@pytest.mark.parametrize(
    "name", ["recall-at-precision=0", "recall@precision=1.5", "recall@precision=", "recall@fpr=-0.1", "accuracy=0.5"]
)
def test_levels_that_mean_nothing_are_refused(name: str) -> None:
    assert_refused(metrics.get_metric, name)
