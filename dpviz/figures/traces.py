"""Parts of plotly figures as dicts: traces, lines across the plot, texts.

Without words for hovering, hovering passes a trace over.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpviz.figures.style import FONT_SIZE, Floats, Theme, Trace, escape


def line_trace(x: Any, y: Any, line: Trace, hover: Any = "", **more: Any) -> Trace:
    """A line; `hover` is a template, or one for each point, and `more` are further settings."""
    return {"x": x, "y": y, "mode": "lines", "line": line, **_hovering(hover), **more}


def marker_trace(x: Any, y: Any, marker: Trace, hover: Any = "", **more: Any) -> Trace:
    """Markers without a line."""
    return {"x": x, "y": y, "mode": "markers", "marker": marker, **_hovering(hover), **more}


def legend_entry(name: str, marker: Trace) -> Trace:
    """A marker that stands in the legend only."""
    return {"x": [None], "y": [None], "mode": "markers", "name": name, "marker": marker}


def area_trace(x: Any, y: Any, fillcolor: str, **more: Any) -> Trace:
    """A filled area inside a closed line that is not drawn."""
    return {"fill": "toself", "fillcolor": fillcolor, **line_trace(x, y, {"width": 0}), **more}


def band_trace(x: ArrayLike, out: ArrayLike, back: ArrayLike, fillcolor: str, **more: Any) -> Trace:
    """The area between two curves over x, hidden from the legend unless it has a name."""
    places, one, other = (np.asarray(values, float) for values in (x, out, back))
    shown = {} if "name" in more else {"showlegend": False}
    return area_trace(np.r_[places, places[::-1]], np.r_[one, other[::-1]], fillcolor, **shown, **more)


def bar_trace(x: Any, y: Any, marker: Trace, hover: Any = "", **more: Any) -> Trace:
    """Bars."""
    return {"type": "bar", "x": x, "y": y, "marker": marker, **_hovering(hover), **more}


def horizontal_bars(lengths: Any, texts: list[str], marker: Trace, hover: str, font: Trace, **more: Any) -> Trace:
    """Horizontal bars, one for each row, with a text at the end of each."""
    labels: Trace = {"text": texts, "textposition": "outside", "cliponaxis": False, "textfont": font, "showlegend": False}
    return bar_trace(lengths, list(range(len(texts))), marker, hover, orientation="h", **labels, **more)


def coin_toss(theme: Theme) -> Trace:
    """The attacker who guesses, in per cent of false alarms and of detections."""
    return line_trace([0, 100], [0, 100], {"color": theme.majority, "width": 2, "dash": "dash"}, name="coin toss")


def error_bars(values: Any, low: Any, high: Any, **more: Any) -> Trace:
    """Error bars from low to high around values."""
    return {"type": "data", "symmetric": False, "array": high - values, "arrayminus": values - low, **more}


def segments(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(x, y) of one line that goes from low to high in each row, with a gap between two rows."""
    rows, gap = np.arange(len(low)), np.full(len(low), np.nan)
    return np.c_[low, high, gap].ravel(), np.c_[rows, rows, gap].ravel()


def vertical_line(at: float, line: Trace, **more: Any) -> Trace:
    """A shape: the line across the plot at a value of the x axis."""
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line, **more}


def note(text: str, x: float, y: float, *, paper: str = "", **more: Any) -> Trace:
    """An annotation: a text without an arrow.

    Args:
        paper: the axes ("x", "y" or "xy") along which its place is a share of the plot.
    """
    return {"text": text, "x": x, "y": y, "showarrow": False, **{f"{axis}ref": "paper" for axis in paper}, **more}


def axis_title_above(title: str, left: int, above: int) -> Trace:
    """The title of the vertical axis above it: along the axis it would lie in the picture at 400 pixels.

    Args:
        left, above: pixels from the upper left corner of the plot.
    """
    place: Trace = {"xanchor": "left", "xshift": -left, "yanchor": "bottom", "yshift": above, "font": {"size": FONT_SIZE}}
    return note(escape(title), 0, 1, paper="xy", **place)


def reference_line(
    theme: Theme, value: float, text: str, *, kind: str, level: int, span: tuple[float, float]
) -> tuple[Trace, Trace]:
    """A labelled vertical line across the plot, as (shape, annotation).

    Args:
        kind: "none" (non-private), "majority" or "expected".
        level: row of the label above the plot, so that two close lines do not write over each other.
        span: range of the x axis.
    """
    line = {
        "none": {"color": theme.ink, "width": 3},
        "majority": {"color": theme.majority, "width": 3, "dash": "dash"},
        "expected": {"color": theme.noise, "width": 3, "dash": "dot"},
    }[kind]
    at = (value - span[0]) / (span[1] - span[0])
    side = "left" if at < 0.3 else "right" if at > 0.7 else "center"
    place: Trace = {"yanchor": "bottom", "yshift": 4 + 22 * level, "xanchor": side}
    return vertical_line(value, line), note(text, value, 1, paper="y", **place, font={"size": FONT_SIZE, "color": theme.ink})


def _hovering(hover: Any) -> Trace:
    return {"hovertemplate": hover} if hover else {"hoverinfo": "skip"}
