"""Folds whose content is sent when they are opened: what is closed costs the reader's browser nothing at every move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import streamlit as st

_closed: ContextVar[bool] = ContextVar("closed", default=False)


def closed() -> bool:
    """True where what is drawn now lies in a closed fold: charts, tables, code and badges are recorded for reports, not sent."""
    return _closed.get()


@contextmanager
def fold(title: str, key: str) -> Iterator[None]:
    """A fold, closed at first; opening it draws the page again.

    Args:
        key: unique on the page.
    """
    place = st.expander(title, key=f"fold-{key}", on_change="rerun")
    token = _closed.set(not place.open)
    try:
        with place:
            yield
    finally:
        _closed.reset(token)


@contextmanager
def on_request(title: str, key: str) -> Iterator[bool]:
    """A fold whose content is made when it is opened, and not recorded before; gives whether it is open.

    Args:
        key: unique on the page.
    """
    place = st.expander(title, key=f"fold-{key}", on_change="rerun")
    with place:
        yield bool(place.open)
