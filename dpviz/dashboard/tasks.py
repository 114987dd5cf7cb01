"""One piece of work in the background at a time: it streams what it has, can be cancelled, and survives other clicks.

Sweeps are made of cells and have jobs of their own; this is for work that is not, such as attacks and tests of claims.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import streamlit as st
from cachetools import LRUCache

from dpviz.dashboard import parts
from dpviz.mechanisms import Monitor
from dpviz.validate import InvalidInput

T = TypeVar("T")

KEPT = 64  # results in memory
Work = Callable[[Monitor], Iterator[T]]


class Cancelled(Exception):
    """The work is not wanted any more."""


@dataclass(eq=False)
class Task(Generic[T]):
    """Work that yields one result after the other; the last one stands.

    Attributes:
        key: equal keys are the same work, whoever asks.
        done: share of the work, in [0, 1].
        results: what was yielded; where only the last one counts, what came before it is dropped.
        problem: why it stopped early, "" where it did not.
        state: "waiting", "running", "done", "cancelled" or "failed".
    """

    key: str
    work: Work[T]
    keep_all: bool = False
    done: float = 0.0
    results: list[T] = field(default_factory=list)
    problem: str = ""
    state: str = "waiting"
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("done", "cancelled", "failed")

    def cancel(self) -> None:
        """Stops the work at its next sign of life; what it has found stays."""
        self._stop.set()
        if self.state == "waiting":
            self.state = "cancelled"

    def _monitor(self, done: float) -> None:
        self.done = min(max(done, 0.0), 1.0)
        if self._stop.is_set():
            raise Cancelled

    def run(self) -> None:
        """The work; called in the worker's thread."""
        if self._stop.is_set():
            return
        self.state = "running"
        try:
            for result in self.work(self._monitor):
                self.results = [*self.results, result] if self.keep_all else [result]
                self._monitor(self.done)
            self.done, self.state = 1.0, "done"
        except Cancelled:
            self.state = "cancelled"
        except InvalidInput as problem:
            self.problem, self.state = f"{problem.field}: {problem.cause}. {problem.fix}", "failed"
        except MemoryError:
            self.problem, self.state = "This needs more memory than there is.", "failed"
        except Exception as error:
            logging.getLogger(__name__).exception("task failed: %s", self.key)
            self.problem, self.state = str(error) or type(error).__name__, "failed"


class Worker:
    """A thread that does one task after the other, and remembers the last ones."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._tasks: LRUCache[str, Task[Any]] = LRUCache(KEPT)
        self._queue: list[Task[Any]] = []
        self._thread: threading.Thread | None = None

    def find(self, key: str) -> Task[Any] | None:
        """The task with this key, if it was asked for before."""
        with self._turn:
            return self._tasks.get(key)

    def submit(self, key: str, work: Work[Any], *, keep_all: bool = False) -> Task[Any]:
        """The task with this key: the one that is under way or done, or a new one."""
        with self._turn:
            known = self._tasks.get(key)
            if known is not None and known.state in ("waiting", "running", "done"):
                return known
            task: Task[Any] = Task(key, work, keep_all)
            self._tasks[key] = task
            self._queue.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="dpviz-tasks", daemon=True)
                self._thread.start()
            self._turn.notify_all()
            return task

    def _serve(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._queue)
                task = self._queue.pop(0)
            task.run()


@st.cache_resource(show_spinner=False)
def worker(kind: str) -> Worker:
    """The server's worker for "short" work, which somebody looks at, or for "long" work, which must not hold it up."""
    return Worker()


def start(key: str, work: Work[Any], kind: str = "short", keep_all: bool = False) -> None:
    """Submits a task; for buttons."""
    worker(kind).submit(key, work, keep_all=keep_all)


def controls(task: Task[Any], what: str) -> None:
    """Progress with a way to cancel, or what became of the work."""
    if not task.over:
        left, right = st.columns([4, 1], vertical_alignment="center")
        waiting = "waits for other work" if task.state == "waiting" else f"{task.done:.0%}"
        left.progress(task.done, f"{what}: {waiting}")
        right.button("Cancel", on_click=task.cancel, key=f"cancel-{what}", width="stretch")
    elif task.state == "cancelled":
        st.info(f"**Cancelled** after {task.done:.0%}. What was found by then is shown.", icon="ℹ️")
    elif task.state == "failed":
        parts.failed(task.problem, "Change a setting and start again.")
