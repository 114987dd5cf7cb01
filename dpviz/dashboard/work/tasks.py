"""Work that yields one result after the other, as a job: attacks, tests of claims, observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import streamlit as st

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import panels
from dpviz.dashboard.work import watching
from dpviz.dashboard.work.job import Job, State, Status, Stopped
from dpviz.dashboard.work.pool import pool

T = TypeVar("T")

Stream = Callable[[Monitor], Iterator[T]]
Work = Callable[[Monitor], T]

POLL = 0.4  # seconds between two looks at an observation under way
PATIENCE = 0.6  # an observation that is done by then needs no progress bar


class Task(Job, Generic[T]):
    """Work whose results come one after the other; the last one stands.

    Attributes:
        results: what was yielded; only the last one where `keep_all` is false.
        problem: (cause, fix) where it failed.
    """

    def __init__(self, key: str, stream: Stream[T], *, dataset: str = "", series: str = "", keep_all: bool = False) -> None:
        super().__init__(key, dataset=dataset, series=series)
        self._stream: Stream[T] | None = stream
        self._keep_all = keep_all
        self.results: list[T] = []
        self.problem: tuple[str, str] | None = None

    @property
    def done(self) -> float:
        """Share of the work, in [0, 1]."""
        return 1.0 if self.state is State.DONE else self._share

    def status(self, position: int = 0) -> Status:
        """How far it is."""
        left = None if self._share < 0.03 or self.over else self._worked * (1 - self._share) / self._share
        return Status(self.state, self.done, left, position)

    def work(self, monitor: Monitor) -> State:
        """Takes the results as they come; one that was stopped starts from the beginning."""
        stream, first = self._stream, True
        assert stream is not None
        with Boundary(f"the task {self.key}", through=(Stopped,)) as work:
            for result in stream(monitor):
                self.check()
                self.results = [*self.results, result] if self._keep_all and not first else [result]
                first = False
                monitor(self._share)
        self._stream = None  # it may hold a person's data; nobody needs it again
        self.problem = work.problem("Choose fewer rows, draws or trainings.", "Change a setting; the others still work.")
        return State.DONE if self.problem is None else State.FAILED

    def discard(self) -> None:
        """Lets go of the results and of what they are made from."""
        self.results, self._stream = [], None


def find(key: str) -> Task[Any] | None:
    """The task with this key, if it was asked for before."""
    job = pool().find(key)
    return job if isinstance(job, Task) else None


def controls(task: Task[Any], what: str) -> None:
    """Progress with a way to cancel, or what became of the work."""
    state = watching.state(task)
    if not state.over:
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.progress(task.done, progress(task, what))
        right.button("Cancel", on_click=watching.cancel, args=(task,), key=f"cancel-{what}", width="stretch")
    elif state is State.CANCELLED:
        kept = "What was found by then is shown." if task.results else "Nothing was found by then."
        st.info(f"**Cancelled** after {task.done:.0%}. {kept}", icon="ℹ️")
    elif task.problem is not None:
        panels.failed(*task.problem)


def progress(task: Task[Any], what: str) -> str:
    """In words: how far a task is, or how many come before it."""
    status = watching.status(task)
    return watching.text(status, f"{what}: {status.done:.0%}")


def observe(key: str, what: str, work: Work[Any], *, section: str, dataset: str, ask: str = "") -> tuple[Any, bool]:
    """(result, whether it is of this very setting); draws progress, buttons and problems.

    While something new is computed the section's last result comes back with False, and (None, False) where there is none.

    Args:
        key: names everything the result depends on.
        what: for people, what is being computed.
        work: called with a monitor in a thread of its own.
        section: one place of one page; remembers its last result.
        dataset: what the work learns from.
        ask: words of a button without which nothing starts; "" starts at once.
    """
    key, place = f"observe {key}", f"observed.{section}"
    shown: Task[Any] | None = st.session_state.get(place)
    last = shown.results[-1] if shown is not None and shown.results else None
    if find(key) is None and ask:
        slot = st.empty()
        if not slot.button(ask, key=f"start.{section}", type="primary"):
            return last, False
        slot.empty()  # what it starts may be there before the page is drawn again

    def stream(monitor: Monitor) -> Iterator[Any]:
        yield work(monitor)

    task = watching.watch(Task(key, stream, dataset=dataset), f"watched.{section}")
    if not watching.over(task) and not watching.wait(task, PATIENCE):
        watching.live(task, lambda: _progress(task, what, section), working=True, every=POLL)
        return last, False
    if task.state is State.DONE:
        st.session_state[place] = task
        return task.results[-1], True
    problem = ("cancelled; nothing was kept", "Start it again, or choose something smaller.")
    panels.failed(*(task.problem or problem))
    st.button("Start again", key=f"again.{section}", on_click=watching.again, args=(task,))
    return last, False


def _progress(task: Task[Any], what: str, section: str) -> None:
    if watching.over(task):
        return  # the page is about to be drawn again
    with st.container(border=True):
        st.progress(task.done, progress(task, what))
        st.button("Cancel", key=f"cancel.{section}", on_click=watching.cancel, args=(task,))
