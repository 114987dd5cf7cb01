"""Traces of plotly as dicts: lines, markers, areas and bars; without words for hovering, hovering passes them over."""

from typing import Any

from dpviz.figures.style import Theme, Trace


def line_trace(x: Any, y: Any, line: Trace, hover: Any = "", **more: Any) -> Trace:
    """A line; `hover` is a template, or one for each point, and `more` are further settings."""
    return {"x": x, "y": y, "mode": "lines", "line": line, **_hovering(hover), **more}


def marker_trace(x: Any, y: Any, marker: Trace, hover: Any = "", **more: Any) -> Trace:
    """Markers without a line."""
    return {"x": x, "y": y, "mode": "markers", "marker": marker, **_hovering(hover), **more}


def area_trace(x: Any, y: Any, fillcolor: str, **more: Any) -> Trace:
    """A filled area inside a closed line that is not drawn."""
    return {"fill": "toself", "fillcolor": fillcolor, **line_trace(x, y, {"width": 0}), **more}


def bar_trace(x: Any, y: Any, marker: Trace, hover: Any = "", **more: Any) -> Trace:
    """Bars."""
    return {"type": "bar", "x": x, "y": y, "marker": marker, **_hovering(hover), **more}


def coin_toss(theme: Theme) -> Trace:
    """The attacker who guesses, in per cent of false alarms and of detections."""
    return line_trace([0, 100], [0, 100], {"color": theme.majority, "width": 2, "dash": "dash"}, name="coin toss")


def _hovering(hover: Any) -> Trace:
    return {"hovertemplate": hover} if hover else {"hoverinfo": "skip"}
