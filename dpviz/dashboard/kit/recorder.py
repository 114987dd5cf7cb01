"""What a page has drawn, kept until it is drawn again, so that one button makes a report of any page.

Charts, small tables and badges are recorded where they are drawn (`charts`, `tables`, `guarantee`). Tables of real rows are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from dpviz.common.words import Words
from dpviz.dashboard.kit import words
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import get_mechanism
from dpviz.reporting import Document, Text, address, python_call, render, shell_call
from dpviz.reporting.document import Part

_KEY = "dpviz.recorder"


@dataclass(eq=False)
class Recorder:
    """One page.

    Attributes:
        title: of the page.
        parts: what was drawn, by a name that is unique on the page; a fragment that is drawn again replaces its own.
        badges: labels of guarantees.
    """

    title: Words
    parts: dict[str, Part] = field(default_factory=dict)
    badges: list[Words] = field(default_factory=list)
    closed: bool = False

    def html(self, spec: RunSpec, dataset: str) -> str:
        """The report."""
        label = get_mechanism(spec.mechanism).label
        return render(
            Document(
                question=self.title,
                sentence=f"{label} on {dataset}, ε = {words.three(spec.epsilon)}.",
                badges=list(dict.fromkeys(self.badges)),
                parts=list(self.parts.values()),
                repeat=[("Python", python_call(spec)), ("Shell", shell_call(spec))],
                settings=list(spec.to_dict().items()),
                link=address(spec),
            )
        )


def begin(title: str) -> None:
    """Forgets what was drawn before; call at the start of every page."""
    before: Recorder | None = st.session_state.get(_KEY)
    if before is not None:  # the server keeps a button's function for a while, and with it what was made of rows that may be gone
        before.parts.clear()
        before.badges.clear()
    st.session_state[_KEY] = Recorder(title)


def keep(name: str, part: Part) -> None:
    """Remembers something that was drawn; nothing happens outside a page."""
    found: Recorder | None = st.session_state.get(_KEY)
    if found is not None and not found.closed:
        found.parts[name] = part


def close(why: Words) -> None:
    """Takes nothing more of this page, which shows another run than its controls say; a report says why it is empty."""
    found: Recorder | None = st.session_state.get(_KEY)
    if found is not None:
        found.parts.clear()
        found.badges.clear()
        found.parts["closed"] = Text(why)
        found.closed = True


def badge(text: str) -> None:
    """Remembers the label of a guarantee."""
    found: Recorder | None = st.session_state.get(_KEY)
    if found is not None and not found.closed:
        found.badges.append(text)


def button(spec: RunSpec, dataset: str) -> None:
    """The button that saves what the page shows; the file is made when it is pressed.

    Args:
        dataset: what people call it.
    """
    found: Recorder | None = st.session_state.get(_KEY)
    if found is not None:
        st.download_button(
            "Save a report (HTML)",
            lambda: found.html(spec, dataset),
            file_name="dpviz-report.html",
            mime="text/html",
            key="dpviz.report",
            on_click="ignore",
            width="stretch",
            help="One file with the page's charts, tables and settings. It works offline and prints on A4.",
        )
