"""Scores of a binary classifier: distributions, ROC or precision-recall curve with a band, and a reliability diagram."""

import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import LEGEND_LINE, Look, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import band_trace, error_bars, line_trace, vertical_line

_PLOT, _HOVER = 260, "%{x:.2f}: %{y:.1f} %<extra></extra>"
_SHARE = {"range": [-1, 102], "ticksuffix": " %", "nticks": 6}


def distributions(table: pd.DataFrame, names: tuple[str, str], at: float, theme: Theme, *, probabilities: bool) -> go.Figure:
    """Share of each class's rows by value, private as filled steps and non-private as lines, with the threshold.

    Args:
        table: columns model ("private", "non-private"), label (-1, 1), value, share.
        names: of the classes -1 and +1.
        at: the threshold.
    """
    traces: list[Trace] = []
    for label, name, colour in zip((-1, 1), names, theme.labels, strict=True):
        for model, dash in (("private", "solid"), ("non-private", "dot")):
            part = table[(table["model"] == model) & (table["label"] == label)]
            line = {"color": colour, "width": 2.5, "dash": dash, "shape": "hvh"}
            trace = line_trace(part["value"], 100 * part["share"], line, _HOVER, name=f"{escape(name)}, {model}")
            if model == "private":
                trace |= {"fill": "tozeroy", "fillcolor": fade(colour, 0.25)}
            traces.append(trace)
    mark = vertical_line(at, {"color": theme.ink, "width": 3, "dash": "dot"})
    title = "predicted probability" if probabilities else "score"
    return _figure(traces, theme, {"title": title}, {"ticksuffix": " %", "rangemode": "tozero"}, entries=4, shapes=[mark])


def curve(table: pd.DataFrame, look: Look, theme: Theme, *, x: str, y: str, diagonal: bool = False) -> go.Figure:
    """A curve of the private models with a band, and of the non-private one.

    Args:
        table: columns model, x, mean, low, high in [0, 1].
        x, y: titles.
        diagonal: whether the diagonal is drawn.
    """
    private, base = (table[table["model"] == model] for model in ("private", "non-private"))
    traces: list[Trace] = [
        band_trace(100 * private["x"], 100 * private["high"], 100 * private["low"], fade(look.colour, 0.25)),
        _line(100 * private["x"], 100 * private["mean"], escape(look.name), look.colour),
        _line(100 * base["x"], 100 * base["mean"], "non-private", theme.ink),
    ]
    shapes = [_diagonal(theme)] if diagonal else []
    return _figure(traces, theme, _SHARE | {"title": x}, _SHARE | {"title": y}, entries=2, shapes=shapes)


def reliability(table: pd.DataFrame, look: Look, theme: Theme) -> go.Figure:
    """Observed share against predicted probability; the size of a point grows with its rows.

    Args:
        table: columns model, predicted, observed, low, high, rows.
    """
    traces: list[Trace] = []
    for model, colour, symbol in (("private", look.colour, "circle"), ("non-private", theme.ink, "diamond-open")):
        part = table[table["model"] == model]
        share = part["rows"] / max(float(part["rows"].sum()), 1.0)
        observed, low, high = (100 * part[name] for name in ("observed", "low", "high"))
        trace = _line(100 * part["predicted"], observed, escape(look.name) if model == "private" else model, colour)
        trace |= {
            "mode": "lines+markers",
            "cliponaxis": False,
            "marker": {"symbol": symbol, "color": colour, "size": 7 + 18 * share**0.5},
            "error_y": error_bars(observed, low, high, color=colour),
            "text": [f"{rows:,.0f} rows" for rows in part["rows"]],
            "hovertemplate": "%{x:.0f} %: %{y:.1f} %, %{text}<extra></extra>",
        }
        traces.append(trace)
    x, y = _SHARE | {"title": "predicted probability"}, _SHARE | {"title": "positive rows"}
    return _figure(traces, theme, x, y, entries=2, shapes=[_diagonal(theme)])


def _line(x: pd.Series, y: pd.Series, name: str, colour: str) -> Trace:
    return line_trace(x, y, {"color": colour, "width": 3}, "%{x:.0f} %: %{y:.1f} %", name=name)


def _diagonal(theme: Theme) -> Trace:
    line = {"color": theme.majority, "width": 2, "dash": "dash"}
    return vertical_line(0, line, x1=100, y1=100, yref="y", layer="below")


def _figure(traces: list[Trace], theme: Theme, x: Trace, y: Trace, *, entries: int, shapes: list[Trace]) -> go.Figure:
    top = 16 + LEGEND_LINE * entries
    return figure(theme, traces, height=_PLOT + top + 58, margin=margin(left=88, top=top), x=x, y=y, shapes=shapes)
