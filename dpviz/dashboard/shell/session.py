"""What belongs to one session only: its uploads. A session that was left is closed, and everything of it goes.

Streamlit alone would keep a session that was left, its files and its event loop, until some other session ends. A page that
is loaded again is a new session for Streamlit; it takes over the uploads of the session that the same browser has just left.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit import get_option, runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from dpviz.dashboard.work import watching
from dpviz.dashboard.work.pool import pool
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload

MOST = 3
_KEY, _WANTED = "dpviz.uploads", "dpviz.wanted"
#: seconds after which a session that was left is closed; less than the 120 for which Streamlit lets a person come back,
#: because from then on it neither finds the session nor lets go of it until another one ends
LINGER = 100.0
PAUSE = 30.0  # seconds after which work that only a session that was left wants is paused
_TICK = 5.0  # seconds between two looks at the sessions; LINGER and two of these are less than two minutes
COLLECT = 20.0  # seconds between two collections of garbage while somebody is there; each takes 0.1 s of the whole server
ARRIVING = 10.0  # seconds in which a new session looks for what its browser has left
_PATIENCE = 10.0  # seconds that the server's event loop may take to close a session


@dataclass
class _Visit:
    """One session.

    Attributes:
        who: its name among those that want background work.
        left: when the person left, in seconds of the monotonic clock; None while somebody is there.
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


def release(file_id: str) -> None:
    """Has the server let go of the bytes of a file that was given to it; call when they were read."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None and runtime.exists():
        manager = runtime.get_instance().uploaded_file_mgr
        if isinstance(manager, MemoryUploadedFileManager):  # Streamlit's page tests have another one
            manager.remove_file(context.session_id, file_id)


def watch() -> _Visit | None:
    """Sees to it that everything of this session goes soon after the person has left; call on every page."""
    global _watcher
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not runtime.exists():
        return None
    with _lock:
        visit = _visits.setdefault(context.session_id, _Visit(watching.me(), browser=_browser()))
        if _watcher is None:
            _watcher = threading.Thread(target=_keep_watch, name="dpviz-sessions", daemon=True)
            _watcher.start()
        arriving = time.monotonic() - visit.came < ARRIVING
        if arriving:
            _take_over(visit, runtime.get_instance())
    if arriving:
        _see_who_left(runtime.get_instance(), time.monotonic())  # it may be the same person, whose page was loaded again
    _watch_no_files(context.session_id)
    return visit


def _watch_no_files(session_id: str) -> None:
    """Keeps to `fileWatcherType`: Streamlit 1.67 forgets it for a session that connects again, and then reads all modules."""
    running = runtime.get_instance()
    info = running._session_mgr.get_active_session_info(session_id) if type(running) is runtime.Runtime else None
    if info is not None and info.session._local_sources_watcher is not None and get_option("server.fileWatcherType") == "none":
        running._get_async_objs().eventloop.call_soon_threadsafe(info.session.disconnect_file_watchers)


def _browser() -> bytes | None:
    """The secret against forged requests, which only this browser knows; the cookie hides it anew each time."""
    token, _ = decode_xsrf_token_string(st.context.cookies.get("_streamlit_xsrf", ""))
    return token or None


def _take_over(mine: _Visit, running: runtime.Runtime) -> None:
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
    """Looks at the sessions until none is left, and collects garbage for all of them."""
    global _watcher
    collected = 0.0
    while True:
        time.sleep(_TICK)
        now = time.monotonic()
        closed = close_left(runtime.get_instance(), now) if runtime.exists() else []
        if closed:
            pool().tidy()
        if closed or now - collected >= COLLECT:
            gc.collect()  # a session and its parts refer to each other, and so do the parts of a figure
            collected = now
        if closed:
            _give_back()
        with _lock:
            if not _visits:
                _watcher = None
                return


def _give_back() -> None:
    # glibc keeps what was freed; other systems have no such call, and Windows no library without a name
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _see_who_left(running: runtime.Runtime, now: float) -> dict[str, float]:
    """Seconds since which each session has been left, of which the pool is told."""
    with _lock:
        for session, visit in _visits.items():
            if running.is_active_session(session):
                visit.left = None
            elif visit.left is None:
                visit.left = now
        gone = {session: now - visit.left for session, visit in _visits.items() if visit.left is not None}
        names = {session: _visits[session].who for session in gone}
    pool().set_absent([names[session] for session, seconds in gone.items() if seconds >= PAUSE], list(names.values()))
    return gone


def close_left(running: runtime.Runtime, now: float) -> list[str]:
    """Closes the sessions that were left `LINGER` seconds before `now`, and forgets their uploads; returns their ids.

    Work that only sessions want which were left `PAUSE` seconds before is paused, and goes on when a person comes back; what
    is computed ahead for them is paused at once.
    """
    left = [session for session, seconds in _see_who_left(running, now).items() if seconds >= LINGER]
    closed: list[str] = []
    end = threading.Event()

    def close() -> None:
        for session in left:
            if not running.is_active_session(session):  # the person may have come back just now
                kept = running._session_mgr.get_session_info(session)
                running.close_session(session)
                if kept is not None:
                    _empty(kept.session)
                closed.append(session)
        end.set()

    if left:
        running._get_async_objs().eventloop.call_soon_threadsafe(close)
        end.wait(_PATIENCE)
    for session in list(closed):
        with _lock:
            visit = _visits.pop(session)
        pool().leave_all(visit.who)
        for name in visit.uploads:
            uploads.forget(name)
    return closed


def _empty(session: AppSession) -> None:
    """Takes everything out of a session that was closed: Streamlit's server loop keeps the last one until somebody comes."""
    if session._scriptrunner is not None:  # the page is still being drawn, and is about to hear that it shall stop
        session._event_loop.call_later(0.5, _empty, session)
        return
    session.session_state.clear()
    session.session_state._new_widget_state.widget_metadata.clear()  # options and callbacks of controls, which `clear` leaves
    session._fragment_storage.clear()
    session._browser_queue.clear()
    session._client_state.Clear()


def want(name: str) -> None:
    """Makes a set the sidebar's from within a page, where its control is already drawn; rerun afterwards."""
    st.session_state[_WANTED] = name


def wanted() -> str | None:
    """The set that was asked for, once."""
    name: str | None = st.session_state.pop(_WANTED, None)
    return name


def _may_see(name: str) -> bool:
    # work that a session has started runs in threads without a session; they only know names that it gave them
    return get_script_run_ctx(suppress_warning=True) is None or name in held()


uploads.guard(_may_see)
