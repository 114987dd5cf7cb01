"""One way to watch a job: a session wants it, sees how far it is, cancels it and takes it up again.

Cancelling takes this session's interest away, and no other session's.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import streamlit as st

from dpviz.dashboard.jobs import page_priority
from dpviz.dashboard.jobs.job import Job, State, Status
from dpviz.dashboard.jobs.pool import pool
from dpviz.reporting import words

J = TypeVar("J", bound=Job[Any])

EVERY = 0.7  # seconds between two looks at a job at work; more where many are
RAREST = 4.0
TOGETHER = 0.6  # seconds that one drawing of a page waits for jobs
_ME, _PAGE, _PATIENCE, _LIVE = "dpviz.session", "dpviz.watching", "dpviz.patience", "dpviz.live"


def session_name() -> str:
    """This session's name among those that want jobs."""
    if _ME not in st.session_state:
        st.session_state[_ME] = uuid.uuid4().hex
    return st.session_state[_ME]


def arrive(page: str) -> None:
    """Begins a drawing of a page; lets go of what others hold of results that are in a cache, which could not hold them all."""
    page_priority.begin()
    st.session_state[_PATIENCE], st.session_state[_LIVE] = TOGETHER, False
    if st.session_state.get(_PAGE) == page:
        return
    st.session_state[_PAGE] = page
    places = [key for key in st.session_state if str(key).startswith(("observed.", "watched."))]
    for place in places:
        job = st.session_state[place]
        if job.over and not job.kept:
            del st.session_state[place]


def is_live(state: Any) -> bool:
    """True where the last drawing of a page shows a job at work: the page is to be drawn again, even if the job has ended since.

    Args:
        state: of the page's session.
    """
    return bool(state[_LIVE])


def page() -> str:
    """The title of the page that is drawn; "" before it has one."""
    return str(st.session_state.get(_PAGE, ""))


def start(job: J) -> J:
    """The job with this one's key, wanted by this session from now on; one that failed, or that it cancelled, starts anew."""
    entry = pool().find(job.key)
    if entry is not None and entry.state is State.FAILED:
        pool().remove(entry)
    if entry is not None:
        entry.declined.discard(session_name())
    return _submit(job)


def watch(job: J, place: str) -> J:
    """The job with this one's key, as the one that this session watches; what it watched before may be stopped.

    Args:
        place: session state key of what the session watches in this part of the app.
    """
    before = st.session_state.get(place)
    if before is not None and before.key == job.key and before.state is State.DONE:
        job = before  # the pool may have forgotten it
    entry = _submit(job)
    if before is not None and before is not entry:
        pool().leave(before, session_name())
    st.session_state[place] = entry
    return entry


def _submit(job: J) -> J:
    entry = pool().submit(job, session_name())
    assert isinstance(entry, type(job))
    return entry


def wait(job: Job[Any], seconds: float) -> bool:
    """Waits for a job's end before the page is drawn without it; returns whether it has come.

    Args:
        seconds: the longest wait; all waits of one drawing share `TOGETHER`.
    """
    left, start = st.session_state.get(_PATIENCE, TOGETHER), time.monotonic()
    with page_priority.pause():
        over = job.wait(min(seconds, left) / max(1, pool().busy))  # in a long line it would wait in vain
    st.session_state[_PATIENCE] = max(0.0, left - (time.monotonic() - start))
    return over


def cancel(job: Job[Any]) -> None:
    """This session wants the job no more; where it was the last one, the job stops. A callback."""
    pool().cancel(job, session_name())


def resume(job: Job[Any]) -> None:
    """This session wants a job that it has cancelled after all; what was found is kept. A callback."""
    pool().go_on(job, session_name())


def restart(job: Job[Any]) -> None:
    """Takes up a job that was cancelled, or forgets one that failed, so that it starts anew. A callback."""
    if job.state is State.FAILED:
        pool().remove(job)
    else:
        resume(job)


def state(job: Job[Any]) -> State:
    """A job's state for this session: cancelled where it has cancelled it, though it goes on for others.

    One that was stopped because no session watched it goes on when this one does.
    """
    if job.state in (State.DONE, State.FAILED):
        return job.state
    if session_name() in job.declined:
        return State.CANCELLED
    return State.QUEUED if job.state is State.CANCELLED else job.state


def is_over(job: Job[Any]) -> bool:
    """True where this session can expect nothing more of a job."""
    return state(job).over


def status(job: Job[Any]) -> Any:
    """A job's progress for this session, of the type that the job has."""
    return replace(job.status(), state=state(job))


def text(status: Status, share: str) -> str:
    """A job's progress in words: "45 % done, about 3 s left", or that it waits.

    Args:
        share: in words, for example "45 % done".
    """
    if status.state is State.QUEUED:
        return f"{share}, waiting for earlier computations"
    left = f", about {words.duration(status.left)} left" if status.left is not None else ""
    return f"{share}{left}"


def message(job: Job[Any], doing: str) -> str:
    """In words: what a job does, how far it is, or how many come before it."""
    now = status(job)
    return text(now, f"{doing}: {now.done:.0%}")


def draw_live(job: Job[Any] | None, draw: Callable[[], None], *, working: bool | None = None, every: float = EVERY) -> None:
    """Draws a part of a page, again and again while a job is at work, and the whole page when it is over or goes on.

    Args:
        working: whether the page is drawn as one whose job is at work, where that was decided before: the job may have ended
            since. None: as it is now.
    """
    if job is None:
        draw()  # a button in a fragment would draw that part alone, and the job that it starts would not be seen
        return
    if working is None:
        working = not is_over(job)
    if not is_over(job):
        _submit(job)  # a session that looks at a job wants it, also where another session has started it

    def again() -> None:
        if working and not is_over(job):
            _submit(job)  # another place of the session may have left it
        draw()
        if is_over(job) == working:
            st.rerun()

    def at_rest() -> None:
        again()

    # The browser's last look may come while the page is drawn that has no more of them. If it found its part there, Streamlit
    # (1.67) would take the part out of what waits to be sent and draw it in the place of its neighbour: so the part has another
    # name then, which Streamlit makes of the function's.
    if working:
        st.session_state[_LIVE] = True
        st.fragment(run_every=min(every * max(1, pool().busy), RAREST))(again)()
    else:
        st.fragment(at_rest)()
