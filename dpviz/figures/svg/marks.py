"""Marks of a static picture, trace by trace: lines, filled areas, points, texts and error bars."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from dpviz.figures.svg import symbols
from dpviz.figures.svg.scales import Floats, Scale, make_list
from dpviz.figures.svg.text import add, format_number, write

Trace = dict[str, Any]

_DASHES = {"dot": (1, 1), "dash": (3, 3), "longdash": (5, 5), "dashdot": (3, 1, 1, 1), "longdashdot": (5, 2, 1, 2)}
_MANY = 60  # points from which those of one look become one path, without hints
_TAG = re.compile("<[^>]*>")
_VALUE = re.compile(r"%\{(x|y|text|customdata)(?:\[(\d)\])?(?::([^}]*))?\}")


@dataclass(frozen=True)
class Canvas:
    """The area in which a trace is drawn.

    Attributes:
        inside, outside: elements that are cut off at the plot's edge, and that are not.
        x, y: its axes.
        ink: colour of text.
        size: of text.
        name: begins the ids of patterns.
    """

    inside: Element
    outside: Element
    x: Scale
    y: Scale
    ink: str
    size: float
    name: str


def stroke(line: Trace, colour: str) -> dict[str, object]:
    """A line's colour, width and dash as SVG has them."""
    width = float(line.get("width", 2))
    dash = _DASHES.get(str(line.get("dash", "solid")))
    attributes: dict[str, object] = {"fill": "none", "stroke": line.get("color", colour), "stroke_width": width}
    if dash is not None:
        attributes["stroke_dasharray"] = " ".join(format_number(part * max(width, 3.0)) for part in dash)
    return attributes


def _path(x: Floats, y: Floats) -> str:
    """A line with gaps where there is no value."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(a) or math.isnan(b):
            pen = "M"
            continue
        parts.append(f"{pen}{format_number(a)} {format_number(b)}")
        pen = "L"
    return "".join(parts)


def _steps(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of a line in steps that change halfway between points ("hvh")."""
    middle = (x[1:] + x[:-1]) / 2
    return np.concatenate([x[:1], np.repeat(middle, 2), x[-1:]]), np.repeat(y, 2)


def scatter(trace: Trace, on: Canvas, colour: str, scale: Sequence[Any] | None) -> None:
    """Filled areas, lines, error bars, points and texts of a scatter trace.

    Args:
        colour: where the trace names none.
        scale: (least value, largest value, colours) of points that have values for colours.
    """
    places = trace.get("x")
    y = on.y.value_pixels(trace.get("y"))
    x = on.x.value_pixels(places) if places is not None else on.x.pixels(np.arange(len(y)))
    mode, line = trace.get("mode") or "lines", trace.get("line") or {}
    px, py = _steps(x, y) if line.get("shape") == "hvh" else (x, y)
    if trace.get("fill") in ("toself", "tozeroy") and len(px):
        d = _path(px, py)
        if trace["fill"] == "tozeroy":
            ground = format_number(float(on.y.pixels(0.0)))
            d += f"L{format_number(float(px[-1]))} {ground}L{format_number(float(px[0]))} {ground}Z"
        add(on.inside, "path", d=d, fill=trace.get("fillcolor", colour))
    if "lines" in mode and float(line.get("width", 2)) > 0:
        add(on.inside, "path", d=_path(px, py), opacity=part(trace.get("opacity")), **stroke(line, colour))
    errors(trace, on, x, y, colour)
    if "markers" in mode:
        points(trace, on.inside, x, y, line.get("color", colour), scale)
    if "text" in mode:
        _texts(trace, on, x, y)


def part(opacity: Any) -> float | None:
    return None if opacity is None or float(opacity) == 1 else float(opacity)


def errors(trace: Trace, on: Canvas, x: Floats, y: Floats, colour: str) -> None:
    for key, axis in (("error_x", on.x), ("error_y", on.y)):
        bar = trace.get(key)
        if not bar:
            continue
        lies = key == "error_x"
        down, up = error_lengths(bar)
        values = axis.units(trace["x" if lies else "y"])
        if trace["type"] == "bar" and trace.get("base") is not None:
            values = values + np.array(make_list(trace["base"]), float)
        low, high = axis.pixels(values - down), axis.pixels(values + up)
        cap = float(bar.get("width", 4))
        parts = []
        for a, b, across in zip(low.tolist(), high.tolist(), (y if lies else x).tolist(), strict=True):
            if math.isnan(a + b + across) or a == b:
                continue
            ends = [(a, across), (b, across)] if lies else [(across, a), (across, b)]
            parts.append("M{} {}L{} {}".format(*(format_number(v) for end in ends for v in end)))
            for ex, ey in ends if cap else []:
                start, command = ((ex, ey - cap), "v") if lies else ((ex - cap, ey), "h")
                parts.append(f"M{format_number(start[0])} {format_number(start[1])}{command}{format_number(2 * cap)}")
        look = {"fill": "none", "stroke": bar.get("color", colour), "stroke_width": float(bar.get("thickness", 2))}
        add(on.inside, "path", d="".join(parts), **look)


def error_lengths(bar: Trace) -> tuple[Floats, Floats]:
    """The lengths of error bars downwards and upwards, in units of the axis."""
    up = np.array(make_list(bar["array"]), float)
    return (np.array(make_list(bar["arrayminus"]), float) if bar.get("arrayminus") is not None else up), up


def _texts(trace: Trace, on: Canvas, x: Floats, y: Floats) -> None:
    font = trace.get("textfont") or {}
    size = float(font.get("size", on.size))
    columns = (trace.get("text", ""), trace.get("textposition") or "middle center", font.get("color", on.ink))
    for text, place, colour, a, b in zip(*(repeat_value(c, len(x)) for c in columns), x.tolist(), y.tolist(), strict=True):
        if not text or math.isnan(a + b):
            continue
        first, *rest = place.split()
        down = {"top": "bottom", "middle": "middle", "bottom": "top"}[first]
        across = {"left": "right", "center": "center", "right": "left"}[rest[-1] if rest else "center"]
        away = 8 if (down, across) != ("middle", "center") else 0
        a += {"left": away, "center": 0, "right": -away}[across]
        b += {"top": away, "middle": 0, "bottom": -away}[down] if across == "center" else 0
        write(on.inside, str(text), a, b, size=size, colour=colour, across=across, down=down)


def repeat_value(value: Any, count: int) -> list[Any]:
    """One value for each point."""
    listed = make_list(value)
    return listed if not isinstance(value, str) and len(listed) == count and hasattr(value, "__len__") else [value] * count


def hint(parent: Element, trace: Trace, k: int) -> None:
    """The hover text of the k-th point or bar of a trace, by plotly's template, without its markup."""
    if trace.get("hoverinfo") == "skip":
        return

    def value(found: re.Match[str]) -> str:
        one = make_list(trace[found[1]])[k]
        return format(one if found[2] is None else make_list(one)[int(found[2])], found[3] or "")

    text = _VALUE.sub(value, str(trace.get("hovertemplate") or trace.get("name") or "").partition("<extra>")[0])
    if text:
        add(parent, "title").text = html.unescape(_TAG.sub("", text.replace("<br>", "\n")))


def points(trace: Trace, parent: Element, x: Floats, y: Floats, colour: str, scale: Sequence[Any] | None) -> None:
    """The symbols of a trace at (x, y) pixels."""
    marker, count = trace.get("marker") or {}, len(x)
    edge = marker.get("line") or {}
    colours = _colours(marker.get("color", colour), count, scale)
    named = marker.get("symbol", "circle"), marker.get("size", 6), colours, edge.get("color"), edge.get("width", 0)
    looks = zip(*(repeat_value(one, count) for one in named), _opacities(trace, marker, count), strict=True)
    together: dict[tuple[Any, ...], list[str]] = {}
    for k, (look, a, b) in enumerate(zip(looks, x.tolist(), y.tolist(), strict=True)):
        if not math.isnan(a + b) and look[5] > 0.02:
            key = look if count > _MANY else (*look, k)
            together.setdefault(key, []).append(
                f"M{format_number(a)} {format_number(b)}{symbols.path(look[0], round(float(look[1]) / 2, 1))}"
            )
    for (symbol, _, fill, edge_colour, width, opacity, *alone), parts in together.items():
        drawn = _ink(str(symbol), str(fill), edge_colour, float(width))
        made = add(parent, "path", d="".join(parts), opacity=part(opacity), **drawn)
        if alone:
            hint(made, trace, alone[0])


def _ink(symbol: str, fill: str, edge: str | None, width: float) -> dict[str, object]:
    if symbols.is_stroke(symbol):
        return {"fill": "none", "stroke": edge or fill, "stroke_width": width or 1.0}
    if symbols.is_open(symbol):
        return {"fill": "none", "stroke": fill, "stroke_width": width or 1.0}
    return {"fill": fill} | ({"stroke": edge or fill, "stroke_width": width} if width else {})


def _opacities(trace: Trace, marker: Trace, count: int) -> list[float]:
    """The opacity of each point; plotly draws those of many sizes thinner."""
    usual = 1 if isinstance(marker.get("size", 6), int | float) else 0.7
    opacities = np.array(repeat_value(marker.get("opacity", usual), count), float) * float(trace.get("opacity") or 1)
    if trace.get("selectedpoints") is not None:
        rest = np.ones(count, bool)
        rest[make_list(trace["selectedpoints"])] = False
        opacities[rest] *= float(((trace.get("unselected") or {}).get("marker") or {}).get("opacity", 0.2))
    return opacities.tolist()


def _colours(values: Any, count: int, scale: Sequence[Any] | None) -> list[str]:
    listed = repeat_value(values, count)
    if scale is None or any(isinstance(v, str) for v in listed):
        return [str(v) for v in listed]
    low, high, stops = scale
    return blend(np.array(listed, float), low, high, stops)


def blend(values: Floats, low: float, high: float, stops: Sequence[Sequence[Any]]) -> list[str]:
    """Colours of values on a scale from low to high; "none" where there is no value.

    Args:
        stops: (share, "#rrggbb") in order.
    """
    share = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
    places = [float(s) for s, _ in stops]
    parts = np.array([[int(str(c)[k : k + 2], 16) for k in (1, 3, 5)] for _, c in stops], float)
    mixed = np.column_stack([np.interp(share, places, parts[:, k]) for k in range(3)])
    return ["none" if np.isnan(row).any() else "#" + "".join(f"{round(v):02x}" for v in row) for row in mixed]
