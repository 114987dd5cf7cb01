"""Pictures of a dataset before any model: label balance, row norms, feature ranges."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dpviz.figures.style import Floats, Theme, escape, fade, figure, margin, named_axis, room_for, shorten
from dpviz.figures.traces import bar_trace, line_trace, marker_trace, segments

MOST = 25


def label_balance(counts: tuple[int, int], names: tuple[str, str], theme: Theme) -> go.Figure:
    """Rows per class, as two bars.

    Args:
        counts: rows of the class -1 and +1.
        names: words for them.
    """
    total = max(sum(counts), 1)
    marker = {"color": list(theme.labels), "pattern": {"shape": ["", "/"]}, "line": {"color": theme.ink, "width": 1}}
    bars = bar_trace(list(counts), [0, 1], marker, orientation="h")
    # the numbers stand below the names: beside the bars a narrow page cuts them off
    short = [shorten(name) for name in names]
    ticks = [
        f"{name} ({sign})<br>{n:,} ({100 * n / total:.1f} %)" for name, sign, n in zip(short, ("−1", "+1"), counts, strict=True)
    ]
    return figure(
        theme,
        [bars],
        height=200,
        margin=margin(left=min(210, 50 + 9 * max(12, *(len(name) + 5 for name in short))), top=10),
        x={"title": "rows", "range": [0, 1.05 * max(counts)], "nticks": 3, "tickformat": ","},
        y={"tickvals": [0, 1], "ticktext": ticks, "showgrid": False, "range": [-0.6, 1.6]},
    )


def feature_ranges(x: Floats, names: Sequence[str], theme: Theme) -> go.Figure:
    """Mean and the middle 90 % of each feature after preprocessing, the most varied ones first.

    Args:
        x: (n, d)
        names: d names.
    """
    order = np.argsort(-x.std(axis=0), kind="stable")[:MOST][::-1]
    low, high = np.quantile(x[:, order], [0.05, 0.95], axis=0)
    ranges = line_trace(*segments(low, high), {"color": fade(theme.ink, 0.45), "width": 12}, name="middle 90 % of the rows")
    full = [escape(names[i]) for i in order]
    hover = "%{customdata}: mean %{x:.3g}<extra></extra>"
    dots = {"color": theme.ink, "size": 11}
    means = marker_trace(x[:, order].mean(axis=0), np.arange(len(order)), dots, hover, name="mean", customdata=full)
    return figure(
        theme,
        [ranges, means],
        height=160 + 27 * len(order),
        margin=margin(left=room_for([names[i] for i in order]), top=70),
        x={"title": "encoded value", "range": [min(float(low.min()), 0.0) - 0.02, max(float(high.max()), 1.0) + 0.02]},
        y=named_axis([names[i] for i in order]),
    )
