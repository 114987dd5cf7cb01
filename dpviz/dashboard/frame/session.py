"""Uploads, which belong to one session. A session that was left is closed, and everything of it goes.

Streamlit alone would keep a session that was left, its files and its event loop, until some other session ends. A page that
is loaded again is a new session for Streamlit; it takes over the uploads of the session that the same browser has just left.
"""

import gc
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dpviz.common import memory
from dpviz.dashboard.frame import private, renewal
from dpviz.dashboard.jobs import watching
from dpviz.dashboard.jobs.pool import pool
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload

MOST = 3
_KEY, _WANTED, _FORGOTTEN = "dpviz.uploads", "dpviz.wanted", "dpviz.forgotten"
#: seconds after which a session that was left is closed; less than the 120 for which Streamlit lets a person come back,
#: because from then on it neither finds the session nor lets go of it until another one ends
LINGER = 100.0
PAUSE = 30.0  # seconds after which work that only a session that was left wants is paused
_TICK = 5.0  # seconds between two looks at the sessions; LINGER and two of these are less than two minutes
COLLECT = 20.0  # seconds between two collections of garbage while a session is connected; each takes 0.1 s of the whole server
ARRIVING = 10.0  # seconds in which a new session looks for what its browser has left


@dataclass
class _Visit:
    """One session.

    Attributes:
        who: its name among those that want background work.
        left: when the person left, in seconds of the monotonic clock; None while the page is open.
        uploads: names of its uploads.
        browser: a random secret that Streamlit gives each browser, None where it gives none.
        came: when the session began, in seconds of the monotonic clock.
        carried: what of the session's state a page takes along that is loaded again.
    """

    who: str = ""
    left: float | None = None
    uploads: set[str] = field(default_factory=set)
    browser: bytes | None = None
    came: float = field(default_factory=time.monotonic)
    carried: dict[str, Any] = field(default_factory=dict)


_visits: dict[str, _Visit] = {}
_lock = threading.Lock()
_watcher: threading.Thread | None = None


def held() -> dict[str, Upload]:
    """The session's uploads by dataset name, oldest first."""
    files: dict[str, Upload] = st.session_state.get(_KEY, {})
    return files


def hold(upload: Upload) -> list[Upload]:
    """Keeps an upload for as long as the session lives; returns those that made room for it and are forgotten."""
    kept = [*held().values(), upload]
    st.session_state[_KEY] = {u.name: u for u in kept[-MOST:]}
    visit = watch()
    if visit is not None:
        visit.uploads.add(upload.name)
    carry(_KEY)
    for old in kept[:-MOST]:
        old.forget()
    return kept[:-MOST]


def drop(name: str) -> None:
    """Forgets an upload, and all that was made of it, now."""
    upload = held().get(name)
    st.session_state[_KEY] = {k: u for k, u in held().items() if k != name}
    carry(_KEY)
    if upload is not None:
        upload.forget()
    st.session_state[_FORGOTTEN] = True


def tidy() -> None:
    """Lets go of the options of controls where an upload was forgotten: some are its name and those of its features."""
    if st.session_state.pop(_FORGOTTEN, False):
        private.forget_controls()


uploads.count_also(private.bytes_that_arrived)


def watch() -> _Visit | None:
    """Sees to it that everything of this session goes soon after the person has left; call on every page."""
    global _watcher
    session, running = private.session_id(), private.running()
    if session is None or running is None:
        return None
    with _lock:
        visit = _visits.setdefault(session, _Visit(watching.me(), browser=private.browser()))
        if _watcher is None:
            _watcher = threading.Thread(target=_keep_watch, name="dpviz-sessions", daemon=True)
            _watcher.start()
        arriving = time.monotonic() - visit.came < ARRIVING
        if arriving:
            _take_over(visit, running)
    if arriving:
        _see_who_left(running, time.monotonic())  # it may be the same person, whose page was loaded again
    private.watch_no_files(session)
    return visit


def _take_over(mine: _Visit, running: private.Runtime) -> None:
    """Gives this session what another one of the same browser has left and not yet lost; call with the lock held."""
    for session, other in _visits.items():
        same = other is not mine and mine.browser is not None and other.browser == mine.browser
        if not same or not other.carried or running.is_active_session(session):
            continue
        for key, value in other.carried.items():
            mine.carried[key] = st.session_state.setdefault(key, value)
        mine.uploads |= other.uploads
        other.uploads, other.carried = set(), {}


def carry(key: str) -> None:
    """Has a page that is loaded again take a part of the session's state along, as it is now; nothing where it is gone."""
    visit = watch()
    if visit is None:
        return
    if key in st.session_state:
        visit.carried[key] = st.session_state[key]
    else:
        visit.carried.pop(key, None)


def _keep_watch() -> None:
    """Looks at the sessions until none is left, and collects garbage for all of them; then the server may start anew."""
    global _watcher
    collected = 0.0
    while True:
        time.sleep(_TICK)
        now = time.monotonic()
        running = private.running()
        closed = [] if running is None else close_left(running, now)
        private.keep_newest_files()
        if closed:
            pool().tidy()
        if closed or now - collected >= COLLECT:
            gc.collect()  # a session and its parts refer to each other, and so do the parts of a figure
            collected = now
        if closed:
            memory.c_library("malloc_trim", 0)  # which keeps what was freed
        with _lock:
            empty = not _visits
            if empty and not renewal.due():
                _watcher = None
                return
        if not empty or pool().busy or (running and private.connected(running)):
            renewal.asked()
        else:
            renewal.renew()


def _see_who_left(running: private.Runtime, now: float) -> dict[str, float]:
    """Seconds since which each session has been left, for the pool."""
    with _lock:
        for session, visit in _visits.items():
            if running.is_active_session(session):
                visit.left = None
            elif visit.left is None:
                visit.left = now
        gone = {session: now - visit.left for session, visit in _visits.items() if visit.left is not None}
        names = {session: _visits[session].who for session in gone}
    pool().set_absent([names[session] for session, seconds in gone.items() if seconds >= PAUSE])
    return gone


def close_left(running: private.Runtime, now: float) -> list[str]:
    """Closes the sessions that were left `LINGER` seconds before `now`, and forgets their uploads; returns their ids.

    Work that only sessions want which were left `PAUSE` seconds before is paused, and goes on when a person comes back.
    """
    left = [session for session, seconds in _see_who_left(running, now).items() if seconds >= LINGER]
    closed = private.close(running, left)
    for session in closed:
        with _lock:
            visit = _visits.pop(session)
        pool().leave_all(visit.who)
        for name in visit.uploads:
            uploads.forget(name)
    with _lock:
        empty = not _visits
    if closed and empty:
        memory.clear()  # what sessions share is soon computed again; sweeps and audits stay until a new start
    return closed


def want(name: str) -> None:
    """Makes a set the sidebar's from within a page, where its control is already drawn; rerun afterwards."""
    st.session_state[_WANTED] = name


def wanted() -> str | None:
    """The set that was asked for, once."""
    name: str | None = st.session_state.pop(_WANTED, None)
    return name


def _may_see(name: str) -> bool:
    # work that a session has started runs in threads without a session; they only know names that it gave them
    return not private.in_session() or name in held()


uploads.guard(_may_see)
