"""A picture of the best possible attack at a budget."""

import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import LEGEND_LINE, Theme, Trace, figure, margin
from dpviz.figures.traces import coin_toss, line_trace, marker_trace


def best_attack(
    table: pd.DataFrame, best: tuple[float, float], theme: Theme, *, overlay: pd.DataFrame | None = None
) -> go.Figure:
    """The most that an attacker can detect at each rate of false alarms, and what (epsilon, delta) alone would allow.

    Args:
        table: columns false_alarms, detections_at_most and by_epsilon_delta_alone, shares in [0, 1].
        best: (false alarms, detections) at which most guesses are right.
        overlay: the table of another run, drawn dotted and called A.
    """
    alarms = 100 * table["false_alarms"].to_numpy()
    hover = "%{x:.1f} % false alarms: at most %{y:.1f} %<extra></extra>"
    stroke = {"color": theme.noise, "width": 4}
    bound = line_trace(alarms, 100 * table["detections_at_most"].to_numpy(), stroke, hover, name="no attacker is above this line")
    line = {"color": theme.ink, "width": 2, "dash": "dot"}
    alone = 100 * table["by_epsilon_delta_alone"].to_numpy()
    allowed: list[Trace] = [line_trace(alarms, alone, line, name="what (ε, δ) alone allows")]
    if overlay is not None:
        line = {"color": theme.majority, "width": 3, "dash": "dot"}
        x, y = (100 * overlay[name].to_numpy() for name in ("false_alarms", "detections_at_most"))
        allowed.append(line_trace(x, y, line, name="A"))
    marker = {"size": 14, "symbol": "diamond", "color": theme.noise, "line": {"color": theme.ink, "width": 2}}
    point = marker_trace([100 * best[0]], [100 * best[1]], marker, name="most guesses right")
    return figure(
        theme,
        [bound, *allowed, coin_toss(theme), point],
        height=400 + (LEGEND_LINE if overlay is not None else 0),
        margin=margin(left=76, right=28, top=112 + (LEGEND_LINE if overlay is not None else 0)),
        x={"title": "false alarms", "range": [0, 101], "ticksuffix": " %"},
        y={"title": "true detections", "range": [0, 103], "ticksuffix": " %"},
    )
