"""Histograms of a rule: training rows trained without noise, and with it. It shows private data."""

from itertools import pairwise
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.lines import ticks
from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Floats, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import bar_trace, note, vertical_line


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
