"""What belongs to one session only: its uploads. They are held here and nowhere else, so they go when the session goes."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.datasets import uploads
from dpviz.datasets.uploads import Upload

MOST = 3
_KEY, _WANTED = "dpviz.uploads", "dpviz.wanted"


def held() -> dict[str, Upload]:
    """The session's uploads by dataset name, oldest first."""
    found: dict[str, Upload] = st.session_state.get(_KEY, {})
    return found


def hold(upload: Upload) -> list[Upload]:
    """Keeps an upload for as long as the session lives; returns those that made room for it."""
    kept = [*held().values(), upload]
    st.session_state[_KEY] = {u.name: u for u in kept[-MOST:]}
    return kept[:-MOST]


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
