"""Controls that belong to one page and not to the run. Their values are text in the address, absent at the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from dpviz.common.validate import InvalidInput, in_range, number_from_text, one_of, whole
from dpviz.dashboard.shell import address


@dataclass(frozen=True)
class Choice:
    """One of a few.

    Attributes:
        key: in the address.
        label, help: for people.
        options: value: label.
        default: the value that is not written into the address.
    """

    key: str
    label: str
    options: Mapping[str, str]
    default: str
    help: str = ""

    def value(self) -> str:
        """The value in force; a bad one is reported and replaced, and where there is nothing to choose it waits."""
        if not self.options:
            return self.default
        text = str(st.session_state.get(self.key) or self.default)
        try:
            return one_of(self.key, text, self.options)
        except InvalidInput as problem:
            address.report(problem)
            st.session_state[self.key] = ""
            return self.default

    def draw(self) -> str:
        """Draws it; returns the value."""
        widget = f"own.{self.key}"
        st.session_state[widget] = value = self.value()
        show = st.radio if len(self.options) <= 4 else st.selectbox
        more = {"horizontal": True} if show is st.radio else {}
        show(  # type: ignore[operator]
            self.label,
            list(self.options),
            key=widget,
            format_func=lambda v: self.options[v],
            help=self.help or None,
            on_change=_keep,
            args=(self.key, self.default),
            **more,
        )
        return value


@dataclass(frozen=True)
class Number:
    """A number whose default may follow the run.

    Attributes:
        low, high: inclusive.
        integer: whether it counts something.
    """

    key: str
    label: str
    low: float
    high: float
    integer: bool = False
    help: str = ""

    def value(self, default: float) -> float:
        """The value in force; a bad one is reported and replaced."""
        text = str(st.session_state.get(self.key) or "")
        if not text:
            return default
        try:
            number = number_from_text(self.key, text)
            if self.integer:
                return whole(self.key, number, int(self.low), int(self.high))
            return in_range(self.key, number, self.low, self.high)
        except InvalidInput as problem:
            address.report(problem)
            st.session_state[self.key] = ""
            return default

    def draw(self, default: float) -> float:
        """Draws it; returns the value."""
        widget = f"own.{self.key}"
        value = self.value(default)
        kind = int if self.integer else float
        st.session_state[widget] = kind(value)
        step = max(1, 10 ** (len(str(int(value))) - 2)) if self.integer else None
        st.number_input(
            self.label,
            kind(self.low),
            kind(self.high),
            key=widget,
            step=step,
            format=None if self.integer else "%.4g",
            help=self.help or None,
            on_change=_keep,
            args=(self.key, kind(default)),
        )
        return value


def check(controls: Sequence[Choice | Number]) -> None:
    """Reports bad values of an address before the page draws what was wrong with it."""
    for control in controls:
        if isinstance(control, Number):
            control.value(control.low)
        else:
            control.value()


def _keep(key: str, default: object) -> None:
    value = st.session_state[f"own.{key}"]
    st.session_state[key] = (
        "" if value is None or value == default else f"{value:.12g}" if isinstance(value, float) else str(value)
    )
