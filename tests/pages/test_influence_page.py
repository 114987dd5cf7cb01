"""The page "Person" without a browser: every mechanism, bad rows in the address, and choices."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import support_pages
from streamlit.testing.v1 import AppTest
from support import assert_refused, assert_words
from support_pages import address, plain, settled, text

import dpviz
from dpviz.dashboard.rows import selection
from dpviz.experiments.run.links import add_version
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies import inspected

opened = partial(support_pages.opened, "Person")


def sentence(page: AppTest) -> str:
    return plain(next(m.value for m in page.markdown if "moves the model most" in m.value))


def person(page: AppTest) -> dict[str, list[str]]:
    table = next(t.value for t in page.table if "Label" in t.value.index)
    return {
        str(k).replace("\\", ""): [str(v).replace("\\", "") for v in row]
        for k, row in zip(table.index, table.values, strict=True)
    }


def test_the_page_counts_the_rows_that_a_rule_trains_without_noise() -> None:
    page, result = opened(mechanism="dbdp-pi"), dpviz.run(dpviz.RunSpec("teaching", mechanism="dbdp-pi", seeds=2))
    for view in dpviz.list_mechanisms()["dbdp-pi"]().rule_views(result.setup.problem, result.calibration):  # type: ignore[attr-defined]
        assert f"The rule trains {int(view.passes.sum())} of 320 rows without noise" in text(page)


def test_a_session_on_another_page_holds_none_of_its_results(fresh_pool: None) -> None:
    page = support_pages.addressed("").run().switch_page(str(support_pages.PAGES["Person"])).run()
    page = settled(page)
    assert isinstance(page.session_state["observed.rows"].results[0][0], inspected.Inspected)
    page.switch_page(str(support_pages.PAGES["Guarantees"])).run()
    assert not [key for key in ("observed.rows", "watched.rows", "observed.run", "watched.run") if key in page.session_state]
    page.switch_page(str(support_pages.PAGES["Person"])).run()
    assert "moves the model most" in text(settled(page))


def test_a_person_in_the_address_is_shown_with_the_truth() -> None:
    spec = dpviz.RunSpec(dataset="teaching", seeds=2)
    ids = setup_for(spec).split.train
    page = opened(row=str(ids[17]), other=str(ids[200]))
    assert not page.warning
    facts = person(page)
    truth = dpviz.influence_of(setup_for(spec).problem).leave_one_out([17, 200]).norm
    for value, shown in zip(truth, facts["Leave-one-out truth"], strict=True):
        assert float(shown.split()[0].replace("−", "-")) == pytest.approx(value, rel=6e-3)
    frame = dpviz.load_dataset("teaching").frame
    assert facts["Label"] == [frame["label"][ids[17]], frame["label"][ids[200]]]
    assert address(page) == add_version({"seeds": "2", "row": str(ids[17]), "other": str(ids[200])})
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert address(page)["row"] == str(ids[17])
    assert person(page)["Label"] == facts["Label"]


def test_bad_rows_are_explained_and_dropped() -> None:
    test_row = str(setup_for(dpviz.RunSpec(dataset="teaching")).split.test[0])
    page = opened(row=test_row, other="<b>")
    assert len(page.warning) == 2
    for warning, label in zip(page.warning, ("Row id", "Compare with row id"), strict=True):
        assert warning.value.startswith(f"**{label}**")
        assert "training row" in warning.value
    assert f"{test_row} is a test row" in page.warning[0].value
    assert not {"row", "other"} & set(address(page))
    assert sentence(page)
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert not page.warning


@pytest.mark.parametrize("value", ["-1", "400", "1.5", "abc", "9" * 40, "nan"])
def test_what_is_no_row_is_refused(value: str) -> None:
    (field,) = (one for one in selection.fields_of(dpviz.RunSpec(dataset="teaching")) if one.key == "row")
    assert_refused(field.read, value, match="training row")


def test_groups_are_followed_by_every_panel() -> None:
    page = opened(mechanism="pidp-sgd")
    ids = setup_for(dpviz.RunSpec(dataset="teaching")).split.train
    page.session_state["dpviz.group"] = ids[40:80]
    page.run()
    order = inspected.row_influence(dpviz.RunSpec(dataset="teaching")).order
    best = ids[next(i for i in order if 40 <= i < 80)]
    assert page.text_input(key="own.row").placeholder == f"{best}"
    assert_words(text(page), "Of the 40 rows of the group", "40 rows of the group, retrained exactly", "All 40 rows of the group")
    next(b for b in page.button if b.label == "Clear the group").click().run()
    assert "of the group" not in text(page)
    page.session_state["dpviz.group"] = ids[40:80]
    page.selectbox(key="dataset").set_value("iris").run()
    assert "of the group" not in text(page), "a group belongs to one dataset"


def test_people_are_found_by_their_values() -> None:
    page = opened(dataset="census-300")
    next(m for m in page.multiselect if m.label == "Columns").set_value(["age", "household"]).run()
    page.selectbox(key="find-test-age").set_value(">").run()
    page.text_input(key="find-value-age").set_value("60").run()
    page.selectbox(key="find-level-household").set_value("single").run()
    data = dpviz.load_dataset("census-300")
    ids = setup_for(dpviz.RunSpec(dataset="census-300")).split.train
    frame = data.frame.iloc[ids]
    want = ids[((frame["age"] > 60) & (frame["household"] == "single")).to_numpy()]
    assert len(want) > 0
    assert f"{len(want)} of 240 training rows, by influence" in text(page)
    table = next(d.value for d in page.dataframe if len(d.value) == len(want) and "age" in d.value)
    assert set(table["row id"]) == set(want)
    page.text_input(key="find-value-age").set_value("__import__('os')").run()
    assert "age" in page.warning[0].value


def test_the_panel_on_noise_is_true_of_methods_without_a_rule() -> None:
    page = opened(mechanism="renyi-filter", seeds="2")
    assert_words(
        text(page),
        "until the squares of its gradients have used up its budget",
        "rows that took part: 320 in the first",
        absent=("received noise in the first",),
    )
    assert_words(text(opened(mechanism="nsgd")), "This method puts no noise on single rows: all share the same noise.")


def test_reports_of_people_are_shown_or_named() -> None:
    assert_words(text(opened(mechanism="ldp-duchi")), "signed record y·x", "moved by")
    assert_words(
        text(opened(mechanism="ldp-gaussian", **{"ldp-gaussian.release": "gradient"})), "It is no row", absent=("moved by",)
    )


@pytest.mark.parametrize("query", [{"row": "0", "other": "0"}, {"other": "4"}])
def test_nobody_is_compared_with_himself(query: dict[str, str]) -> None:
    page = opened(**query)  # row 4 moves the model of the teaching set most
    assert len(person(page)["Label"]) == 1
    assert "is the person shown" in page.warning[0].value
    assert "other" not in address(page)
    page.run()


def test_a_method_that_noises_no_rows_shows_one_step() -> None:
    page = opened(mechanism="dp-gd")
    assert "Every row is covered equally" in text(page)
    spec = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", seeds=2)
    step = inspected.one_step(spec)
    problem = setup_for(spec).problem
    np.testing.assert_allclose(step["before"], problem.model.sum_gradient(np.zeros((1, 3)), problem.rows, clip_norm=1.0)[0] / 320)
    assert step.shape == (3, 3)
    page.button(key="noising-pidp-sgd").click().run()
    assert address(page)["mechanism"] == "pidp-sgd"
    assert_words(
        text(opened(mechanism="output-gaussian")),
        "the noise goes on the trained parameters",
        absent=("at parameters 0",),  # the minimiser is not there
    )
    received = re.search(r"PIDP-SGD at ε = 1: (\d+) of 320 rows received noise", sentence(page))
    assert int(received[1]) <= 32, "no more rows than the share allows"
    assert sum("not private: reveals data" in m.value for m in page.markdown) == 1, "one banner a page"


def test_a_person_is_chosen_and_named_by_the_own_id_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    names = pd.Series([f"P{k:03}" for k in range(400)], name="patient")
    monkeypatch.setattr(inspected, "own_ids", lambda dataset: names)
    row = int(setup_for(dpviz.RunSpec(dataset="teaching")).split.train[17])
    page = opened(row=f"P{row:03}")
    assert not page.warning
    assert f"patient P{row:03}" in {plain(str(table.value.index.name)) for table in page.table}
    assert "patient P" in sentence(page)


def test_the_card_says_what_retraining_changes_for_any_row() -> None:
    spec = dpviz.RunSpec(dataset="teaching", seeds=2)
    influence = dpviz.influence_of(spec)
    for rank in (0, 3, 150):
        i = int(influence.order[rank])
        page = opened(row=str(setup_for(spec).split.train[i]))
        truth = influence.leave_one_out([i]).norm[0]
        (line,) = (str(table.value.loc["Without it"].iloc[0]) for table in page.table if "Without it" in table.value.index)
        assert_words(plain(line), f"change by {truth:.3g},", f"one Newton step: {influence.newton_norm[i]:.3g}")
