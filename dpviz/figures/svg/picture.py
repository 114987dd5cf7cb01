"""A figure as a static picture (SVG): for paper, for readers without JavaScript, and for pages that change at every move.

It draws what the figures of dpviz use of plotly: scatter, bar and heat map traces, linear, logarithmic and categorical axes,
shapes, annotations, a legend and a colour bar. Lengths are those of plotly, so that the declared margins hold here too.
"""

import math
from dataclasses import dataclass, replace
from typing import Any
from xml.etree.ElementTree import Element, tostring

import numpy as np
import plotly.graph_objects as go

from dpviz.figures.svg import bars, marks, scales
from dpviz.figures.svg.legend import colour_bar, legend
from dpviz.figures.svg.text import add, format_number, width, write

WIDTH = 720  # pixels: as wide as the print of an A4 page


@dataclass(frozen=True)
class Box:
    """The plot's place in the picture, in pixels, without margins."""

    left: float
    right: float
    top: float
    bottom: float

    def x(self, share: float) -> float:
        """A share of the width as a pixel."""
        return self.left + share * (self.right - self.left)

    def y(self, share: float) -> float:
        """A share of the height, from below, as a pixel."""
        return self.bottom - share * (self.bottom - self.top)


def picture(figure: go.Figure, name: str, words: str = "", wide: float = WIDTH) -> str:
    """The figure as an SVG element.

    Args:
        name: begins the ids inside, unique in the file.
        words: its alternative text.
        wide: its width in pixels.
    """
    drawn = scales.decode(figure.to_plotly_json())
    there = (t for t in drawn["data"] if t.get("visible", True) is True)
    # without those for a browser's pointer alone: points without any colour
    traces = [t for t in there if not str((t.get("marker") or {}).get("color", "")).endswith(",0)")]
    layout: marks.Trace = drawn["layout"]
    margin, height = layout["margin"], float(layout["height"])
    font = layout.get("font") or {}
    ink, size = str(font.get("color", "#111111")), float(font.get("size", 16))
    box = Box(float(margin["l"]), wide - float(margin["r"]), float(margin["t"]), height - float(margin["b"]))
    root = Element("svg", {"viewBox": f"0 0 {format_number(wide)} {format_number(height)}", "role": "img", "aria-label": words})
    root.set("style", f"background:{layout.get('paper_bgcolor', 'none')}")
    root.set("font-family", str(font.get("family", "sans-serif")))
    cut = add(root, "clipPath", id=f"{name}-cut")
    add(cut, "rect", x=box.left, y=box.top, width=box.right - box.left, height=box.bottom - box.top)
    axes = _axes(traces, layout, box)
    below = add(root, "g", clip_path=f"url(#{name}-cut)")
    _shapes(below, layout, axes, box, behind=True)
    for key, scale in axes.items():
        _axis(root, below, _settings(layout, key), scale, key, axes, wide, ink, size)
    inside, outside = add(root, "g", clip_path=f"url(#{name}-cut)"), add(root, "g")
    _traces(traces, layout, axes, marks.Canvas(inside, outside, axes["x"], axes["y"], ink, size, name))
    _shapes(inside, layout, axes, box, behind=False)
    for note in layout.get("annotations") or ():
        _note(root, note, axes, box, ink, size)
    legend(root, traces, layout, box.x, box.y, wide, ink, size)
    colour_bar(root, layout, (box.top, box.bottom), (box.left, box.right), ink, size, name)
    return tostring(root, encoding="unicode")


def _settings(layout: marks.Trace, key: str) -> marks.Trace:
    return layout.get(f"{key[0]}axis{key[1:]}") or {}


def _on(traces: list[marks.Trace], key: str) -> list[marks.Trace]:
    """The traces of one axis."""
    return [t for t in traces if t.get(f"{key[0]}axis", key[0]) == key]


def _axes(traces: list[marks.Trace], layout: marks.Trace, box: Box) -> dict[str, scales.Scale]:
    """All axes by their ids ("x", "y", "x2", ...)."""
    axes = {}
    keys = dict.fromkeys(["x", "y", *(f"{k[0]}{k[5:]}" for k in layout if k[1:5] == "axis"), *_used(traces)])
    for key in keys:
        axis, own = _settings(layout, key), _on(traces, key)
        words = scales.words_in(*(t.get(key[0]) for t in own if t["type"] != "heatmap" or t.get(key[0]) is not None))
        log = axis.get("type") == "log"
        units = [_units(t, key, log, words) for t in own]
        everything = np.concatenate([*units, *_of_bars(own, key, layout, log)]) if units else np.zeros(0)
        upright = {"x": "h", "y": "v"}[key[0]]
        zero = any(
            (t["type"] == "bar" and (t.get("orientation") or "v") == upright)
            or (t["type"] == "scatter" and t.get("fill") == "tozeroy" and key[0] == "y")
            for t in own
        )
        tight = key[0] == "x" and all(t["type"] == "scatter" and t.get("mode") == "lines" for t in own)
        low, high = scales.limits(axis, everything, loose=not tight, zero=zero)
        if words and axis.get("range") is None:
            low, high = -0.5, len(words) - 0.5
        first, last = axis.get("domain") or (0.0, 1.0)
        ends = (box.x(first), box.x(last)) if key[0] == "x" else (box.y(first), box.y(last))
        axes[key] = scales.Scale(low, high, *ends, log=log, words=words)
    if _settings(layout, "y").get("scaleanchor") == "x":
        axes["x"], axes["y"] = _square(axes["x"], axes["y"])
    return axes


def _used(traces: list[marks.Trace]) -> list[str]:
    return [t[f"{a}axis"] for t in traces for a in "xy" if t.get(f"{a}axis")]


def _units(trace: marks.Trace, key: str, log: bool, words: tuple[str, ...]) -> scales.Floats:
    values = trace.get(key[0])
    if trace["type"] == "heatmap":
        count = np.shape(trace["z"])[1 if key[0] == "x" else 0]
        units = scales.axis_units(values, log, words) if values is not None else np.arange(count, dtype=float)
        return np.concatenate([units - 0.5, units + 0.5])
    if values is None and key[0] == "x":
        return np.arange(len(scales.make_list(trace.get("y"))), dtype=float)
    if trace["type"] == "bar" and (trace.get("orientation") or "v") == {"x": "h", "y": "v"}[key[0]]:
        return np.zeros(0)  # bars are counted from their base
    units = scales.axis_units(values, log, words)
    bar = trace.get(f"error_{key[0]}")
    if bar:
        down, up = marks.error_lengths(bar)
        units = np.concatenate([units, units + up, units - down])
    return units


def _of_bars(own: list[marks.Trace], key: str, layout: marks.Trace, log: bool) -> list[scales.Floats]:
    """The extent of bars along an axis and across it."""
    made = [t for t in own if t["type"] == "bar"]
    if not made or log:
        return []
    parts = []
    for one in _made_bars(made, layout):
        along = one.lying == (key[0] == "x")
        parts += [one.start, one.end] if along else [one.middle - one.width / 2, one.middle + one.width / 2]
    return parts


def _made_bars(traces: list[marks.Trace], layout: marks.Trace) -> list[bars.Bars]:
    places, values = [], []
    for trace in traces:
        across, along = ("y", "x") if trace.get("orientation") == "h" else ("x", "y")
        words = scales.words_in(*(t.get(across) for t in traces))
        places.append(scales.axis_units(trace.get(across), False, words))
        values.append(scales.axis_units(trace.get(along), False))
    return bars.bars(traces, places, values, layout)


def _square(x: scales.Scale, y: scales.Scale) -> tuple[scales.Scale, scales.Scale]:
    """Both axes with the same length of a unit, each in the middle of its place."""
    unit = min(abs((s.end - s.start) / (s.high - s.low)) for s in (x, y))

    def scaled(s: scales.Scale) -> scales.Scale:
        middle, half = (s.start + s.end) / 2, math.copysign(abs(s.high - s.low) * unit / 2, s.end - s.start)
        return replace(s, start=middle - half, end=middle + half)

    return scaled(x), scaled(y)


def _axis(
    root: Element,
    below: Element,
    axis: marks.Trace,
    scale: scales.Scale,
    key: str,
    axes: dict[str, scales.Scale],
    wide: float,
    ink: str,
    size: float,
) -> None:
    """Grid, tick labels and title of an axis."""
    if axis.get("visible") is False:
        return
    across, top = key[0] == "x", axis.get("side") == "top"
    font = axis.get("tickfont") or {}
    small, colour = float(font.get("size", size)), str(font.get("color", axis.get("color", ink)))
    other = axes["y" if across else "x"]
    first, last = sorted((other.start, other.end))
    edge = (first if top else last) if across else first
    for at, text in scales.ticks(axis, scale, across):
        if axis.get("showgrid", True) is not False:
            d = (
                f"M{format_number(at)} {format_number(first)}V{format_number(last)}"
                if across
                else f"M{format_number(first)} {format_number(at)}H{format_number(last)}"
            )
            add(below, "path", d=d, stroke=axis.get("gridcolor", "#e4e6ea"), stroke_width=1)
        if axis.get("showticklabels", True) is False:
            continue
        half = width(text, small) / 2
        if across and at - half >= 0 and at + half <= wide:
            write(root, text, at, edge + (-7 if top else 7), size=small, colour=colour, down="bottom" if top else "top")
        elif not across:
            write(root, text, edge - 7, at, size=small, colour=colour, across="right")
    line = (
        f"M{format_number(scale.start)} {format_number(edge)}H"
        if across
        else f"M{format_number(edge)} {format_number(scale.start)}V"
    ) + format_number(scale.end)
    add(root, "path", d=line, stroke=axis.get("linecolor", "#767676"), stroke_width=1)
    caption = (axis.get("title") or {}).get("text", "")
    if caption and across:
        down = "bottom" if top else "top"
        write(root, caption, (scale.start + scale.end) / 2, edge + (-34 if top else 30), size=size, colour=ink, down=down)


def _traces(traces: list[marks.Trace], layout: marks.Trace, axes: dict[str, scales.Scale], canvas: marks.Canvas) -> None:
    """Heat maps, then bars, then lines and points."""
    for kind in ("heatmap", "bar", "scatter"):
        for key in dict.fromkeys((t.get("xaxis", "x"), t.get("yaxis", "y")) for t in traces):
            some = [t for t in _on(_on(traces, key[0]), key[1]) if t["type"].removesuffix("gl") == kind]
            on = replace(canvas, x=axes[key[0]], y=axes[key[1]])
            made = _made_bars(some, layout) if kind == "bar" and some else []
            for k, trace in enumerate(some):
                if kind == "heatmap":
                    bars.heat(trace, on)
                elif kind == "bar":
                    bars.draw(trace, made[k], on, canvas.ink)
                else:
                    marks.scatter(trace, on, canvas.ink, _colour_scale(trace, layout))


def _colour_scale(trace: marks.Trace, layout: marks.Trace) -> tuple[float, float, Any] | None:
    """(least, largest, colours) of points that have values for colours."""
    marker = trace.get("marker") or {}
    named = marker.get("coloraxis")
    source = (layout.get(named) or {}) if named else marker
    stops = source.get("colorscale")
    if not isinstance(stops, list | tuple):
        return None
    values = np.array(scales.make_list(marker.get("color")), float)
    low, high = source.get("cmin"), source.get("cmax")
    return float(np.nanmin(values) if low is None else low), float(np.nanmax(values) if high is None else high), stops


def _place(value: Any, letter: str, ref: str, axes: dict[str, scales.Scale], box: Box, *, units: bool) -> float:
    """A pixel of a coordinate in units of the paper or of an axis.

    Args:
        letter: "x" or "y".
        units: whether logarithmic axes are meant by their exponents, as annotations mean them.
    """
    if ref == "paper":
        return box.x(value) if letter == "x" else box.y(value)
    scale = axes[ref]
    return float(scale.pixels(float(value)) if units and not isinstance(value, str) else scale.value_pixels([value])[0])


def _shapes(parent: Element, layout: marks.Trace, axes: dict[str, scales.Scale], box: Box, *, behind: bool) -> None:
    for shape in layout.get("shapes") or ():
        if (shape.get("layer") == "below") != behind:
            continue
        refs = {letter: shape.get(f"{letter}ref", letter) for letter in "xy"}
        ends = (_place(shape[k], k[0], refs[k[0]], axes, box, units=False) for k in ("x0", "x1", "y0", "y1"))
        x0, x1, y0, y1 = ends
        line = marks.stroke(shape.get("line") or {}, "#444444")
        if shape["type"] == "line":
            add(parent, "path", d=f"M{format_number(x0)} {format_number(y0)}L{format_number(x1)} {format_number(y1)}", **line)
        else:
            size = {"x": min(x0, x1), "y": min(y0, y1), "width": abs(x1 - x0), "height": abs(y1 - y0)}
            add(parent, "rect", **size, **(line | {"fill": shape.get("fillcolor", "none")}))


def _third(share: float, low: str, middle: str, high: str) -> str:
    """The anchor of a note by the third of the plot that it lies in, as plotly has it."""
    return low if share < 1 / 3 else high if share > 2 / 3 else middle


def _note(root: Element, note: marks.Trace, axes: dict[str, scales.Scale], box: Box, ink: str, size: float) -> None:
    """An annotation without an arrow."""
    refs = note.get("xref", "x"), note.get("yref", "y")
    x, y = (_place(note[k], k, ref, axes, box, units=True) for k, ref in zip("xy", refs, strict=True))
    x, y = x + float(note.get("xshift", 0)), y - float(note.get("yshift", 0))
    font = note.get("font") or {}
    across = note.get("xanchor") or ("center" if refs[0] != "paper" else _third(note["x"], "left", "center", "right"))
    down = note.get("yanchor") or ("middle" if refs[1] != "paper" else _third(note["y"], "bottom", "middle", "top"))
    look: marks.Trace = {
        "size": float(font.get("size", size)),
        "colour": str(font.get("color", ink)),
        "paper": note.get("bgcolor"),
    }
    place: marks.Trace = {"across": str(across), "down": str(down), "rotated": float(note.get("textangle", 0)) == -90}
    write(root, str(note.get("text", "")), x, y, **place, **look)
