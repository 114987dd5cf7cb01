"""Noise on single rows: the rounds in which they received it, its effect, and histograms of rules. It shows private data."""

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.lines import ticks
from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Floats, Theme, Trace, escape, fade, figure, margin, named_axis, room_for
from dpviz.figures.traces import band_trace, bar_trace, line_trace, marker_trace, note, segments, vertical_line

MOST = 24  # features of one row


def noise_timeline(timeline: NDArray[np.floating], theme: Theme, counts: str = "rows that received noise") -> go.Figure:
    """The number of rows that received noise in each round: mean over the noise draws, and their range.

    Args:
        timeline: (S, rounds).
        counts: what it counts, in words.
    """
    rounds = np.arange(1, timeline.shape[1] + 1)
    mean, low, high = timeline.mean(axis=0), timeline.min(axis=0), timeline.max(axis=0)
    few = len(rounds) == 1
    band = band_trace(rounds, high, low, fade(theme.noise, 0.25), name=f"range of {len(timeline)} draws")
    stroke, marker = {"color": theme.noise, "width": 4}, {"color": theme.noise, "size": 14}
    line = line_trace(rounds, mean, stroke, "round %{x}: %{y:.4g} rows<extra></extra>", marker=marker, name=counts)
    line |= {"mode": "markers" if few else "lines"}
    return figure(
        theme,
        [line] if few else [band, line],
        height=320,
        margin=margin(left=70, top=20 + LEGEND_LINE * (1 if few else 2)),
        x={"title": "round", "dtick": max(1, len(rounds) // 10)},
        y={"title": "rows", "range": [0, 1.08 * max(float(high.max(initial=0.0)), 1.0)]},
    )


def row_before_after(
    before: Floats, after: Floats, names: Sequence[str], theme: Theme, *, texts: tuple[Sequence[str], Sequence[str]]
) -> go.Figure:
    """One row's features before and after noise, those that moved most.

    Args:
        before, after: (d,) on the model's scale.
        names: d feature names.
        texts: (d,) the same values in the data's own units, shown on hover.
    """
    order = np.argsort(-np.abs(after - before), kind="stable")[:MOST][::-1]
    rows, link = np.arange(len(order)), segments(before[order], after[order])
    traces = [line_trace(*link, {"color": fade(theme.noise, 0.6), "width": 4}, showlegend=False)]
    for values, text, name, symbol, colour in (
        (before, texts[0], "as collected", "circle", theme.ink),
        (after, texts[1], "as the method sees it", "diamond", theme.noise),
    ):
        full = [f"{escape(names[i])}: {escape(text[i])}" for i in order]
        marker = {"size": 12, "symbol": symbol, "color": colour, "line": {"color": theme.ink, "width": 1}}
        hover = f"%{{customdata}}<extra>{name}</extra>"
        traces.append(marker_trace(values[order], rows, marker, hover, name=name, customdata=full))
    return figure(
        theme,
        traces,
        height=140 + 27 * len(order),
        margin=margin(left=room_for([names[i] for i in order]), top=66),
        x={"title": "model's scale"},
        y=named_axis([names[i] for i in order]),
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
    cloud = {"size": 10, "symbol": "diamond", "color": fade(theme.noise, 0.7)}
    point = {"size": 13, "symbol": "circle", "color": theme.ink}
    traces = [
        marker_trace(x, y, cloud, "%{x:.3g}<extra>after noise</extra>", name=noisy),
        marker_trace(before[order], rows, point, "%{x:.3g}<extra>before noise</extra>", name="before noise"),
    ]
    return figure(
        theme,
        traces,
        height=140 + 27 * len(order),
        margin=margin(left=room_for([names[i] for i in order]), top=66),
        x={"title": title},
        y=named_axis([names[i] for i in order]),
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
    middles = ("as collected", 0.5 * (width - 1)), ("as the method sees it", width + 1 + 0.5 * (width - 1))
    notes = [note(text, at, 1, paper="y", yanchor="bottom") for text, at in middles]
    hidden = {"visible": False, "constrain": "domain"}
    return figure(
        theme, [trace], height=340, margin=margin(bottom=14), annotations=notes, x=hidden, y=hidden | {"scaleanchor": "x"}
    )


def rule_histogram(
    statistic: Floats, passes: NDArray[np.bool_], low: float, high: float, theme: Theme, *, label: str
) -> go.Figure:
    """A histogram of the statistic that a rule compares, with its thresholds as lines.

    A row passes where low <= statistic <= high. The axis is logarithmic and reaches the thresholds, however far they
    are from the rows: a rule that noises all rows or none shows why. Zeros stand in the lowest bar, infinities in the
    highest.

    Args:
        statistic: (n,) >= 0.
        passes: (n,) whether the row passes.
        low, high: thresholds; -inf, 0 or inf where a side is open.
        label: what the statistic is.
    """
    limits = [t for t in (low, high) if 0 < t < np.inf]
    left, right = _reach(statistic, limits)
    step = (right - left) / 60
    # a threshold is an edge, so that no bar stands on both sides of it
    edges = np.asarray(left - step + (np.log10(limits[0]) - left if limits else 0.0) % step + step * np.arange(63), float)
    with np.errstate(divide="ignore"):
        place = np.clip(np.log10(np.maximum(statistic, 0.0)), edges[0], edges[-1])
    place[statistic == high] -= 1e-6 * step  # a row at the upper threshold passes
    traces = [
        _stack(place[passes], edges, "trained without noise", theme.majority, ""),
        _stack(place[~passes], edges, "receive noise", theme.noise, "/"),
    ]
    highest = max(1, int(np.histogram(place, edges)[0].max()))
    shapes, notes = _thresholds(limits, left, right, theme)
    title = [escape(line) for line in wrap(label, 26)]  # fits at 390 pixels
    above, below, plot = 16 + 2 * LEGEND_LINE, 42 + 24 * len(title), 230
    return figure(
        theme,
        traces,
        barmode="stack",
        bargap=0,
        height=above + plot + below,
        shapes=shapes,
        annotations=notes,
        margin=margin(left=70, top=above, bottom=below),
        # room for the thresholds' labels above the bars
        y={"title": "training rows", "range": [0, highest * (1.06 + 0.12 * len(limits))]},
        x={"title": "<br>".join(title), "range": [left, right], **ticks(left, right, most=3)},
    )


def _reach(statistic: Floats, limits: list[float]) -> tuple[float, float]:
    """Ends of the logarithmic axis, as exponents: the rows and the thresholds lie inside."""
    usable = statistic[(statistic > 0) & np.isfinite(statistic)]
    top = max([*limits, *([usable.max()] if len(usable) else []), *([] if limits or len(usable) else [1.0])])
    # near-zeros would stretch a logarithmic axis without end: six decades below the largest value is enough
    smallest = max(usable.min(), 1e-6 * top) if len(usable) else 0.1 * top
    bottom = np.log10(min([*limits, smallest]))
    return bottom - 0.15, np.log10(top) + 0.15


def _stack(place: Floats, edges: Floats, name: str, colour: str, pattern: str) -> Trace:
    """Bars that count the rows between edges; places and edges are exponents."""
    middles, counts = 0.5 * (edges[1:] + edges[:-1]), np.histogram(place, edges)[0]
    marker, hover = {"color": colour, "pattern": {"shape": pattern}}, "%{y} rows at %{text}<extra></extra>"
    text = {"text": [f"{10**a:.3g} to {10**b:.3g}" for a, b in pairwise(edges)], "textposition": "none"}
    return bar_trace(middles, counts, marker, hover, width=np.diff(edges), name=f"{len(place):,} {name}", **text)


def _thresholds(limits: list[float], left: float, right: float, theme: Theme) -> tuple[list[Trace], list[Trace]]:
    """A line and a label for each threshold; left and right are the ends of the axis."""
    shapes: list[Trace] = []
    notes: list[Trace] = []
    for level, value in enumerate(limits):
        at = float(np.log10(value))
        shapes.append(vertical_line(at, {"color": theme.ink, "width": 3}))
        side, shift = ("left", 6) if (at - left) / (right - left) < 0.5 else ("right", -6)
        place: Trace = {"xanchor": side, "xshift": shift, "yanchor": "top", "yshift": -22 * level}
        look = {"bgcolor": fade(theme.paper, 0.85), "font": {"size": FONT_SIZE, "color": theme.ink}}
        notes.append(note(f"<b>threshold {value:.3g}</b>", at, 1, paper="y", **place, **look))
    return shapes, notes
