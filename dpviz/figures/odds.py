"""What a budget leaves to an attacker, as a picture."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import Theme, Trace, figure, margin

Floats = NDArray[np.float64]


def hundred_bets(win: float, theme: Theme) -> go.Figure:
    """A hundred bets as a hundred marks: filled ones are won.

    Args:
        win: the largest chance of winning, in [0.5, 1].
    """
    won = min(100, round(100 * win))
    k = np.arange(100)
    x, y = k % 10, 9 - k // 10
    traces: list[Trace] = [
        {
            "x": x[part],
            "y": y[part],
            "mode": "markers",
            "name": f"{int(part.sum())} {name}",
            "hoverinfo": "skip",
            "marker": {"size": 14, "symbol": symbol, "color": colour, "line": {"color": colour, "width": 2}},
        }
        for part, name, symbol, colour in (
            (k < 50, "won by tossing a coin", "circle", theme.majority),
            ((k >= 50) & (k < won), "more at most, with the model", "square", theme.noise),
            (k >= won, "lost", "circle-open", theme.majority),
        )
    ]
    hidden = {"visible": False, "range": [-0.7, 9.7]}
    return figure(theme, traces, height=340, x=hidden, y=hidden, margin=margin(top=84, bottom=6))


def attacker_curve(false_alarms: Floats, detections: Floats, best: tuple[float, float], theme: Theme) -> go.Figure:
    """The most that an attacker can detect at each rate of false alarms.

    Args:
        false_alarms: (k,) in [0, 1], rising.
        detections: (k,) upper bounds in [0, 1].
        best: (false alarms, detections) at which an even bet is won most often.
    """
    bound = {
        "x": 100 * false_alarms,
        "y": 100 * detections,
        "mode": "lines",
        "name": "no attacker is above this line",
        "line": {"color": theme.noise, "width": 4},
        "hovertemplate": "%{x:.1f} % false alarms: at most %{y:.1f} %<extra></extra>",
    }
    coin = {
        "x": [0, 100],
        "y": [0, 100],
        "mode": "lines",
        "name": "coin toss",
        "hoverinfo": "skip",
        "line": {"color": theme.majority, "width": 2, "dash": "dash"},
    }
    point = {
        "x": [100 * best[0]],
        "y": [100 * best[1]],
        "mode": "markers",
        "name": "best even bet",
        "hoverinfo": "skip",
        "marker": {"size": 14, "symbol": "diamond", "color": theme.noise, "line": {"color": theme.ink, "width": 2}},
    }
    return figure(
        theme,
        [bound, coin, point],
        height=380,
        margin=margin(left=76, right=28, top=96),
        x={"title": "false alarms", "range": [0, 101], "ticksuffix": " %"},
        y={"title": "true detections", "range": [0, 103], "ticksuffix": " %"},
    )
