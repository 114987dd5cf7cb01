"""Bars and heat maps of a static picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.figures.svg.marks import Canvas, Trace, blend, errors, hint, part, repeat_value
from dpviz.figures.svg.scales import Floats
from dpviz.figures.svg.text import add, write

_GREY = [[0, "#000000"], [1, "#ffffff"]]


@dataclass(frozen=True, eq=False)
class Bars:
    """The rectangles of a bar trace, in units of the axes.

    Attributes:
        middle, width: (n,) along the axis of the categories.
        start, end: (n,) along the axis of the values.
        lying: whether they lie.
    """

    middle: Floats
    width: Floats
    start: Floats
    end: Floats
    lying: bool


def bars(traces: Sequence[Trace], places: Sequence[Floats], values: Sequence[Floats], layout: Trace) -> list[Bars]:
    """Rectangles of all bar traces of one pair of axes.

    Args:
        places: of each trace, along the axis of its categories, in its units.
        values: the same along the axis of values.
    """
    mode, gap = layout.get("barmode", "group"), float(layout.get("bargap", 0.2))
    every = np.unique(np.concatenate([p[np.isfinite(p)] for p in places]))
    apart = float(np.diff(every).min()) if len(every) > 1 else 1.0
    ends: dict[tuple[float, bool], float] = {}
    rectangles = []
    for k, (trace, place, value) in enumerate(zip(traces, places, values, strict=True)):
        count = len(traces) if mode == "group" else 1
        width = np.full(len(place), apart * (1 - gap) / count)
        middle = place + (k - (count - 1) / 2) * width if count > 1 else place
        if trace.get("width") is not None:
            width, middle = np.array(repeat_value(trace["width"], len(place)), float), place
        start = np.array(repeat_value(0.0 if trace.get("base") is None else trace["base"], len(place)), float)
        if mode == "stack" and trace.get("base") is None:
            for j, (at, v) in enumerate(zip(place.tolist(), value.tolist(), strict=True)):
                start[j] = ends.get((at, v >= 0), 0.0)
                ends[(at, v >= 0)] = start[j] + (0.0 if math.isnan(v) else v)
        rectangles.append(Bars(middle, width, start, start + value, trace.get("orientation") == "h"))
    return rectangles


def draw(trace: Trace, made: Bars, on: Canvas, colour: str) -> None:
    """The rectangles, their patterns, texts and error bars."""
    marker = trace.get("marker") or {}
    count = len(made.middle)
    fills, edge, pattern = repeat_value(marker.get("color", colour), count), marker.get("line") or {}, marker.get("pattern") or {}
    shapes, edges = repeat_value(pattern.get("shape", ""), count), repeat_value(edge.get("width", 0), count)
    along, over = (on.x, on.y) if made.lying else (on.y, on.x)
    a, b = along.pixels(made.start), along.pixels(made.end)
    c, d = over.pixels(made.middle - made.width / 2), over.pixels(made.middle + made.width / 2)
    for k in range(count):
        sides = [float(v) for v in (min(a[k], b[k]), max(a[k], b[k]), min(c[k], d[k]), max(c[k], d[k]))]
        if any(math.isnan(v) for v in sides):
            continue
        x, y = (sides[0], sides[2]) if made.lying else (sides[2], sides[0])
        w, h = sides[1] - sides[0], sides[3] - sides[2]
        box = {"x": x, "y": y, "width": w if made.lying else h, "height": h if made.lying else w}
        border = {"stroke": edge.get("color", on.ink), "stroke_width": float(edges[k])} if float(edges[k]) else {}
        opacity = part(marker.get("opacity", trace.get("opacity")))
        fill = str(fills[k])
        if shapes[k]:  # the pattern takes the place of the colour
            fill = f"url(#{_pattern(on, shapes[k], fill)})"
        drawn = add(on.inside, "rect", fill=fill, opacity=opacity, **box, **border)
        hint(drawn, trace, k)
    middle = over.pixels(made.middle)
    errors(trace, on, middle, middle, colour)
    if trace.get("textposition") == "outside":
        _beside(trace, made, on, b, middle)


def _pattern(on: Canvas, shape: str, colour: str) -> str:
    """The id of a pattern, "/" or ".", which is made."""
    name = f"{on.name}-{'/.'.find(shape)}-{''.join(c for c in colour if c.isalnum())}"
    if any(pattern.get("id") == name for pattern in on.inside.iter("pattern")):
        return name
    made = add(on.inside, "pattern", id=name, width=8, height=8, patternUnits="userSpaceOnUse")
    if shape == ".":
        add(made, "circle", cx=4, cy=4, r=1.3, fill=colour)
    else:
        add(made, "path", d="M-2 2L2 -2M0 8L8 0M6 10L10 6", stroke=colour, stroke_width=1.2)
    return name


def _beside(trace: Trace, made: Bars, on: Canvas, ends: Floats, middle: Floats) -> None:
    """Texts at the ends of lying bars, which the plot's edge does not cut off."""
    font = trace.get("textfont") or {}
    size, colours = float(font.get("size", on.size)), repeat_value(font.get("color", on.ink), len(ends))
    for text, end, at, start, colour in zip(
        repeat_value(trace.get("text", ""), len(ends)), ends, middle, made.end - made.start, colours, strict=True
    ):
        if not text or math.isnan(float(end) + float(at)):
            continue
        away, across = (4, "left") if start >= 0 else (-4, "right")
        write(on.outside, str(text), float(end) + away, float(at), size=size, colour=colour, across=across)


def heat(trace: Trace, on: Canvas) -> None:
    """The cells of a heat map, those without a value left out."""
    z: NDArray[np.float64] = np.array(trace["z"], float)
    rows, columns = z.shape
    scale = trace.get("colorscale")
    stops = scale if isinstance(scale, list | tuple) else _GREY
    low = float(trace["zmin"] if trace.get("zmin") is not None else np.nanmin(z, initial=np.inf))
    high = float(trace["zmax"] if trace.get("zmax") is not None else np.nanmax(z, initial=-np.inf))
    colours = blend(z.ravel(), low, high, stops)
    xs, ys = (
        on.x.value_pixels(trace["x"]) if trace.get("x") is not None else on.x.pixels(np.arange(columns)),
        on.y.value_pixels(trace["y"]) if trace.get("y") is not None else on.y.pixels(np.arange(rows)),
    )
    wide, tall = (abs(float(v[1] - v[0])) if len(v) > 1 else 40.0 for v in (xs, ys))
    gaps = float(trace.get("xgap", 0)), float(trace.get("ygap", 0))
    w, h = wide - gaps[0], tall - gaps[1]
    for k, colour in enumerate(colours):
        if colour != "none":
            x, y = float(xs[k % columns]) - w / 2, float(ys[k // columns]) - h / 2
            add(on.inside, "rect", x=x, y=y, width=w + 0.2 * (not gaps[0]), height=h + 0.2 * (not gaps[1]), fill=colour)
