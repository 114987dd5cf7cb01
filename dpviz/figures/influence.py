"""Training rows, what each does to the model, and what the noise did to each. All of it shows private data."""

from __future__ import annotations

from itertools import pairwise
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Theme, Trace, faint, figure, margin, plain

Floats = NDArray[np.float64]

WEBGL_FROM = 10_000  # points above which the browser needs WebGL to stay fluid
_FLOOR = 1e-4  # influences below this share of the largest one look alike
_SCALES = {
    "light": [[0.0, "#cfd8e6"], [0.5, "#5b7db1"], [1.0, "#0b1f45"]],
    "dark": [[0.0, "#2c3a52"], [0.5, "#7d9fd3"], [1.0, "#f2f6ff"]],
}


def training_map(
    points: NDArray[np.floating],
    influence: Floats,
    row_ids: NDArray[np.integer],
    theme: Theme,
    *,
    names: tuple[str, str],
    noised: NDArray[np.bool_] | None = None,
    epsilon: Floats | None = None,
    chosen: NDArray[np.bool_] | None = None,
    unit: str = "influence",
    group: NDArray[np.bool_] | None = None,
    kinds: tuple[str, str] = ("passed without noise", "met noise"),
    ticks: bool = False,
) -> go.Figure:
    """Every training row as a point: colour is influence, an amber diamond met noise, size is individual epsilon.

    Clicks and lassos return `customdata`, the row id.

    Args:
        points: (n, 2).
        influence: (n,) >= 0, shown on a logarithmic scale, over four decades at most.
        row_ids: (n,) what a selection returns.
        names: of the two axes.
        noised: (n,) rows that received noise; None where noise is not put on rows.
        epsilon: (n,) individual epsilon, None for one size.
        chosen: (n,) rows to ring, for example the selected person.
        unit: what the colour is called.
        group: (n,) rows that stand out while all others fade; None or none of them fades nothing.
        kinds: what the two kinds of points are called.
        ticks: whether the axes have a scale that means something.
    """
    n = len(points)
    grouped = group is not None and bool(group.any())
    kind = "scattergl" if n > WEBGL_FROM else "scatter"
    colour, bar = _logarithmic(influence, unit)
    base = 5.0 if n > WEBGL_FROM else 8.0 if n > 1000 else 11.0
    size = None if epsilon is None else _sizes(epsilon, base)
    # every array comes back with every selected point, so a large set has none that it can do without
    amounts = _amounts(influence) if n <= WEBGL_FROM else None
    told = f": {plain(unit)} %{{text}}" if amounts is not None else ""
    met = np.zeros(n, bool) if noised is None else noised
    xy = points.astype(np.float32)
    traces: list[Trace] = []
    for at, name, symbol, line in (
        (~met, kinds[0] if noised is not None else "training rows", "circle", {"width": 0}),
        (met, kinds[1], "diamond", {"width": 1.5, "color": theme.noise}),
    ):
        if at.any():
            traces.append(
                {
                    "type": kind,
                    "x": xy[at, 0],
                    "y": xy[at, 1],
                    "mode": "markers",
                    "customdata": row_ids[at],
                    "showlegend": False,
                    "text": None if amounts is None else amounts[at],
                    "marker": {
                        "color": colour[at],
                        "coloraxis": "coloraxis",
                        "size": base if size is None else size[at],
                        "symbol": symbol,
                        "line": line,
                    },
                    "hovertemplate": f"row %{{customdata}}{told}<extra></extra>",
                }
                | ({"selectedpoints": np.flatnonzero(group[at]).tolist()} if grouped and group is not None else {})
            )
            # the legend would draw a colour scale as black, which a dark page swallows
            key = {"symbol": symbol, "size": 12, "color": theme.majority, "line": line}
            traces.append({"x": [None], "y": [None], "mode": "markers", "name": f"{int(at.sum()):,} {name}", "marker": key})
    if chosen is not None and chosen.any():
        ring = {"symbol": "circle-open", "size": base + 12, "color": theme.ink, "line": {"width": 3, "color": theme.ink}}
        traces.append(
            {
                "type": kind,
                "x": xy[chosen, 0],
                "y": xy[chosen, 1],
                "mode": "markers",
                "name": "chosen",
                "marker": ring,
                "customdata": row_ids[chosen],
                "hoverinfo": "skip",
            }
        )
    axis: Trace = {} if ticks else {"showgrid": False, "showticklabels": False, "ticks": ""}
    return figure(
        # clicks reach the page where dragging moves the picture; box and lasso are tools of the picture's own bar
        theme,
        traces,
        height=600,
        dragmode="pan",
        margin=margin(left=70 if ticks else 34, right=92, top=44 + LEGEND_LINE * sum("name" in t for t in traces)),
        x=axis | {"title": plain(names[0])},
        y=axis | {"title": plain(names[1])},
        coloraxis={"colorscale": _SCALES[theme.name]} | bar,
    )


def rule_histogram(
    statistic: Floats,
    passes: NDArray[np.bool_],
    low: float,
    high: float,
    theme: Theme,
    *,
    label: str,
) -> go.Figure:
    """How many rows pass a rule: a histogram of what the rule looks at, with its thresholds as lines.

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
    usable = statistic[(statistic > 0) & np.isfinite(statistic)]
    top = max([*limits, *([usable.max()] if len(usable) else []), *([] if limits or len(usable) else [1.0])])
    # near-zeros would stretch a logarithmic axis without end: six decades below the largest value is enough
    smallest = max(usable.min(), 1e-6 * top) if len(usable) else 0.1 * top
    bottom = np.log10(min([*limits, smallest]))
    left, right = bottom - 0.15, np.log10(top) + 0.15
    step = (right - left) / 60
    # a threshold is an edge, so that no bar stands on both sides of it
    edges = left - step + (np.log10(limits[0]) - left if limits else 0.0) % step + step * np.arange(63)
    with np.errstate(divide="ignore"):
        place = np.clip(np.log10(np.maximum(statistic, 0.0)), edges[0], edges[-1])
    place[statistic == high] -= 1e-6 * step  # a row at the upper threshold passes
    traces: list[Trace] = []
    highest = 1
    for at, name, colour, pattern in (
        (passes, "pass without noise", theme.majority, ""),
        (~passes, "meet noise", theme.noise, "/"),
    ):
        count, _ = np.histogram(place[at], edges)
        highest = max(highest, int(np.histogram(place, edges)[0].max()))
        traces.append(
            {
                "type": "bar",
                "x": 0.5 * (edges[1:] + edges[:-1]),
                "y": count,
                "width": np.diff(edges),
                "name": f"{int(at.sum()):,} {name}",
                "marker": {"color": colour, "pattern": {"shape": pattern}},
                "text": [f"{10**a:.3g} to {10**b:.3g}" for a, b in pairwise(edges)],
                "textposition": "none",
                "hovertemplate": "%{y} rows at %{text}<extra></extra>",
            }
        )
    shapes, notes = [], []
    for level, value in enumerate(limits):
        place_of = float(np.log10(value))
        line = {"color": theme.ink, "width": 3}
        shapes.append({"type": "line", "x0": place_of, "x1": place_of, "y0": 0, "y1": 1, "yref": "paper", "line": line})
        share = (place_of - left) / (right - left)
        notes.append(
            {
                "x": place_of,
                "y": 1,
                "yref": "paper",
                "yanchor": "top",
                "yshift": -22 * level,
                "showarrow": False,
                "xanchor": "left" if share < 0.5 else "right",
                "xshift": 6 if share < 0.5 else -6,
                "bgcolor": faint(theme.paper, 0.85),
                "text": f"<b>threshold {value:.3g}</b>",
                "font": {"size": FONT_SIZE, "color": theme.ink},
            }
        )
    span = _decades(left, right)
    title = [plain(line) for line in wrap(label, 34)]  # two such pictures stand side by side
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
        x={"title": "<br>".join(title), "range": [left, right], "tickvals": span, "ticktext": _powers(span)},
    )


def against_truth(
    approximate: Floats,
    truth: Floats,
    error: Floats,
    row_ids: NDArray[np.integer],
    theme: Theme,
    *,
    bound: float = np.inf,
    names: tuple[str, str] = ("influence", "exact leave-one-out"),
) -> go.Figure:
    """Approximate changes of the model against exact retraining, with the identity line and the proved error bound.

    Args:
        approximate, truth: (k,) lengths of the changes, >= 0; rows with 0 in either are counted, not drawn.
        error: (k,) lengths of the difference of the two changes, which is what the bound speaks about.
        row_ids: (k,).
        bound: proved bound on the error; drawn where it fits the picture, named in words where it does not.
        names: of the two quantities.
    """
    shown = (approximate > 0) & (truth > 0)
    x, y = approximate[shown], truth[shown]
    span = np.array([min(x.min(), y.min()) / 1.3, max(x.max(), y.max()) * 1.3]) if shown.any() else np.array([0.1, 1.0])
    kind = "scattergl" if shown.sum() > WEBGL_FROM else "scatter"
    line = {"x": span, "y": span, "mode": "lines", "name": "equal", "line": {"color": theme.majority, "width": 3, "dash": "dash"}}
    dots = {
        "type": kind,
        "x": x,
        "y": y,
        "mode": "markers",
        "name": f"{int(shown.sum()):,} rows",
        "customdata": row_ids[shown],
        "marker": {"color": faint(theme.ink, 0.55), "size": 8},
        "hovertemplate": "row %{customdata}: %{x:.4g} against %{y:.4g}<extra></extra>",
    }
    traces: list[Trace] = [line | {"hoverinfo": "skip"}, dots]
    words = f"largest error {error.max(initial=0.0):.2g}"
    if np.isfinite(bound):
        times = bound / max(float(error.max(initial=0.0)), 1e-300)
        words += f"<br>proved bound {bound:.3g}" + (f":<br>{times:,.0f} times that error" if times < 1e7 else "")
        grid = np.geomspace(float(span[0]), float(span[1]), 60)
        above = grid + bound
        inside = above <= span[1]
        if inside.any():
            limit = {"color": theme.noise, "width": 3, "dash": "dot"}
            traces.append(
                {"x": grid[inside], "y": above[inside], "mode": "lines", "name": "bound", "line": limit, "hoverinfo": "skip"}
            )
    if not shown.all():
        words += f"<br>{int((~shown).sum()):,} rows move nothing"
    # the influence function falls short of retraining, so points lie on the line or above it: below it there is room
    note = {
        "x": 0.99,
        "y": 0.02,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "text": words,
        "align": "right",
        "bgcolor": faint(theme.paper, 0.85),
    }
    ticks = _decades(*np.log10(span))
    axis = {"type": "log", "range": np.log10(span), "tickvals": 10**ticks, "ticktext": _powers(ticks)}
    return figure(
        theme,
        traces,
        height=460,
        annotations=[note],
        margin=margin(left=86, top=40 + LEGEND_LINE * len(traces)),
        x=axis | {"title": plain(names[0])},
        y=axis | {"title": plain(names[1])},
    )


def _logarithmic(values: Floats, unit: str) -> tuple[NDArray[np.float32], dict[str, object]]:
    """log10 of values for a colour axis, and the axis: from the 2 % quantile to the largest, four decades at most."""
    top = float(values.max(initial=0.0)) or 1.0
    low = max(_FLOOR * top, float(np.quantile(values, 0.02)) if len(values) else 0.0, 1e-300)
    low = low if low < top else 0.1 * top
    ticks = _decades(np.log10(low), np.log10(top))
    bar = {
        "title": {"text": plain(unit), "side": "right"},
        "thickness": 14,
        "len": 0.9,
        "tickvals": ticks,
        "ticktext": _powers(ticks),
    }
    axis = {"cmin": float(np.log10(low)), "cmax": float(np.log10(top)), "colorbar": bar}
    return np.log10(np.maximum(values, low)).astype(np.float32), axis


def _decades(low: float, high: float) -> Floats:
    """Exponents at which to label a logarithmic axis: 1, 2 and 5 where it is short, powers of ten where it is long."""
    digits = (1, 2, 5) if high - low < 2 else (1,)
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    marks = np.array([p + np.log10(d) for p in powers for d in digits])
    marks = marks[(marks >= low) & (marks <= high)]
    return marks[:: max(1, len(marks) // 8)]


def _sizes(epsilon: Floats, base: float) -> NDArray[np.float32]:
    """Marker diameters whose area grows with epsilon, from 0.6 to 2.2 times the usual one."""
    top = float(epsilon.max(initial=0.0)) or 1.0
    return (base * np.sqrt(0.36 + 4.48 * np.clip(epsilon / top, 0.0, 1.0))).astype(np.float32)


def _powers(exponents: Floats) -> list[str]:
    """10^t as people write it."""
    return [f"{10**t:,.0f}" if 3 <= t < 6 else f"{10**t:.3g}" for t in exponents]


def _amounts(values: Floats) -> NDArray[np.str_]:
    """Influences for hovering."""
    return np.array([f"{v:.3g}" for v in values], str)
