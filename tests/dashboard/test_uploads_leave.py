"""An upload that goes, and a session that was left, take along all that was made of them."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from support import LIMIT

from dpviz.common import memory
from dpviz.dashboard.components import charts
from dpviz.dashboard.frame import session
from dpviz.dashboard.jobs import cached_runs
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs.pool import Pool
from dpviz.dashboard.jobs.sweep import SweepJob
from dpviz.dashboard.rows import influence_map, selection
from dpviz.datasets.sources import uploads
from dpviz.datasets.table.csv import Table, read_csv
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import decision_boundary, guarantees, inspected
from dpviz.experiments.studies.releases import releases
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.figures.style import LIGHT
from dpviz.reporting import Chart, pictures

ROOT = Path(__file__).parents[2]
ROWS = 1013  # numbers of rows that nothing else has: all, training, test
LENGTHS = {ROWS, 810, 203}
#: caches that no upload can reach: it is never read from a folder, given in Python or published, and has a cache of its own
NEVER = {"tables of the data folder", "own rows", "published files"}


def upload() -> uploads.Upload:
    rng = np.random.default_rng(5)
    text = "age,wage,label\n" + "\n".join(
        f"{age},{wage:.3f},{'yes' if age + 20 * wage > 60 else 'no'}"
        for age, wage in zip(rng.integers(18, 90, ROWS), rng.random(ROWS), strict=True)
    )
    return uploads.Upload(read_csv(text.encode()), TableSpec("label"))


def fill(name: str) -> SweepJob:
    """Has every cache and the pool of jobs make something of an upload."""
    spec = RunSpec(dataset=name, mechanism="dbdp", seeds=2)
    decision_boundary.plane_of(spec, 2, cached_runs.outcome(spec).theta.shape[1])
    cached_runs.outcome(RunSpec(dataset=name, ranges="private", seeds=2))
    seen = inspected.inspect(spec)
    inspected.row_influence(spec)
    inspected.retrain_without(spec, [1, 2])
    inspected.noisy_rows(spec)
    releases(spec, [0.5, 1.0])
    next(table for table in guarantees.watch(spec) if table.metrics)
    influence_map.place(seen, dataset_of(spec), selection.COMPONENTS)
    charts.still_chart("plane", lambda narrow: Chart(pictures.plane(cached_runs.outcome(spec), LIGHT), ""), "its run", of=spec)
    sweep = SweepSpec(dataset=name, mechanisms=["cms-output"], epsilons=[1.0], seeds=2)
    job = jobs.pool().submit(SweepJob(f"of {name}", sweep.cells(), None))
    assert job.wait(LIMIT)
    return job


def holding_rows() -> list[object]:
    """Arrays and tables with as many rows as the upload, its training part or its test part, of all that is alive."""
    gc.collect()
    found: dict[int, object] = {}
    for thing in gc.get_objects():
        for part in (thing, *gc.get_referents(thing)):
            shape = part.shape if isinstance(part, np.ndarray | pd.DataFrame | pd.Series | pd.Index) else ()
            if LENGTHS & set(shape):
                found[id(part)] = part
    return list(found.values())


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    memory.clear()
    jobs.pool().clear()
    yield
    memory.clear()
    jobs.pool().clear()


@pytest.mark.long
def test_nothing_that_is_alive_holds_rows_of_an_upload_that_went() -> None:
    others = {id(thing): thing for thing in holding_rows()}  # of other tests of this process; held, so that no id comes again
    mine = upload()
    name = mine.name
    fill(name)
    assert set(memory.owned_entries(name)) == {*memory.held_bytes()} - NEVER, "every cache of the program holds something of it"
    assert sum(id(thing) not in others for thing in holding_rows()) > 10, "a test that sees none would see none afterwards either"
    mine.forget()  # its session may hold the object for longer
    assert jobs.pool().find(f"of {name}") is None
    assert memory.owned_entries(name) == {}
    assert [type(thing) for thing in holding_rows() if id(thing) not in others] == []


class Clock:
    """Sessions, the time, and what the server's loop is asked to do later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.closed = 0.0, list[str]()
        self._later: list[tuple[float, Any]] = []
        monkeypatch.setattr(session, "_visits", {})
        monkeypatch.setattr(session.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(session.private, "close", self.closed.append)
        monkeypatch.setattr(session.asyncio, "get_running_loop", lambda: self)

    def call_later(self, seconds: float, call: Any, *given: Any) -> None:
        self._later.append((self.now + seconds, lambda: call(*given)))

    def come(self, who: str, browser: str = "") -> session._Visit:
        """A page of the session is drawn."""
        visit = session._present.__wrapped__(who, who.upper(), browser)
        assert isinstance(visit, session._Visit)
        return visit

    def leave(self, who: str) -> None:
        session._left(session._visits[who])

    def goes_on(self, until: float) -> list[str]:
        """The sessions that are closed by then."""
        before = len(self.closed)
        for due, call in sorted(self._later, key=lambda pair: pair[0]):
            if self.now <= due <= until:
                self.now = due
                call()
        self.now = until
        return self.closed[before:]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def small_upload() -> uploads.Upload:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.random(40), "label": np.where(rng.random(40) > 0.5, 1.0, 0.0)})
    return uploads.Upload(Table(frame, ()), TableSpec("label"))


def test_a_session_that_was_left_is_closed_and_another_is_not(clock: Clock) -> None:
    for who in "ab":
        clock.come(who, browser=f"browser {who}")
    pairs = [("A", "browser a"), ("B", "browser b"), ("A", "browser b"), ("C", "browser a")]
    assert [session.belongs(*pair) for pair in pairs] == [True, True, False, False]
    assert clock.goes_on(1000.0) == []
    clock.leave("a")
    assert clock.goes_on(1000.0 + session.LINGER - 1) == []
    assert clock.goes_on(1000.0 + session.LINGER) == ["A"]
    assert list(session._visits) == ["b"]


def test_who_comes_back_in_time_keeps_the_session(clock: Clock) -> None:
    clock.come("a")
    clock.leave("a")
    clock.goes_on(session.LINGER - 1)
    clock.come("a")
    assert clock.goes_on(session.LINGER + 1) == []
    clock.leave("a")
    clock.goes_on(2 * session.LINGER)
    clock.come("a")
    clock.leave("a")
    assert clock.goes_on(3 * session.LINGER - 1) == [], "the time counts from the last cut"
    assert clock.goes_on(3 * session.LINGER) == ["A"]


def test_uploads_of_a_session_go_with_it_whoever_holds_the_object(clock: Clock) -> None:
    mine, other = small_upload(), small_upload()
    clock.come("a").uploads.add(mine.name)
    clock.come("b").uploads.add(other.name)
    clock.leave("a")
    assert clock.goes_on(session.LINGER) == ["A"]
    assert not uploads.is_held(mine.name)
    assert mine.table.frame.empty
    assert uploads.is_held(other.name)


def test_work_that_only_a_session_wants_that_was_left_is_cancelled(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Pool()
    monkeypatch.setattr(session, "pool", lambda: jobs)
    left: list[str] = []
    monkeypatch.setattr(jobs, "leave_all", left.append)
    clock.come("a")
    clock.leave("a")
    clock.goes_on(session.LINGER)
    assert left == ["a"]


def test_a_page_that_is_loaded_again_takes_its_uploads_along_and_another_browser_does_not(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = small_upload()
    old, new, other, unknown = (clock.come(*who) for who in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "")))
    old.uploads.add(mine.name)
    old.carried = {session._KEY: {mine.name: mine}}
    state: dict[str, Any] = {}
    monkeypatch.setattr(session.st, "session_state", state)
    session._take_over(new)
    assert not state, "it is still open beside this one"
    clock.leave("a")
    session._take_over(other)
    session._take_over(unknown)
    assert not state, "another browser, and one that is not known"
    session._take_over(new)
    assert state[session._KEY] == {mine.name: mine}
    assert clock.goes_on(session.LINGER) == ["A"]
    assert uploads.is_held(mine.name), "it belongs to the new session now"
    clock.leave("b")
    assert clock.goes_on(2 * session.LINGER) == ["B"]
    assert not uploads.is_held(mine.name)


def test_streamlit_tells_when_a_session_is_left_and_keeps_it_for_longer() -> None:
    assert st.get_option("server.disconnectedSessionTTL") > session.LINGER
