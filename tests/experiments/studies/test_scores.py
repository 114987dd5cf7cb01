"""Scores and thresholds against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as referee

import dpviz
from dpviz.experiments.studies.scores import BINS, GRID, Scores, scores

SPEC = dpviz.RunSpec("census-1000", mechanism="dp-gd", seeds=3, epsilon=0.5)


@pytest.fixture(scope="module")
def found() -> Scores:
    made = scores(SPEC, dpviz.run(SPEC).theta)
    assert made is not None
    return made


def test_values_are_probabilities_of_the_released_models(found: Scores) -> None:
    result = dpviz.run(SPEC)
    raw = result.theta @ result.setup.dataset.X[result.setup.split.test].T
    assert found.probabilities
    np.testing.assert_allclose(found.values["private"], 1 / (1 + np.exp(-raw)))


def test_curves_are_those_of_scikit_learn(found: Scores) -> None:
    for model, values in found.values.items():
        recalls, precisions = [], []
        for row in values:
            false, true, _ = referee.roc_curve(found.y, row, drop_intermediate=False)
            recalls.append([true[false <= x + 1e-12].max() for x in GRID])
            precision, recall, _ = referee.precision_recall_curve(found.y, row)
            kept = precision[:-1][::-1], recall[:-1][::-1]  # highest threshold first, without the made-up last point
            precisions.append([kept[0][np.argmax(kept[1] >= x - 1e-12)] for x in GRID])
        for lines, table in ((recalls, found.roc()), (precisions, found.precision_recall())):
            part = table[table["model"] == model]
            np.testing.assert_allclose(part["mean"], np.mean(lines, axis=0))
            np.testing.assert_allclose(part["low"], np.quantile(lines, 0.1, axis=0))


def test_the_confusion_matrix_follows_the_threshold(found: Scores) -> None:
    for threshold in (0.2, 0.5, 0.8, 1.1):
        table = found.confusion(threshold)
        for model, values in found.values.items():
            each = [referee.confusion_matrix(found.y, np.where(row >= threshold, 1, -1), labels=[-1, 1]) for row in values]
            (tn, fp), (fn, tp) = np.mean(each, axis=0)
            row = table.loc[model]
            names = ["true_negative", "false_positive", "false_negative", "true_positive"]
            assert row[names].to_list() == pytest.approx([tn, fp, fn, tp])
            assert row["recall"] == pytest.approx(tp / (tp + fn))
    assert np.isnan(found.confusion(1.1).loc["non-private", "precision"])


def test_reliability_is_calibration_in_equal_intervals(found: Scores) -> None:
    values = found.values["non-private"][0]
    part = found.reliability().query("model == 'non-private'")
    observed, predicted = [], []
    for k in range(BINS):
        inside = np.minimum((values * BINS).astype(int), BINS - 1) == k
        if inside.any():
            observed.append((found.y[inside] > 0).mean())
            predicted.append(values[inside].mean())
    assert part["observed"].to_list() == pytest.approx(observed)
    assert part["predicted"].to_list() == pytest.approx(predicted)
    assert part["rows"].sum() == len(values)


def test_distributions_add_up_and_labels_have_no_scores(found: Scores) -> None:
    assert found.distribution().groupby(["model", "label"])["share"].sum().to_list() == pytest.approx([1.0] * 4)
    assert scores(SPEC, np.zeros((2, 27)), np.ones(2)) is None
    hinge = dpviz.RunSpec("teaching", "svm", "output-gaussian", seeds=2)
    made = scores(hinge, dpviz.run(hinge).theta)
    assert made.usual == 0.0
    assert made.reliability().empty
