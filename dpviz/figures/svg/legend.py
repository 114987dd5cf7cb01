"""Legend and colour bar of a static picture."""

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from dpviz.figures.svg import marks
from dpviz.figures.svg.scales import make_list
from dpviz.figures.svg.text import add, format_number, height, width, write

_SAMPLE = 30  # pixels of the sample before a name
_LINE = 23  # pixels of an entry
_BETWEEN = 14  # pixels between entries side by side


def legend(
    root: Element,
    traces: list[marks.Trace],
    layout: marks.Trace,
    x: Callable[[float], float],
    y: Callable[[float], float],
    wide: float,
    ink: str,
    size: float,
) -> None:
    """The names of traces with a sample of each.

    Args:
        x, y: from shares of the plot to pixels.
        wide: of the picture.
    """
    named = [t for t in traces if t.get("name") and t.get("showlegend", True) is not False]
    wanted = layout.get("showlegend")
    if not named or wanted is False or (wanted is None and len(traces) < 2 and not any(t.get("showlegend") for t in named)):
        return
    settings: marks.Trace = layout.get("legend") or {}
    font = settings.get("font") or {}
    small, colour = float(font.get("size", size)), str(font.get("color", ink))
    share = float(settings.get("x", 1.02))
    left = share * wide if settings.get("xref") == "container" else x(share)
    rows = _rows([str(t["name"]) for t in named], settings.get("orientation") == "h", wide - left, small)
    talls = [max(_LINE + height(str(named[k]["name"]), small) - height("", small) for k, _ in row) for row in rows]
    top = y(float(settings.get("y", 1)))
    top -= {"bottom": sum(talls), "middle": sum(talls) / 2}.get(str(settings.get("yanchor", "top")), 0)
    for row, tall in zip(rows, talls, strict=True):
        middle, top = top + tall / 2, top + tall
        for entry, at in row:
            _sample(root, named[entry], left + at, middle, ink)
            name, begin = str(named[entry]["name"]), left + at + _SAMPLE + 8
            write(root, name, begin, middle, size=small, colour=colour, across="left")


def _rows(names: list[str], side_by_side: bool, room: float, size: float) -> list[list[tuple[int, float]]]:
    """(entry, pixels from the left) of every line."""
    if not side_by_side:
        return [[(k, 4.0)] for k in range(len(names))]
    rows: list[list[tuple[int, float]]] = [[]]
    at = 4.0
    for k, name in enumerate(names):
        needed = _SAMPLE + 8 + width(name, size)
        if rows[-1] and at + needed > room:
            rows.append([])
            at = 4.0
        rows[-1].append((k, at))
        at += needed + _BETWEEN
    return rows


def _sample(root: Element, trace: marks.Trace, x: float, y: float, ink: str) -> None:
    """A piece of line, a symbol or a box."""
    marker, line = trace.get("marker") or {}, trace.get("line") or {}
    if trace["type"] == "bar":
        fill = marker.get("color", ink)
        edge, striped = marker.get("line") or {}, bool((marker.get("pattern") or {}).get("shape"))
        fill = fill if isinstance(fill, str) else ink
        box = {"x": x + 8, "y": y - 7, "width": 14, "height": 14, "stroke": edge.get("color", fill if striped else None)}
        add(root, "rect", fill="none" if striped else fill, **box)
        if striped:
            add(
                root,
                "path",
                d=f"M{format_number(x + 8)} {format_number(y + 7)}l14 -14m-14 7l7 -7m0 14l7 -7",
                stroke=fill,
                stroke_width=1.5,
            )
        return
    mode = trace.get("mode") or "lines"
    colour = str(line.get("color", ink))
    if trace.get("fill") and trace.get("fillcolor"):
        add(root, "rect", x=x, y=y, width=_SAMPLE, height=8, fill=trace["fillcolor"])
    if "lines" in mode and float(line.get("width", 2)) > 0:
        add(root, "path", d=f"M{format_number(x)} {format_number(y)}h{_SAMPLE}", **marks.stroke(line, ink))
    if "markers" in mode:
        first = {key: _first(value) for key, value in marker.items() if key != "line"}
        edge = {key: _first(value) for key, value in (marker.get("line") or {}).items()}
        first["size"] = min(max(float(first.get("size", 6)), 6.0), 16.0)
        one = {"marker": first | {"line": edge, "opacity": 1}}
        marks.points(one, root, np.array([x + _SAMPLE / 2]), np.array([y]), colour, None)


def _first(value: Any) -> Any:
    listed = make_list(value)
    return listed[0] if listed and not isinstance(value, dict) else value


def colour_bar(
    root: Element, layout: marks.Trace, ends: tuple[float, float], sides: tuple[float, float], ink: str, size: float, name: str
) -> None:
    """The scale of a colour axis, beside the plot, or at the foot of the picture where it lies.

    Args:
        ends: pixels of the plot's top and bottom.
        sides: pixels of its left and right edge.
    """
    axis: marks.Trace = layout.get("coloraxis") or {}
    bar, stops = axis.get("colorbar") or {}, axis.get("colorscale")
    if not bar or not isinstance(stops, list | tuple) or axis.get("showscale") is False:
        return
    low, high = float(axis["cmin"]), float(axis["cmax"])
    lies, thick = bar.get("orientation") == "h", float(bar.get("thickness", 14))
    first, last = sides if lies else ends
    middle, half = (first + last) / 2, (last - first) / 2 * float(bar.get("len", 1))
    made = add(root, "linearGradient", id=f"{name}-scale", x1=0, y1=0 if lies else 1, x2=1 if lies else 0, y2=0)
    for share, colour in stops:
        add(made, "stop", offset=share, stop_color=colour)
    beside = float(layout["height"]) - thick - 26 if lies else sides[1] + 16
    place = {"x": middle - half, "y": beside} if lies else {"x": beside, "y": middle - half}
    length = {"width": 2 * half, "height": thick} if lies else {"width": thick, "height": 2 * half}
    add(root, "rect", **place, **length, fill=f"url(#{name}-scale)")
    values = make_list(bar.get("tickvals"))
    for value, text in zip(values, make_list(bar.get("ticktext")) or values, strict=True):
        share = (float(value) - low) / ((high - low) or 1.0)
        if not -0.01 <= share <= 1.01:
            continue
        if lies:
            write(root, str(text), middle + (2 * share - 1) * half, beside + thick + 12, size=size - 2, colour=ink)
        else:
            write(root, str(text), beside + thick + 5, middle - (2 * share - 1) * half, size=size - 2, colour=ink, across="left")
    if not lies:  # one that lies has its title written by the figure
        title = (bar.get("title") or {}).get("text", "")
        write(root, title, beside + thick + 40, middle, size=size, colour=ink, across="left", rotated=True)
