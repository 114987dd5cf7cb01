"""A picture of the best possible attack at a budget."""

import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import LEGEND_LINE, Floats, Theme, Trace, figure, margin
from dpviz.figures.traces import coin_toss, line_trace, marker_trace


def best_attack(
    table: pd.DataFrame, best: tuple[float, float], theme: Theme, *, overlay: pd.DataFrame | None = None
) -> go.Figure:
    """`attacker_curve` of a table of a best possible attack, with what (epsilon, delta) alone would allow.

    Args:
        table: columns false_alarms, detections_at_most and by_epsilon_delta_alone, shares in [0, 1].
        best: (false alarms, detections) at which most guesses are right.
        overlay: the table of another run, drawn dotted and called A.
    """
    names = ("false_alarms", "detections_at_most", "by_epsilon_delta_alone")
    alarms, detections, alone = (table[name].to_numpy() for name in names)
    other = None if overlay is None else (overlay[names[0]].to_numpy(), overlay[names[1]].to_numpy())
    return attacker_curve(alarms, detections, best, theme, alone=alone, overlay=other)


def attacker_curve(
    false_alarms: Floats,
    detections: Floats,
    best: tuple[float, float],
    theme: Theme,
    *,
    alone: Floats | None = None,
    overlay: tuple[Floats, Floats] | None = None,
) -> go.Figure:
    """The most that an attacker can detect at each rate of false alarms.

    Args:
        false_alarms: (k,) in [0, 1], rising.
        detections: (k,) upper bounds in [0, 1].
        best: (false alarms, detections) at which most guesses are right.
        alone: (k,) what (epsilon, delta) alone would allow, for a thin line.
        overlay: false alarms and detections of another run, drawn dotted and called A.
    """
    hover = "%{x:.1f} % false alarms: at most %{y:.1f} %<extra></extra>"
    stroke = {"color": theme.noise, "width": 4}
    bound = line_trace(100 * false_alarms, 100 * detections, stroke, hover, name="no attacker is above this line")
    allowed: list[Trace] = []
    if alone is not None:
        line = {"color": theme.ink, "width": 2, "dash": "dot"}
        allowed.append(line_trace(100 * false_alarms, 100 * alone, line, name="what (ε, δ) alone allows"))
    if overlay is not None:
        line = {"color": theme.majority, "width": 3, "dash": "dot"}
        allowed.append(line_trace(100 * overlay[0], 100 * overlay[1], line, name="A"))
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
