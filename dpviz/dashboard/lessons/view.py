"""One lesson at a time: its question, the page that answers it, the reader's answer, and why; and all of them for print."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import charts, glossary, panels, progress, tables, words
from dpviz.dashboard.lessons.entries import LESSONS, Lesson
from dpviz.dashboard.shell import fields, links
from dpviz.dashboard.shell.fields import Field, Group
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.answers import Answer
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme

SHEET = "sheet"
_ANSWERS = "dpviz.lesson-answers"  # the engine's answers by lesson, once they were asked for


def of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """Which lesson is shown, or the sheet of all."""
    names = {lesson.id: f"{k}. {lesson.title}" for k, lesson in enumerate(LESSONS, 1)}
    return (fields.choice("lesson", "Lesson", {**names, SHEET: "All of them, for print"}, LESSONS[0].id, few=0),)


def draw(own: Group, theme: Theme) -> None:
    """The lesson that is chosen, or the sheet."""
    chosen = own["lesson"].draw()
    if chosen == SHEET:
        sheet()
        return
    lesson = next(one for one in LESSONS if one.id == chosen)
    panels.headline(lesson.question, of=None)
    with st.container(key="buttons-lesson"):
        links.to(lesson.page, f"Find it on the page “{lesson.page}”", run=lesson.spec, **lesson.more)
    with st.form(f"answer-{lesson.id}", border=False):
        reply = _field(lesson)
        left, right, _ = st.columns([1, 1, 2])
        check = left.form_submit_button("Check my answer", type="primary", width="stretch")
        show = right.form_submit_button("Show the answer", width="stretch")
    if show or (check and reply is not None):
        _result(lesson, reply if check else None, theme)
    elif check:
        st.caption("Give an answer first.")


def terms() -> None:
    """The glossary, folded away."""
    with st.expander(f"Glossary: {len(glossary.GLOSSARY)} terms, each with a source"):
        entries = sorted(glossary.GLOSSARY, key=lambda entry: entry.term.lower())
        tables.table([(e.term, e.text, e.source) for e in entries], ("Term", "Meaning", "Source"))


def _field(lesson: Lesson) -> float | str | None:
    """The reader's answer; None while there is none."""
    key = f"given-{lesson.id}"
    if lesson.options:
        chosen: str | None = st.radio("Your answer", lesson.options, index=None, format_func=lesson.options.__getitem__, key=key)
        return chosen
    label = f"Your answer ({lesson.unit})" if lesson.unit else "Your answer"
    return st.number_input(label, value=None, format="%.6g", step=None, key=key, width=260)


def _result(lesson: Lesson, reply: float | str | None, theme: Theme) -> None:
    """Whether the reader is right, the engine's answer, its picture, why, and the pitfall."""
    answers: dict[str, Answer] = st.session_state.setdefault(_ANSWERS, {})
    if lesson.id not in answers:

        def compute(spec: RunSpec, _: Monitor) -> Answer:
            return lesson.measure(spec)

        made = progress.working(lesson.spec, compute, f"lesson-{lesson.id}")
        if made is None:
            return
        answers[lesson.id] = made
    answer = answers[lesson.id]
    if reply is not None:
        right = answer.accepts(reply)
        verdict = "✓ **Right.**" if right else "✗ **Not yet.**"
        st.markdown(f"{verdict} The answer is {words.markdown(said(lesson, answer))}.")
    else:
        st.markdown(f"**The answer is {words.markdown(said(lesson, answer))}.**")
    picture(lesson, answer, theme)
    st.markdown(f"**Why.** {words.markdown(lesson.explanation)}")
    st.markdown(f"**⚠ Pitfall.** {words.markdown(lesson.pitfall)}")
    if not lesson.private:
        panels.not_private("This answer is computed from the rows without noise.")


def said(lesson: Lesson, answer: Answer) -> str:
    """The engine's answer in words, with the range in which a number is right."""
    if isinstance(answer.value, str):
        names = [lesson.options[name] for name in answer.right]
        also = [name for name in names if name != lesson.options[answer.value]]
        return lesson.options[answer.value] + (f" (not to be told apart: {', '.join(also)})" if also else "")
    unit = f" {lesson.unit}" if lesson.unit else ""
    exact = answer.high - answer.low < 0.002 * max(abs(answer.value), 1.0)
    shown = f"{words.three(answer.value)}{unit}"
    return shown if exact else f"{shown} ({words.three(answer.low)} to {words.three(answer.high)} counts as right)"


def picture(lesson: Lesson, answer: Answer, theme: Theme) -> None:
    """The numbers that the answer is read off, as bars."""
    table = answer.evidence
    bars = [lines.Bar(r.name, float(r.value), words.three(r.value), strong=bool(r.chosen)) for r in table.itertuples()]
    style = charts.method_look(lesson.spec.mechanism, theme)
    look = Look(style.name, style.colour, "solid", "circle")
    text = ", ".join(f"{r.name} {words.three(r.value)}" for r in table.itertuples())
    figure = lines.bars(bars, look, theme, x=answer.quantity)
    charts.chart(figure, f"lesson-{lesson.id}", f"{answer.quantity}: {text}.", lambda: table)


def sheet() -> None:
    """All lessons below each other, with the answers: the lecturer's sheet."""
    st.caption("The lecturer’s sheet: print this page with the browser (Ctrl P). A test compares every answer with the engine.")
    for k, lesson in enumerate(LESSONS, 1):
        with st.container(key=f"sheet-{lesson.id}"):
            st.subheader(f"{k}. {lesson.title}", anchor=False)
            st.markdown(f"**{words.markdown(lesson.question)}**")
            st.markdown(f"Answer: **{words.markdown(stated(lesson))}**. {words.markdown(lesson.explanation)}")
            st.markdown(f"⚠ {words.markdown(lesson.pitfall)}")
            links.to(lesson.page, f"Open “{lesson.page}”", run=lesson.spec, **lesson.more)
            st.caption(words.markdown(f"{lesson.page}: ?{urlencode(lesson.address())}"))


def stated(lesson: Lesson) -> str:
    """The answer as the sheet has it."""
    if isinstance(lesson.answer, str):
        return lesson.options[lesson.answer]
    return f"{words.three(lesson.answer)} {lesson.unit}".strip()
