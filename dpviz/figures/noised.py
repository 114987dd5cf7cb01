"""Noise on single rows: the rounds in which they received it, and its effect. All of it shows private data."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import LEGEND_LINE, Theme, Trace, faint, figure, margin, named_rows, plain

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
    band = {
        "x": np.r_[rounds, rounds[::-1]],
        "y": np.r_[high, low[::-1]],
        "fill": "toself",
        "mode": "lines",
        "hoverinfo": "skip",
        "fillcolor": faint(theme.noise, 0.25),
        "line": {"width": 0},
        "name": f"range of {len(timeline)} draws",
    }
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
    link = {
        "x": np.c_[before[order], after[order], gap].ravel(),
        "y": np.c_[rows, rows, gap].ravel(),
        "mode": "lines",
        "line": {"color": faint(theme.noise, 0.6), "width": 4},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    traces: list[Trace] = [link]
    for values, text, name, symbol, colour in (
        (before, labels[0], "as collected", "circle", theme.ink),
        (after, labels[1], "as the method sees it", "diamond", theme.noise),
    ):
        full = [f"{plain(names[i])}: {plain(text[i])}" for i in order]
        traces.append(
            {
                "x": values[order],
                "y": rows,
                "mode": "markers",
                "name": name,
                "customdata": full,
                "marker": {"size": 12, "symbol": symbol, "color": colour, "line": {"color": theme.ink, "width": 1}},
                "hovertemplate": "%{customdata}<extra>" + name + "</extra>",
            }
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
    traces: list[Trace] = [
        {
            "x": after[:, order].ravel(),
            "y": np.tile(rows, len(after)),
            "mode": "markers",
            "name": f"after noise, {len(after)} draws",
            "marker": {"size": 10, "symbol": "diamond", "color": faint(theme.noise, 0.7)},
            "hovertemplate": "%{x:.3g}<extra>after noise</extra>",
        },
        {
            "x": before[order],
            "y": rows,
            "mode": "markers",
            "name": "before noise",
            "marker": {"size": 13, "symbol": "circle", "color": theme.ink},
            "hovertemplate": "%{x:.3g}<extra>before noise</extra>",
        },
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
