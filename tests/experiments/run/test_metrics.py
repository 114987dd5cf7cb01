"""Measures of usefulness against scikit-learn: ties, constant scores, one class, large scores."""

import numpy as np
import pytest
from sklearn import metrics as referee
from support import assert_refused

from dpviz.experiments.run import metrics


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
    """50 random cases: sizes, shares of positives, ties, constant scores, zeros of both signs."""
    rng = np.random.default_rng(7)
    out = []
    for k in range(50):
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


def test_models_without_probabilities_have_no_log_loss() -> None:
    found = metrics.measure(np.array([[1.0, -1.0]]), np.array([1.0, -1.0]), probabilities=False)
    assert all(np.isnan(found[name]).all() == (m.needs == "probabilities") for name, m in metrics.METRICS.items())


def test_scores_so_large_that_probabilities_round_to_one_keep_a_finite_log_loss() -> None:
    assert metrics.measure(np.array([[800.0]]), np.array([-1.0]), ["log-loss"])["log-loss"][0] == 800


@pytest.mark.parametrize(
    ("scores", "y", "field"),
    [
        (np.zeros(3), np.ones(3), "scores"),
        (np.zeros((2, 3)), np.ones(2), "scores"),
        (np.zeros((2, 0)), np.ones(0), "scores"),
        (np.array([[np.nan, 1.0]]), np.ones(2), "scores"),
        (np.zeros((1, 2)), np.array([0.0, 1.0]), "y"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(scores: np.ndarray, y: np.ndarray, field: str) -> None:
    assert_refused(metrics.measure, scores, y, field=field)


def test_rare_classes_are_measured_by_balanced_accuracy() -> None:
    assert metrics.default_metric(np.r_[np.ones(9), -np.ones(91)]) == "balanced-accuracy"
    assert metrics.default_metric(np.r_[np.ones(91), -np.ones(9)]) == "balanced-accuracy"
    assert metrics.default_metric(np.r_[np.ones(10), -np.ones(90)]) == "accuracy"


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
