"""Sessions that were left: everything of them goes, though no other comes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from dpviz.dashboard.frame import session
from dpviz.dashboard.frame.session import LINGER
from dpviz.dashboard.jobs.pool import Pool
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.spec import TableSpec


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


def upload() -> Upload:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.random(40), "label": np.where(rng.random(40) > 0.5, 1.0, 0.0)})
    return Upload(Table(frame, ()), TableSpec("label"))


def test_a_session_that_was_left_is_closed_and_another_is_not(clock: Clock) -> None:
    for who in "ab":
        clock.come(who)
    assert clock.goes_on(1000.0) == []
    clock.leave("a")
    assert clock.goes_on(1000.0 + LINGER - 1) == []
    assert clock.goes_on(1000.0 + LINGER) == ["A"]
    assert list(session._visits) == ["b"]


def test_who_comes_back_in_time_keeps_the_session(clock: Clock) -> None:
    clock.come("a")
    clock.leave("a")
    clock.goes_on(LINGER - 1)
    clock.come("a")
    assert clock.goes_on(LINGER + 1) == []
    clock.leave("a")
    clock.goes_on(2 * LINGER)
    clock.come("a")
    clock.leave("a")
    assert clock.goes_on(3 * LINGER - 1) == [], "the time counts from the last cut"
    assert clock.goes_on(3 * LINGER) == ["A"]


def test_uploads_of_a_session_go_with_it_whoever_holds_the_object(clock: Clock) -> None:
    mine, other = upload(), upload()
    clock.come("a").uploads.add(mine.name)
    clock.come("b").uploads.add(other.name)
    clock.leave("a")
    assert clock.goes_on(LINGER) == ["A"]
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
    clock.goes_on(LINGER)
    assert left == ["a"]


def test_a_page_that_is_loaded_again_takes_its_uploads_along_and_another_browser_does_not(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = upload()
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
    assert clock.goes_on(LINGER) == ["A"]
    assert uploads.is_held(mine.name), "it belongs to the new session now"
    clock.leave("b")
    assert clock.goes_on(2 * LINGER) == ["B"]
    assert not uploads.is_held(mine.name)


def test_streamlit_tells_when_a_session_is_left_and_keeps_it_for_longer() -> None:
    assert st.get_option("server.disconnectedSessionTTL") > LINGER
