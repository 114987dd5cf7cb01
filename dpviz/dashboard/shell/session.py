"""What belongs to one session only: its uploads. They are held here and nowhere else, so they go when the session goes."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from contextlib import suppress

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.dashboard.work import pool
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload

MOST = 3
_KEY, _WANTED = "dpviz.uploads", "dpviz.wanted"
#: seconds after which a session that was left is closed; less than the 120 for which Streamlit lets a person come back,
#: because from then on it neither finds the session nor lets go of it until another one ends
LINGER = 100.0
_TICK = 10.0

_watched: dict[str, float | None] = {}
_lock = threading.Lock()
_watcher: threading.Thread | None = None


def held() -> dict[str, Upload]:
    """The session's uploads by dataset name, oldest first."""
    found: dict[str, Upload] = st.session_state.get(_KEY, {})
    return found


def hold(upload: Upload) -> list[Upload]:
    """Keeps an upload for as long as the session lives; returns those that made room for it."""
    kept = [*held().values(), upload]
    st.session_state[_KEY] = {u.name: u for u in kept[-MOST:]}
    return kept[:-MOST]


def watch() -> None:
    """Sees to it that what this session keeps goes soon after the person has left, even where nobody else comes."""
    global _watcher
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    with _lock:
        _watched.setdefault(context.session_id, None)
        if _watcher is None:
            _watcher = threading.Thread(target=_keep_watch, name="dpviz-sessions", daemon=True)
            _watcher.start()


def _keep_watch() -> None:
    while True:
        time.sleep(_TICK)
        if runtime.exists() and close_left(runtime.get_instance(), time.monotonic()):
            time.sleep(1.0)
            gc.collect()  # a session and its parts refer to each other
            pool.pool().tidy()
            with suppress(OSError, AttributeError):  # glibc keeps what was freed; others have no such call
                ctypes.CDLL(None).malloc_trim(0)


def close_left(running: runtime.Runtime, now: float) -> list[str]:
    """Closes the watched sessions that were left `LINGER` seconds before `now`; returns their ids."""
    with _lock:
        for session in _watched:
            if running.is_active_session(session):
                _watched[session] = None
            elif _watched[session] is None:
                _watched[session] = now
        left = [session for session, since in _watched.items() if since is not None and now - since >= LINGER]
        for session in left:
            del _watched[session]

    def close(session: str) -> None:
        if not running.is_active_session(session):  # the person may have come back just now
            running.close_session(session)

    for session in left:
        running._get_async_objs().eventloop.call_soon_threadsafe(close, session)
    return left


def drop(name: str) -> None:
    """Forgets an upload now."""
    st.session_state[_KEY] = {k: u for k, u in held().items() if k != name}


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
