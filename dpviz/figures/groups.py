"""Groups over epsilon: a line and a band for each, and the gap between the best and the worst."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.lines import SIGNS, Label, leaders, list_entries, room, wrap
from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Look, Theme, Trace, escape, fade, figure, margin, shorten
from dpviz.figures.traces import band_trace, horizontal_bars, line_trace, marker_trace, note, vertical_line

_PLOT = 240  # pixels from axis to axis
_NAME, _WIDTH = 26, 13  # signs of a name beside the plot, and of one line of it


@dataclass(frozen=True)
class GroupLine:
    """One group.

    Attributes:
        name: of the group.
        points: epsilon rising; columns epsilon, mean, low, high.
        non_private: value of the non-private model, NaN where there is none.
        look: colour, dash and marker.
        small: whether it has few rows, so that its line is thin.
    """

    name: str
    points: pd.DataFrame
    non_private: float
    look: Look
    small: bool = False


def groups(
    lines: Sequence[GroupLine],
    theme: Theme,
    *,
    here: float,
    overlay: tuple[float, Sequence[float]] | None = None,
    shares: bool = True,
    narrow: bool = False,
) -> go.Figure:
    """Values of each group over a logarithmic epsilon axis; short lines at the right end are the non-private values.

    The groups' names are listed at the right, the best first.

    Args:
        here: the epsilon of the page, marked.
        overlay: epsilon of another run, and its value for each line: rings called A.
        shares: whether values are drawn in percent; otherwise as they are.
        narrow: whether there is no room for names beside the lines; they stand above the plot then.
    """
    unit, shown = (100, "%{y:.1f} %") if shares else (1, "%{y:.2f}")
    traces: list[Trace] = []
    values = [v for line in lines for c in ("low", "high") for v in line.points[c]] + [line.non_private for line in lines]
    last = max((float(line.points["epsilon"].max()) for line in lines), default=10.0)
    for line in lines:
        traces += _band(line.points, line.look, line.name, small=line.small, shares=shares)
        if math.isfinite(line.non_private):
            hover = f"non-private, {escape(line.name)}: {shown}<extra></extra>"
            y = [unit * line.non_private] * 2
            traces.append(
                line_trace([1.25 * last, 1.9 * last], y, {"color": line.look.colour, "width": 4}, hover, showlegend=False)
            )
    if overlay is not None:
        rings = [unit * v for v in overlay[1]]
        traces.append(_rings([overlay[0]] * len(lines), rings, [line.look.colour for line in lines], theme))
        values += overlay[1]
    if narrow:
        entries = len(lines) + (overlay is not None)
        return _figure(traces, values, lines[0].points, theme, here, entries=entries, top=True, shares=shares)
    if overlay is not None:
        rung = max(range(len(lines)), key=lambda k: overlay[1][k] if math.isfinite(overlay[1][k]) else -math.inf)
        traces[-1] |= {"text": ["A" if k == rung else "" for k in range(len(lines))]}
        traces[-1] |= {"mode": "markers+text", "textposition": "top center"}
    names = [
        Label(_cut(line.name), unit * end, line.look.colour, SIGNS.get(line.look.symbol, "●"))
        for line, end in ((line, _end(line)) for line in lines)
        if math.isfinite(end)
    ]
    return _figure(traces, values, lines[0].points, theme, here, entries=0, top=True, shares=shares, names=names)


def _end(line: GroupLine) -> float:
    """The point that a group's name is tied to: its non-private value, or its last one."""
    return line.non_private if math.isfinite(line.non_private) else float(line.points["mean"].iloc[-1])


def _cut(name: str) -> str:
    """A name that takes two lines at most beside the plot."""
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _rings(epsilon: Sequence[float], values: Sequence[float], colours: Sequence[str], theme: Theme) -> Trace:
    """Marks of another run, called A."""
    marker = {"symbol": "circle-open-dot", "size": 17, "color": list(colours), "line": {"color": theme.ink, "width": 2}}
    return marker_trace(list(epsilon), list(values), marker, "A: ε = %{x:.3g}: %{y:.1f}<extra></extra>", name="A")


def gap(
    table: pd.DataFrame,
    non_private: float,
    look: Look,
    theme: Theme,
    *,
    here: float,
    overlay: tuple[float, float] | None = None,
    shares: bool = True,
) -> go.Figure:
    """Gap between the best and the worst group over epsilon, and that of the non-private model.

    Args:
        table: columns epsilon, mean, low, high.
        overlay: epsilon and gap of another run: a ring called A.
        shares: whether the gap is drawn in points of percent; otherwise as it is.
    """
    unit = 100 if shares else 1
    traces = _band(table, look, look.name, shares=shares)
    ends = [float(table["epsilon"].min()), float(table["epsilon"].max())]
    if math.isfinite(non_private):
        name = f"non-private: {100 * non_private:.1f} points" if shares else f"non-private: {non_private:.2f}"
        traces.append(line_trace(ends, [unit * non_private] * 2, {"color": theme.ink, "width": 3}, name=name))
    values = [*table["high"], non_private, 0.0]
    if overlay is not None:
        traces.append(_rings([overlay[0]], [unit * overlay[1]], [theme.ink], theme))
        values.append(overlay[1])
    return _figure(traces, values, table, theme, here, entries=2 + (overlay is not None), top=False, shares=shares)


@dataclass(frozen=True)
class Panel:
    """A part of the picture of reasons: its title, and for each group a value (NaN for none) and its words."""

    title: str
    values: Sequence[float]
    words: Sequence[str]


def reasons(names: Sequence[str], panels: Sequence[Panel], look: Look, theme: Theme) -> go.Figure:
    """Bars of each group in panels side by side, so that a group's values stand in one line, its name above them."""
    gap = 0.03
    width = (1 - gap * (len(panels) - 1)) / len(panels)
    small, pale = {"size": FONT_SIZE - 2}, fade(look.colour, 0.45)
    traces: list[Trace] = []
    axes: dict[str, Trace] = {}
    left: Trace = {"xanchor": "left"}
    notes = [note(shorten(escape(name), 60), 0, row, paper="x", yshift=19, **left) for row, name in enumerate(names)]
    for k, panel in enumerate(panels):
        start = k * (width + gap)
        there = [v for v in panel.values if math.isfinite(v)]
        low, high = min([0.0, *there]), max([0.0, *there])
        room = (high - low) or 1.0
        axis = f"x{k + 1}" if k else "x"
        axes[f"xaxis{k + 1}" if k else "x"] = {
            "domain": [start, start + width],
            # room for the number behind the longest bar where a panel has 80 pixels
            "range": [low - (0.9 * room if low < 0 else 0.0), high + 0.9 * room],
            "visible": False,
            "fixedrange": True,
        }
        lengths, marker = [v if math.isfinite(v) else 0.0 for v in panel.values], {"color": look.colour if k == 0 else pale}
        hover = f"{escape(panel.title.replace('<br>', ' '))}: %{{text}}<extra></extra>"
        traces.append(horizontal_bars(lengths, list(panel.words), marker, hover, small | {"color": theme.ink}, xaxis=axis))
        head = f"<b>{panel.title}</b>"
        notes.append(note(head, start, 1, paper="xy", yanchor="bottom", align="left", font=small, **left))
    return figure(
        theme,
        traces,
        height=70 + 56 * len(names),
        margin=margin(left=8, right=8, top=52, bottom=6),
        annotations=notes,
        bargap=0.6,
        **axes,
        y={"visible": False, "range": [len(names) - 0.4, -0.75], "fixedrange": True},
    )


def _band(points: pd.DataFrame, look: Look, name: str, *, small: bool = False, shares: bool = True) -> list[Trace]:
    e = points["epsilon"].to_numpy(float)
    unit, digits = (100, 1) if shares else (1, 2)
    mean, low, high = (unit * points[c].to_numpy(float) for c in ("mean", "low", "high"))
    stroke = {"color": look.colour, "dash": look.dash, "width": 1.5 if small else 3}
    marker = {"symbol": look.symbol, "size": 9, "color": look.colour}
    text = [f"{a:.{digits}f} to {b:.{digits}f}" for a, b in zip(low, high, strict=True)]
    hover = f"<b>{escape(name)}</b><br>ε = %{{x:.3g}}: %{{y:.{digits}f}} (%{{text}})<extra></extra>"
    line = line_trace(e, mean, stroke, hover, marker=marker, name=shorten(name, 40), text=text)
    return [band_trace(e, high, low, fade(look.colour, 0.12)), line | {"mode": "lines+markers"}]


def _figure(
    traces: list[Trace],
    values: list[float],
    points: pd.DataFrame,
    theme: Theme,
    here: float,
    *,
    entries: int,
    top: bool,
    shares: bool,
    names: Sequence[Label] = (),
) -> go.Figure:
    """Lines over epsilon, with a legend of `entries` above the plot, or `names` right of it."""
    ends = (float(points["epsilon"].min()), float(points["epsilon"].max()))
    there = [v for v in values if math.isfinite(v)]
    low, high = _share_range(there, top) if shares else _score_range(there, top)
    ticks = [e for e in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0) if ends[0] <= e <= ends[1]]
    above = 14 + LEGEND_LINE * entries
    parts = [wrap(one.text, _WIDTH) for one in names]
    tall, right = room(parts)
    vertical = {"range": [low, high], "ticksuffix": " %" if top and shares else ""}
    marks = leaders(names, parts, (low, high), max(_PLOT, tall))
    if ends[0] <= here <= ends[1]:
        marks.append(vertical_line(here, {"color": theme.majority, "width": 2, "dash": "dot"}))
    return figure(
        theme,
        traces,
        height=max(_PLOT, tall) + above + 58,
        margin=margin(left=58, top=above, right=right if names else 16),
        showlegend=not names,
        annotations=list_entries(names, parts, theme, rising=True),
        shapes=marks,
        x={
            "title": "privacy budget ε",
            "type": "log",
            "range": [math.log10(ends[0]) - 0.08, math.log10(ends[1]) + (0.3 if top else 0.08)],
            "tickvals": ticks,
            "ticktext": [f"{e:g}" for e in ticks],
        },
        y=vertical,
    )


def _share_range(values: Sequence[float], top: bool) -> tuple[float, float]:
    """Ends of an axis in percent, multiples of five; from 0 unless only the upper part matters."""
    low = 5 * math.floor((100 * min(values, default=0.0) - 1) / 5) if top else 0.0
    return max(low, 0.0), min(102.0, 5 * math.ceil((100 * max(values, default=1.0) + 1) / 5) + 0.0)


def _score_range(values: Sequence[float], top: bool) -> tuple[float, float]:
    """Ends of an axis of scores, with some room; from 0 unless only the upper part matters."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.08 * ((high - low) or 1.0)
    return (low - room if top else 0.0), high + room
