"""Observations that take long: computed in a thread, with progress and a way to cancel, and kept by name."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from cachetools import LRUCache

from dpviz.dashboard import parts
from dpviz.mechanisms import Monitor
from dpviz.validate import InvalidInput

Work = Callable[[Monitor], Any]

KEPT = 64
POLL = 0.4  # seconds between two looks at work under way
PATIENCE = 0.6  # work that is done by then needs no progress bar


class Cancelled(Exception):
    """Raised inside work that is not wanted any more."""


@dataclass(eq=False)
class Task:
    """One computation.

    Attributes:
        share: of the work that is done.
        result: once it is over.
        problem: (cause, fix) where it failed.
    """

    share: float = 0.0
    result: Any = None
    problem: tuple[str, str] | None = None
    over: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)
    since: float = field(default_factory=time.monotonic)

    def run(self, work: Work) -> None:
        """The thread's work."""

        def monitor(done: float) -> None:
            self.share = min(max(done, 0.0), 1.0)
            if self.stop.is_set():
                raise Cancelled

        try:
            self.result = work(monitor)
        except Cancelled:
            self.problem = ("cancelled; nothing was kept", "Start it again, or choose something smaller.")
        except InvalidInput as problem:
            self.problem = (f"{problem.field}: {problem.cause}", str(problem.fix))
        except MemoryError:
            self.problem = ("this needs more memory than there is", "Choose fewer rows or fewer noise draws.")
        except Exception as error:
            logging.getLogger(__name__).exception("observation failed")
            self.problem = (str(error) or type(error).__name__, "Change a setting; the others still work.")
        finally:
            self.over.set()


_tasks: LRUCache[str, Task] = LRUCache(KEPT)
_lock = threading.Lock()
_one_at_a_time = threading.Semaphore(2)


def observe(key: str, what: str, work: Work, *, section: str, ask: str = "") -> tuple[Any, bool]:
    """(result, whether it is of this very setting); draws progress, buttons and problems.

    While something new is computed the section's last result comes back with False, and (None, False) where there is none.

    Args:
        key: names everything the result depends on.
        what: for people, what is being computed.
        work: called with a monitor in a thread of its own.
        section: one place of one page; remembers its last result.
        ask: words of a button without which nothing starts; "" starts at once.
    """
    with _lock:
        task = _tasks.get(key)
    last = st.session_state.get(f"observed.{section}")
    if task is None and ask:
        if not st.button(ask, key=f"start.{section}", type="primary"):
            return last, False
        task = _begin(key, work)
    elif task is None:
        task = _begin(key, work)
    task.over.wait(PATIENCE)
    if not task.over.is_set():
        _progress(key, what, section)
        return last, False
    if task.problem is not None:
        parts.failed(*task.problem)
        if st.button("Start again", key=f"again.{section}"):
            _forget(key)
            st.rerun()
        return last, False
    st.session_state[f"observed.{section}"] = task.result
    return task.result, True


def forget() -> None:
    """Stops everything and forgets it."""
    with _lock:
        for task in _tasks.values():
            task.stop.set()
        _tasks.clear()


def _begin(key: str, work: Work) -> Task:
    task = Task()

    def run() -> None:
        with _one_at_a_time:
            task.run(work)

    with _lock:
        known = _tasks.setdefault(key, task)
        if known is not task:
            return known
    threading.Thread(target=run, name="dpviz-observe", daemon=True).start()
    return task


def _forget(key: str) -> None:
    with _lock:
        _tasks.pop(key, None)


@st.fragment(run_every=POLL)
def _progress(key: str, what: str, section: str) -> None:
    with _lock:
        task = _tasks.get(key)
    if task is None or task.over.is_set():
        st.rerun()
        return
    spent = time.monotonic() - task.since
    left = "" if task.share < 0.03 else f", about {spent * (1 - task.share) / task.share:.0f} s left"
    with st.container(border=True):
        st.progress(task.share, f"{what}: {task.share:.0%}{left}")
        if st.button("Cancel", key=f"cancel.{section}"):
            task.stop.set()
