"""Types of hyperparameters ("knobs") that a mechanism declares: `Number`, `Whole`, `Choice` and `Switch`.

A knob parses and checks a value, writes it as text for an address or a command line, spaces values for a grid or a
curve, and says how it is set on a page. Sidebar, address, command line, tuning, the sensitivity page and the docs ask the
knob, so a new type is one more subclass of `Knob`, declared with `declare`. Nothing here knows a user interface.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.validate import check_bool, check_choice, check_integer, check_range, number_from_text
from dpviz.privacy.budget import Neighbouring

#: what stands for a mechanism's own rule in an address or on the command line
AUTOMATIC = "automatic"
_SPAN = 30.0  # a curve over a knob goes this factor to each side


class Changes(StrEnum):
    """The first part of a run that is computed anew where a value changes; caches of a part are keyed on what may change it."""

    DATA = "data"  # the training and the test rows
    FIT = "fit"  # the model that is trained on them without privacy
    NOISE = "noise"  # private training
    EVALUATION = "evaluation"  # what is measured of the models


class Form:
    """The kind of control that sets a value on a page; a page has a widget for each kind."""

    def widget_value(self, knob: Knob, value: Any) -> Any:
        """The value of the widget where the knob has `value`."""
        return value


@dataclass(frozen=True)
class Tick(Form):
    """Set by switching on and off."""


@dataclass(frozen=True)
class Pick(Form):
    """Set by picking one of a few values.

    Attributes:
        options: the values.
        typed: whether others may be typed.
    """

    options: tuple[Any, ...]
    typed: bool = False


@dataclass(frozen=True)
class Line(Form):
    """Set by typing text, which is read when it was typed; an empty line stands for None."""

    def widget_value(self, knob: Knob, value: Any) -> Any:
        return "" if value is None else knob.text(value)


@dataclass(frozen=True)
class Enter(Form):
    """Set by entering a number.

    Attributes:
        low, high: inclusive bounds.
        step: of the arrows beside it.
        integer: whether it counts something.
        optional: whether it may be left empty, which stands for the mechanism's own rule.
    """

    low: float
    high: float
    step: float
    integer: bool
    optional: bool

    def widget_value(self, knob: Knob, value: Any) -> Any:
        return value or None if self.optional else value


@dataclass(frozen=True, kw_only=True)
class Knob(ABC):
    """One hyperparameter: what it is called, what it may be, and how its values are written and spaced.

    Attributes:
        label: short name for people.
        help: one sentence.
        unit: unit, or "".
        log: whether its values are spaced by equal ratios.
        automatic: where 0 (or None) stands for a rule of public facts: that rule in words; "" where there is none. The
            mechanism's `automatic` gives the value.
        changes: the part of a run that it changes; a mechanism's hyperparameters change private training.
    """

    label: str
    help: str
    unit: str = ""
    log: bool = False
    automatic: str = ""
    changes: Changes = Changes.NOISE

    @abstractmethod
    def check(self, name: str, value: object) -> Any:
        """`value` in its canonical type.

        Raises:
            InvalidInput: it is not allowed; names the knob.
        """

    def parse(self, name: str, text: str) -> Any:
        """The value that `text` writes, as in an address or on the command line; reads back what `text` gives.

        Raises:
            InvalidInput: it is no such value; names the knob.
        """
        return self.check(name, text)

    def text(self, value: Any) -> str:
        """A value as text for an address or the command line."""
        return str(value)

    def in_words(self, value: Any) -> str:
        """A value as people read it."""
        return self.text(value)

    def describe(self) -> str:
        """The values that are allowed, in words; none are for what only a page asks for."""
        return ""

    def form(self, value: Any) -> Form:
        """The control on a page, where the knob has `value` now."""
        return Line()

    def candidates(self, value: Any, count: int) -> tuple[Any, ...]:
        """About `count` values to try, in order; `value` is among them, and the only one where nothing else suggests itself."""
        return (value,)

    @property
    def has_curve(self) -> bool:
        """True where a curve can be drawn over its values."""
        return False

    def curve(self, value: float, most: float = math.inf) -> NDArray[np.float64]:
        """(K,) rising values around `value`, up to `most`, where `has_curve`."""
        raise NotImplementedError(f"no curve can be drawn over {self.label}")


@dataclass(frozen=True, kw_only=True)
class Number(Knob):
    """A real number.

    Attributes:
        low, high: inclusive bounds. Where there is a rule, 0 is allowed too and stands for it.
        ratio: of neighbouring values to try, on a logarithmic scale.
        share_of_rows: whether it is a number of rows that keeps its share of them where the method is used on other data.

    >>> Number(label="Step", help="", low=0.1, high=10).check("step", 3)
    3.0
    """

    low: float
    high: float
    ratio: float = 2.0
    share_of_rows: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0) or (self.automatic and self.low <= 0):
            raise TypeError(f"{self.label}: low must be below high, and above 0 on a logarithmic scale or beside a rule")

    def check(self, name: str, value: object) -> Any:
        if self.automatic and (value is None or (isinstance(value, int | float) and value is not False and value == 0)):
            return self._typed(0)
        return self._checked(name, value)

    def parse(self, name: str, text: str) -> Any:
        if self.automatic and text.strip().lower() == AUTOMATIC:
            return self._typed(0)
        return self.check(name, number_from_text(name, text))

    def text(self, value: Any) -> str:
        return AUTOMATIC if self._stands_for_rule(value) else str(value)

    def in_words(self, value: Any) -> str:
        return AUTOMATIC if self._stands_for_rule(value) else f"{value:.6g}"

    def describe(self) -> str:
        rule = f", or {AUTOMATIC} ({self.automatic})" if self.automatic else ""
        return f"{self.low:.10g} to {self.high:.10g} {self.unit}".rstrip() + rule

    def form(self, value: Any) -> Form:
        return Enter(self.low, self.high, self._step(value), isinstance(self._typed(0), int), bool(self.automatic))

    def candidates(self, value: Any, count: int) -> tuple[Any, ...]:
        """Up and down by factors of `ratio` on a logarithmic scale, otherwise evenly over the range."""
        half = count // 2
        factors = [value * self.ratio**k for k in range(-half, count - half)]
        raw = factors if self._by_factors() and value > 0 else [*np.linspace(self.low, self.high, count - 1), value]
        inside = {min(max(float(f"{v:.4g}"), self.low), self.high) for v in raw} - {float(f"{value:.4g}")}
        return tuple(sorted({*map(self._typed, inside), self._typed(value)}))

    @property
    def has_curve(self) -> bool:
        return self.log or self.share_of_rows

    def curve(self, value: float, most: float = math.inf) -> NDArray[np.float64]:
        """By equal ratios, up to a factor of 30 to each side, within the range."""
        low, high = max(self.low, value / _SPAN, self._least), min(self.high, value * _SPAN, most)
        return np.geomspace(low, max(high, 2 * low), 25)

    _least = 0.0  # of a curve

    def _checked(self, name: str, value: object) -> Any:
        return check_range(name, value, self.low, self.high)

    def _typed(self, value: float) -> Any:
        return float(value)

    def _by_factors(self) -> bool:
        return self.log

    def _step(self, value: float) -> float:
        return float(10.0 ** np.floor(np.log10(max(value, self.low)) - 0.5)) if self.log else (self.high - self.low) / 100

    def _stands_for_rule(self, value: Any) -> bool:
        return bool(self.automatic) and not value


@dataclass(frozen=True, kw_only=True)
class Whole(Number):
    """A whole number.

    >>> Whole(label="Steps", help="", low=1, high=100, log=True).candidates(10, 5)
    (2, 5, 10, 20, 40)
    """

    def curve(self, value: float, most: float = math.inf) -> NDArray[np.float64]:
        return np.unique(super().curve(value, most).round())

    def in_words(self, value: Any) -> str:
        return AUTOMATIC if self._stands_for_rule(value) else f"{value:,}"

    _least = 1.0

    def _checked(self, name: str, value: object) -> Any:
        return check_integer(name, value, int(self.low), int(self.high))

    def _typed(self, value: float) -> Any:
        return round(value)

    def _by_factors(self) -> bool:
        return True

    def _step(self, value: float) -> float:
        return max(1, 10 ** int(np.log10(max(value, 1)) - 0.5)) if self.log else 1


@dataclass(frozen=True, kw_only=True)
class Choice(Knob):
    """One of a few texts.

    Attributes:
        options: the texts.
        names: what people call them, where that differs.

    >>> Choice(label="Way", help="", options=("a", "b")).describe()
    'a, b'
    """

    options: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict, hash=False)

    def check(self, name: str, value: object) -> Any:
        return check_choice(name, value, self.options)

    def in_words(self, value: Any) -> str:
        return self.names.get(value, str(value))

    def describe(self) -> str:
        return ", ".join(self.options)

    def form(self, value: Any) -> Form:
        return Pick(self.options)

    def candidates(self, value: Any, count: int) -> tuple[Any, ...]:
        return self.options


@dataclass(frozen=True, kw_only=True)
class Switch(Knob):
    """On or off."""

    def check(self, name: str, value: object) -> Any:
        return check_bool(name, value)

    def parse(self, name: str, text: str) -> Any:
        return check_choice(name, text.lower(), ("true", "1", "false", "0")) in ("true", "1")

    def text(self, value: Any) -> str:
        return "true" if value else "false"

    def in_words(self, value: Any) -> str:
        return "on" if value else "off"

    def describe(self) -> str:
        return "true, false"

    def form(self, value: Any) -> Form:
        return Tick()

    def candidates(self, value: Any, count: int) -> tuple[Any, ...]:
        return (False, True)


def declare(default: Any, kind: Knob) -> Any:
    """A dataclass field that is a knob of any type."""
    return field(default=default, metadata={"knob": kind})


def knob(
    default: Any,
    label: str,
    help: str,
    *,
    low: float = 0.0,
    high: float = 0.0,
    log: bool = False,
    unit: str = "",
    options: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    automatic: str = "",
    share_of_rows: bool = False,
) -> Any:
    """A dataclass field that is a knob; its type follows from the default's: bool, int, float or str."""
    if isinstance(default, bool):
        return declare(default, Switch(label=label, help=help, unit=unit))
    number: dict[str, Any] = {"label": label, "help": help, "unit": unit, "log": log, "low": low, "high": high}
    number["automatic"] = automatic
    if isinstance(default, int):
        return declare(default, Whole(share_of_rows=share_of_rows, **number))
    if isinstance(default, float):
        return declare(default, Number(**number))
    return declare(default, Choice(label=label, help=help, unit=unit, options=tuple(options), names=names or {}))


def clip_norm_knob(default: float = 1.0, automatic: str = "") -> Any:
    """The clip norm of methods that clip each row's gradient; 0 where it follows from a rule."""
    words: str = "Largest norm of a row's gradient; longer ones are clipped to it. For linear models 1 clips none."
    return knob(default, "Clip norm", words, low=0.001, high=100.0, log=True, automatic=automatic)


def step_size_knob(help: str, automatic: str, *, label: str = "Step size", low: float = 0.01, high: float = 10.0) -> Any:
    """The step size in units of 1/L, which a rule of public facts sets where it is left automatic."""
    return knob(0.0, label, help, low=low, high=high, log=True, unit="1/L", automatic=automatic)


def relation_knob(help: str) -> Any:
    """The neighbouring relation of methods that have both."""
    return knob(Neighbouring.REPLACE_ONE.value, "Neighbouring", help, options=tuple(relation.value for relation in Neighbouring))


def start_knob() -> Any:
    """The first model of publications that start at the non-private one."""
    words: str = "The published start is the non-private model; zero shows what the method does on its own."
    return knob("non-private", "Start", words, options=("non-private", "zero"))
