"""A linear model's weights without and with noise."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dpviz.figures.style import Floats, Look, Theme, escape, fade, figure, margin, named_axis, room_for
from dpviz.figures.traces import line_trace, marker_trace, segments, vertical_line

MOST = 20


def weights(theta: Floats, non_private: Floats, names: Sequence[str], look: Look, theme: Theme) -> go.Figure:
    """Largest weights: without privacy, in the first noise draw, and their range over all draws.

    Args:
        theta: (S, m) private parameters.
        non_private: (m,)
        names: m feature names.
    """
    order = np.argsort(-np.abs(non_private), kind="stable")[:MOST][::-1]
    rows = np.arange(len(order))
    low, high = theta[:, order].min(axis=0), theta[:, order].max(axis=0)
    full = [escape(names[i]) for i in order]
    line = {"color": fade(look.colour, 0.45), "width": 10}
    ranges = line_trace(*segments(low, high), line, name=f"with noise: range of {len(theta)} draws")
    marker = {"color": theme.noise, "size": 11, "line": {"color": theme.ink, "width": 1}}
    hover = "%{customdata}: %{x:.3g}<extra>first draw</extra>"
    first = marker_trace(theta[0, order], rows, marker, hover, name="with noise: first draw", customdata=full)
    marker = {"color": theme.ink, "size": 14, "symbol": "line-ns", "line": {"color": theme.ink, "width": 4}}
    hover = "%{customdata}: %{x:.3g}<extra>non-private</extra>"
    base = marker_trace(non_private[order], rows, marker, hover, name="non-private", customdata=full)
    return figure(
        theme,
        [ranges, first, base],
        height=146 + 27 * len(order),
        shapes=[vertical_line(0, {"color": theme.majority, "width": 1})],
        margin=margin(left=room_for([names[i] for i in order]), top=88),
        x={"title": "weight", "nticks": 4},
        y=named_axis([names[i] for i in order]),
    )
