"""A run that takes longer than a moment: the page is there, shows the run before, and draws the new one when it is done."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT, until
from support_pages import addressed, text

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.one_run import views
from dpviz.dashboard.work import cached_runs, in_front, pool
from dpviz.dashboard.work.job import Job
from dpviz.experiments.run.spec import RunSpec

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Runs in the background wait in their monitor until they are let go."""
    go, real = threading.Event(), cached_runs.compute_in_background

    def slow(spec: RunSpec, monitor: Monitor) -> None:
        while not go.wait(0.01):
            monitor(0.25)
        real(spec, monitor)

    monkeypatch.setattr(in_front, "PATIENCE", 0.0)
    monkeypatch.setattr(cached_runs, "compute_in_background", slow)
    cached_runs.clear()
    pool.pool().clear()
    yield go.set
    go.set()
    pool.pool().clear()


def done(page: AppTest) -> AppTest:
    until(lambda: all(job.over or job.state.stopped for job in list(pool.pool()._jobs.values())), "the end of all jobs")
    return page.run()


def test_the_run_before_stays_until_the_new_one_is_there(held: Callable[[], None]) -> None:
    first = cached_runs.outcome(RunSpec("teaching", seeds=2))
    page = addressed("").run()
    assert "at ε = 1 " in text(page)
    assert page.select_slider(key="epsilon").set_value(2.0).run()
    assert "at ε = 1 " in text(page)
    assert "Until then the page shows the run before" in text(page)
    assert page.button(key="cancel-run").label == "Cancel"
    report = page.session_state["dpviz.recorder"]
    assert not report.badges, "a report would show one run and name another"
    assert [type(part).__name__ for part in report.parts.values()] == ["Text"]
    held()
    assert "at ε = 2 " in text(done(page))
    assert "the run before" not in text(page)
    assert cached_runs.stored(first.spec) is first


def test_the_first_run_can_be_cancelled_and_started_again(held: Callable[[], None]) -> None:
    page = addressed("").run()
    assert " is right " not in text(page)
    page.button(key="cancel-run").click().run()
    assert "**Cancelled.**" in text(page)
    held()
    page.button(key="again-run").click().run()
    assert " is right " in text(done(page))
    until(lambda: not pool.pool()._jobs, "its job to go: the run is in its cache")


def test_who_moves_on_stops_the_run(held: Callable[[], None]) -> None:
    page = addressed("").run()
    (left,) = pool.pool()._jobs.values()
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert left.state.stopped
    held()
    assert "at ε = 2 " in text(done(page))


def test_what_fails_is_said_and_tried_again(held: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_front, "PATIENCE", LIMIT)

    def refuse(spec: RunSpec, monitor: Monitor) -> None:
        raise InvalidInput("epsilon", "is too small for this", "Take a larger one.")

    with monkeypatch.context() as patch:
        patch.setattr(views.cached_runs, "compute_in_background", refuse)
        page = addressed("").run()
        assert "epsilon: is too small for this" in text(page)
    held()
    assert " is right " in text(page.run())


def test_a_job_does_not_step_aside_for_what_it_computes_itself() -> None:
    page_waits: list[bool] = []

    def stream(monitor: Monitor) -> Iterator[None]:
        cached_runs.clear()
        spec = RunSpec("teaching", mechanism="dp-gd", seeds=2)
        cached_runs.outcome(spec, lambda share: page_waits.append(in_front.pool()._page_waits()))
        yield None

    job = Job("x", stream)
    pool.pool().submit(job, "me")
    assert job.wait(LIMIT)
    assert job.problem is None
    pool.pool().clear()


def test_what_depends_on_more_than_the_run_is_work_of_its_own_for_each() -> None:
    """With one key for all groupings the second one was computed in the page's script, which nobody could stop."""

    def script() -> None:
        import threading

        import streamlit as st

        from dpviz.dashboard.work import in_front
        from dpviz.experiments.run.spec import RunSpec

        def work(spec: object, monitor: object) -> None:
            places.append((given, threading.current_thread().name == "dpviz-job"))

        given, places = st.session_state.given, st.session_state.places
        in_front.computed(RunSpec("teaching"), work, "tested", given)

    page = AppTest.from_function(script)
    page.session_state.places = []
    for given in ("a", "b"):
        page.session_state.given = given
        page.run()
        assert not page.exception
        assert (given, True) in page.session_state.places
