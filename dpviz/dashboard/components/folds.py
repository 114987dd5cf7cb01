"""Sections of a page, and folds whose content is sent when they are opened: what is closed costs the browser nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import streamlit as st

_closed: ContextVar[bool] = ContextVar("closed", default=False)


def in_closed_fold() -> bool:
    """True where what is drawn now lies in a closed fold: charts, tables, code and badges are recorded for reports, not sent."""
    return _closed.get()


@dataclass(frozen=True)
class Section:
    """A part of a page that is folded away.

    Attributes:
        question: its title.
        draw: draws its content.
        needs: False where the run has nothing to show here; the section is left out then.
        sent: key on the page of a fold whose content is sent when it is opened (`fold`).
        asked: key on the page of a fold whose content is made when it is opened (`lazy_fold`).
    """

    question: str
    draw: Callable[[], object]
    needs: bool = True
    sent: str = ""
    asked: str = ""


def sections(*those: Section) -> None:
    """The sections of a page in their order."""
    for one in those:
        if not one.needs:
            continue
        if one.asked:
            with lazy_fold(one.question, one.asked) as opened:
                if opened:
                    one.draw()
        else:
            with fold(one.question, one.sent) if one.sent else st.expander(one.question):
                one.draw()


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
def lazy_fold(title: str, key: str) -> Iterator[bool]:
    """A fold whose content is made when it is opened, and not recorded before; gives whether it is open.

    Args:
        key: unique on the page.
    """
    place = st.expander(title, key=f"fold-{key}", on_change="rerun")
    with place:
        yield bool(place.open)
