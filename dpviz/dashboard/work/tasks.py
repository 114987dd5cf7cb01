"""Work that yields one result after the other, as a job: attacks, tests of claims, observations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import panels, words
from dpviz.dashboard.work import pool as jobs
from dpviz.dashboard.work.job import Cancelled, Job, State, Status

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

    def __init__(self, key: str, stream: Stream[T], *, dataset: str = "", line: str = "", keep_all: bool = False) -> None:
        super().__init__(key, dataset=dataset, line=line)
        self._stream: Stream[T] | None = stream
        self._keep_all = keep_all
        self.results: list[T] = []
        self.problem: tuple[str, str] | None = None

    @property
    def done(self) -> float:
        """Share of the work, in [0, 1]."""
        return 1.0 if self.state is State.DONE else self._share

    def status(self, ahead: int = 0) -> Status:
        """How far it is."""
        left = None if self._share < 0.03 or self.over else self._worked * (1 - self._share) / self._share
        return Status(self.state, self.done, left, ahead)

    def work(self, monitor: Monitor) -> State:
        """Takes the results as they come."""
        stream, self._stream = self._stream, None  # it may hold a person's data; nobody needs it again
        assert stream is not None
        try:
            for result in stream(monitor):
                self.results = [*self.results, result] if self._keep_all else [result]
                monitor(self._share)
            return State.DONE
        except Cancelled:
            raise
        except InvalidInput as problem:
            self.problem = (f"{problem.field}: {problem.cause}", str(problem.fix))
        except MemoryError:
            self.problem = ("this needs more memory than there is", "Choose fewer rows, draws or trainings.")
        except Exception as error:
            logging.getLogger(__name__).exception("task failed: %s", self.key)
            self.problem = (str(error) or type(error).__name__, "Change a setting; the others still work.")
        return State.FAILED


def find(key: str) -> Task[Any] | None:
    """The task with this key, if it was asked for before."""
    found = jobs.pool().find(key)
    return found if isinstance(found, Task) else None


def start(task: Task[T], who: str = "") -> Task[T]:
    """The task with this key that waits, runs or is done; or this one, from now on."""
    pool, known = jobs.pool(), find(task.key)
    if known is not None and known.state in (State.CANCELLED, State.FAILED):
        pool.again(known)
    found = pool.submit(task, who)
    assert isinstance(found, Task)
    return found


def controls(task: Task[Any], what: str) -> None:
    """Progress with a way to cancel, or what became of the work."""
    if not task.over:
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.progress(task.done, progress(task, what))
        right.button("Cancel", on_click=task.cancel, key=f"cancel-{what}", width="stretch")
    elif task.state is State.CANCELLED:
        kept = "What was found by then is shown." if task.results else "Nothing was found by then."
        st.info(f"**Cancelled** after {task.done:.0%}. {kept}", icon="ℹ️")
    elif task.problem is not None:
        panels.failed(*task.problem)


def progress(task: Task[Any], what: str) -> str:
    """In words: how far a task is, or how many come before it."""
    status = task.status(jobs.pool().ahead(task))
    if status.ahead:
        return f"{what}: {status.done:.0%}, waiting: number {status.ahead} in the queue"
    left = f", about {words.duration(status.left)} left" if status.left is not None else ""
    return f"{what}: {status.done:.0%}{left}"


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
    key = f"observe {key}"
    last = st.session_state.get(f"observed.{section}")
    if find(key) is None and ask:
        slot = st.empty()
        if not slot.button(ask, key=f"start.{section}", type="primary"):
            return last, False
        slot.empty()  # what it starts may be there before the page is drawn again

    def stream(monitor: Monitor) -> Iterator[Any]:
        yield work(monitor)

    task = jobs.watch(Task(key, stream, dataset=dataset), f"watched.{section}")
    if not task.wait(PATIENCE):
        _progress(task, what, section)
        return last, False
    if task.state is State.DONE:
        st.session_state[f"observed.{section}"] = task.results[-1]
        return task.results[-1], True
    problem = ("cancelled; nothing was kept", "Start it again, or choose something smaller.")
    panels.failed(*(task.problem or problem))
    if st.button("Start again", key=f"again.{section}"):
        jobs.pool().again(task)
        st.rerun()
    return last, False


@st.fragment(run_every=POLL)
def _progress(task: Task[Any], what: str, section: str) -> None:
    if task.over:
        st.rerun()
        return
    with st.container(border=True):
        st.progress(task.done, progress(task, what))
        st.button("Cancel", key=f"cancel.{section}", on_click=task.cancel)
