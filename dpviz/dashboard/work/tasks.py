"""Work that yields one result after the other, as a job: attacks, tests of claims, observations."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import panels
from dpviz.dashboard.work import watching
from dpviz.dashboard.work.job import Job, State, Stream
from dpviz.dashboard.work.pool import pool
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec

T = TypeVar("T")
Work = Callable[[Monitor], Any]

POLL = 0.4  # seconds between two looks at an observation under way
PATIENCE = 0.6  # an observation that is done by then needs no progress bar


def find(key: str) -> Job[Any] | None:
    """The job with this key, if it was asked for before."""
    return pool().find(key)


def controls(task: Job[Any], what: str) -> None:
    """Progress with a way to cancel, or what became of the work."""
    state = watching.state(task)
    if not state.over:
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.progress(task.done, watching.message(task, what))
        right.button("Cancel", on_click=watching.cancel, args=(task,), key=f"cancel-{what}", width="stretch")
    elif state is State.CANCELLED:
        kept = "What was found by then is shown." if task.results else "Nothing was found by then."
        st.info(f"**Cancelled** after {task.done:.0%}. {kept}", icon="ℹ️")
    elif task.problem is not None:
        panels.failed(*task.problem)


def follow(task: Job[T], show: Callable[[T], None], doing: str = "", *, every: float = watching.EVERY) -> None:
    """Draws the last result of a job again and again while it is at work, below its progress where `doing` names the work."""

    def draw() -> None:
        if doing:
            controls(task, doing)
        if task.results:
            show(task.results[-1])

    watching.live(task, draw, every=every)


def attacked(key: str, work: Stream[T], section: str, dataset: str) -> Job[T]:
    """The job with this key, at work at once; a button takes it up again where it was cancelled or failed."""
    task = watching.watch(Job(key, work, dataset=dataset), f"watched.{section}")
    if watching.state(task) in (State.CANCELLED, State.FAILED):
        st.button("Start again", on_click=watching.again, args=(task,))
    return task


def observe(
    section: str, what: str, work: Work, *, of: RunSpec | None = None, given: object = "", dataset: str = "", ask: str = ""
) -> tuple[Any, bool]:
    """(result, whether it is of this very setting); draws progress, buttons and problems.

    While something new is computed the section's last result comes back with False, and (None, False) where there is none.

    Args:
        section: one place of one page; remembers its last result.
        what: for people, what is being computed.
        work: called with a monitor in a thread of its own.
        of: the run that the result is of; None where it depends on what is `given` alone.
        given: what else the result depends on.
        dataset: what the work learns from, where that is no run's.
        ask: words of a button without which nothing starts; "" starts at once.
    """
    key, place = f"{what} {given} {'' if of is None else resolve(of).key()}", f"observed.{section}"
    shown: Job[Any] | None = st.session_state.get(place)
    last = shown.results[-1] if shown is not None and shown.results else None
    if find(key) is None and ask:
        slot = st.empty()
        if not slot.button(ask, key=f"start.{section}", type="primary"):
            return last, False
        slot.empty()  # what it starts may be there before the page is drawn again

    def stream(monitor: Monitor) -> Iterator[Any]:
        yield work(monitor)

    task = watching.watch(Job(key, stream, dataset=dataset if of is None else of.dataset), f"watched.{section}")
    if not watching.over(task) and not watching.wait(task, PATIENCE):
        watching.live(task, lambda: watching.progress(task, what, f"cancel.{section}"), working=True, every=POLL)
        return last, False
    if task.state is State.DONE:
        st.session_state[place] = task
        return task.results[-1], True
    problem = ("cancelled; nothing was kept", "Start it again, or choose something smaller.")
    panels.failed(*(task.problem or problem))
    st.button("Start again", key=f"again.{section}", on_click=watching.again, args=(task,))
    return last, False
