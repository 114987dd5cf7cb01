"""A record of all that a page has drawn, kept until it is drawn again, so that one button makes a report of any page.

The answer, charts, small tables, badges and code are recorded where they are drawn (`panels`, `charts`, `tables`, `guarantee`,
`repeat`). Long tables of real rows are not, and what shows single real rows is written only where that is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import get_mechanism
from dpviz.reporting import Document, Text, address, python_call, render, shell_call, words
from dpviz.reporting.document import Part
from dpviz.reporting.run import settings_of

_KEY = "dpviz.recorder"
WITH_ROWS = "dpviz.report-rows"
_LEFT_OUT: str = "Pictures and tables of single real rows are left out of this report; it holds them where they are asked for."
_LANGUAGES = {"python": "Python", "bash": "Shell"}


@dataclass(eq=False)
class Recorder:
    """One page.

    Attributes:
        title: of the page.
        answers: the page's answer, and the same without naming a row.
        parts: what was drawn, or what makes it, by a name that is unique on the page; a fragment that is drawn again
            replaces its own.
        of_rows: names of the parts that show single real rows.
        badges: labels of guarantees.
        code: (language, code) that repeats what the page shows.
        run: the run that its controls stand for, and what people call its dataset; None before they are drawn.
        drew: the run that the answer ("headline") and each chart declare to show, by name; charts of many runs declare none.
    """

    title: str
    answers: tuple[str, str] | None = None
    parts: dict[str, Part | Callable[[], Part]] = field(default_factory=dict)
    of_rows: set[str] = field(default_factory=set)
    badges: list[str] = field(default_factory=list)
    closed: bool = False
    code: list[tuple[str, str]] = field(default_factory=list)
    run: tuple[RunSpec, str] | None = None
    drew: dict[str, RunSpec] = field(default_factory=dict)

    def clear(self) -> None:
        """Forgets what was drawn."""
        self.answers = None
        for kept in (self.parts, self.of_rows, self.badges, self.code, self.drew):
            kept.clear()

    def document(self, spec: RunSpec, dataset: str, *, rows: bool = False, link: str = "") -> Document:
        """The report.

        Args:
            dataset: what people call it.
            rows: whether views of single real rows go into it.
            link: where the page is found; the part of the address that holds the run by default.
        """
        spec = resolve(self.drew.get("headline", spec)).spec
        subject = f"{get_mechanism(spec.mechanism).label} on {dataset}, ε = {words.three(spec.epsilon)}"
        sentence = None if self.answers is None else self.answers[0 if rows else 1]
        kept = [part for name, part in self.parts.items() if rows or name not in self.of_rows]
        # read before parts that take seconds to make, in which the page may be drawn anew
        left_out, badges = bool(self.of_rows) and not rows, list(dict.fromkeys(self.badges))
        repeat = [("Python", python_call(spec)), ("Shell", shell_call(spec)), *self.code]
        parts = [part() if callable(part) else part for part in kept]
        if left_out:
            parts.append(Text(_LEFT_OUT))
        return Document(
            question=self.title,
            subject=subject,
            sentence=sentence or f"{subject}.",
            badges=badges or [words.guarantee(calibration_of(spec), spec.build())],
            parts=parts,
            repeat=list(dict.fromkeys(repeat)),
            settings=settings_of(spec),
            link=link or address(spec),
        )

    def html(self, spec: RunSpec, dataset: str, *, rows: bool = False, link: str = "") -> str:
        """The report as one file; see `document`."""
        return render(self.document(spec, dataset, rows=rows, link=link))


def begin(title: str) -> None:
    """Forgets what was drawn before; call at the start of every page."""
    before = _found()
    if before is not None:  # the server keeps a button's function for a while, and with it what was made of rows that may be gone
        before.clear()
    st.session_state[_KEY] = Recorder(title)


def _found() -> Recorder | None:
    return st.session_state.get(_KEY)


def _open() -> Recorder:
    """The record of the page while it takes something; outside a page one that is thrown away."""
    recorder = _found()
    return Recorder("") if recorder is None or recorder.closed else recorder


def get_recorder(state: Any) -> Recorder:
    """The record of a page's session.

    Args:
        state: of the session.
    """
    return state[_KEY]


def answer(sentence: str, without_rows: str, of: RunSpec | None) -> None:
    """Remembers the page's answer and the run that it speaks of; nothing happens outside a page."""
    recorder = _open()
    recorder.answers = (sentence, without_rows)
    if of is not None:
        recorder.drew["headline"] = of


def keep(name: str, part: Part | Callable[[], Part], *, rows: bool = False, of: RunSpec | None = None) -> None:
    """Remembers something that was drawn.

    Args:
        part: it, or what makes it when a report is written.
        rows: whether it shows single real rows.
        of: the run that it shows.
    """
    recorder = _open()
    recorder.parts[name] = part
    if of is not None:
        recorder.drew[name] = of
    if rows:
        recorder.of_rows.add(name)


def close(why: str) -> None:
    """Takes nothing more of this page, which shows another run than its controls say; a report says why it is empty."""
    recorder = _found()
    if recorder is not None:
        recorder.clear()
        recorder.parts["closed"] = Text(why)
        recorder.closed = True


def badge(text: str) -> None:
    """Remembers the label of a guarantee."""
    _open().badges.append(text)


def code(text: str, language: str) -> None:
    """Remembers code that repeats what the page shows."""
    _open().code.append((_LANGUAGES[language], text))


def button(spec: RunSpec, dataset: str) -> None:
    """The button that saves what the page shows; the file is made when it is pressed.

    Args:
        dataset: what people call it.
    """
    recorder = _found()
    if recorder is not None:
        recorder.run = (spec, dataset)
        rows = st.toggle(
            "Reports show real rows", key=WITH_ROWS, help="They reveal data. Without it, views of single rows are left out."
        )
        st.download_button(
            "Save a report (HTML)",
            lambda: recorder.html(spec, dataset, rows=rows),
            file_name="dpviz-report.html",
            mime="text/html",
            key="dpviz.report",
            icon=":material/download:",
            on_click="ignore",
            width="stretch",
            help="One file with the page's charts, tables and settings. It works offline and prints on A4.",
        )
