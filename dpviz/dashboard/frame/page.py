"""The frame of every page: settings, look, heading, and what was wrong with the address."""

import time
from pathlib import Path

import streamlit as st

from dpviz.common import memory
from dpviz.common.limits import DEMO_LIMITS, demo, most_in_demo
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, recorder
from dpviz.dashboard.frame import address, links, session
from dpviz.dashboard.jobs import watching
from dpviz.figures.style import THEMES, Theme
from dpviz.reporting import words

_PROBLEMS = "dpviz.problems-place"  # the part of the page where problems stand
TOP = 0.08  # seconds that a browser needs to draw a sentence and two pictures

_LOOK = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_FOLLOW = Path(__file__).with_name("page.js").read_text(encoding="utf-8")


def start(title: str, heading: str = "") -> Theme:
    """Page settings, the look of the page and its heading; the first call of every page. Returns the reader's theme.

    Args:
        title: of the browser's tab, and of the page where no heading is given.
    """
    session.watch()
    watching.arrive(title)
    st.set_page_config(page_title=f"dpviz: {title}", page_icon=None, layout="wide")
    theme = THEMES["dark" if st.context.theme.type == "dark" else "light"]
    st.html(f"<style>{_LOOK.replace('INK', theme.ink).replace('PAPER', theme.paper)}</style>")
    st.html(f"<script>{_FOLLOW}</script>", unsafe_allow_javascript=True)
    st.button("Draw again", key=address.AGAIN)
    narrow = charts.is_narrow()
    st.button(
        "Draw again for this window",
        key=f"window-{'wide' if narrow else 'narrow'}",
        on_click=st.session_state.update,
        args=({charts.NARROW: not narrow},),
    )
    recorder.begin(heading or title)
    if demo():
        limits = f"at most {DEMO_LIMITS.rows:,} rows and {DEMO_LIMITS.seeds} noise draws"
        st.info(f"Demonstration: no uploads, no downloads, {limits}. Enter nothing private.")
    if sum(memory.held_bytes().values()) > most_in_demo("megabytes") * 1_000_000:
        memory.clear()
    st.title(heading or title, anchor=False)
    st.session_state[_PROBLEMS] = st.container()
    if st.query_params.get(panels.TASK):
        _lesson(st.query_params[panels.TASK])
    return theme


def _lesson(name: str) -> None:
    """The question of the lesson that the page was opened for, and the way back to answer it."""
    from dpviz.dashboard.components.lessons import BY_ID  # with its answers, which no other page needs

    if name in BY_ID:
        with st.container(border=True, key="buttons-task"):
            st.markdown(f"**{words.markdown(BY_ID[name].title)}.** {words.markdown(BY_ID[name].question)}")
            links.page_link("Lessons", "Answer it", lesson=name)


def report_stop(error: Exception) -> bool:
    """Says in words what ended a page in the middle, as a file does that was changed meanwhile; whether it did."""
    if isinstance(error, FloatingPointError):  # a solver that does not converge, or training that diverges
        error = InvalidInput("training", str(error).rstrip("."), "Change a setting on the left.")
    if not isinstance(error, InvalidInput):
        return False
    panels.problem(error, "The rest of this page is missing.")
    return True


def top_first() -> None:
    """Lets the browser draw what is above before it hears of what is below; call once, below what people look at.

    A browser that gets a whole page at once draws all of it before it shows any.
    """
    time.sleep(TOP)


def problems() -> None:
    """Shows problems of the address or of the last thing typed, above all numbers: field, cause, fix."""
    with st.session_state[_PROBLEMS]:
        for problem in address.problems():
            panels.problem(problem, "The page goes on without it.")
