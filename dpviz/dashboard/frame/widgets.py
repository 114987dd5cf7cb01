"""The widget of a knob, by its way of setting a value (`Form`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.mechanisms.knobs import Enter, Form, Knob, Line, Pick, Tick


@dataclass(frozen=True)
class Tags(Form):
    """Set by picking several of a few texts."""

    options: tuple[str, ...]

    def shown(self, knob: Knob, value: Any) -> Any:
        return list(value)


@dataclass(frozen=True)
class Slide(Form):
    """Set by sliding over a few numbers."""

    marks: tuple[float, ...]


def control(
    key: str,
    knob: Knob,
    *,
    rule: Sequence[str] = (),
    few: int = 0,
    marks: Sequence[float] = (),
    on_change: Callable[[], None] | None = None,
    **more: Any,
) -> None:
    """The widget of a knob; its value is `st.session_state[key]`.

    Args:
        rule: what the knob's own rule gives, and for what n; the value is shown where the field is left empty.
        few: up to so many options stand side by side.
        marks: numbers to slide over.
        more: further arguments of the widget.
    """
    value = st.session_state[key]
    label = f"{knob.label} ({knob.unit})" if knob.unit else knob.label
    common = {"key": key, "help": knob.help or None, "on_change": on_change} | more
    across = common.pop("horizontal", True)
    form = Slide(tuple(sorted({*marks, value}))) if marks else knob.form(value or 0)
    match form:
        case Tick():
            st.toggle(label, **common)
        case Pick(options) if len(options) <= few and not form.typed:
            st.radio(label, options, format_func=knob.in_words, horizontal=across, **common)
        case Pick(options):
            st.selectbox(label, options, format_func=knob.in_words, accept_new_options=form.typed, **common)
        case Slide(marked):
            st.select_slider(label, marked, format_func=knob.in_words, **common)
        case Enter():
            if form.optional:
                # a field of the sidebar has room for the value alone
                given, here = (f"automatic: {rule[0]}", f" Here: {rule[0]} for {rule[1]}.") if rule else (knob.automatic, "")
                common |= {"placeholder": given, "help": f"{knob.help} Empty: {knob.automatic}.{here}"}
            typed = int if form.integer else float
            box: dict[str, Any] = {"min_value": typed(form.low), "max_value": typed(form.high), "step": typed(form.step)}
            box |= {"value": None if form.optional else "min", "format": None if form.integer else "%.6g"}
            st.number_input(label, **(box | common))
        case Tags(options):
            st.multiselect(label, options, format_func=knob.in_words, **common)
        case Line():
            st.text_input(label, **common)
        case _:
            raise TypeError(f"no widget is known for {type(form).__name__}")
