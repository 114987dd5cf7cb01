"""The trade-off page without a browser."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import support_pages
from streamlit.testing.v1 import AppTest
from support import LIMIT, assert_refused, assert_words, until
from support_jobs import Slow
from support_pages import address, text

import dpviz
from dpviz.dashboard.frame import ranking
from dpviz.dashboard.jobs import pool
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.trade_off import method_comparison, running, settings
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.studies import guarantees
from dpviz.experiments.sweeps.cells import Cell
from dpviz.papers.figures import catalogue

FAST = {"dataset": "teaching", "seeds": "2", "points": "3", "methods": "cms-output,dp-gd"}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("cms-output", "dp-gd", "output-gaussian", "dbdp")}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    pool.pool().clear()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Cells wait in their monitor until they are let go or cancelled, and the ranking of all methods before it begins."""
    slow = Slow(monkeypatch)
    monkeypatch.setattr(ranking, "watch", lambda *given, watch=ranking.watch: slow.go.wait(LIMIT) and watch(*given))
    return slow.go.set


opened = partial(support_pages.opened, "Trade-off", **FAST)


def done(page: AppTest) -> AppTest:
    """The page when its job is over."""
    until(lambda: page.session_state["dpviz.sweep"].over, "the end of the sweep")
    return page.run()


def warnings(page: AppTest) -> list[str]:
    """Without the one that always stands beside tuning."""
    return [w.value.replace("\\", "") for w in page.warning if not w.value.startswith("Tuning")]


@pytest.mark.long
def test_the_page_speaks_the_chosen_metric() -> None:
    page = done(opened(metric="roc-auc", want="60"))
    assert "ROC AUC" in page.number_input(key="own.want").label
    assert_words(text(page), "For 60.0 % ROC AUC:", "majority label no value")
    assert {"ROC AUC", "ε for 60.0\u00a0%"} <= set(page.table[0].value)
    page.selectbox(key="own.metric").set_value("log-loss").run()
    page.number_input(key="own.want_loss").set_value(0.65).run()
    assert "For a log loss of 0.650:" in text(page)
    assert (address(page)["metric"], address(page)["want"], address(page)["want_loss"]) == ("log-loss", "60", "0.65")
    table = page.session_state["dpviz.picture"][1]
    near = table[table["epsilon"] == 1].groupby("mechanism")["log_loss"].mean()
    best = f"{dpviz.list_mechanisms()[near.idxmin()].label}, log loss {near.min():.3f}"
    assert near.idxmin() == "dp-gd"
    assert f"Best proved of 4 methods at ε = 1: {best}" in text(support_pages.settled(page)), "the best is the smallest loss"
    page = done(opened(metric="recall-at-precision=0.7", want="40"))
    assert "For 40.0 % recall at 70 % precision:" in text(page)
    assert "recall_at_precision_0.7" in page.session_state["dpviz.picture"][1]
    page = done(opened(metric="log-loss", model="svm"))
    assert "Log loss has no value here: the model gives no probabilities" in text(page)


def test_a_cache_folder_that_cannot_be_used_is_one_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "file" / "cache"))
    page = done(opened())
    assert len(page.table[0].value) == 2
    assert len(warnings(page)) == 1
    assert "Results cannot be kept" in warnings(page)[0]


def test_the_first_visit_needs_no_choice_and_methods_within_the_error_of_the_best_are_ties(held: Callable[[], None]) -> None:
    page = opened(methods="", points="")
    assert page.multiselect[0].value == ["dp-gd"], "the sidebar's method while the others are measured"
    assert [one.label for one in page.expander if one.proto.expanded and one.label.startswith("Tune")] == [], (
        "nothing is tuned yet"
    )
    early = page._tree.get_widget_states()
    held()
    page, measure = support_pages.settled(page), METRICS["accuracy"]
    ranks = ranking.rank_methods(ranking.measured_lines(dpviz.RunSpec("teaching", seeds=2)), measure)
    assert {one.one.spec.mechanism for one in ranks} == {"dp-gd", "cms-output", "output-gaussian"}, "what is claimed is not best"
    assert set(page.multiselect[0].value) == {"dp-gd", *(one.one.spec.mechanism for one in ranks[:3])}
    page._run(early)
    assert "methods" not in address(page), "a click that the browser sent before it heard of them chooses none"
    assert [one.mean for one in ranks] == sorted((one.mean for one in ranks), reverse=True)
    assert ranking.best(ranks, measure, rows=1) == ranks, "one test row tells nothing"
    ties = ranking.best(ranks, measure, rows=10**9)
    assert all(abs(one.mean - ranks[0].mean) <= 2 * np.hypot(one.error, ranks[0].error) for one in ties)
    assert f"Best proved of 4 methods at ε = 1: {ranks[0].label}" in text(page)


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("methods", "non-private", "Methods"),
        ("from", "0", "ε from"),
        ("points", "0", "Budgets"),
        ("want", "101", "Wanted, %"),
        ("knobs", "dp-gd", "Settings of other methods"),
        ("knobs", "dp-gd.magic:1", "Settings of other methods"),
        ("knobs", "magic.steps:1", "mechanism"),
        ("knobs", "dp-sgd.epochs:-1", "Epochs"),
        ("tune", "steps", "Settings to tune"),
        ("tune", "steps,steps", "Settings to tune"),
        ("tune", "steps,magic", "Settings to tune"),
    ],
)
def test_bad_values_of_an_address_are_named(key: str, value: str, field: str) -> None:
    """Beside values that cannot be read, which tests/dashboard/test_fields.py tries for every field."""
    (one,) = (one for one in settings.fields_of(dpviz.RunSpec("teaching", mechanism="dp-gd")) if one.key == key)
    assert_refused(one.read, value, field=field)


def test_bad_addresses_are_explained_and_replaced() -> None:
    page = opened(**{"from": "100", "want": "101", "foo": "bar"})
    assert sorted(said.split("**")[1] for said in warnings(page)) == ["Wanted,\u00a0%", "address", "epsilon grid"]
    assert not {"from", "foo", "want"} & set(address(page))
    assert "dpviz.sweep" in page.session_state


def test_no_method_and_too_much_work_are_states_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened()
    page.multiselect[0].set_value([]).run()
    assert page.multiselect[0].value, "an empty choice is the first view again"
    monkeypatch.setattr(running, "AUTOMATIC", 10)
    page = opened(points="5")
    assert "This is much work" in text(page)
    assert "dpviz.sweep" not in page.session_state
    next(b for b in page.button if b.label == "Start it").click().run()
    assert len(done(page).table[0].value) == 2


def test_a_method_that_fails_is_said_and_the_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Cell.compute

    def compute(cell: Cell, *rest: object) -> pd.DataFrame:
        if cell.spec.mechanism == "cms-output":
            raise dpviz.InvalidInput("mechanism", "diverged", "Use a smaller step.")
        return true(cell, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Cell, "compute", compute)
    page = done(opened())
    said = warnings(page)
    assert len(said) == 1
    assert "diverged" in said[0]
    assert len(page.table[0].value) == 1


def test_cancel_and_go_on(held: Callable[[], None]) -> None:
    page = opened()
    page.button(key="cancel-sweep").click().run()
    assert "Cancelled" in text(page)
    held()
    page.button(key="go-on").click().run()
    assert len(done(page).table[0].value) == 2


def test_other_clicks_leave_the_job_alone_and_other_settings_replace_it(held: Callable[[], None]) -> None:
    page = opened()
    job = page.session_state["dpviz.sweep"]
    page.toggle(key="own.odds").set_value(True).run()
    assert page.session_state["dpviz.sweep"] is job
    assert not job.over
    page.number_input(key="own.points").set_value(4).run()
    assert page.session_state["dpviz.sweep"] is not job
    assert job.state is State.CANCELLED, "who comes back to it finds its cells"
    held()
    done(page)


def test_knobs_of_several_methods_travel_in_the_address() -> None:
    page = opened(mechanism="dp-gd", **{"dp-gd.steps": "20", "knobs": "rsgd.epochs:3", "methods": "dp-gd,rsgd"})
    assert not warnings(page)
    sweep = page.session_state["dpviz.sweep"]
    assert {c.spec.mechanism: dict(c.spec.params) for c in sweep.cells} == {
        "dp-gd": {"steps": 20} | {k: v for k, v in dpviz.list_mechanisms()["dp-gd"].defaults().items() if k != "steps"},
        "rsgd": {"epochs": 3},
    }
    page.selectbox(key="mechanism").set_value("rsgd").run()
    assert address(page)["rsgd.epochs"] == "3"
    assert address(page)["knobs"] == "dp-gd.steps:20"


@pytest.mark.long
def test_tuning_applies_the_best_cell() -> None:
    page = opened(tune="steps,lam", mechanism="dp-gd", seeds="1", **{"dp-gd.steps": "50"})
    page.button(key="tune-start").click().run()
    job = page.session_state["dpviz.tuning"]
    until(lambda: job.over, "the end of tuning")
    page.run()
    assert "costs privacy" in " ".join(w.value for w in page.warning)
    best = page.button(key="tune-best").label.removeprefix("Use the best: ")
    page.button(key="tune-best").click().run()
    steps = page.session_state["dp-gd.steps"]
    assert f"steps {steps}" in best
    assert f"regularisation λ {page.session_state['lam']:.6g}" in best
    assert page.session_state["dpviz.tuning"] is job


def test_a_private_search_stands_beside_the_heat_map() -> None:
    page = opened(tune="step_size,lam", mechanism="dp-gd", epsilon="4.0", seeds="2", **{"dp-gd.steps": "20"})
    assert any("do not publish what it chose" in caption.value for caption in page.caption)
    page.button(key="start.private-search").click().run()
    page = support_pages.settled(page)
    rows: pd.DataFrame = next(table.value for table in page.table if "what it costs" in table.value)
    assert rows.index[0] == "Private search"
    proved = float(re.findall(r"[\d.]+", rows["what it costs"].iloc[0])[0])
    assert 3.9 <= proved <= 4.0
    assert "Each of its models had ε =" in text(page)
    assert "no private search" in text(opened(tune="lam,curvature_share", mechanism="objective-tight"))


def test_methods_that_refuse_are_left_out_of_cross_validation() -> None:
    refused = {"bassily-sgd": {"mode": "faithful", "relation": "add-remove"}}  # published for replace-one
    able = {"dp-gd": {"steps": 5}}

    def left(mechanisms: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        return method_comparison._able(dpviz.SweepSpec("teaching", mechanisms=mechanisms, epsilons=(2.0,), seeds=2)).named

    assert left(able | refused) == able
    both = able | {"bassily-sgd": {"mode": "faithful"}}
    assert left(both) == both, "control: in its own relation it stays"
    assert_refused(left, refused, match="defined for replace-one")


@pytest.mark.long
def test_a_figure_of_a_paper_is_set_up_and_judged() -> None:
    name = "ip-4-iris"
    page = opened(figure=name)
    page.button(key="figure-start").click().run()
    figure, panel = catalogue.PANELS[name]
    found = address(page)
    assert (found["dataset"], found["figure"]) == (panel.dataset, name)
    assert float(found["to"]) == figure.high
    page = done(page)
    verdicts = page.table[1].value
    assert len(verdicts) == len(figure.statements)
    signs = {"✓ holds", "◐ holds only if", "✗ fails", "↑ better than claimed", "– undecided"}
    assert all(any(v.startswith(sign) for sign in signs) for v in verdicts["Ours, on this data"])
    assert all(verdicts["Numbers"])
    assert "Changed since" not in text(page)
