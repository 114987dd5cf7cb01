"""Curves, points and bars, on logarithmic axes where wanted."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, LEGEND_WIDTH, Look, Theme, Trace, faint, figure, margin, plain

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One curve or set of points.

    Attributes:
        name: legend entry; "" hides it from the legend.
        x, y: equally long.
        look: how it is drawn.
        points: markers instead of a line.
        low, high: ends of error bars, None for none.
        width: of the line.
        text: hover text per point, None for the numbers.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    look: Look
    points: bool = False
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    width: float = 3.0
    text: Sequence[str] | None = None


def curves(
    lines: Sequence[Line],
    theme: Theme,
    *,
    x: str,
    y: str,
    log_x: bool = True,
    log_y: bool = True,
    height: int = 420,
    marks: Sequence[tuple[float, str]] = (),
    y_range: tuple[float, float] | None = None,
    percent: bool = False,
    ticks: Mapping[float, str] | None = None,
) -> go.Figure:
    """Curves with a legend above the plot.

    Args:
        x, y: axis titles.
        marks: (x, words) of vertical lines.
        y_range: ends of the y axis, in its own units.
        percent: whether y is a share, shown in percent.
        ticks: words at places of the x axis, in the place of numbers.
    """
    factor = 100.0 if percent else 1.0
    traces = [_curve(line, theme, factor) for line in lines]
    named = sum(len(_entry(line.name)) for line in lines)
    heights = np.concatenate([np.ravel(t["y"]) for t in traces])
    heights = heights[np.isfinite(heights) & (heights > 0)]
    if y_range is None and log_y and len(heights):
        # room above the highest tick, whose label the legend would cover
        y_range = (float(heights.min()) * 0.7, float(heights.max()) * 1.6)
    in_sight = [np.asarray(y_range, float)] if y_range is not None else [t["y"] for t in traces]
    y_axis: Trace = {"title": y, **_log(log_y, in_sight)}
    if y_range is not None:
        y_axis["range"] = [math.log10(v) if log_y else factor * v for v in y_range]
    if percent:
        y_axis["ticksuffix"] = " %"
    x_axis: Trace = {"title": x, **_log(log_x, [t["x"] for t in traces])}
    if ticks is not None:
        x_axis |= {"tickvals": list(ticks), "ticktext": list(ticks.values())}
    shapes, notes = _marks(marks, theme, log_x)
    return figure(
        theme,
        traces,
        height=height + LEGEND_LINE * named,
        shapes=shapes,
        annotations=notes,
        margin=margin(left=84, top=14 + LEGEND_LINE * named),
        y=y_axis,
        x=x_axis,
    )


def _curve(line: Line, theme: Theme, factor: float) -> Trace:
    """One line or set of points, y multiplied by `factor`."""
    values = factor * np.asarray(line.y, float)
    t: Trace = {
        "x": np.asarray(line.x, float),
        "y": values,
        "name": "<br>".join(map(plain, _entry(line.name))),
        "showlegend": bool(line.name),
        "mode": "markers" if line.points else "lines",
        "hovertemplate": "%{x:.4g}: %{y:.4g}<extra>" + plain(line.name) + "</extra>",
    }
    if line.points:
        t["marker"] = {
            "color": line.look.colour,
            "symbol": line.look.symbol,
            "size": 11,
            "line": {"color": theme.ink, "width": 1},
        }
    else:
        t["line"] = {"color": line.look.colour, "dash": line.look.dash, "width": line.width}
    if line.text is not None:
        t |= {"customdata": [plain(s) for s in line.text], "hovertemplate": "%{customdata}<extra></extra>"}
    if line.low is not None and line.high is not None:
        t["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": factor * np.asarray(line.high, float) - values,
            "arrayminus": values - factor * np.asarray(line.low, float),
            "color": line.look.colour,
            "width": 4,
        }
    return t


def _marks(marks: Sequence[tuple[float, str]], theme: Theme, log_x: bool) -> tuple[list[Trace], list[Trace]]:
    """Vertical lines and the words along them."""
    line = {"color": theme.majority, "width": 2, "dash": "dot"}
    shapes: list[Trace] = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line} for at, _ in marks
    ]
    notes: list[Trace] = [
        {
            "x": math.log10(at) if log_x else at,
            "y": 0.02,
            "yref": "paper",
            "text": plain(words),
            "showarrow": False,
            "xanchor": "left",
            "xshift": 5,
            "yanchor": "bottom",
            "textangle": -90,
            "font": {"size": FONT_SIZE - 2},
            "bgcolor": theme.paper,
        }
        for at, words in marks
    ]
    return shapes, notes


def _entry(name: str) -> list[str]:
    """A legend entry as lines that fit at 400 pixels."""
    return textwrap.wrap(name, LEGEND_WIDTH)


def _log(log: bool, values: Sequence[Floats]) -> Trace:
    if not log:
        return {}
    positive = np.concatenate([np.ravel(v) for v in values]) if values else np.ones(1)
    positive = positive[np.isfinite(positive) & (positive > 0)]
    decades = math.log10(positive.max() / positive.min()) if len(positive) else 1.0
    # few decades: 1, 2, 5 between the powers, so that at least two ticks are in sight
    return {"type": "log", "exponentformat": "power", "dtick": "D2" if decades < 1.2 else max(1, math.ceil(decades / 6))}


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        name: left of it.
        value: its length; NaN draws no bar.
        words: at its end.
        solid: False hatches it: not proved.
        strong: the one in use.
    """

    name: str
    value: float
    words: str
    solid: bool = True
    strong: bool = False


def bars(
    items: Sequence[Bar], look: Look, theme: Theme, *, x: str, span: tuple[float, float] | None = None, most: float | None = None
) -> go.Figure:
    """Horizontal bars, the first on top, each with its words; hatched ones are not proved.

    Args:
        span: ends of the x axis.
        most: the largest value that makes sense; no tick lies beyond.
    """
    shown = [b for b in items if math.isfinite(b.value)]
    top = max((b.value for b in shown), default=1.0)
    low, high = span or (0.0, 1.3 * top)
    rows = list(range(len(items)))
    trace: Trace = {
        "type": "bar",
        "orientation": "h",
        "y": rows,
        "x": [b.value if math.isfinite(b.value) else low for b in items],
        "text": [plain(b.words) for b in items],
        "textposition": "outside",
        "cliponaxis": False,
        "showlegend": False,
        "textfont": {"size": FONT_SIZE - 1, "color": theme.ink},
        "marker": {
            "color": [look.colour if b.strong else faint(look.colour, 0.45) for b in items],
            "line": {"color": look.colour, "width": [3 if b.strong else 1 for b in items]},
            "pattern": {"shape": ["" if b.solid else "/" for b in items], "fgcolor": theme.ink},
        },
        "hovertemplate": "%{text}<extra></extra>",
    }
    return figure(
        theme,
        [trace],
        height=74 + 58 * len(items),
        annotations=_names(items, theme),
        bargap=0.58,
        margin=margin(left=12, top=12),
        x={"title": x, "range": [low, high]}
        | ({} if most is None else {"tickvals": np.arange(low, most + 1e-9, (most - low) / 5)}),
        # names stand above their bars, so that nothing is cut off on narrow screens
        y={"visible": False, "range": [len(items) - 0.5, -0.85]},
    )


def _names(items: Sequence[Bar], theme: Theme) -> list[Trace]:
    """The name of each bar, above it."""
    labels = [("<b>" + plain(b.name) + "</b>") if b.strong else plain(b.name) for b in items]
    return [
        {
            "x": 0,
            "xref": "paper",
            "y": k,
            "yref": "y",
            "text": label,
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "bottom",
            "yshift": 11,
            "font": {"size": FONT_SIZE - 1, "color": theme.ink},
        }
        for k, label in enumerate(labels)
    ]
