"""Axes of a static picture: from values to pixels, and the ticks."""

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpviz.figures.style import Floats

Settings = dict[str, Any]

_APART = 85  # pixels between ticks across, at least; down it is less
_APART_DOWN = 32


@dataclass(frozen=True)
class Scale:
    """One axis.

    Attributes:
        low, high: ends in units of the axis: decimal exponents where it is logarithmic, positions where it has words.
        start, end: their pixels.
        log: whether it is logarithmic.
        words: of a categorical axis, else empty.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    words: tuple[str, ...] = ()

    def units(self, values: Any) -> Floats:
        """Values in units of the axis; NaN where there is none."""
        return axis_units(values, self.log, self.words)

    def value_pixels(self, values: Any) -> Floats:
        """Pixels of values."""
        return self.pixels(self.units(values))

    def pixels(self, units: Any) -> Floats:
        """Pixels of values in units of the axis, as annotations have them."""
        share = (np.asarray(units, float) - self.low) / (self.high - self.low)
        return np.asarray(self.start + share * (self.end - self.start))


def axis_units(values: Any, log: bool, words: Sequence[str] = ()) -> Floats:
    """Values in units of an axis; NaN where there is none."""
    places = {word: float(k) for k, word in enumerate(words)}
    plain = [math.nan if v is None else places.get(v, math.nan) if isinstance(v, str) else float(v) for v in make_list(values)]
    units = np.array(plain, float)
    if log:
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.log10(units)
    return np.where(np.isfinite(units), units, np.nan)


def decode(node: Any) -> Any:
    """A part of a figure with its arrays as numpy has them; plotly writes them as base64."""
    if isinstance(node, dict):
        if "bdata" in node:
            array = np.frombuffer(base64.b64decode(node["bdata"]), dtype=node["dtype"])
            return array.reshape([int(n) for n in str(node["shape"]).split(",")]) if "shape" in node else array
        return {key: decode(value) for key, value in node.items()}
    return [decode(one) for one in node] if isinstance(node, list | tuple) else node


def make_list(values: Any) -> list[Any]:
    """One value or many, as a list; None is none."""
    if values is None:
        return []
    flat = values.tolist() if hasattr(values, "tolist") else values
    return list(flat) if isinstance(flat, Iterable) and not isinstance(flat, str | dict) else [flat]


def words_in(*parts: Any) -> tuple[str, ...]:
    """The words of a categorical axis in their order; none where all values are numbers."""
    return tuple(dict.fromkeys(v for part in parts for v in make_list(part) if isinstance(v, str)))


def limits(axis: Settings, units: Floats, *, loose: bool, zero: bool) -> tuple[float, float]:
    """Ends of an axis in its units: those declared, else around what is drawn.

    Args:
        units: of all that is drawn on it.
        loose: whether there is room beyond the outermost values.
        zero: whether 0 belongs to it.
    """
    if axis.get("range") is not None:
        low, high = (float(v) for v in axis["range"])
        return low, high
    there = units[np.isfinite(units)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    zero = zero or axis.get("rangemode") == "tozero"
    if zero and axis.get("type") != "log":
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 1, high + 1
    room = 0.05 * (high - low) if loose else 0.0
    return (0.0 if zero and low == 0 else low - room), (0.0 if zero and high == 0 else high + room)


def ticks(axis: Settings, scale: Scale, across: bool) -> list[tuple[float, str]]:
    """(pixel, text) of the ticks within the axis."""
    ends = sorted((scale.low, scale.high))
    tolerance = 1e-9 * (ends[1] - ends[0])
    if axis.get("tickvals") is not None:
        values = make_list(axis["tickvals"])
        units, texts = scale.units(values), make_list(axis.get("ticktext")) or [_text(v, axis) for v in values]
    elif scale.words:
        units, texts = np.arange(len(scale.words), dtype=float), list(scale.words)
    elif scale.log:
        units, texts = _decades(axis, ends)
    else:
        units, texts = _even(axis, ends, abs(scale.end - scale.start), across)
    marks = zip(units, scale.pixels(units), texts, strict=True)
    return [(float(at), str(text)) for unit, at, text in marks if ends[0] - tolerance <= unit <= ends[1] + tolerance]


def _even(axis: Settings, ends: list[float], length: float, across: bool) -> tuple[Floats, list[str]]:
    """Ticks at whole multiples of 1, 2 or 5 times a power of ten."""
    most = max(1, min(int(axis.get("nticks") or 99), int(length / (_APART if across else _APART_DOWN))))
    rough = (ends[1] - ends[0]) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    step = float(axis["dtick"]) if isinstance(axis.get("dtick"), int | float) else step
    units = np.arange(math.ceil(ends[0] / step - 1e-9), math.floor(ends[1] / step + 1e-9) + 1) * step
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return units, [_text(u, axis, digits) for u in units]


def _decades(axis: Settings, ends: list[float]) -> tuple[Floats, list[str]]:
    """Ticks at powers of ten, and between them where there are few."""
    first, last = math.ceil(ends[0] - 1e-9), math.floor(ends[1] + 1e-9)
    if last - first < 1:
        values = [m * 10.0**p for p in range(first - 2, last + 2) for m in (1, 2, 5)]
        return np.log10(values), [f"{v:,.12g}" for v in values]
    step = max(1, math.ceil((last - first + 1) / 9))
    powers = range(math.ceil(first / step) * step, last + 1, step)
    return np.array(powers, float), [_power(p, axis) for p in powers]


def _power(p: int, axis: Settings) -> str:
    if axis.get("exponentformat") == "power" and p not in (0, 1):
        return f"10<sup>{p}</sup>".replace("-", "−")
    return f"{10.0**p:,.12g}{axis.get('ticksuffix', '')}"


def _text(value: float, axis: Settings, digits: int | None = None) -> str:
    form = axis.get("tickformat")
    number = format(value, form) if form else f"{value if digits is None else round(value, digits) + 0.0:,.12g}"
    return f"{number}{axis.get('ticksuffix', '')}".replace("-", "−")
