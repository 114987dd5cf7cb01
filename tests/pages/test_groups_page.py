"""The page Groups without a browser."""

from support_pages import opened, text

import dpviz
from dpviz.dashboard.groups.over_epsilon import EPSILONS
from dpviz.experiments.studies.groups import Grouping, report
from dpviz.experiments.studies.releases import releases

PAGE = "Groups"


def test_the_sentence_and_the_table_say_what_the_engine_says() -> None:
    page = opened(PAGE, dataset="census-1000", mechanism="output-gaussian", group="region")
    spec = dpviz.RunSpec("census-1000", mechanism="output-gaussian", seeds=2)
    assert 1.0 in EPSILONS
    found = report(releases(spec, (1.0,)), Grouping("region"))
    here = found.draws.groupby("group")["accuracy"].mean()[found.compared]
    said = text(page).replace("\u00a0", " ")
    assert f"{100 * here.min():.1f} % for “{here.idxmin()}”" in said
    shown = round(100 * here.max(), 1) - round(100 * here.min(), 1)
    assert f"{shown:.1f} points apart" in said, "the sentence adds up"
    assert f"{100 * found.baseline_gap('non-private'):.1f} without privacy" in said
    table = next(t.value for t in page.table if "Test rows" in t.value.columns)
    assert table["Test rows"].astype(int).sum() == 200
    assert len(page.get("plotly_chart")) == 6
    assert "No ε covers them" in said


def test_a_moved_threshold_changes_the_matrix_and_warns() -> None:
    page = opened(PAGE, dataset="census-1000", group="age", cuts="30,50")
    assert not page.warning
    before = page.table[-1].value
    page.number_input(key="own.threshold").set_value(0.8).run()
    assert "not covered by ε" in page.warning[0].value
    assert not before.equals(page.table[-1].value)
    groups = next(t.value for t in page.table if "Test rows" in t.value.columns)
    assert list(groups.index) == ["below 30", "30 to 50", "50 or more"]
    page.selectbox(key="own.of").set_value("mean_score").run()
    said = text(page)
    assert "mean score is −" in said
    assert "Largest minus smallest mean score" in said


def test_who_pays_is_shown_when_it_is_asked_for() -> None:
    page = opened(PAGE, group="kind", epsilon="0.3", why="true", mechanism="dp-gd", **{"dp-gd.clip_norm": "0.3"})
    assert "Does privacy cost the smallest group more here?" in text(page)
    assert "“outlier” loses" in text(page)
    table = next(t.value for t in page.table if "Predictions changed" in t.value.columns)
    assert set(table.index) == {"group", "outlier"}
    assert all(0 < float(v.removesuffix("\u00a0%").removesuffix(" %")) <= 100 for v in table["Gradients clipped"])


def test_what_cannot_be_shown_is_said() -> None:
    page = opened(PAGE, mechanism="majority")
    assert any("no scores here" in i.value for i in page.info)
    page = opened(PAGE, dataset="iris", group="species")
    assert any("Choose another column" in i.value for i in page.info)
    page = opened(PAGE, dataset="census-1000", group="region", cuts="3")
    assert any("holds text and cannot be cut" in e.value for e in page.error)
    page = opened(PAGE, cuts="3,2")
    assert page.warning[0].value.startswith("**Cut a number at**")


def test_every_measure_stands_beside_non_private_and_majority() -> None:
    page = opened(PAGE, dataset="census-1000", mechanism="output-gaussian", group="region", of="recall")
    [table] = [t.value for t in page.table if "Test rows" in t.value.columns]
    assert list(table.columns) == ["Recall", "Non-private recall", "Majority recall", "Training rows", "Test rows"]
    spec = dpviz.RunSpec("census-1000", mechanism="output-gaussian", seeds=2)
    base = report(releases(spec, (1.0,)), Grouping("region")).baseline("non-private", "recall")
    shown = [float(text.replace("\u00a0", " ").removesuffix(" %")) for text in table["Non-private recall"]]
    assert shown == [round(100 * value, 1) for value in base]
    assert "own.cuts" not in {one.key for one in page.text_input}, "a column of text is not cut"
    page.selectbox(key="own.group").set_value("age").run()
    assert "own.cuts" in {one.key for one in page.text_input}
