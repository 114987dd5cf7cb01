"""One lesson at a time: its question, the page that answers it, the reader's answer, and why; and all of them for print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput, check_choice, number_from_text
from dpviz.dashboard.components import charts, glossary, panels, tables
from dpviz.dashboard.components.lessons import BY_ID, LESSONS, Lesson
from dpviz.dashboard.frame import address, fields, links
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.answers import Answer
from dpviz.figures import lines
from dpviz.figures.style import LIGHT, Look, Theme
from dpviz.mechanisms.knobs import Choice
from dpviz.reporting import pictures, words
from dpviz.reporting.calls import address_text

SHEET = "sheet"
_HANDED_IN = "handed-in"
_ASKED = "dpviz.lesson-asked"  # (lesson, reply or None) of the answer that is shown


@dataclass(frozen=True, kw_only=True)
class Given(fields.Typed):
    """A reader's answers by lesson, in the address as "cost:11.1,best:dp-gd", so that a link hands them in."""

    def parse(self, name: str, text: str) -> dict[str, float | str]:
        found: dict[str, float | str] = {}
        for item in filter(None, text.split(",")):
            lesson, colon, reply = item.partition(":")
            if not colon or lesson not in BY_ID:
                raise InvalidInput(name, f"must look like lesson:answer, got {item[:40]!r}", "The answers are left out.")
            options = BY_ID[lesson].options
            found[lesson] = check_choice(name, reply, tuple(options)) if options else number_from_text(name, reply)
        return found

    def text(self, value: Mapping[str, float | str]) -> str:
        replies = {lesson: reply if isinstance(reply, str) else repr(reply).removesuffix(".0") for lesson, reply in value.items()}
        return ",".join(f"{lesson}:{reply}" for lesson, reply in replies.items())


GIVEN: fields.Field[Mapping[str, float | str]] = fields.Field("given", Given(label="Answers", help=""), {})


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The fields in the address: the lesson shown, or the sheet of all, and the answers."""
    replies = GIVEN.value()
    names = {lesson.id: f"{_mark(lesson.id, replies)}{k}. {lesson.title}" for k, lesson in enumerate(LESSONS, 1)}
    return (
        fields.choice("lesson", "Lesson", {**names, SHEET: "All, for print"}, LESSONS[0].id, few=len(LESSONS) + 1),
        GIVEN,
        fields.Field(panels.TASK, Choice(label="Lesson", help="", options=("", *BY_ID)), ""),
    )


def draw(own: fields.Group, theme: Theme) -> None:
    """The list of lessons, and the one that is chosen, or the sheet of all."""
    left, right = st.columns([1, 2], gap="large")
    progress = left.empty()  # filled when the answers of this click are judged
    chosen = own["lesson"].draw("", left, horizontal=False, label_visibility="collapsed")
    with right:
        if chosen == SHEET:
            sheet()
        else:
            _lesson(own, BY_ID[chosen], theme)
    _progress(progress, GIVEN.value())


def _mark(name: str, given: Mapping[str, float | str]) -> str:
    """A sign before a lesson that is answered: "✓ " where the answer is known to be right."""
    known = _known(name)
    return "" if name not in given else "✓ " if known is not None and known.accepts(given[name]) else "· "


def _lesson(own: fields.Group, lesson: Lesson, theme: Theme) -> None:
    """A lesson: its question, the page that answers it, the reader's answer and whether it is right."""
    given = GIVEN.value()
    panels.headline(lesson.question, of=None)
    with st.container(key="buttons-lesson"):
        links.page_link(lesson.page, f"Open “{lesson.page}”", run=lesson.spec, **lesson.more, task=lesson.id)
    with st.form(f"answer-{lesson.id}", border=False):
        reply = _field(lesson)
        left, middle, _ = st.columns([1, 1, 2])
        check = left.form_submit_button("Check my answer", type="primary", width="stretch")
        show = middle.form_submit_button("Show the answer", width="stretch")
    if check and reply is None:
        st.caption("Give an answer first.")
    elif check or show:
        st.session_state[_ASKED] = lesson.id, reply if check else None
    asked, reply = st.session_state.get(_ASKED, ("", None))
    answers = _measured(f"lesson-{asked}", [lesson]) if asked == lesson.id else None
    if answers is not None:
        if reply is not None and given.get(asked) != reply:
            GIVEN.keep({**given, asked: reply})
            address.amend(own.keys)
        _result(lesson, answers[asked], reply, theme)
    following = LESSONS.index(lesson) + 1
    if following < len(LESSONS):
        st.button(f"Next lesson: {LESSONS[following].title}", on_click=own["lesson"].keep, args=(LESSONS[following].id,))
    _hand_in(GIVEN.value())


def _progress(place: DeltaGenerator, given: Mapping[str, float | str]) -> None:
    """The number of lessons that are answered, and of those that are right."""
    right = sum(_known(name) is not None and _known(name).accepts(reply) for name, reply in given.items())  # type: ignore[union-attr]
    place.progress(len(given) / len(LESSONS), f"{len(given)} of {len(LESSONS)} answered, {right} right")


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


def _known(name: str) -> Answer | None:
    """The engine's answer, where it was computed in this session."""
    answers = (tasks.last_result(section) or {} for section in (f"lesson-{name}", _HANDED_IN))
    return next((found[name] for found in answers if name in found), None)


def _measured(section: str, lessons: Sequence[Lesson], ask: str = "") -> dict[str, Answer] | None:
    """The engine's answers; None until they are there; see `tasks.observe`."""

    def work(monitor: Monitor) -> dict[str, Answer]:
        found = {}
        for k, lesson in enumerate(lessons):
            monitor(k / len(lessons))
            found[lesson.id] = lesson.measure(lesson.spec)
        return found

    names, what = [lesson.id for lesson in lessons], f"Computing the answer{'s' * (len(lessons) > 1)}"
    return tasks.current_result(section, what, work, given=names, ask=ask)


def _result(lesson: Lesson, answer: Answer, reply: float | str | None, theme: Theme) -> None:
    """The result of an answer: the engine's answer with picture and reason, or a hint where it was wrong."""
    if reply is not None and not answer.accepts(reply):
        st.markdown(f"✗ **Not yet.** Hint: {words.markdown(lesson.hint)} Then try again.")
        return
    verdict = "✓ **Right.** " if reply is not None else ""
    st.markdown(f"{verdict}The answer is **{words.markdown(sentence(lesson, answer))}**.")
    figure, summary = picture(lesson, answer, theme)
    charts.chart(figure, f"lesson-{lesson.id}", summary, lambda: answer.evidence)
    st.markdown(f"**Why.** {words.markdown(lesson.explanation)}")
    st.markdown(f"**⚠ A common mistake.** {words.markdown(lesson.pitfall)}")
    if not lesson.private:
        panels.privacy_warning("This answer is computed from the rows without noise.")


def _hand_in(given: Mapping[str, float | str]) -> None:
    """The answers that the address holds, whether they are right, and a file of them."""
    if not given:
        return
    with st.expander(f"Hand in: {len(given)} of {len(LESSONS)} answers"):
        st.markdown("The address of this page holds these answers: send it to your teacher, or send the file.")
        missing = [BY_ID[name] for name in given if _known(name) is None]
        if missing:
            _measured(_HANDED_IN, missing, "Check them all")
        rows = []
        for name, reply in given.items():
            known = _known(name)
            shown = BY_ID[name].options.get(str(reply), str(reply))
            rows.append((BY_ID[name].title, shown, "not checked" if known is None else "✓" if known.accepts(reply) else "✗"))
        heads = ("Lesson", "Answer", "Right")
        tables.table(rows, heads)
        tables.download(lambda: pd.DataFrame(rows, columns=list(heads)), "answers", "Save the answers (CSV)")


def sentence(lesson: Lesson, answer: Answer) -> str:
    """The engine's answer in words, with the range in which a number is right."""
    if isinstance(answer.value, str):
        names = [lesson.options[name] for name in answer.right]
        also = [name for name in names if name != lesson.options[answer.value]]
        return lesson.options[answer.value] + (f" (equally good at this number of seeds: {', '.join(also)})" if also else "")
    unit = f" {lesson.unit}" if lesson.unit else ""
    exact = answer.high - answer.low < 0.002 * max(abs(answer.value), 1.0)
    shown = f"{words.three(answer.value)}{unit}"
    return shown if exact else f"{shown} ({words.three(answer.low)} to {words.three(answer.high)} counts as right)"


def picture(lesson: Lesson, answer: Answer, theme: Theme = LIGHT) -> tuple[Any, str]:
    """The numbers that the answer is read off, as bars, and in words."""
    bars = [lines.Bar(r.name, float(r.value), words.three(r.value), strong=bool(r.chosen)) for r in answer.evidence.itertuples()]
    style = pictures.method_look(lesson.spec.mechanism, theme)
    look = Look(style.name, style.colour, "solid", "circle")
    text = ", ".join(f"{r.name} {words.three(r.value)}" for r in answer.evidence.itertuples())
    return lines.bars(bars, look, theme, x=answer.quantity), f"{answer.quantity}: {text}."


def sheet() -> None:
    """All lessons below each other with the engine's answers: the lecturer's sheet."""
    st.caption("The lecturer’s sheet. Its answers are computed now, for the runs that the links open. Print it with Ctrl P.")
    answers = _measured("sheet", LESSONS)
    for k, lesson in enumerate(LESSONS, 1):
        with st.container(key=f"sheet-{lesson.id}"):
            st.subheader(f"{k}. {lesson.title}", anchor=False)
            st.markdown(f"**{words.markdown(lesson.question)}**")
            shown = "being computed" if answers is None else sentence(lesson, answers[lesson.id])
            st.markdown(f"Answer: **{words.markdown(shown)}**. {words.markdown(lesson.explanation)}")
            st.markdown(f"⚠ {words.markdown(lesson.pitfall)}")
            links.page_link(lesson.page, f"Open “{lesson.page}”", run=lesson.spec, **lesson.more)
            panels.note(f"{lesson.page}: {address_text(lesson.address())}")
