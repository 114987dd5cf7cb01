"""`Field`: a control that is kept in the address. All that an address can hold is drawn, read and written by one.

A field has a key in the address, a type (`Knob`: label, help, parsing, checking, text form, widget) and a default, which is
not written. A page's own field keeps its value as text in the session under its key; the widget stands beside it under
`own.<key>`, because Streamlit forgets a widget's value when the widget is not drawn. Every such key stands in `KEYS` of its
page's folder. A field of the run (`RunField`) is drawn on every page: its widget holds the value under the key itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dpviz.common.validate import InvalidInput, check_choice, check_integer, number_from_text, show
from dpviz.dashboard.frame import address
from dpviz.experiments.run.resolve import dataset_of, split_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.mechanisms.knobs import Choice, Enter, Form, Knob, Line, Number, Pick, Switch, Tick, Whole


@dataclass(frozen=True)
class Tags(Form):
    """Set by picking several of a few texts."""

    options: tuple[str, ...]

    def widget_value(self, knob: Knob, value: Any) -> Any:
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
    form = Slide(tuple(sorted({*marks, value}))) if marks else knob.form(value or 0)
    match form:
        case Tick():
            st.toggle(label, **common)
        case Pick(options) if len(options) <= few and not form.typed:
            st.radio(label, options, format_func=knob.in_words, **(dict[str, Any](horizontal=True) | common))
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


T = TypeVar("T")


def read_or_default(make: Callable[[], T], otherwise: T) -> T:
    """The result of `make`, which reads a run's data; `otherwise` where they cannot be read: the page says what is wrong."""
    try:
        return make()
    except (InvalidInput, MemoryError):
        return otherwise


@dataclass(frozen=True, kw_only=True)
class Typed(Knob):
    """Set by typing the text that stands in the address."""

    def check(self, name: str, value: object) -> Any:
        return value


@dataclass(frozen=True, kw_only=True)
class Several(Knob):
    """Some of a few texts, in the order of the options.

    Attributes:
        options: the texts; none holds a comma.
        names: what people call them, where that differs.
        refused: texts that are known and cannot be chosen, with the reason.
    """

    options: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    refused: Mapping[str, str] = field(default_factory=dict, hash=False)

    def check(self, name: str, value: object) -> tuple[str, ...]:
        chosen = [check_choice(name, v, (*self.options, *self.refused)) for v in value] if isinstance(value, list | tuple) else []
        for one in chosen:
            if one in self.refused:
                raise InvalidInput(name, f"{one} {self.refused[one]}", f"Choose among: {', '.join(self.options)}.")
        return tuple(option for option in self.options if option in chosen)

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        return self.check(name, text.split(","))

    def text(self, value: Any) -> str:
        return ",".join(value)

    def in_words(self, value: Any) -> str:
        return ", ".join(self.names.get(v, v) for v in ([value] if isinstance(value, str) else value))

    def form(self, value: Any) -> Form:
        return Tags(self.options)


@dataclass(frozen=True, kw_only=True)
class RowId(Typed):
    """The id of a training row, or None.

    Attributes:
        ids: of the training rows, ascending; None where they are not known, and any id is taken.
        n: number of all rows.
        names: the table's own id of each row, by row id; None where it has none.
    """

    names: pd.Series | None = field(default=None, hash=False, compare=False)
    ids: NDArray[np.integer] | None = field(default=None, hash=False, compare=False)
    n: int = 0

    def check(self, name: str, value: object) -> int | None:
        return None if value is None else self.parse(name, str(value))

    def parse(self, name: str, text: str) -> int:
        ids = self.ids
        if self.names is not None and (self.names == text.strip()).any():
            text = str(self.names[self.names == text.strip()].index[0])
        fix = "Give a whole number from 0."
        if ids is not None:
            fix = f"Training rows have ids such as {ids[0]}, {ids[1]} and {ids[-1]}; a click on the map chooses one."
        try:
            wanted = check_integer(name, number_from_text(name, text), 0, 10**12)
        except InvalidInput:
            raise InvalidInput(name, f"must be the id of a training row, got {show(text.strip())}", fix) from None
        if ids is not None and wanted not in ids:
            why = "is a test row and not a training row" if wanted < self.n else f"is not among the {len(ids):,} training rows"
            raise InvalidInput(name, f"{wanted} {why}", fix)
        return wanted

    def in_words(self, value: Any) -> str:
        return f"row {value}"


@dataclass(frozen=True)
class Field(Generic[T]):
    """A control that is kept in the address.

    Attributes:
        key: in the address and in the session.
        knob: what it may be, and how it is written and set.
        default: the value that is not written into the address.
        few: up to so many options stand side by side, more of them in a list.
    """

    key: str
    knob: Knob
    default: T
    few: int = 4

    def change_default(self, default: T) -> Field[T]:
        """The same with another default, where that follows the run."""
        return replace(self, default=default)

    def read(self, text: str) -> T:
        """The value that a text of the address stands for.

        Raises:
            InvalidInput: for none.
        """
        return self.knob.parse(self.knob.label, text) if text.strip() else self.default

    def write(self, value: T) -> str:
        """The text that stands for a value in the address, which `read` reads back; "" for the default."""
        return "" if value is None or value == self.default else self.knob.text(value)

    def value(self) -> T:
        """The value in force; a bad one is reported once and dropped, and where there is nothing to choose it waits."""
        if isinstance(self.knob, Choice) and not self.knob.options:
            return self.default
        try:
            return self.read(str(st.session_state.get(self.key) or ""))
        except InvalidInput as problem:
            address.report(problem)
            st.session_state[self.key] = ""
            return self.default

    def keep(self, value: T) -> None:
        """Makes a value the one in force; call from a callback, before the page is drawn."""
        st.session_state[self.key] = self.write(value)

    @property
    def _widget(self) -> str:
        """The widget's key. A choice of several that follows the run has one for each default: the browser may still speak of
        the one before, and would choose what nobody chose."""
        follows = isinstance(self.default, tuple) and self.default
        return f"own.{self.key}.{self.knob.text(self.default)}" if follows else f"own.{self.key}"

    def draw(self, label: str = "", place: AbstractContextManager[Any] | None = None, **more: Any) -> T:
        """Draws it and returns the value in force.

        Args:
            label: another than the knob's.
            place: a column or container; here by default.
            more: further arguments of the widget.
        """
        value = self.value()
        address.set_widget(self._widget, self.knob.form(value).widget_value(self.knob, value))
        knob = replace(self.knob, label=label) if label else self.knob
        with place or nullcontext():
            control(self._widget, knob, few=self.few, on_change=self._changed, **more)
        return value

    def _changed(self) -> None:
        value = st.session_state[self._widget]
        if isinstance(value, str) and isinstance(self.knob.form(self.default), Line):
            st.session_state[self.key] = value.strip()  # checked when the page reads it
            return
        try:
            self.keep(self.knob.check(self.knob.label, value))
        except InvalidInput as problem:
            address.report_typed(problem)


@dataclass(frozen=True)
class RunField(Field[T]):
    """A control of the run, for the sidebar. `RunSpec.from_query` reads all of them at once, by the same knobs.

    Attributes:
        marks: numbers to slide over; any other value has a place between them. Empty for another widget.
    """

    few: int = 0
    marks: tuple[float, ...] = ()

    def start(self) -> None:
        """Sets the control to its default, where nothing has set it yet."""
        if self.key not in st.session_state:
            self.keep(self.default)

    def keep(self, value: T) -> None:
        st.session_state[self.key] = self.knob.form(value).widget_value(self.knob, value)

    def text(self) -> str:
        """The control's value as text for an address; "" for None."""
        shown = st.session_state[self.key]
        return shown if isinstance(self.knob.form(self.default), Line) else self.knob.text(shown)

    def value(self) -> T:
        return self.read(self.text())

    def draw(self, label: str = "", place: AbstractContextManager[Any] | None = None, **more: Any) -> T:
        knob = replace(self.knob, label=label) if label else self.knob
        with place or nullcontext():
            control(self.key, knob, few=self.few, marks=self.marks, **more)
        return st.session_state[self.key]


class Group:
    """The fields of a page, which follow the run.

    Attributes:
        keys: of all of them.
    """

    def __init__(self, keys: Sequence[str], make: Callable[[RunSpec], Iterable[Field[Any]]]) -> None:
        self.keys = tuple(keys)
        self._make = make
        self._fields: dict[str, Field[Any]] = {}

    def check(self, spec: RunSpec) -> None:
        """Makes the fields for a run and reports what is bad, before the address is written.

        An address that is corrected later would be a second step for "Back", which leads from the first one forward again.
        """
        self._fields = {one.key: one for one in self._make(spec)}
        assert set(self._fields) <= set(self.keys)
        for one in self._fields.values():
            one.value()

    def __getitem__(self, key: str) -> Field[Any]:
        return self._fields[key]


def choice(key: str, label: str, options: Mapping[str, str], default: str, help: str = "", few: int = 4) -> Field[str]:
    """One of a few: value to name."""
    return Field(key, Choice(label=label, help=help, options=tuple(options), names=options), default, few)


def number(
    key: str, label: str, low: float, high: float, default: float, help: str = "", *, integer: bool = False
) -> Field[float]:
    """A number; `integer` where it counts something."""
    kind = Whole if integer else Number
    return Field(key, kind(label=label, help=help, low=low, high=high, log=True), default)


def switch(key: str, label: str, help: str, default: bool = False) -> Field[bool]:
    """On or off."""
    return Field(key, Switch(label=label, help=help), default)


def row(key: str, label: str, spec: RunSpec, help: str = "") -> Field[int | None]:
    """The id of one of a run's training rows, or None."""
    dataset = read_or_default(lambda: dataset_of(spec), None)
    known = RowId(label=label, help=help)
    if dataset is not None:
        known = replace(known, ids=split_of(spec, dataset).train, n=dataset.n, names=inspected.own_ids(dataset))
    return Field(key, known, None)
