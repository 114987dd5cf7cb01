"""One run's accuracy and optimality gap: each noise draw is a dot."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import Look, Theme, faint, figure, reference_line, stack

Floats = NDArray[np.float64]


def accuracy_distribution(
    accuracy: Floats, non_private: float, majority: float, look: Look, theme: Theme, *, expected: float | None = None,
) -> go.Figure:  # fmt: skip
    """Test accuracies of S noise draws between the majority and the non-private line.

    Args:
        accuracy: (S,) in [0, 1].
        expected: mean over all draws in closed form, where there is one.
    """
    percent = 100 * np.asarray(accuracy, float)
    lowest = min(percent.min(), 100 * majority, 100 * non_private)
    # whole tens, so that the axis mostly stays where it is while epsilon moves
    low = max(0.0, 10.0 * math.floor((lowest - 3) / 10))
    fig = figure(theme, x="test accuracy", height=340)
    fig.update_xaxes(range=[low, 101], ticksuffix=" %")
    x, y = stack(percent, (101 - low) / 40)
    fig.update_yaxes(range=[-1.1, max(6.0, y.max(initial=0) + 1.5)], visible=False)
    fig.add_trace(
        go.Scatter(
            x=x, y=y, mode="markers", showlegend=False, marker=_dots(look, len(x)), customdata=np.arange(len(x)),
            hovertemplate="draw %{customdata}: %{x:.1f} %<extra></extra>",
        )
    )  # fmt: skip
    fig.add_trace(
        go.Scatter(
            x=[percent.mean()], y=[-0.7], mode="markers", showlegend=False,
            marker={"symbol": "triangle-up", "size": 20, "color": look.colour, "line": {"color": theme.ink, "width": 1}},
            error_x={"type": "data", "array": [percent.std()], "color": look.colour, "thickness": 4, "width": 0},
            hovertemplate="mean %{x:.1f} %<extra></extra>",
        )
    )  # fmt: skip
    reference_line(fig, theme, 100 * majority, f"majority {100 * majority:.1f} %", kind="majority", level=0)
    reference_line(fig, theme, 100 * non_private, f"<b>no privacy {100 * non_private:.1f} %</b>", kind="none", level=1)
    if expected is not None:
        reference_line(fig, theme, 100 * expected, f"expected {100 * expected:.1f} %", kind="expected", level=2)
    # the same margin with and without the third label: nothing jumps from one mechanism to the next
    return fig.update_layout(margin_t=92)


def optimality_gap(gap: Floats, look: Look, theme: Theme) -> go.Figure:
    """Objective above the non-private minimum, one dot per noise draw, logarithmic.

    Args:
        gap: (S,), >= 0 up to rounding; below 1e-12 it is drawn at 1e-12.
    """
    shown = np.log10(np.maximum(np.asarray(gap, float), 1e-12))
    low, high = min(-6, math.floor(shown.min())), max(2, math.ceil(shown.max()))
    fig = figure(theme, x="training objective above the non-private minimum", height=230)
    fig.update_xaxes(type="log", range=[low, high], exponentformat="power", dtick=1 if high - low <= 8 else 2)
    x, y = stack(shown, (high - low) / 40)
    fig.update_yaxes(range=[-0.9, max(5.0, y.max(initial=0) + 1.0)], visible=False)
    fig.add_trace(
        go.Scatter(
            x=10**x, y=y, mode="markers", showlegend=False, marker=_dots(look, len(x)), customdata=gap,
            hovertemplate="gap %{customdata:.3g}<extra></extra>",
        )
    )  # fmt: skip
    return fig.update_layout(margin_t=12)


def _dots(look: Look, count: int) -> dict[str, object]:
    size = 15 if count <= 60 else 9
    return {"color": faint(look.colour, 0.75), "size": size, "line": {"color": look.colour, "width": 1}}
