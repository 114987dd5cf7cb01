"""One run's accuracy and optimality gap: each noise draw is a dot.

A linear model's weights without and with noise.
"""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dpviz.figures.style import Floats, Look, Theme, Trace, escape, fade, figure, margin, named_axis, room_for, stack, tens
from dpviz.figures.traces import line_trace, marker_trace, reference_line, segments, vertical_line


def accuracy_distribution(
    accuracy: Floats,
    non_private: float,
    majority: float,
    look: Look,
    theme: Theme,
    *,
    expected: float | None,
    title: str,
    shares: bool,
) -> go.Figure:
    """Test accuracies, or values of another metric, of S noise draws between the majority and the non-private line.

    Args:
        accuracy: (S,) in [0, 1] where they are shares.
        majority: NaN where the majority label has no value.
        expected: mean over all draws in closed form, where there is one.
        title: of the axis.
        shares: whether values are shares, shown in percent; otherwise they are losses of at least 0.
    """
    unit, digits, sign = (100, ".1f", " %") if shares else (1, ".3f", "")
    values = unit * np.asarray(accuracy, float)
    ends = [v for v in (*values, unit * majority, unit * non_private) if not math.isnan(v)]
    # whole tens, so that the axis mostly stays where it is while epsilon moves
    span = (max(0.0, 10.0 * math.floor((min(ends) - 3) / 10)), 101.0) if shares else (0.0, 1.1 * max(ends))
    low = span[0]
    x, y = stack(values, (span[1] - low) / 40)
    marks = [
        (majority, f"majority {unit * majority:{digits}}{sign}", "majority"),
        (non_private, f"<b>non-private {unit * non_private:{digits}}{sign}</b>", "none"),
    ]
    if expected is not None:
        marks.append((expected, f"expected {unit * expected:{digits}}{sign}", "expected"))
    marks = [mark for mark in marks if not math.isnan(mark[0])]
    lines = [
        reference_line(theme, unit * value, text, kind=kind, level=level, span=span)
        for level, (value, text, kind) in enumerate(marks)
    ]
    return figure(
        theme,
        [
            _dots(look, x, y, f"draw %{{customdata}}: %{{x:{digits}}}{sign}<extra></extra>"),
            _mean(values, look, theme, f"mean %{{x:{digits}}}{sign}<extra></extra>"),
        ],
        height=340,
        x={"title": title, "range": span, "ticksuffix": sign} | tens(low, shares=shares),
        y={"visible": False, "range": [-1.1, max(6.0, y.max(initial=0) + 1.5)]},
        shapes=[shape for shape, _ in lines],
        annotations=[note for _, note in lines],
        # the same margin with and without the third label: nothing jumps from one mechanism to the next
        margin=margin(top=92),
    )


def _mean(values: Floats, look: Look, theme: Theme, hover: str) -> Trace:
    """A triangle below the dots, with the spread of the draws."""
    marker = {"symbol": "triangle-up", "size": 20, "color": look.colour, "line": {"color": theme.ink, "width": 1}}
    error_x = {"type": "data", "array": [values.std()], "color": look.colour, "thickness": 4, "width": 0}
    return marker_trace([values.mean()], [-0.7], marker, hover, showlegend=False, error_x=error_x)


def optimality_gap(gap: Floats, look: Look, theme: Theme, *, reference: str = "the minimum") -> go.Figure:
    """Objective above a reference, one dot per noise draw; logarithmic unless some lie below it.

    Args:
        gap: (S,); what is not below 0 but below 1e-12 is drawn at 1e-12.
        reference: what 0 stands for, in words.
    """
    gap = np.asarray(gap, float)
    zero: list[Trace] = []
    if gap.min() < 0:
        pad = 0.08 * (max(gap.max(), 0.0) - gap.min())
        low, high = gap.min() - pad, max(gap.max(), 0.0) + pad
        x, y = stack(gap, (high - low) / 40)
        axis: Trace = {"range": [low, high], "nticks": 6}
        zero = [vertical_line(0, {"color": theme.ink, "width": 3})]
    else:
        shown = np.log10(np.maximum(gap, 1e-12))
        low, high = min(-6, math.floor(shown.min())), max(2, math.ceil(shown.max()))
        x, y = stack(shown, (high - low) / 40)
        x = 10**x
        axis = {"type": "log", "range": [low, high], "exponentformat": "power", "dtick": math.ceil((high - low) / 4)}
    return figure(
        theme,
        [_dots(look, x, y, "gap %{customdata:.3g}<extra></extra>") | {"customdata": gap}],
        height=230,
        shapes=zero,
        x={"title": f"objective above {reference}"} | axis,
        y={"visible": False, "range": [-0.9, max(5.0, y.max(initial=0) + 1.0)]},
        margin=margin(top=12),
    )


def _dots(look: Look, x: Floats, y: Floats, hover: str) -> Trace:
    size = 15 if len(x) <= 60 else 9
    marker = {"color": fade(look.colour, 0.75), "size": size, "line": {"color": look.colour, "width": 1}}
    return marker_trace(x, y, marker, hover, showlegend=False, customdata=np.arange(len(x)), cliponaxis=False)


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
