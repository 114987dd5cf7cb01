"""Sessions that were left: everything of them goes, though no other comes."""

import ctypes
import gc
import threading
import tomllib
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit import config
from support import LIMIT
from support_jobs import released

from dpviz.common import memory
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import session
from dpviz.dashboard.frame.session import LINGER, PAUSE, close_left
from dpviz.dashboard.jobs.job import Job
from dpviz.dashboard.jobs.pool import Pool
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.spec import TableSpec


class Emptied:
    """A part of a session that can be emptied."""

    def __init__(self) -> None:
        self.full = True

    def clear(self) -> None:
        self.full = False

    Clear = clear


class Server:
    """As much of Streamlit's runtime as is asked for."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.closed: list[str] = []
        self.on_the_loop: Callable[[], None] = lambda: None  # what happens before the event loop gets to closing
        names = ("session_state", "_fragment_storage", "_browser_queue", "_client_state")
        self.sessions = {
            name: SimpleNamespace(_scriptrunner=None, _event_loop=self, **{part: Emptied() for part in names}) for name in "ab"
        }
        for one in self.sessions.values():
            one.session_state._new_widget_state = SimpleNamespace(widget_metadata=Emptied())
        self.later: list[tuple[Callable[[Any], None], Any]] = []
        self._session_mgr = self

    def is_active_session(self, name: str) -> bool:
        return name in self.active

    def get_session_info(self, name: str) -> SimpleNamespace | None:
        return SimpleNamespace(session=self.sessions[name]) if name in self.sessions else None

    def close_session(self, name: str) -> None:
        self.closed.append(name)

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        self.on_the_loop()
        call()

    def call_later(self, seconds: float, call: Callable[[Any], None], argument: object) -> None:
        self.later.append((call, argument))

    def _get_async_objs(self) -> SimpleNamespace:
        return SimpleNamespace(eventloop=self)

    def full(self, name: str) -> set[bool]:
        return {part.full for part in vars(self.sessions[name]).values() if isinstance(part, Emptied)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(session, "_visits", {"a": session._Visit("ann"), "b": session._Visit("bob")})
    return Server()


def look(server: Server, now: float) -> list[str]:
    return close_left(server, now)  # type: ignore[arg-type]


def upload() -> Upload:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.random(40), "label": np.where(rng.random(40) > 0.5, 1.0, 0.0)})
    return Upload(Table(frame, ()), TableSpec("label"))


def test_a_session_that_was_left_is_closed_and_another_is_not(server: Server) -> None:
    server.active = {"a", "b"}
    assert not look(server, 0.0)
    server.active = {"b"}
    assert not look(server, 1000.0)
    assert not look(server, 1000.0 + LINGER - 1)
    assert look(server, 1000.0 + LINGER) == ["a"]
    assert server.closed == ["a"]
    assert server.full("a") == {False}, "Streamlit keeps the last one that was closed"
    assert not server.sessions["a"].session_state._new_widget_state.widget_metadata.full
    assert server.full("b") == {True}
    assert not look(server, 1e6)


def test_what_sessions_share_goes_with_the_last_of_them(server: Server) -> None:
    kept: memory.Cache[int] = memory.Cache("of this test", 100, lambda number: 1)
    kept.compute("run", lambda _: 7)
    server.active = {"b"}
    look(server, 0.0)
    assert look(server, LINGER + 1) == ["a"]
    assert memory.held()["of this test"] == 1, "a session is there"
    server.active = set()
    look(server, 1000.0)
    assert look(server, 1000.0 + LINGER) == ["b"]
    assert memory.held()["of this test"] == 0


def test_who_comes_back_in_time_keeps_the_session(server: Server) -> None:
    look(server, 0.0)
    server.active = {"a"}
    look(server, LINGER - 1)
    server.active = set()
    assert look(server, LINGER + 1) == ["b"]
    server.on_the_loop = lambda: server.active.add("a")
    assert look(server, 1e6) == []
    assert server.closed == ["b"]
    assert "a" in session._visits, "it is watched on"


def test_uploads_of_a_session_go_with_it_whoever_holds_the_object(server: Server) -> None:
    mine, other = upload(), upload()
    session._visits["a"].uploads.add(mine.name)
    session._visits["b"].uploads.add(other.name)
    server.active = {"b"}
    look(server, 0.0)
    assert look(server, LINGER) == ["a"]
    assert not uploads.there(mine.name)
    assert mine.table.frame.empty
    assert uploads.there(other.name)


def test_uploads_go_even_where_streamlit_has_dropped_the_session_before(server: Server) -> None:
    mine = upload()
    session._visits["a"].uploads.add(mine.name)
    server.sessions.clear()
    look(server, 0.0)
    assert sorted(look(server, LINGER)) == ["a", "b"]
    assert not uploads.there(mine.name)


def test_a_page_that_is_still_drawn_is_let_finish_before_its_session_is_emptied(server: Server) -> None:
    server.sessions["a"]._scriptrunner = object()
    look(server, 0.0)
    look(server, LINGER)
    assert server.full("a") == {True}
    server.sessions["a"]._scriptrunner = None
    for call, argument in server.later:
        call(argument)
    assert server.full("a") == {False}


def test_work_that_only_a_session_wants_that_was_left_is_paused_and_its_interest_ends_with_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, jobs = threading.Event(), Pool()
    stream = released(go)
    monkeypatch.setattr(session, "pool", lambda: jobs)
    hers, shared = jobs.submit(Job("hers", stream), "ann"), jobs.submit(Job("shared", stream), "ann")
    jobs.submit(shared, "bob")
    server.active = {"b"}
    look(server, 0.0)
    look(server, PAUSE - 1)
    assert not hers.state.stopped
    look(server, PAUSE)
    assert (hers.state.stopped, shared.state.stopped) == (True, False)
    assert PAUSE + 2 * session._TICK <= 60
    server.active = {"a", "b"}
    look(server, PAUSE + 1)
    assert not hers.state.stopped, "its session is back"
    server.active = {"b"}
    look(server, 100.0)
    look(server, 100.0 + LINGER)
    assert (hers.watchers, shared.watchers) == (set(), {"bob"})
    assert hers.state.stopped
    go.set()
    assert shared.wait(LIMIT)


def test_a_page_that_is_loaded_again_takes_its_uploads_along_and_another_browser_does_not(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = upload()
    old, new, other = session._Visit(browser=b"x"), session._Visit(browser=b"x"), session._Visit(browser=b"y")
    old.uploads.add(mine.name)
    old.carried = {session._KEY: {mine.name: mine}}
    monkeypatch.setattr(session, "_visits", {"a": old, "b": new, "c": other})
    state: dict[str, Any] = {}
    monkeypatch.setattr(session.st, "session_state", state)
    server.active = {"a", "b", "c"}
    session._take_over(new, server)  # type: ignore[arg-type]
    assert not state, "it is still open beside this one"
    server.active = {"b", "c"}
    session._take_over(other, server)  # type: ignore[arg-type]
    session._take_over(session._Visit(), server)  # type: ignore[arg-type]
    assert not state, "another browser, and one that is not known"
    session._take_over(new, server)  # type: ignore[arg-type]
    assert state[session._KEY] == {mine.name: mine}
    look(server, 0.0)
    assert look(server, LINGER) == ["a"]
    assert uploads.there(mine.name), "it belongs to the new session now"
    server.active = {"c"}
    look(server, 1000.0)
    assert look(server, 1000.0 + LINGER) == ["b"]
    assert not uploads.there(mine.name)


@pytest.mark.parametrize("error", [TypeError, OSError, AttributeError])
def test_memory_is_given_back_where_the_system_can(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str | None) -> ctypes.CDLL:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    memory.c_library("malloc_trim", 0)


def test_garbage_is_collected_now_and_then_and_not_after_every_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())
    assert shipped["runner"]["postScriptGC"] is False
    assert config.get_option("runner.postScriptGC") is not None, "Streamlit still knows it"

    class Part: ...

    one, other = Part(), Part()
    one.other, other.one = other, one  # type: ignore[attr-defined]
    gone = weakref.ref(one)
    monkeypatch.setattr(session, "_visits", {})
    monkeypatch.setattr(session, "_TICK", 0.0)
    gc.disable()
    try:
        del one, other
        assert gone() is not None
        session._keep_watch()
        assert gone() is None
    finally:
        gc.enable()


def test_files_that_arrived_count_among_the_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_costs", {})  # uploads of other tests may go at any moment
    monkeypatch.setattr(uploads, "_read", weakref.WeakValueDictionary())
    monkeypatch.setattr(uploads, "_arrived", lambda: 7_000_000)
    assert uploads.held() == 7_000_000
    table = Table(pd.DataFrame({"a": np.arange(100.0)}), ())
    with pytest.raises(InvalidInput, match="all sessions together hold"):
        uploads.count(table, Limits(uploads_megabytes=1))
