"""Work may end at any moment while a page is drawn that looks at it many times: the page then shows the result all the same."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from support import mostly_long, until
from support_pages import opened, text

from dpviz.dashboard.claims import verdicts
from dpviz.dashboard.frame.private import is_session
from dpviz.dashboard.jobs import cached_runs, page_priority, pool, watching
from dpviz.dashboard.jobs.job import Job, State
from dpviz.papers.claims import check, list_claims

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


@pytest.mark.parametrize("name", mostly_long(PAGES_WITH_WORK, ""), ids=lambda n: n or "first")
def test_a_page_shows_what_ends_while_it_is_drawn(name: str, looks: Looks, tmp_path: Path) -> None:
    def nothing_is_known() -> None:
        cached_runs.clear()
        pool.pool().clear()
        for cell in (tmp_path / "cells").glob("*"):
            cell.unlink()

    shows(looks, lambda: opened(name, runs="200"), nothing_is_known)


def test_a_claim_shows_the_verdict_of_a_test_that_ends_while_it_is_drawn(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "numerical-tighter"
    found = check(name)
    told = replace(found, verdict=replace(found.verdict, because="This is what was found just now."))
    monkeypatch.setattr(verdicts, "check", lambda *args, **options: told)
    monkeypatch.setattr(verdicts, "list_claims", lambda: {name: list_claims()[name]})

    def tested() -> AppTest:
        page = opened("Claims")
        return page.button(key="test-all").click().run()

    shows(looks, tested, pool.pool().clear)
