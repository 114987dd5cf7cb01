"""A sensitivity as its recursion runs."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import LEGEND_LINE, Theme, Trace, faint, figure, margin
from dpviz.figures.traces import line_trace, marker_trace

Floats = NDArray[np.float64]


def trace(
    epoch: Floats,
    value: Floats,
    positions: Sequence[int],
    averages: Floats,
    restarts: Sequence[float],
    theme: Theme,
    *,
    height: int = 440,
    names: bool = True,
) -> go.Figure:
    """A sensitivity bound over training, one curve per batch position.

    Args:
        epoch: (K,) time in passes.
        value: (K, J).
        positions: J batch positions, from 1.
        averages: (K,) whether the point follows an averaging.
        restarts: times at which the step size starts anew.
    """
    traces = [_position(j, positions, epoch, value[:, j], theme, names) for j in range(len(positions))]
    at = np.flatnonzero(averages)
    if len(at):
        traces.append(_averagings(epoch[at], value[at].max(axis=1), theme))
    line = {"color": theme.majority, "width": 2, "dash": "dot"}
    if restarts:
        traces.append({"x": [None], "y": [None], "mode": "lines", "name": "restart: the step size starts anew", "line": line})
    shapes = [{"type": "line", "x0": t, "x1": t, "y0": 0, "y1": 1, "yref": "paper", "line": line} for t in restarts[:60]]
    named = sum(1 for t in traces if t.get("showlegend", True))
    return figure(
        theme,
        traces,
        height=height + LEGEND_LINE * named,
        shapes=shapes,
        margin=margin(left=84, top=14 + LEGEND_LINE * named),
        x={"title": "passes over the data"},
        y={"title": "how far two runs can be apart", "exponentformat": "power", "range": [0, 1.06 * float(value.max()) or 1.0]},
    )


def _position(j: int, positions: Sequence[int], epoch: Floats, value: Floats, theme: Theme, names: bool) -> Trace:
    """The curve of one batch position; the first, the middle and the last one are in the legend."""
    base, count = theme.families["output"], len(positions)
    spread = j / max(count - 1, 1)
    labelled = names and j in (0, count // 2, count - 1)
    line = {
        "color": faint(base, 1 - 0.6 * spread),
        "width": 3 if labelled else 1.5,
        "dash": ("solid", "dash", "dot")[0 if j == 0 else 2 if j == count - 1 else 1] if labelled else "solid",
    }
    name = f"replaced row in batch {positions[j]}" + (
        " (first)" if j == 0 < count - 1 else " (last)" if j and j == count - 1 else ""
    )
    return line_trace(
        epoch, value, line, f"epoch %{{x:.2f}}: %{{y:.4g}}<extra>batch {positions[j]}</extra>", showlegend=labelled, name=name
    )


def _averagings(epoch: Floats, value: Floats, theme: Theme) -> Trace:
    """A diamond at each averaging."""
    marker = {"symbol": "diamond", "size": 12, "color": theme.noise, "line": {"color": theme.ink, "width": 1}}
    return marker_trace(epoch, value, marker, "averaging: %{y:.4g}<extra></extra>", name="averaging: the iterate becomes a mean")
