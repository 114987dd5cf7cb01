"""The page One model without a browser: every mechanism, every kind of bad input."""

import logging
import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
import support_pages
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest
from support import LIMIT, mostly_long
from support_pages import address, plain, text

import dpviz
from dpviz.common import memory
from dpviz.dashboard.frame import metric, server, sidebar
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.links import add_version
from dpviz.models.solvers.many import NotConverged

opened = partial(support_pages.opened, "One_model")


def sentence(page: AppTest) -> str:
    return plain(next(m.value for m in page.markdown if " without privacy, " in m.value))


@pytest.mark.parametrize("dataset", mostly_long(dpviz.list_datasets(), "teaching", "iris"))
def test_every_dataset_has_a_page(dataset: str) -> None:
    page = opened(dataset=dataset)
    assert not page.error
    assert not page.warning
    declared = dpviz.load_dataset(dataset).declared
    said = " ".join(c.value for c in page.caption)
    assert ("before any noise. ε does not cover this" in said) != declared


def test_bad_addresses_are_explained_and_replaced() -> None:
    """One value of each kind; every value of a run is tried in tests/experiments/run/test_spec.py."""
    bad = {"epsilon": "nan", "delta": "0.5", "mechanism": "magic", "lam": "-1", "metric": "auc", "foo": "bar"}
    page = opened(**bad)
    fields = {warning.value.split("**")[1] for warning in page.warning}
    assert fields == {"Privacy budget ε", "Failure probability δ", "Mechanism", "Regularisation λ", "Metric", "address"}
    assert all(warning.value.count(". ") >= 1 for warning in page.warning)
    assert sentence(page)
    assert not set(bad.items()) & set(address(page).items())
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert not page.warning
    assert "ε = 2 " in sentence(page)


def test_controls_and_address_agree_both_ways() -> None:
    page = opened(epsilon="0.37", lam="0.02")
    assert (page.select_slider(key="epsilon").value, page.number_input(key="lam").value) == (0.37, 0.02)
    page.selectbox(key="mechanism").set_value("dp-gd").run()
    page.number_input(key="dp-gd.steps").set_value(20).run()
    page.toggle(key="intercept").set_value(False).run()
    query = address(page)
    spec = dpviz.RunSpec.from_query(query)
    assert query == add_version(spec.to_query())
    assert (spec.epsilon, spec.lam, dict(spec.params), spec.intercept) == (0.37, 0.02, {"steps": 20}, False)


def test_a_knob_at_its_own_rule_says_what_the_rule_gives() -> None:
    page = opened(mechanism="rsgd")
    batch = page.number_input(key="rsgd.batch_size")
    assert batch.value is None
    spec = dpviz.RunSpec(mechanism="rsgd")
    setting, budget = dpviz.setup_for(spec).problem.setting, dpviz.resolve(spec).budget
    value = spec.build().value("batch_size", setting, budget)
    assert batch.placeholder == f"automatic: {value}"
    assert batch.help.endswith(f" Here: {value} for n = 320.")
    batch.set_value(7).run()
    assert address(page)["rsgd.batch_size"] == "7"
    page.number_input(key="rsgd.batch_size").set_value(None).run()
    assert "rsgd.batch_size" not in address(page)
    assert not page.warning
    assert page.number_input(key="rsgd.batch_size").value is None


def test_a_typed_value_takes_the_report_of_the_one_before_with_it() -> None:
    page = opened()
    for wrong in ("abc", "0", "1e300"):
        page.text_input(key="epsilon_typed").set_value(wrong).run()
        assert [w.value.startswith("**Privacy budget ε**") for w in page.warning] == [True]
        assert page.select_slider(key="epsilon").value == 1
    page.text_input(key="epsilon_typed").set_value("-1").run()
    page.text_input(key="epsilon_typed").set_value("").run()
    assert not page.warning
    page.text_input(key="epsilon_typed").set_value("0.123")
    page.text_input(key="delta").set_value("1e-7").run()
    assert "ε = 0.123 " in sentence(page)
    assert address(page)["delta"] == "1e-07"


def test_the_metric_is_kept_in_the_address_and_spoken() -> None:
    page = opened(metric="roc-auc", dataset="iris")
    assert any("% ROC AUC" in m.value for m in page.markdown)
    assert any("Private ROC AUC" in c.value for c in page.caption)
    page.selectbox(key="own.metric").set_value("log-loss").run()
    assert address(page)["metric"] == "log-loss"
    assert any("log loss of" in m.value for m in page.markdown)
    page.selectbox(key="mechanism").set_value("majority").run()
    assert any("log loss has no value here" in m.value for m in page.markdown)
    assert any("Choose another metric" in i.value for i in page.info)


def test_the_precision_at_which_recall_is_measured_is_free_and_kept_in_the_address() -> None:
    page = opened(metric="recall-at-precision=0.7", dataset="teaching", seeds="2")
    assert "% recall at 70 % precision" in text(page)
    page.number_input(key="own.metric-level").set_value(62.5).run()
    assert address(page)["metric"] == "recall-at-precision=0.625"
    assert "% recall at 62.5 % precision" in text(page)
    page.number_input(key="own.metric-level").set_value(50.0).run()
    assert address(page)["metric"] == "recall-at-precision", "the usual level is not written"
    page.number_input(key="own.metric-level").set_value(0.0).run()
    assert any("precision" in w.value for w in (*page.warning, *page.error)), "a precision of 0 means nothing"
    page.selectbox(key="own.metric").set_value("accuracy").run()
    assert "own.metric-level" not in {one.key for one in page.number_input}
    assert "metric" not in address(page)
    assert sentence(page)


def test_a_rare_class_is_measured_by_balanced_accuracy_and_the_page_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    rare = SimpleNamespace(y=np.r_[np.ones(5), -np.ones(95)])
    monkeypatch.setattr(metric, "load_dataset", lambda name, intercept: rare)
    page = opened()
    assert any("% balanced accuracy" in m.value for m in page.markdown)
    assert any("rarer class has 5.0" in c.value for c in page.caption)
    assert "metric" not in address(page)
    page.selectbox(key="own.metric").set_value("accuracy").run()
    assert address(page)["metric"] == "accuracy"
    assert sentence(page)


def test_reset_forgets_the_address() -> None:
    page = opened(epsilon="0.5", metric="f1")
    next(b for b in page.button if b.label == "Back to the defaults").click().run()
    assert not page.query_params
    assert "at ε = 1 " in sentence(page)


def test_a_run_that_fails_says_so_and_the_controls_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise FloatingPointError("the method diverged")

    memory.clear()
    monkeypatch.setattr(cached_runs, "run_epsilons", broken)
    page = opened()
    assert "the method diverged" in page.error[0].value
    assert page.select_slider(key="epsilon").value == 1.0


@pytest.mark.parametrize("where", [(sidebar.Sidebar, "draw"), (sidebar, "_trained_on")])
def test_a_stopped_script_that_still_changes_the_method_ends_no_page(
    where: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, once = getattr(*where), ["majority"]

    def changed(*given: object) -> object:
        if once:
            st.session_state["mechanism"] = once.pop()
        return real(*given)

    monkeypatch.setattr(*where, changed)
    page = opened(dataset="teaching", mechanism="objective-tight")
    assert any(one.key == "objective-tight.relation" for one in (*page.selectbox, *page.radio))


def test_a_page_that_draws_itself_again_tells_the_browser_what_its_controls_say() -> None:
    page = opened(epsilon="0.5")

    def told() -> dict[str | None, bool]:
        return {one.key: one.proto.set_value for one in (*page.select_slider, *page.selectbox, *page.number_input)}

    page.run()
    assert not told()["epsilon"], "what a browser draws is its own in every other run"
    page.button(key="draw-again").click().run()
    assert all(told().values()), "a cut connection made it drop them"
    page.run()
    assert not told()["epsilon"]


def test_a_new_address_holds_where_the_browser_has_not_spoken_of_its_controls() -> None:
    page = opened(epsilon="0.5")
    page.query_params["epsilon"] = "2"
    del page.session_state["epsilon_typed"]
    page._run(WidgetStates())  # as a browser asks that has drawn none of them yet
    assert "at ε = 2 " in sentence(page)


@pytest.mark.parametrize("lost", [("model",), ("lam", "mechanism", "dp-gd.clip_norm"), ("epsilon",)])
def test_controls_that_a_stopped_run_did_not_reach_keep_what_they_said(lost: tuple[str, ...]) -> None:
    page = opened(**{"model": "svm", "lam": "0.01", "epsilon": "2", "mechanism": "dp-gd", "dp-gd.clip_norm": "0.5"})
    before, said = address(page), sentence(page)
    for key in lost:
        del page.session_state[key]
    page._run(WidgetStates())
    assert (address(page), sentence(page)) == (before, said)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (dpviz.InvalidInput("file", "was changed", "Choose it again."), "**file**: was changed. Choose it again."),
        (
            NotConverged("no minimum. Take a larger λ."),
            "**training**: no minimum. Take a larger λ. Change a setting on the left.",
        ),
    ],
)
def test_what_ends_a_page_in_the_middle_is_said_in_words(error: Exception, words: str) -> None:
    def shown(error: Exception) -> None:
        from dpviz.dashboard.frame import page

        assert page.report_stop(error)

    page = AppTest.from_function(shown, args=(error,), default_timeout=LIMIT).run()
    assert [w.value.replace("\\", "") for w in page.warning] == [f"{words} The rest of this page is missing."]
    record = logging.LogRecord("x", logging.ERROR, "", 0, "Uncaught", (), (type(error), error, None))
    assert server._in_a_line(record)
    assert (record.getMessage(), record.exc_info) == (f"A page ended early: {error}", None)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["objective-tight", "dp-gd"])
def test_objective_and_gap_are_told_with_the_lambda_that_they_belong_to(mechanism: str) -> None:
    """Where the method's rule asks for more λ than the non-private model has, the gap is not to that model's objective."""
    page = opened(dataset="iris", mechanism=mechanism, v="5")
    said = text(page)
    least, at, gap = re.search(
        r"draw minus ([\d.]+), that of the minimum without privacy(.*?): ([\d.]+) on average", said
    ).groups()
    table = next(t.value for t in page.table if "Optimality gap" in t.value.index)
    own, reference = (float(cell) for cell in table.loc["Training objective"].iloc[:2])
    assert own - float(least) == pytest.approx(float(gap), abs=2e-3)
    assert (float(least) == pytest.approx(reference)) == (mechanism == "dp-gd") == ("λ" not in at)
