"""Accuracy, or another metric, of every method, ranked below the status of its guarantee."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dpviz.figures.lines import wrap
from dpviz.figures.style import FONT_SIZE, Look, Theme, Trace, escape, figure, margin
from dpviz.figures.traces import marker_trace, note, vertical_line

_ROW, _MORE = 21, 0.6  # pixels of a method's line, and the share of it that each further line of the name takes
#: pixels and signs of the names at the left and the share of the axis that a number takes, and on a narrow screen
_NAMES = (250, 32, 0.14), (150, 21, 0.3)


@dataclass(frozen=True)
class Point:
    """A method: its label, the status below which it stands, its accuracy or other metric, and its look."""

    label: str
    status: str
    value: float
    look: Look


def ranking(
    points: Sequence[Point],
    names: Sequence[str],
    non_private: float,
    majority: float,
    theme: Theme,
    *,
    title: str = "test accuracy",
    shares: bool = True,
    rising: bool = True,
    overlay: float = math.nan,
    narrow: bool = False,
) -> go.Figure:
    """One line for each method with its name and value, the best first, below the status of its guarantee.

    Args:
        names: the statuses, from top to bottom.
        non_private, majority: values of the baselines, drawn as lines; NaN where there is none.
        title: of the axis.
        shares: whether values are shares, shown in percent.
        rising: whether more is better.
        overlay: value of another run, a dotted line called A; NaN for none.
        narrow: whether there is little room for names.
    """
    unit, form, sign = (100, ".1f", " %") if shares else (1, ".3f", "")
    low, high = _ends([unit * v for v in (non_private, majority, overlay, *(p.value for p in points)) if math.isfinite(v)])
    lines = (unit * non_private, unit * majority, unit * overlay)
    pixels, signs, width = _NAMES[narrow]
    heads, placed, k = _placed(points, names, rising, pixels, signs)
    heights, shown = [at for at, _ in placed], [p for _, p in placed]
    values = [unit * p.value for p in shown]
    marker = {"size": 11, "color": [p.look.colour for p in shown], "symbol": [p.look.symbol for p in shown]}
    marks = marker_trace(values, heights, marker, cliponaxis=False, showlegend=False) | {
        "mode": "markers+text",
        "text": [f"{value:{form}}{sign}" for value in values],
        "textposition": [_side(value, (*lines, low), width * (high - low)) for value in values],
        "textfont": {"size": FONT_SIZE - 3, "color": theme.ink, "shadow": "auto"},
        "hovertext": [escape(p.label) for p in shown],
        "hoverinfo": "text",
    }
    return figure(
        theme,
        [marks],
        height=round(_ROW * k) + 102,
        margin=margin(left=pixels, right=16, top=26),
        shapes=_lines(*lines, theme),
        annotations=heads + _names({"majority": unit * majority, "non-private": unit * non_private, "<b>A</b>": unit * overlay}),
        hovermode="closest",
        x={"title": title, "range": [low, high], "ticksuffix": sign, "nticks": 4 if narrow else 6},
        y={
            "range": [k - 0.4, -0.7],
            "showgrid": False,
            "tickvals": heights,
            "ticktext": ["<br>".join(map(escape, wrap(p.label, signs))) for p in shown],
            "tickfont": {"size": FONT_SIZE - 3},
        },
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis that holds the values, with room for the numbers right of the marks."""
    room = 0.08 * (max(values) - min(values)) + 1e-3
    return min(values) - room, max(values) + 3 * room


def _side(value: float, lines: Sequence[float], width: float) -> str:
    """The side of a mark on which its number crosses no upright line; the right one where both or neither do."""
    right, left = (any(0 <= sign * (at - value) < width for at in lines) for sign in (1, -1))
    return "middle left" if right and not left else "middle right"


def _placed(
    points: Sequence[Point], names: Sequence[str], rising: bool, pixels: int, signs: int
) -> tuple[list[Trace], list[tuple[float, Point]], float]:
    """(headings of the statuses, points with their line, number of lines), the best of each status first."""
    heads: list[Trace] = []
    placed: list[tuple[float, Point]] = []
    k = 0.0
    for name in names:
        inside = sorted((p for p in points if p.status == name), key=lambda p: -p.value if rising else p.value)
        if inside:
            place: Trace = {"paper": "x", "xanchor": "left", "xshift": 8 - pixels, "font": {"size": FONT_SIZE - 1}}
            heads.append(note(f"<b>{escape(name)}</b>", 0, k, **place))
            for point in inside:
                lines = 1 + _MORE * (len(wrap(point.label, signs)) - 1)
                placed.append((k + (1 + lines) / 2, point))
                k += lines
            k += 1
    return heads, placed, k


def _lines(non_private: float, majority: float, overlay: float, theme: Theme) -> list[Trace]:
    styles = (
        (non_private, {"color": theme.ink, "width": 3}),
        (majority, {"color": theme.majority, "width": 3, "dash": "dash"}),
        (overlay, {"color": theme.ink, "width": 2, "dash": "dot"}),
    )
    return [vertical_line(at, line, layer="below") for at, line in styles if math.isfinite(at)]


def _names(lines: dict[str, float]) -> list[Trace]:
    """Names of the upright lines above the plot."""
    top: Trace = {"paper": "y", "yanchor": "bottom", "font": {"size": FONT_SIZE - 3}}
    return [note(name, at, 1, **top) for name, at in lines.items() if math.isfinite(at)]
