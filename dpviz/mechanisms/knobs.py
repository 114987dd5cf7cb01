"""Parameters that a mechanism declares, free of any user interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpviz.common.validate import in_range, number_from_text, one_of, truth, whole
from dpviz.common.words import Words


@dataclass(frozen=True)
class Knob:
    """How a mechanism's parameter may be set, free of any user interface.

    Attributes:
        label: short name for people.
        help: one sentence.
        kind: "number", "whole", "choice" or "switch".
        low, high: inclusive bounds of numbers.
        log: whether a slider should be logarithmic.
        unit: unit or "".
        options: allowed values of a choice.
    """

    label: Words
    help: Words
    kind: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    unit: str = ""
    options: tuple[str, ...] = ()

    def check(self, name: str, value: object) -> Any:
        """`value` in its canonical type, or `InvalidInput` naming the knob."""
        if self.kind == "number":
            return in_range(name, value, self.low, self.high)
        if self.kind == "whole":
            return whole(name, value, int(self.low), int(self.high))
        if self.kind == "choice":
            return one_of(name, value, self.options)
        return truth(name, value)

    def parse(self, name: str, text: str) -> Any:
        """A value written as text, as in a URL or on the command line."""
        if self.kind == "switch":
            return one_of(name, text.lower(), ("true", "false")) == "true"
        if self.kind == "choice":
            return one_of(name, text, self.options)
        return self.check(name, number_from_text(name, text))


def knob(
    default: Any,
    label: Words,
    help: Words,
    *,
    low: float = 0.0,
    high: float = 0.0,
    log: bool = False,
    unit: str = "",
    options: Sequence[str] = (),
) -> Any:
    """A dataclass field that is a knob; its kind follows from the default's type."""
    if isinstance(default, bool):
        kind = "switch"
    elif isinstance(default, int):
        kind = "whole"
    elif isinstance(default, float):
        kind = "number"
    else:
        kind = "choice"
    return field(default=default, metadata={"knob": Knob(label, help, kind, low, high, log, unit, tuple(options))})


def clip_norm_knob() -> Any:
    """The clip norm of methods that clip each row's gradient."""
    words: Words = "Longest gradient a row may contribute; 1 clips nothing for linear models."
    return knob(1.0, "Clip norm", words, low=0.001, high=100.0, log=True)
