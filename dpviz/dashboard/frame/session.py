"""Uploads, which belong to one session. When a session has been left for a while, everything of it goes.

A page that is loaded again is a new session for Streamlit; it takes over the uploads of the session that the same browser has
just left.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dpviz.dashboard.frame import private
from dpviz.dashboard.jobs import watching
from dpviz.dashboard.jobs.pool import pool
from dpviz.datasets.sources import uploads

MOST = 3
COOKIE = "dpviz_browser"  # holds a secret of each browser
_KEY, _FORGOTTEN = "dpviz.uploads", "dpviz.forgotten"
#: a set that becomes the sidebar's with the next drawing, asked for by a page whose control of it is already drawn
WANTED = "dpviz.wanted"
#: seconds for which a person may come back to a session that was left; less than `server.disconnectedSessionTTL`, after which
#: Streamlit does not find it
LINGER = 100.0
ARRIVING = 10.0  # seconds in which a new session looks for what its browser has left


@dataclass
class _Visit:
    """One session.

    Attributes:
        who: its name among those that want background work.
        session: Streamlit's name of it.
        browser: the secret of its browser, "" where that keeps no cookie.
        left: when the person left, in seconds of the monotonic clock; None while the page is open.
        uploads: names of its uploads.
        came: when the session began, in seconds of the monotonic clock.
        carried: what of the session's state a page takes along that is loaded again.
    """

    who: str
    session: str
    browser: str
    left: float | None = None
    uploads: set[str] = field(default_factory=set)
    came: float = field(default_factory=time.monotonic)
    carried: dict[str, Any] = field(default_factory=dict)


_visits: dict[str, _Visit] = {}


def held_uploads() -> dict[str, uploads.Upload]:
    """The session's uploads by dataset name, oldest first."""
    return st.session_state.get(_KEY, {})


def hold(upload: uploads.Upload) -> list[uploads.Upload]:
    """Keeps an upload for as long as the session lives; returns those that made room for it and are forgotten."""
    kept = [*held_uploads().values(), upload]
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
    upload = held_uploads().get(name)
    st.session_state[_KEY] = {k: u for k, u in held_uploads().items() if k != name}
    carry(_KEY)
    if upload is not None:
        upload.forget()
    st.session_state[_FORGOTTEN] = True


def forget_options() -> None:
    """Lets go of the options of controls where an upload was forgotten: some are its name and those of its features."""
    if st.session_state.pop(_FORGOTTEN, False):
        private.forget_controls()


def watch() -> _Visit | None:
    """Sees to it that everything of this session goes soon after the person has left; call on every page."""
    session = private.session_id()
    if session is None:
        return None
    private.watch_no_files()
    visit = _present(watching.session_name(), session, st.context.cookies.get(COOKIE, ""))
    if time.monotonic() - visit.came < ARRIVING:
        _take_over(visit)
    return visit


def belongs(session: str, browser: str) -> bool:
    """True where a session is one of a browser's."""
    return any(visit.session == session and visit.browser == browser for visit in list(_visits.values()))


def _left(visit: _Visit) -> None:
    """The person has left, or the connection was cut; called on the server's event loop."""
    if visit.who in _visits:
        visit.left = time.monotonic()
        asyncio.get_running_loop().call_later(LINGER, _end, visit)


@st.cache_resource(scope="session", on_release=_left, show_spinner=False)
def _present(who: str, session: str, browser: str) -> _Visit:
    """The visit of a session that is connected; Streamlit forgets it, and calls `_left`, when it no longer is."""
    visit = _visits.setdefault(who, _Visit(who, session, browser))
    visit.left = None
    return visit


def _end(visit: _Visit) -> None:
    """Forgets a session and its uploads, unless the person has come back since."""
    back = visit.left is None or time.monotonic() - visit.left < 0.99 * LINGER
    if back or _visits.pop(visit.who, None) is None:
        return
    pool().leave_all(visit.who)
    for name in visit.uploads:
        uploads.forget(name)
    private.close(visit.session)


def _take_over(mine: _Visit) -> None:
    """Gives this session what another one of the same browser has left and not yet lost."""
    for other in list(_visits.values()):
        if other.left is not None and mine.browser and other.browser == mine.browser:
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


def _may_see(name: str) -> bool:
    # work that a session has started runs in threads without a session; they only know names that it gave them
    return not private.is_session() or name in held_uploads()


uploads.guard(_may_see)
