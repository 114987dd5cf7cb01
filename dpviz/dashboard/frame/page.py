"""The frame of every page: settings, look, heading, and what was wrong with the address."""

import time
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from dpviz.common.limits import demo
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, recorder
from dpviz.dashboard.frame import address, fields, links, pinned, private, session
from dpviz.dashboard.jobs import page_priority, watching
from dpviz.experiments.run import links as versions
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures.style import THEMES, Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.reporting import words

TOP = 0.08  # seconds that a browser needs to draw a sentence and two pictures

_LOOK = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_FOLLOW = Path(__file__).with_name("page.js").read_text(encoding="utf-8")


def start(title: str, heading: str = "") -> Theme:
    """Page settings, the look of the page and its heading; the first call of every page. Returns the reader's theme.

    Args:
        title: of the browser's tab, and of the page where no heading is given.
    """
    page_priority.drawing_a_page()
    session.watch()
    watching.arrive(title)
    private.on_error(_stopped)
    st.set_page_config(page_title=f"dpviz: {title}", page_icon=None, layout="wide")
    theme = THEMES["dark" if st.context.theme.type == "dark" else "light"]
    st.html(f"<style>{_LOOK.replace('INK', theme.ink).replace('PAPER', theme.paper)}</style>")
    st.html(f"<script>{_FOLLOW}</script>", unsafe_allow_javascript=True)
    st.button("Draw again", key=address.AGAIN)
    narrow = charts.narrow()
    st.button("Draw again for this window", key=f"window-{'wide' if narrow else 'narrow'}", on_click=_width, args=(not narrow,))
    recorder.begin(heading or title)
    if demo():
        st.info("Demonstration: no uploads, no downloads, small limits. Enter nothing private.")
    st.title(heading or title, anchor=False)
    if st.query_params.get(panels.TASK):
        _lesson(st.query_params[panels.TASK])
    return theme


def _lesson(name: str) -> None:
    """The question of the lesson that the page was opened for, and the way back to answer it."""
    from dpviz.dashboard.components.lessons import BY_ID  # with its answers, which no other page needs

    if name in BY_ID:
        with st.container(border=True, key="buttons-task"):
            st.markdown(f"**{words.markdown(BY_ID[name].title)}.** {words.markdown(BY_ID[name].question)}")
            links.to("Lessons", "Answer it", lesson=name)


def _stopped(error: Exception) -> bool:
    """Says in words what ended a page in the middle, as a file does that was changed meanwhile; whether it did."""
    if isinstance(error, FloatingPointError):  # a solver that does not converge, or training that diverges
        error = InvalidInput("training", str(error).rstrip("."), "Change a setting on the left.")
    if not isinstance(error, InvalidInput):
        return False
    panels.problem(error, "The rest of this page is missing.")
    return True


def _width(narrow: bool) -> None:
    """Keeps whether the window is narrow."""
    st.session_state[charts.NARROW] = narrow


def top_first() -> None:
    """Lets the browser draw what is above before it hears of what is below; call once, below what people look at.

    A browser that gets a whole page at once draws all of it before it shows any.
    """
    time.sleep(TOP)


def _different(older: dict[str, str], spec: RunSpec) -> dict[str, str]:
    """Older defaults that mean something else for a run than today's."""
    return fields.readable(lambda: versions.changed(older, setting_of(spec), resolve(spec).budget), older)


def problems(*, run: bool = True) -> None:
    """Shows problems of the address or of the last thing typed: field, cause, fix; and older defaults of a run.

    Args:
        run: whether the page shows one; else its address may hold one all the same, which other pages are opened with.
    """
    for problem in address.problems():
        panels.problem(problem, "The page goes on without it.")
    for rule in filter(None, (address.other_rule(), pinned.other_rule()) if run else ()):
        panels.note(rule)
    older = address.meant_before()
    if older:
        older = _different(older, RunSpec.from_query(st.query_params.to_dict(), []))
    if older and (run or any(key in SETTINGS or "." in key for key in st.query_params)):
        meant = ", ".join(f"{_label(key)} {value}" for key, value in older.items())
        with st.container(border=True, key="buttons-older"):
            message = f"This link names no version. Until {versions.UNTIL} it meant: {meant}. Defaults are others now."
            panels.text(message)
            st.button("Open it as it was meant then", on_click=_as_before)


def others(spec: RunSpec, methods: Iterable[str]) -> None:
    """A note where an older link's method is compared with methods whose defaults were others then; after `problems`."""
    older = address.of_others()
    if older:
        older = _different(older, spec)
    named: dict[str, list[str]] = {}
    for method in methods:
        for key in (key for key in older if key.startswith(f"{method}.")):
            named.setdefault(f"{_label(key)} {older[key]}", []).append(list_mechanisms()[method].label)
    for meant, labels in named.items():
        message = (
            f"When this link was made, the default was {meant}. These methods have today’s default here: {', '.join(labels)}."
        )
        panels.note(message)


def _label(key: str) -> str:
    """The name for people of a key of the address."""
    method, _, name = key.rpartition(".")
    knobs = list_mechanisms()[method].knobs() if method else SETTINGS
    return knobs[name].label if name in knobs else {"pair": "Which row is attacked"}.get(key, key)


def _as_before() -> None:
    """Opens the link by the older defaults, run A too."""
    pinned.as_before()
    address.as_before()
