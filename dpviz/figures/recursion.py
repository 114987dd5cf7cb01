"""A sensitivity as its recursion runs."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dpviz.figures.style import LEGEND_LINE, Floats, Theme, Trace, fade, figure, margin
from dpviz.figures.traces import line_trace, marker_trace, vertical_line


def trace(
    epoch: Floats, value: Floats, positions: Sequence[int], averages: Floats, restarts: Sequence[float], theme: Theme
) -> go.Figure:
    """A sensitivity bound over training, one curve per batch position.

    Args:
        epoch: (K,) time in passes.
        value: (K, J).
        positions: J batch positions, from 1.
        averages: (K,) whether the point follows an averaging.
        restarts: times at which the step size starts anew.
    """
    traces = [_position(j, positions, epoch, value[:, j], theme) for j in range(len(positions))]
    at = np.flatnonzero(averages)
    if len(at):
        marker = {"symbol": "diamond", "size": 12, "color": theme.noise, "line": {"color": theme.ink, "width": 1}}
        hover, name = "averaging: %{y:.4g}<extra></extra>", "averaging: the iterate becomes a mean"
        traces.append(marker_trace(epoch[at], value[at].max(axis=1), marker, hover, name=name))
    line = {"color": theme.majority, "width": 2, "dash": "dot"}
    if restarts:
        traces.append({"x": [None], "y": [None], "mode": "lines", "name": "restart: the step size starts anew", "line": line})
    named = sum(1 for t in traces if t.get("showlegend", True))
    return figure(
        theme,
        traces,
        height=440 + LEGEND_LINE * named,
        shapes=[vertical_line(t, line) for t in restarts[:60]],
        margin=margin(left=84, top=14 + LEGEND_LINE * named),
        x={"title": "passes over the data"},
        y={"title": "how far two runs can be apart", "exponentformat": "power", "range": [0, 1.06 * float(value.max()) or 1.0]},
    )


def _position(j: int, positions: Sequence[int], epoch: Floats, value: Floats, theme: Theme) -> Trace:
    """The curve of one batch position; the first, the middle and the last one are in the legend."""
    base, count = theme.families["output"], len(positions)
    spread = j / max(count - 1, 1)
    labelled = j in (0, count // 2, count - 1)
    line = {
        "color": fade(base, 1 - 0.6 * spread),
        "width": 3 if labelled else 1.5,
        "dash": ("solid", "dash", "dot")[0 if j == 0 else 2 if j == count - 1 else 1] if labelled else "solid",
    }
    name = f"replaced row in batch {positions[j]}" + (
        " (first)" if j == 0 < count - 1 else " (last)" if j and j == count - 1 else ""
    )
    hover = f"epoch %{{x:.2f}}: %{{y:.4g}}<extra>batch {positions[j]}</extra>"
    return line_trace(epoch, value, line, hover, showlegend=labelled, name=name)
