"""Accuracy, or another metric, of every method in the lane of its guarantee's status."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dpviz.figures.style import FONT_SIZE, Look, Theme, Trace, figure, margin, plain, stack

_LANE = 74  # pixels


@dataclass(frozen=True)
class Point:
    """A method: its label, the lane that it lies in, its accuracy or other metric, and its look."""

    label: str
    lane: str
    value: float
    look: Look


def lanes(
    points: Sequence[Point],
    names: Sequence[str],
    non_private: float,
    majority: float,
    theme: Theme,
    *,
    title: str = "test accuracy",
    shares: bool = True,
    rising: bool = True,
    ghost: float = math.nan,
    narrow: bool = False,
) -> go.Figure:
    """One lane for each status from top to bottom, one mark for each method, the best of each lane named.

    Args:
        names: the lanes, from top to bottom.
        non_private, majority: values of the baselines, drawn as lines; NaN where there is none.
        title: of the axis.
        shares: whether values are shares, shown in percent.
        rising: whether more is better.
        ghost: value of another run, a dotted line called A; NaN for none.
        narrow: whether there is no room for the name of the best method beside that of the lane.
    """
    shown = [name for name in names if any(p.lane == name for p in points)]
    traces: list[Trace] = []
    notes: list[Trace] = []
    unit, form, sign = (100, ".1f", " %") if shares else (1, ".3f", "")
    values = [unit * v for v in (non_private, majority, ghost, *(p.value for p in points)) if math.isfinite(v)]
    room = 2 if shares else 0.05 * (max(values) - min(values)) + 1e-3
    low, high = min(values) - room, max(values) + room
    for k, name in enumerate(shown):
        inside = sorted((p for p in points if p.lane == name), key=lambda p: p.value if rising else -p.value)
        x, height = stack([unit * p.value for p in inside], (high - low) / 45)
        texts = [f"{plain(p.label)}: {unit * p.value:{form}}{sign}" for p in inside]
        traces.append({"x": x, "y": k - 0.13 * height + 0.22, "hovertext": texts} | _marks(inside, theme))
        start = {"x": 0, "xref": "paper", "xanchor": "left", "y": k, "yshift": 28, "showarrow": False}
        start["bgcolor"] = theme.paper
        best = inside[-1]
        named = "" if narrow else f" · best: {plain(best.label)}"
        notes.append(start | {"text": f"<b>{plain(name)}</b>{named}", "font": {"size": FONT_SIZE - 1}})
    return figure(
        theme,
        traces,
        height=_LANE * len(shown) + 74,
        margin=margin(left=8, right=12, top=8),
        shapes=_lines(unit * non_private, unit * majority, unit * ghost, theme),
        annotations=notes + _name_of_ghost(unit * ghost),
        hovermode="closest",
        x={"title": title, "range": [low, high], "ticksuffix": sign, "nticks": 6},
        y={"visible": False, "range": [len(shown) - 0.5 if shown else 1, -0.6]},
    )


def _lines(non_private: float, majority: float, ghost: float, theme: Theme) -> list[Trace]:
    styles = (
        (non_private, {"color": theme.ink, "width": 3}),
        (majority, {"color": theme.majority, "width": 3, "dash": "dash"}),
        (ghost, {"color": theme.ink, "width": 2, "dash": "dot"}),
    )
    upright = {"type": "line", "y0": 0, "y1": 1, "yref": "paper"}
    return [upright | {"x0": at, "x1": at, "line": line} for at, line in styles if math.isfinite(at)]


def _name_of_ghost(at: float) -> list[Trace]:
    top = {"y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left", "showarrow": False}
    return [top | {"x": at, "text": "<b>A</b>"}] if math.isfinite(at) else []


def _marks(inside: Sequence[Point], theme: Theme) -> Trace:
    """What the marks of a lane look like."""
    return {
        "mode": "markers",
        "showlegend": False,
        "hoverinfo": "text",
        "marker": {
            "size": 12,
            "color": [p.look.colour for p in inside],
            "symbol": [p.look.symbol for p in inside],
            "line": {"width": 1, "color": theme.paper},
        },
    }
