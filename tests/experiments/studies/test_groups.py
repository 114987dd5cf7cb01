"""Groups and curves of scores, refereed by fairlearn and scikit-learn; why groups pay; releases at several budgets."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
from sklearn import metrics as referee
from sklearn.metrics import accuracy_score
from support import assert_refused

import dpviz
from dpviz.datasets import Dataset
from dpviz.experiments.studies import cost_by_group as costs
from dpviz.experiments.studies.cost_by_group import CLIPPED, HARD, GroupCosts, cost_by_group
from dpviz.experiments.studies.groups import MEASURES, MISSING, MOST, OTHERS, Grouping, group, measure_groups, report
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


def table(**values: object) -> Dataset:
    n = 40
    frame = pd.DataFrame(values).assign(label=["a", "b"] * (n // 2))
    rng = np.random.default_rng(0)
    return Dataset("made", rng.random((n, 1)), np.tile([-1.0, 1.0], n // 2), ("x",), frame, "", ("a", "b"), "")


def test_numbers_are_cut_where_asked_and_edges_belong_above() -> None:
    data = table(age=np.arange(40.0))
    cut = group(data, Grouping("age", (10.0, 30.0)))
    assert cut.names == ("below 10", "10 to 30", "30 or more")
    assert np.bincount(cut.index).tolist() == [10, 20, 10]
    assert (cut.index[10], cut.index[30]) == (1, 2)
    assert np.bincount(group(data, Grouping("age")).index).tolist() == [20, 20]  # quarters would have too few test rows
    assert np.bincount(group(data, Grouping("age"), 120).index).tolist() == [10, 10, 9, 11], "cut at 10, 20 and 29"
    assert group(data, Grouping("age", (-5.0, 10.0))).names == ("-5 to 10", "10 or more"), "empty groups are left out"


def test_few_numbers_are_values_gaps_are_a_group_and_rare_texts_go_together() -> None:
    few = np.tile([2.0, 0.0, 1.0, np.nan], 10)
    many = [f"t{k // 2}" for k in range(40)]
    data = table(few=few, many=many)
    assert group(data, Grouping("few")).names == ("0", "1", "2", MISSING)
    made = group(data, Grouping("many"))
    assert len(made.names) == MOST
    assert made.names[-1] == OTHERS
    assert np.bincount(made.index)[-1] == 40 - 2 * (MOST - 1)


@pytest.mark.parametrize(
    ("grouping", "field"),
    [
        (Grouping("nothing"), "group"),
        (Grouping("label"), "group"),
        (Grouping("text", (1.0,)), "cuts"),
        (Grouping("age", (2.0, 1.0)), "cuts"),
        (Grouping("age", (float("nan"),)), "cuts"),
    ],
)
def test_impossible_groups_are_refused_in_words(grouping: Grouping, field: str) -> None:
    assert_refused(group, table(age=np.arange(40.0), text=["u", "v"] * 20), grouping, field=field)


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


def test_methods_that_put_noise_on_rows_have_it_per_group() -> None:
    table = cost_by_group(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2), Grouping("kind")).table
    assert (table["times_noised"] >= 0).all()
    assert table["clipped"].isna().all(), "nothing is clipped by this method"


def made(rows: tuple[int, int], right: tuple[float, float], lost: np.ndarray, clipped: tuple[float, float]) -> GroupCosts:
    shares = tuple(count / sum(rows) for count in rows)
    columns = {
        "group": ("a", "b"),
        "rows": rows,
        "share": shares,
        "non_private_right": right,
        "lost": lost.mean(axis=0),
        "clipped": clipped,
    }
    return GroupCosts(pd.DataFrame(columns), lost)


def test_the_reasons_are_those_that_hold_and_noise_decides_nothing() -> None:
    lost = np.array([[0.1, 0.02], [0.12, 0.01], [0.11, 0.03]])
    found = made((100, 900), (0.6, 0.8), lost, (0.5, 0.2))
    assert found.certain
    assert found.more > 0
    assert found.reasons == (costs.SMALL, HARD, CLIPPED)
    assert made((500, 510), (0.8, 0.79), lost, (np.nan, np.nan)).reasons == ()
    assert not made((100, 900), (0.6, 0.8), lost * [[1, 1], [-1, 1], [1, 1]], (0.5, 0.2)).certain
    assert np.isnan(made((100, 900), (0.6, 0.8), lost[:1], (0.5, 0.2)).error)


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
