"""One run on one scale from 0 to 100 %: accuracy with the parts of its cost, and the best possible attack."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dpviz.figures.style import FONT_SIZE, Look, Theme, Trace, fade, figure, margin, tens
from dpviz.figures.traces import bar_trace, vertical_line

ROW = 140  # pixels of one gauge with its labels
ABOVE, _BELOW = 0.41, 0.1  # of a gauge more, where parts carry their names, and below the last one's third line of labels
_STROKES = ("line", 3, "solid"), ("dot", 2, "dot")  # kind, width and dash of a mark
_SIGN = 0.025  # share of the axis that a sign of a label takes in a picture of 300 pixels, the narrowest one


@dataclass(frozen=True)
class Part:
    """A stretch of a gauge.

    Attributes:
        name: what the stretch stands for, written above it; "" for nothing.
        start, end: shares in [0, 1]; end may be below start.
        kind: "base", "noise", "training" or "attack".
    """

    name: str
    start: float
    end: float
    kind: str


@dataclass(frozen=True)
class Mark:
    """A labelled place on a gauge: a share in [0, 1], what is there, and how it is drawn ("line" or "dot")."""

    name: str
    at: float
    kind: str = "line"


@dataclass(frozen=True)
class Gauge:
    """A row of the picture.

    Attributes:
        title: what is measured.
        parts: stretches, drawn in order.
        marks: labelled places.
    """

    title: str
    parts: Sequence[Part]
    marks: Sequence[Mark]


def gauges(rows: Sequence[Gauge], look: Look, theme: Theme, *, shares: bool = True) -> go.Figure:
    """Gauges below each other on one axis in percent.

    Args:
        rows: from top to bottom; the smallest mark of all decides where the axis begins.
        look: of the method; its colour fills what the private model reaches.
        shares: whether values are shares; otherwise they are losses, on an axis from 0.
    """
    values = [mark.at for row in rows for mark in row.marks]
    unit = 100 if shares else 1
    # whole tens, so that the axis stays where it is while epsilon moves
    low = max(0.0, 10.0 * math.floor((100 * min(values) - 1) / 10)) if shares else 0.0
    high = 101.0 if shares else 1.1 * max(values)
    fills = {"base": fade(look.colour, 0.85), "noise": theme.noise, "training": fade(theme.ink, 0.35), "attack": theme.noise}
    traces: list[Trace] = []
    notes: list[Trace] = []
    named = [[Mark(part.name, (part.start + part.end) / 2) for part in row.parts if part.name] for row in rows]
    heights = [1 + ABOVE * bool(names) for names in named]
    places = [float(sum(heights[k + 1 :])) for k in range(len(rows))]
    for row, names, y, height in zip(rows, named, places, heights, strict=True):
        notes.append(_text([f"<b>{row.title}</b>"], [low], [y + height - 0.75], theme, "middle right", FONT_SIZE))
        traces += [_bar(part, y, low, fills[part.kind], theme, shares) for part in row.parts]
        notes.append(_labels(row.marks, y - 0.25, -0.15, (low, high), unit, theme))
        notes += [_labels(names, y + 0.22, 0.14, (low, high), unit, theme)] if names else []
    strokes = {kind: {"color": theme.ink, "width": wide, "dash": dash} for kind, wide, dash in _STROKES}
    shapes = [
        vertical_line(unit * mark.at, strokes[mark.kind], y0=y - 0.17, y1=y + 0.17, yref="y")
        for row, y in zip(rows, places, strict=True)
        for mark in row.marks
    ]
    return figure(
        theme,
        [*traces, *notes],
        height=round(ROW * (sum(heights) + _BELOW)) + 60,
        x={"range": [low, high], "ticksuffix": " %" if shares else ""} | tens(low, shares=shares),
        y={"visible": False, "range": [-0.62 - _BELOW, sum(heights) - 0.62]},
        barmode="overlay",
        shapes=shapes,
        margin=margin(top=4, right=26),
    )


def _bar(part: Part, y: float, low: float, fill: str, theme: Theme, shares: bool) -> Trace:
    """One stretch of a gauge at height y, cut off where the axis begins."""
    unit = 100 if shares else 1
    start, end = sorted((unit * max(part.start, low / unit), unit * max(part.end, low / unit)))
    length = f"{100 * abs(part.end - part.start):.1f} points" if shares else f"{abs(part.end - part.start):.3g}"
    marker = {
        "color": fill,
        "line": {"color": theme.ink, "width": 1},
        "pattern": {"shape": "/" if part.kind == "training" else "", "fgcolor": theme.ink},
    }
    hover = f"{part.name}: {length}<extra></extra>"
    return bar_trace([end - start], [y], marker, hover, orientation="h", base=[start], width=0.24, showlegend=False)


def _labels(marks: Sequence[Mark], y: float, step: float, span: tuple[float, float], unit: int, theme: Theme) -> Trace:
    """Labels of a gauge on three levels: at the middle of their marks where there is room, else to one side of them.

    Args:
        y, step: height of the first level, and from one level to the next.
    """
    low, high = span
    widths = [(high - low) * _SIGN * len(mark.name) for mark in marks]
    placed: dict[int, tuple[int, float]] = {}
    # a label that is placed late may need an earlier one to make room
    for k in 2 * list(range(len(marks))):
        others = [(level, left, left + widths[i]) for i, (level, left) in placed.items() if i != k]
        placed[k] = _place(unit * marks[k].at, widths[k], others, (low, high))
    names = [marks[k].name for k in placed]
    x = [left + widths[k] / 2 for k, (_, left) in placed.items()]
    return _text(names, x, [y + step * level for level, _ in placed.values()], theme, "middle center", FONT_SIZE - 2)


def _place(at: float, width: float, others: Sequence[tuple[int, float, float]], span: tuple[float, float]) -> tuple[int, float]:
    """(level, left end) of a label for the place `at`: covers least of the others, then least aside, then the highest level.

    Args:
        others: (level, left end, right end) of the labels that are placed.
    """
    tried = []
    for level in range(3):
        for aside in (0.0, -0.4, 0.4):
            left = min(max(at - (0.5 - aside) * width, span[0]), span[1] - width)
            covered = sum(max(0.0, min(left + width, end) - max(left, start)) for one, start, end in others if one == level)
            tried.append((covered, abs(aside), level, left))
    *_, level, left = min(tried)
    return level, left


def _text(texts: list[str], x: list[float], y: list[float], theme: Theme, place: str, size: int) -> Trace:
    """Texts as a trace: plotly measures each annotation on the page, which takes half of the time of the whole picture."""
    return {
        "x": x,
        "y": y,
        "text": texts,
        "mode": "text",
        "textposition": place,
        "textfont": {"size": size, "color": theme.ink},
        "cliponaxis": False,
        "showlegend": False,
        "hoverinfo": "skip",
    }
