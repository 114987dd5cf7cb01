"""The pages on sensitivity, rates and accounting without a browser."""

import threading
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from support import assert_words
from support_pages import ACCOUNTING, SENSITIVITY, addressed, opened, settled, text

import dpviz
from dpviz.common import memory
from dpviz.dashboard.components import charts, recorder
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.job import Job
from dpviz.dashboard.jobs.pool import THREADS
from dpviz.dashboard.sensitivity import recursion, settings
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.studies import noise_comparison, scaling
from dpviz.mechanisms import attack
from dpviz.privacy.accounting import tables
from dpviz.privacy.accounting.events import PureEpsilon
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget, Status
from dpviz.reporting import Chart
from dpviz.spending import Entry, Ledger
from dpviz.spending.ledger import entry_of_budget
from dpviz.spending.of_run import entry_of

pytestmark = pytest.mark.usefixtures("fresh_pool")


COMPUTED = ((tables, "composition"), (tables, "delta_curve"), (tables, "relations"), (noise_comparison, "published_noise"))


@pytest.mark.long
def test_own_controls_live_in_the_address_and_bad_ones_are_reported() -> None:
    page = opened(SENSITIVITY, table="pidp", sort="population", tn="5000", over="lam")
    assert not page.warning
    assert_words(text(page), "5,000", "PIDP-SGD")
    page.radio(key="own.table").set_value("dbdp").run()
    assert page.query_params["table"] in ("dbdp", ["dbdp"])
    page.radio(key="own.part").set_value("rates").run()
    page.radio(key="own.table").set_value("input").run()
    assert "table" not in page.query_params, "defaults are not written"
    bad = (("table", "zzz", "Table"), ("tn", "-3", "n"), ("te", "lots", "ε"), ("over", "moon", "Sensitivity over"))
    for key, value, label in bad:
        page = opened(SENSITIVITY, **{key: value})
        assert page.warning[0].value.startswith(f"**{label}**")
    page = opened(ACCOUNTING, q="7", relation="nobody")
    assert len(page.warning) == 2


def test_the_regime_button_moves_the_run() -> None:
    page = settled(opened(SENSITIVITY, part="rates"))
    button = next(b for b in page.button if b.label.startswith("Choose settings where noise decides"))
    button.click().run()
    assert page.query_params["lam"] in ("0.05", ["0.05"])
    assert "Noise decides here" in text(settled(page))


def never_ready(monkeypatch: pytest.MonkeyPatch, *sections: str) -> tuple[Job[Any], list[str | None]]:
    """The job of these sections, at work from now on, and the keys of the containers that are drawn."""
    observe, at_work = tasks.observe, Job[Any]("pictures", None)

    def pending(section: str, *given: Any, **more: Any) -> tuple[Any, bool]:
        if section not in sections:
            return observe(section, *given, **more)
        st.session_state[f"watched.{section}"] = at_work
        return tasks.last_result(section), False

    monkeypatch.setattr(tasks, "observe", pending)
    drawn, container = list[str | None](), st.container
    monkeypatch.setattr(st, "container", lambda *given, **more: (drawn.append(more.get("key")), container(*given, **more))[1])
    return at_work, drawn


def test_a_curve_of_before_stays_until_the_new_one_is_there_and_reports_have_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    page = settled(opened(ACCOUNTING, mechanism="output-gaussian"))
    before = next(c.value for c in page.caption if c.value.startswith("At this noise every"))
    at_work, paler = never_ready(monkeypatch, "delta-curve", "relations", "composition")
    drawn: dict[str, Any] = {}
    chart = charts.chart

    def told(figure: Any, key: str, *given: Any, of: Any = None, **more: Any) -> Any:
        drawn[key] = of
        return chart(figure, key, *given, of=of, **more)

    monkeypatch.setattr(charts, "chart", told)
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert before in [c.value for c in page.caption]
    assert {"older-delta-curve", "older-relations", "older-composition"} <= set(paler)
    assert (drawn["delta-curve"].epsilon, drawn["relations"].epsilon, drawn["composition"]) == (1.0, 1.0, None)
    assert "Until then the picture shows the run before: Output perturbation (Gaussian) at ε = 1." in text(page)
    at_work.discard()
    assert "Until then" not in text(page.run())
    assert "The picture shows the run before: Output perturbation (Gaussian) at ε = 1." in text(page)
    assert "dpviz.drawn.relations" not in page.session_state, "jobs keep the picture, which go with an upload"
    report = recorder.get_recorder(page.session_state).document(
        dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=2.0), "x"
    )
    assert any("At ε = 2 the proved δ" in part.words.replace("\u00a0", " ") for part in report.parts if isinstance(part, Chart))


def test_the_best_attack_of_before_stays_on_the_first_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    page = settled(opened("One_model", mechanism="output-gaussian"))
    _, paler = never_ready(monkeypatch, "attacker")
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert "older-attacker" in paler
    assert "Until then the picture shows the run before: Output perturbation (Gaussian) at ε = 1." in text(page)


@pytest.mark.parametrize(
    ("page", "module", "name", "said"),
    [
        (ACCOUNTING, tables, "composition", "ε after T steps"),
        ("One_model", attack, "corner", "With at most 1 % false alarms"),
        (SENSITIVITY, scaling, "bounds", "Fitted slopes"),
    ],
)
def test_curves_that_take_seconds_are_computed_by_jobs(
    page: str, module: Any, name: str, said: str, monkeypatch: pytest.MonkeyPatch, fresh_pool: None
) -> None:
    """On the page's own thread one visitor's second of work, beside thirty others, is a minute without a page."""
    compute, threads = getattr(module, name), set()
    memory.clear()  # a run's table of attacks is kept with it

    def watched(*args: Any) -> Any:
        threads.add(threading.current_thread().name)
        return compute(*args)

    monkeypatch.setattr(module, name, watched)
    shown = settled(opened(page))
    assert said in text(shown)
    assert all(name.startswith(THREADS) for name in threads)
    document = recorder.get_recorder(shown.session_state).document(dpviz.RunSpec("teaching"), "x")
    assert any(said in part.words.replace("\u00a0", " ") for part in document.parts if isinstance(part, Chart))


def test_what_closed_folds_hold_is_computed_when_a_report_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def watch(module: Any, name: str) -> None:
        compute = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: asked.append(name) or compute(*given))

    for module, name in COMPUTED:
        watch(module, name)
    closed = settled(addressed(ACCOUNTING).run()).session_state["dpviz.recorder"].parts
    assert not asked
    shown = settled(opened(ACCOUNTING)).session_state["dpviz.recorder"].parts
    assert set(asked) == {name for _, name in COMPUTED}
    for name in ("composition", "delta-curve", "relations"):
        made = closed[name]()
        assert (made.words, made.figure.to_json()) == (shown[name].words, shown[name].figure.to_json())
        assert made.table().equals(shown[name].table())
    (papers,) = (name for name in closed if "paper's noise" in name)
    assert closed[papers]().frame.equals(shown[papers].frame)


def test_work_that_fails_says_so_and_can_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise FloatingPointError("the method diverged")

    monkeypatch.setattr(recursion.observed, "observed_sensitivity", broken)
    page = settled(opened(SENSITIVITY))
    assert any("the method diverged" in e.value for e in page.error)
    assert any(b.label == "Start again" for b in page.button)


def test_rows_without_a_privacy_proof_never_get_a_plain_tick() -> None:
    said = text(opened(SENSITIVITY, part="rates", tt="5"))
    row = next(part for part in said.split("\n") if "Input perturbation (Kang) (input)" in part)
    assert "its privacy proof does not" in row
    assert "✓" not in row


def test_the_budget_alone_allows_what_the_first_page_says() -> None:
    """(1 + tanh(1/2))/2, at a corner of the curve that lies between the points of any grid."""
    assert "would allow 73.1 %" in text(opened(ACCOUNTING, epsilon="1")).replace("\xa0", " ")


def test_the_page_opens_with_the_sidebars_own_mechanism_and_parts_open_by_links() -> None:
    page = opened(SENSITIVITY, mechanism="dp-gd")
    assert "DP-GD at ε = 1: one row changes the mean gradient of one step by at most" in text(page)
    assert not [h for h in page.header if h.value in settings.PARTS.values()]
    assert opened(SENSITIVITY, table="pidp").radio(key="own.part").value == "rates"
    none = opened(SENSITIVITY, mechanism="pidp-sgd")
    assert "no bound is proved for what one row changes" in text(none)


def test_the_ledger_adds_up_releases_of_the_run(tmp_path: Path) -> None:
    page = opened(ACCOUNTING, mechanism="output-gaussian", epsilon="1.0", releases="4")
    said = text(settled(page.run()))
    run = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=1.0)
    together = total_epsilon([entry_of(run.build(), setting_of(run), calibration_of(run)).release] * 4, 1e-5)
    assert_words(said, f"4 releases of this run: ε = {together:.3g}", "Added up one by one they would be ε = 4, δ = 4 · 10⁻⁵")
    held = Ledger.create(tmp_path / "l.toml", table="people", limit=Budget(1.5, 1e-5))
    held.spend(Entry(PureEpsilon(1.0), call="first"))
    held.spend(entry_of_budget(0.2, status=Status.CLAIM, call="second"))
    page.file_uploader(key="own.ledger").set_value(("l.toml", held.path.read_bytes(), "application/toml")).run()
    assert_words(
        text(settled(page)),
        "people: ε = 1.2",
        "within the limit ε = 1.5",
        "With this run the total would be",
        "above the limit ε = 1.5.",
    )
    assert any("second." in warning.value for warning in page.warning)
