"""A run that takes longer than a moment: the page shows the run before, and the new one whenever it is done."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from support import LIMIT, assert_words, until
from support_pages import addressed, opened, settled, text

from dpviz.common import memory
from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.claims import views
from dpviz.dashboard.frame.private import is_session
from dpviz.dashboard.jobs import cached_runs, page_priority, pool, tasks, watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.jobs.job import Job, State
from dpviz.experiments.run.resolve import ResolvedRun
from dpviz.experiments.run.spec import RunSpec
from dpviz.papers.claims import check, list_claims


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Runs in the background wait in their monitor until they are let go."""
    go, real = threading.Event(), cached_runs._compute

    def slow(spec: RunSpec, monitor: Monitor) -> Outcome:
        while threading.current_thread().name.startswith(pool.THREADS) and not go.wait(0.01):
            monitor(0.25)
        return real(spec, monitor)

    monkeypatch.setattr(tasks, "PATIENCE", 0.0)
    monkeypatch.setattr(cached_runs, "_compute", slow)
    memory.clear()
    pool.pool().clear()
    yield go.set
    go.set()
    pool.pool().clear()


def test_the_run_before_stays_until_the_new_one_is_there(held: Callable[[], None]) -> None:
    first = cached_runs.outcome(RunSpec("teaching", seeds=2))
    page = settled(addressed("One_model").run())
    assert "at ε = 1 " in text(page)
    assert page.select_slider(key="epsilon").set_value(2.0).run()
    assert_words(text(page), "at ε = 1 ", "Until then the page shows the run before")
    assert page.button(key="cancel-run").label == "Cancel"
    report = page.session_state["dpviz.recorder"]
    assert not report.badges, "a report would show one run and name another"
    assert [type(part).__name__ for part in report.parts.values()] == ["Text"]
    held()
    assert "at ε = 2 " in text(settled(page))
    assert "the run before" not in text(page)
    assert cached_runs.stored_outcome(first.spec) is first


def test_a_run_of_rows_that_have_changed_since_is_not_shown(held: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    cached_runs.outcome(RunSpec("teaching", seeds=2))
    page = addressed("One_model").run()
    assert "at ε = 1 " in text(page)
    key = ResolvedRun.key
    monkeypatch.setattr(ResolvedRun, "key", lambda run: f"{key(run)} of other rows")
    assert "at ε = 1 " not in text(page.select_slider(key="epsilon").set_value(2.0).run())


def test_a_run_in_memory_waits_for_no_thread(held: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    cached_runs.outcome(RunSpec("teaching", seeds=2))
    monkeypatch.setattr(pool.pool()._short, "submit", lambda *given: Future())
    page = addressed("One_model").run()
    assert_words(text(page), "at ε = 1 ", absent=("Until then",))
    assert "Until then" in text(page.select_slider(key="epsilon").set_value(2.0).run()), "the control"


def test_the_first_run_can_be_cancelled_and_started_again(held: Callable[[], None]) -> None:
    page = addressed("One_model").run()
    assert " without privacy, " not in text(page)
    page.button(key="cancel-run").click().run()
    assert "**Cancelled.**" in text(page)
    held()
    page.button(key="again-run").click().run()
    assert " without privacy, " in text(settled(page))
    until(lambda: not pool.pool().jobs(), "its job to go: the run is in its cache")


def test_who_moves_on_stops_the_run(held: Callable[[], None]) -> None:
    page = addressed("One_model").run()
    (left,) = pool.pool().jobs()
    page.select_slider(key="epsilon").set_value(2.0).run()
    assert left.state is State.CANCELLED
    held()
    assert "at ε = 2 " in text(settled(page))


def test_a_failed_run_is_not_trained_again_before_it_is_asked_for(
    held: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "PATIENCE", LIMIT)
    tried = []

    def refuse(spec: RunSpec, monitor: Monitor) -> Outcome:
        tried.append(spec)
        raise InvalidInput("epsilon", "is too small for this", "Take a larger one.")

    with monkeypatch.context() as patch:
        patch.setattr(cached_runs, "_compute", refuse)
        page = addressed("One_model").run()
        assert "epsilon: is too small for this" in text(page)
        assert "epsilon: is too small for this" in text(page.run())
        assert len(tried) == 1
    held()
    assert " without privacy, " in text(page.button(key="again-run").click().run())


def test_a_run_is_trained_once_for_all_who_ask(held: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    spec, compute, trained = RunSpec("teaching", seeds=2), cached_runs._compute, []
    monkeypatch.setattr(cached_runs, "_compute", lambda run, monitor: trained.append(run) or compute(run, monitor))
    groups = Job("groups", lambda monitor: iter([cached_runs.outcome(spec, monitor)]))
    asked = [pool.pool().submit(job) for job in (tasks.training(spec), groups, tasks.training(spec))]
    until(lambda: groups.state is State.RUNNING)
    held()
    until(lambda: all(job.over for job in asked))
    assert asked[0] is asked[2]
    assert asked[0].results == asked[1].results
    assert len(trained) == 1


class Work:
    """Work of a page that a test lets go, or lets fail; in which threads it was done."""

    def __init__(self) -> None:
        self.go, self.fails, self.threads = threading.Event(), False, list[str]()

    def __call__(self, monitor: Monitor) -> str:
        self.threads.append(threading.current_thread().name.rpartition("_")[0])
        if self.fails:
            raise InvalidInput("x", "is wrong", "Change it.")
        while not self.go.wait(0.01):
            monitor(0.5)
        return "the result"


def asking(work: Work, **more: Any) -> AppTest:
    """A page that draws something, and asks for what the work gives."""

    def script() -> None:
        import streamlit as st

        from dpviz.dashboard.components import panels, recorder
        from dpviz.dashboard.jobs import tasks
        from dpviz.experiments.run.spec import RunSpec

        recorder.begin("Page")
        panels.headline("The answer.", of=None)
        if st.session_state.pop("again", False):
            st.rerun()
        work, more = st.session_state.work, st.session_state.more
        found = tasks.current_result("x", "Counting rows", work, of=RunSpec("teaching"), kept=False, **more)
        st.text(f"found: {found}")

    pool.pool().clear()
    page = AppTest.from_function(script, default_timeout=LIMIT)
    page.session_state.work, page.session_state.more = work, more
    return page


def found(page: AppTest) -> str:
    assert not page.exception
    return page.text[0].value


def test_what_is_computed_for_a_page_is_computed_once_and_by_a_job() -> None:
    """A page computed itself what its job had found and a cache had dropped."""
    work = Work()
    work.go.set()
    page = asking(work)
    for _ in range(3):
        assert found(page.run()) == "found: the result"
    pool.pool().clear()  # as where many other jobs came since
    assert found(page.run()) == "found: the result"
    assert work.threads == [pool.THREADS]
    for given, times in (("a", 2), ("b", 3), ("b", 3)):
        page.session_state.more = {"given": given}
        page.run()
        assert work.threads == [pool.THREADS] * times


def test_a_press_is_remembered_through_a_failure_a_cancel_and_a_page_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    work.fails = True
    page = asking(work, ask="Count").run()
    assert not work.threads
    page.session_state.again = True  # as where a sweep above the button has just ended
    page.button(key="start.x").click().run()
    for _ in range(2):
        assert "is wrong" in page.error[0].value
        page.run()
    assert len(work.threads) == 1
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)
    work.fails = False
    page.button(key="again-x").click().run()
    page.button(key="cancel-x").click().run()
    assert "**Cancelled.**" in page.markdown[-1].value
    page.button(key="again-x").click().run()
    work.go.set()
    assert found(settled(page)) == "found: the result"


def test_a_report_without_a_part_says_why_and_has_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)
    page = asking(work).run()
    report = page.session_state["dpviz.recorder"]
    assert report.answers == ("The answer.", "The answer.")
    (part,) = report.parts.values()
    assert part.text.startswith("Counting rows: still being computed")
    (bar,) = page.get("progress")
    assert bar.proto.text.startswith("Counting rows: ")
    work.go.set()
    assert not settled(page).session_state["dpviz.recorder"].parts


MOST = 400  # looks in one drawing; far more than there are
PAGES_WITH_WORK = ("", "Trade-off", "Person", "Audit")  # a run, a sweep, and work of several parts


class Looks:
    """Holds all jobs until a page has looked at them so many times, and lets them end just before the next look."""

    def __init__(self) -> None:
        self.left = MOST
        self.polling = False  # whether the page that was drawn last looks again by itself
        self._go = threading.Event()
        self._run = Job.run

    def begin(self, number: int) -> None:
        self.left, self.polling = number, False
        self._go.clear()

    @property
    def over(self) -> bool:
        """Whether the jobs were let go."""
        return self._go.is_set()

    def state(self, job: Job) -> State:
        page_looks = is_session() and not pool.pool()._lock._is_owned()  # type: ignore[attr-defined]
        if page_looks and not self.over:
            self.left -= 1
            if self.left < 0:
                self._go.set()
                until(lambda: all(one.over for one in pool.pool().jobs()), "the end of all jobs")
        return job._state

    def run(self, job: Job, stop: threading.Event) -> None:
        while not (self._go.is_set() or stop.is_set()):
            self._go.wait(0.01)
        self._run(job, stop)

    def begins(self, title: str) -> None:
        """A drawing of the page."""
        self.polling = False
        _BEGINS(title)

    def fragment(self, *args: Any, **options: Any) -> Any:
        self.polling = self.polling or options.get("run_every") is not None
        return _FRAGMENT(*args, **options)


_FRAGMENT, _BEGINS = st.fragment, watching.arrive


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Looks]:
    made = Looks()
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(watching, "TOGETHER", 0.0)
    monkeypatch.setattr(page_priority, "ASIDE", 0.0)  # here a page waits for jobs where it would not
    monkeypatch.setattr(watching, "arrive", made.begins)
    monkeypatch.setattr(Job, "state", property(made.state))
    monkeypatch.setattr(Job, "over", property(lambda job: made.state(job).over))
    monkeypatch.setattr(Job, "run", lambda job, stop: made.run(job, stop))
    monkeypatch.setattr(st, "fragment", made.fragment)
    yield made
    made._go.set()
    pool.pool().clear()


def shows(looks: Looks, draw: Callable[[], AppTest], before: Callable[[], None]) -> None:
    """Draws a page again and again, whose work ends one look later each time, and compares it with the page drawn anew."""
    for number in range(MOST):
        before()
        looks.begin(number)
        page = draw()
        if not looks.over:
            break
        shown, polling = text(page), looks.polling
        if not polling:
            assert "Cancelled" not in shown
            assert text(page.run()) == shown, f"it ended before look {number}, and the page did not show it"
    assert 3 < number < MOST - 1


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES_WITH_WORK, ids=lambda n: n or "first")
def test_a_page_shows_what_ends_while_it_is_drawn(
    name: str, looks: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (str(tmp_path / str(number)) for number in count())

    def nothing_is_known() -> None:
        memory.clear()
        pool.pool().clear()  # a job that is stopped may still be writing its cell
        monkeypatch.setenv("DPVIZ_CACHE", next(folders))

    shows(looks, lambda: opened(name, runs="200"), nothing_is_known)


@pytest.mark.long
def test_a_claim_shows_the_verdict_of_a_test_that_ends_while_it_is_drawn(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "numerical-tighter"
    found = check(name)
    told = replace(found, verdict=replace(found.verdict, because="This is what was found just now."))
    monkeypatch.setattr(views, "check", lambda *args, **options: told)
    monkeypatch.setattr(views, "list_claims", lambda: {name: list_claims()[name]})

    def tested() -> AppTest:
        page = opened("Claims")
        return page.button(key="test-all").click().run()

    shows(looks, tested, pool.pool().clear)
