"""Noise on single rows: the rounds in which they received it, and its effect. All of it shows private data."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import LEGEND_LINE, Theme, Trace, faint, figure, margin, named_rows, plain
from dpviz.figures.traces import area_trace, line_trace, marker_trace

Floats = NDArray[np.float64]


def noise_timeline(timeline: NDArray[np.floating], theme: Theme, counts: str = "rows that received noise") -> go.Figure:
    """The number of rows that received noise in each round: mean over the noise draws, and their range.

    Args:
        timeline: (S, rounds).
        counts: what it counts, in words.
    """
    rounds = np.arange(1, timeline.shape[1] + 1)
    mean, low, high = timeline.mean(axis=0), timeline.min(axis=0), timeline.max(axis=0)
    few = len(rounds) == 1
    band = area_trace(
        np.r_[rounds, rounds[::-1]], np.r_[high, low[::-1]], faint(theme.noise, 0.25), name=f"range of {len(timeline)} draws"
    )
    line = {
        "x": rounds,
        "y": mean,
        "mode": "markers" if few else "lines",
        "name": counts,
        "line": {"color": theme.noise, "width": 4},
        "marker": {"color": theme.noise, "size": 14},
        "hovertemplate": "round %{x}: %{y:.4g} rows<extra></extra>",
    }
    return figure(
        theme,
        [line] if few else [band, line],
        height=320,
        margin=margin(left=70, top=20 + LEGEND_LINE * (1 if few else 2)),
        x={"title": "round", "dtick": max(1, len(rounds) // 10)},
        y={"title": "rows", "range": [0, 1.08 * max(float(high.max(initial=0.0)), 1.0)]},
    )


def row_before_after(
    before: Floats,
    after: Floats,
    names: Sequence[str],
    theme: Theme,
    *,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
    most: int = 24,
) -> go.Figure:
    """One row's features before and after noise, those that moved most.

    Args:
        before, after: (d,) on the model's scale.
        names: d feature names.
        texts: (d,) the same values in the data's own units, shown on hover.
        most: features shown.
    """
    order = np.argsort(-np.abs(after - before), kind="stable")[:most][::-1]
    rows, gap = np.arange(len(order)), np.full(len(order), np.nan)
    labels = [[f"{v:.3g}" for v in part] for part in (before, after)] if texts is None else [list(t) for t in texts]
    x = np.c_[before[order], after[order], gap].ravel()
    link = line_trace(x, np.c_[rows, rows, gap].ravel(), {"color": faint(theme.noise, 0.6), "width": 4}, showlegend=False)
    traces: list[Trace] = [link]
    for values, text, name, symbol, colour in (
        (before, labels[0], "as collected", "circle", theme.ink),
        (after, labels[1], "as the method sees it", "diamond", theme.noise),
    ):
        full = [f"{plain(names[i])}: {plain(text[i])}" for i in order]
        marker = {"size": 12, "symbol": symbol, "color": colour, "line": {"color": theme.ink, "width": 1}}
        traces.append(
            marker_trace(values[order], rows, marker, "%{customdata}<extra>" + name + "</extra>", name=name, customdata=full)
        )
    return figure(
        theme,
        traces,
        height=140 + 27 * len(order),
        margin=margin(left=200, top=66),
        x={"title": "model's scale"},
        y=named_rows([names[i] for i in order]),
    )


def step_before_after(before: Floats, after: Floats, names: Sequence[str], theme: Theme, *, title: str) -> go.Figure:
    """One step's release before noise, and after it in several draws; the largest coordinates.

    Args:
        before: (m,).
        after: (S, m).
        names: m names of the coordinates.
        title: of the axis.
    """
    order = np.argsort(-np.abs(before), kind="stable")[:12][::-1]
    rows = np.arange(len(order))
    x, y, noisy = after[:, order].ravel(), np.tile(rows, len(after)), f"after noise, {len(after)} draws"
    cloud = {"size": 10, "symbol": "diamond", "color": faint(theme.noise, 0.7)}
    point = {"size": 13, "symbol": "circle", "color": theme.ink}
    traces = [
        marker_trace(x, y, cloud, "%{x:.3g}<extra>after noise</extra>", name=noisy),
        marker_trace(before[order], rows, point, "%{x:.3g}<extra>before noise</extra>", name="before noise"),
    ]
    return figure(
        theme,
        traces,
        height=140 + 27 * len(order),
        margin=margin(left=200, top=66),
        x={"title": title},
        y=named_rows([names[i] for i in order]),
    )


def pictures(before: Floats, after: Floats, theme: Theme) -> go.Figure:
    """An image-like row before and after noise, on one scale of grey.

    The scale reaches at most one range of the row beyond the row itself; noise beyond that is black or white, so that
    the row stays visible however strong the noise is.

    Args:
        before, after: (height, width).
    """
    first, last = float(before.min()), float(before.max())
    span = last - first or 1.0
    low, high = max(float(after.min()), first - span), min(float(after.max()), last + span)
    low, high = min(low, first), max(high, last)
    gap = np.full((len(before), 1), np.nan)
    # one heat map with a gap keeps both pictures on the same scale and the same pixel size
    both = np.hstack([before, gap, after])[::-1]
    trace = {
        "type": "heatmap",
        "z": both,
        "zmin": low,
        "zmax": high,
        "colorscale": "gray",
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": "%{z:.3g}<extra></extra>",
    }
    width = before.shape[1]
    notes = [
        {"x": at, "y": 1, "xref": "x", "yref": "paper", "yanchor": "bottom", "showarrow": False, "text": text}
        for at, text in ((0.5 * (width - 1), "as collected"), (width + 1 + 0.5 * (width - 1), "as the method sees it"))
    ]
    hidden = {"visible": False, "constrain": "domain"}
    return figure(
        theme, [trace], height=340, margin=margin(bottom=14), annotations=notes, x=hidden, y=hidden | {"scaleanchor": "x"}
    )
