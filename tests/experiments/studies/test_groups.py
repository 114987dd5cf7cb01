"""Groups of rows, refereed by fairlearn's MetricFrame."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
from sklearn.metrics import accuracy_score

import dpviz
from dpviz.datasets import Dataset
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.groups import MEASURES, MISSING, MOST, OTHERS, SMALL, Grouping, by_group, group, report
from dpviz.experiments.studies.releases import releases

SPEC = dpviz.RunSpec("census-2000", mechanism="dp-gd", seeds=2)
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
    for scores, y, index, groups in cases(6):
        ours = by_group(scores, y, index, groups)
        for r, row in enumerate(scores):
            called = np.where(row >= 0, 1, -1)
            frame = MetricFrame(metrics=REFEREES, y_true=y, y_pred=called, sensitive_features=index)
            for measure, theirs in frame.by_group.items():
                for k, value in theirs.items():
                    # fairlearn says 0 where a group has no row of the class; here there is no value
                    inside = ((index == k) & np.isin(y, rows[measure])).any()
                    mine = ours[measure][r, k]
                    assert mine == pytest.approx(value, rel=1e-12) if inside else np.isnan(mine)


def test_the_report_is_what_a_direct_call_gives_and_gaps_are_fairlearns_difference() -> None:
    epsilons = (0.3, 3.0)
    found = report(releases(SPEC, epsilons), Grouping("education"))
    setup = setup_for(SPEC)
    test = setup.split.test
    labels = setup.dataset.frame["education"].astype(str).to_numpy()[test]
    large = [name for name in found.groups.names if (labels == name).sum() >= SMALL]
    assert found.compared == large
    assert found.sizes["test"].sum() == len(test)
    assert found.sizes["small"].any(), "the case has a small group, which the gap leaves out"
    kept = np.isin(labels, large)
    for epsilon in epsilons:
        result = dpviz.run(replace(SPEC, epsilon=epsilon))
        scores = result.theta @ setup.dataset.X[test].T
        gaps = []
        for seed, row in enumerate(scores):
            called = np.where(row >= 0, 1, -1)
            frame = MetricFrame(metrics=accuracy_score, y_true=setup.test.y, y_pred=called, sensitive_features=labels)
            part = found.draws[(found.draws["epsilon"] == epsilon) & (found.draws["seed"] == seed)].set_index("group")
            assert part["accuracy"].to_dict() == pytest.approx(frame.by_group.to_dict())
            means = pd.Series(row).groupby(labels).mean()
            assert part["mean_score"].to_dict() == pytest.approx(means.to_dict())
            compared = MetricFrame(
                metrics=accuracy_score, y_true=setup.test.y[kept], y_pred=called[kept], sensitive_features=labels[kept]
            )
            gaps.append(compared.difference(method="between_groups"))
        row = found.gaps().set_index("epsilon").loc[epsilon]
        assert row["mean"] == pytest.approx(np.mean(gaps))
        curve = found.curves().query("epsilon == @epsilon").set_index("group")
        assert (curve["low"] <= curve["mean"] + 1e-12).all()
        assert (curve["mean"] <= curve["high"] + 1e-12).all()
    base = found.baseline("majority")
    label = 1.0 if setup.problem.rows.y.sum() >= 0 else -1.0
    assert base[large[0]] == pytest.approx((setup.test.y[labels == large[0]] == label).mean())
    assert found.baseline("majority", "mean_score").isna().all()


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
    assert cut.index[10] == 1
    assert cut.index[30] == 2
    assert np.bincount(group(data, Grouping("age")).index).tolist() == [20, 20]  # quarters would have too few test rows
    assert np.bincount(group(data, Grouping("age"), 120).index).tolist() == [10, 10, 10, 10]
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
    with pytest.raises(dpviz.InvalidInput) as caught:
        group(table(age=np.arange(40.0), text=["u", "v"] * 20), grouping)
    assert caught.value.field == field


def test_a_released_label_has_no_score_and_the_same_accuracy_as_the_majority() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="majority", seeds=2)
    found = report(releases(spec, (1.0,)), Grouping("x1"))
    assert found.draws["mean_score"].isna().all()
    assert found.curves("accuracy").set_index("group")["mean"].to_dict() == pytest.approx(found.baseline("majority").to_dict())
    assert set(MEASURES) < set(found.draws)
