"""Groups and curves of scores, refereed by fairlearn and scikit-learn; why groups pay; releases at several budgets."""

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
from sklearn import metrics as referee
from sklearn.metrics import accuracy_score

import dpviz
from dpviz.experiments.studies.groups import MEASURES, Grouping, measure_groups, report
from dpviz.experiments.studies.releases import releases
from dpviz.experiments.studies.scores import GRID, Scores, scores

REFEREES = {"accuracy": accuracy_score, "recall": true_positive_rate, "false_positive_rate": false_positive_rate}


def cases(number: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Random cases: scores, labels, groups (some empty or of one class) and their number."""
    rng = np.random.default_rng(3)
    out = []
    for _ in range(number):
        n, count = int(rng.integers(5, 300)), int(rng.integers(1, 6))
        y = np.where(rng.random(n) < rng.choice([0.05, 0.5]), 1.0, -1.0)
        out.append((rng.standard_normal((2, n)) + y, y, rng.integers(0, count, n), count))
    return out


def test_measures_of_groups_are_those_of_fairlearn() -> None:
    rows = {"accuracy": (-1, 1), "recall": (1,), "false_positive_rate": (-1,)}
    for values, y, index, groups in cases(6):
        ours = measure_groups(values, y, index, groups)
        for r, row in enumerate(values):
            called = np.where(row >= 0, 1, -1)
            frame = MetricFrame(metrics=REFEREES, y_true=y, y_pred=called, sensitive_features=index)
            for measure, theirs in frame.by_group.items():
                for k, value in theirs.items():
                    # fairlearn says 0 where a group has no row of the class; here there is no value
                    inside = ((index == k) & np.isin(y, rows[measure])).any()
                    mine = ours[measure][r, k]
                    assert mine == pytest.approx(value, rel=1e-12) if inside else np.isnan(mine)


def test_a_released_label_has_no_score_and_the_same_accuracy_as_the_majority() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="majority", seeds=2)
    found = report(releases(spec, (1.0,)), Grouping("x1"))
    assert found.draws["mean_score"].isna().all()
    assert found.curves("accuracy").set_index("group")["mean"].to_dict() == pytest.approx(found.baseline("majority").to_dict())
    assert set(MEASURES) < set(found.draws)


SCORED = dpviz.RunSpec("census-1000", mechanism="dp-gd", seeds=3, epsilon=0.5)


@pytest.fixture(scope="module")
def found() -> Scores:
    return scores(SCORED, dpviz.run(SCORED).theta)


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


RELEASED = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)


def test_releases_are_those_of_single_runs_and_are_kept() -> None:
    made = releases(RELEASED, (3.0, 0.5))
    assert [release.spec.epsilon for release in made.at] == [0.5, 3.0]
    single = dpviz.run(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2, epsilon=0.5))
    assert made.at[0].theta == pytest.approx(single.theta)
    assert made.at[0].distribution.scale.shape == (1,)
    assert releases(RELEASED, (0.5, 3.0)) is made


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
