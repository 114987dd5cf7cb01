"""The widget of a knob: one function for each way of setting a value (`Form`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
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
    rule: str = "",
    few: int = 0,
    marks: Sequence[float] = (),
    on_change: Callable[[], None] | None = None,
    **more: Any,
) -> None:
    """The widget of a knob; its value is `st.session_state[key]`.

    Args:
        rule: what the knob's own rule gives, in words; shown where the field is left empty.
        few: up to so many options stand side by side.
        marks: numbers to slide over.
        more: further arguments of the widget.
    """
    value = st.session_state[key]
    label = f"{knob.label} ({knob.unit})" if knob.unit else knob.label
    common = {"key": key, "help": knob.help or None, "on_change": on_change} | more
    form = Slide(tuple(sorted({*marks, value}))) if marks else knob.form(value or 0)
    _widget(form, knob, label, rule, few, common)


@singledispatch
def _widget(form: Form, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    """One function per way of setting a value."""
    raise TypeError(f"no widget is known for {type(form).__name__}")


@_widget.register
def _(form: Tick, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    st.toggle(label, **common)


@_widget.register
def _(form: Pick, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    if form.typed:
        st.selectbox(label, form.options, format_func=knob.in_words, accept_new_options=True, **common)
    elif len(form.options) <= few:
        st.radio(label, form.options, format_func=knob.in_words, horizontal=True, **common)
    else:
        st.selectbox(label, form.options, format_func=knob.in_words, **common)


@_widget.register
def _(form: Slide, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    st.select_slider(label, form.marks, format_func=knob.in_words, **common)


@_widget.register
def _(form: Enter, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    typed = int if form.integer else float
    if form.optional:
        common = common | {"placeholder": rule or knob.automatic, "help": f"{knob.help} Empty: {knob.automatic}."}
    box: dict[str, Any] = {"min_value": typed(form.low), "max_value": typed(form.high), "step": typed(form.step)}
    box |= {"value": None if form.optional else "min", "format": None if form.integer else "%.6g"}
    st.number_input(label, **(box | common))


@_widget.register
def _(form: Tags, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    st.multiselect(label, form.options, format_func=knob.in_words, **common)


@_widget.register
def _(form: Line, knob: Knob, label: str, rule: str, few: int, common: dict[str, Any]) -> None:
    st.text_input(label, **common)
