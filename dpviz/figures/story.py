"""The pictures of the first page's scenes: cost over epsilon, two worlds of an attacker, and budgets that add up."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import FONT_SIZE, Look, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import band_trace, bar_trace, line_trace, marker_trace, note

#: the axis of epsilon
_EPSILON: Trace = {
    "title": "privacy budget ε",
    "type": "log",
    "tickvals": (0.01, 0.1, 1.0, 10.0),
    "ticktext": ["0.01 strong", "0.1", "1", "10 weak"],
}


def cost_over(
    curve: pd.DataFrame,
    levels: Sequence[tuple[float, Look]],
    chosen: tuple[float, float, float | None],
    look: Look,
    theme: Theme,
    *,
    title: str,
    shares: bool,
) -> go.Figure:
    """A metric over epsilon with its band and levels, and below it, over the same epsilon, the share of right guesses.

    Args:
        curve: columns epsilon, mean, low, high, right.
        levels: values of the metric without privacy and of the commoner class, as horizontal lines with their names.
        chosen: epsilon, the metric's mean there, and the share of right guesses (None where nothing is proved).
        title, shares: of the metric, and whether it is a share.
    """
    unit, sign = (100.0, " %") if shares else (1.0, "")
    e = curve["epsilon"].to_numpy(float)
    mean, low, high = (unit * curve[name].to_numpy(float) for name in ("mean", "low", "high"))
    (epsilon, here, right), odds = chosen, curve["right"].to_numpy(float)
    first, last = math.log10(min(e.min(), epsilon)), math.log10(max(e.max(), epsilon))
    ends = first - 0.045 * (last - first), last + 0.045 * (last - first)  # room for the dot
    attacked = bool(np.isfinite(odds).any())
    above: Trace = {"yaxis": "y2"} if attacked else {}  # the odds have the lower axis, where the ticks of epsilon stand
    hover = f"ε = %{{x:.3g}}: %{{y:.3g}}{sign}<extra></extra>"
    dot = {"size": 17, "color": look.colour, "line": {"color": theme.paper, "width": 2}}
    traces = [
        band_trace(e, high, low, fade(look.colour, 0.16), **above),
        *_lines(levels, unit, ends, above),
        line_trace(e, mean, {"color": look.colour, "width": 4}, hover, **above),
        marker_trace([epsilon], [unit * here], dot, hover, **above),
    ]
    values = np.r_[low, high, unit * here, [unit * value for value, _ in levels]]
    bottom = 10 * math.floor((np.nanmin(values) - 1) / 10) if shares else 0.0
    small: Trace = {"size": FONT_SIZE - 1}
    left: Trace = {"paper": "xy", "xanchor": "left", "yanchor": "bottom"}
    notes = [*_names(levels, unit, ends, "y2" if attacked else "y"), note(escape(title), 0, 1.0, **left, xshift=-60, font=small)]
    useful = {"range": [bottom, 108.0 if shares else 1.1 * float(np.nanmax(values))], "ticksuffix": sign}
    layout: Trace = {}
    lower = useful
    if attacked:
        traces += [line_trace(e, 100 * odds, {"color": theme.noise, "width": 4}, "ε = %{x:.3g}: %{y:.1f} %<extra></extra>")]
        traces += [marker_trace([epsilon], [100 * (right or np.nan)], dot | {"color": theme.noise})]
        lower = {"domain": [0.0, 0.28], "range": [48, 103], "tickvals": [50, 75, 100], "ticksuffix": " %"}
        layout["yaxis2"] = useful | {"gridcolor": theme.grid, "linecolor": theme.majority, "domain": [0.42, 1.0]}
        notes.append(note("attacker’s right guesses, at most", 0.01, 0.28, **left, font=small | {"color": theme.noise}))
    return figure(
        theme,
        traces,
        height=430 if attacked else 320,
        margin=margin(left=64, right=32, top=24),
        showlegend=False,
        annotations=notes,
        x=_EPSILON | {"range": list(ends)},
        y=lower,
        **layout,
    )


def _lines(levels: Sequence[tuple[float, Look]], unit: float, ends: tuple[float, float], place: Trace) -> list[Trace]:
    """Levels as lines across the plot."""
    across = [10**end for end in ends]
    strokes: list[Trace] = [{"color": look.colour, "width": 2, "dash": look.dash} for _, look in levels]
    return [line_trace(across, [unit * value] * 2, line, **place) for (value, _), line in zip(levels, strokes, strict=True)]


def _names(levels: Sequence[tuple[float, Look]], unit: float, ends: tuple[float, float], axis: str) -> list[Trace]:
    """Names of levels: the first at small budgets, where the curve is low, the others at large ones."""
    places = [(ends[-1], "right") if k else (ends[0], "left") for k in range(len(levels))]
    return [
        note(
            escape(look.name),
            x,
            unit * value,
            xanchor=side,
            yanchor="bottom",
            yref=axis,
            font={"size": FONT_SIZE - 1, "color": look.colour},
        )
        for (value, look), (x, side) in zip(levels, places, strict=True)
    ]


def two_histograms(cloud: pd.DataFrame, sides: tuple[str, str], theme: Theme, *, height: int = 250) -> go.Figure:
    """Two histograms on one axis: what an attacker sees of models trained on one dataset and on its neighbour.

    Args:
        cloud: columns side (0, 1) and u, the attacker's statistic.
        sides: names of the two datasets.
    """
    u, side = cloud["u"].to_numpy(float), cloud["side"].to_numpy()
    low, high = map(float, np.quantile(u, (0.002, 0.998)))
    edges = np.linspace(low, high, 25)
    edges = edges if edges[-1] > edges[0] else edges[0] + np.linspace(-0.5, 0.5, 25)
    middle, traces, notes = (edges[1:] + edges[:-1]) / 2, [], []
    for k, (name, colour) in enumerate(zip(sides, (theme.noise, theme.majority), strict=True)):
        share = np.histogram(np.clip(u[side == k], edges[0], edges[-1]), edges)[0] / max(int((side == k).sum()), 1)
        x, y = np.repeat(edges, 2), np.r_[0, np.repeat(100 * share, 2), 0]
        traces.append(line_trace(x, y, {"color": colour, "width": 0}, fill="tozeroy", fillcolor=fade(colour, 0.3)))
        traces.append(line_trace(x, y, {"color": colour, "width": 2.5}, name=name))
        at = float(np.average(middle, weights=share)) if share.any() else 0.0
        notes.append((at, name, colour))
    left = notes[0][0] <= notes[1][0]
    words = [
        note(
            f"<b>{escape(name)}</b>",
            0.0 if first else 1.0,
            1.0,
            paper="xy",
            xanchor="left" if first else "right",
            yanchor="bottom",
            font={"size": FONT_SIZE, "color": colour},
        )
        for (_, name, colour), first in zip(notes, (left, not left), strict=True)
    ]
    return figure(
        theme,
        traces,
        height=height,
        margin=margin(left=64, top=30),
        showlegend=False,
        annotations=words,
        x={"title": "what the attacker measures", "showticklabels": False, "showgrid": False},
        y={"title": "models", "ticksuffix": " %", "rangemode": "tozero"},
    )


def total_bars(totals: Sequence[float], chosen: int, epsilon: float, look: Look, theme: Theme) -> go.Figure:
    """The total epsilon of 1, 2, ... trainings as bars beside the plain sum.

    Args:
        totals: of 1 .. k trainings; infinite where no epsilon holds at this delta, which has no bar.
        chosen: number of trainings that stands out.
        epsilon: of one training.
    """
    finite = [total for total in totals if math.isfinite(total)]
    counts = list(range(1, len(finite) + 1))
    colours = [look.colour if k == chosen else fade(look.colour, 0.35) for k in counts]
    bars = bar_trace(counts, finite, {"color": colours}, "%{x} trainings: ε = %{y:.3g}<extra></extra>", width=0.75)
    plain_sum = line_trace([1, chosen], [epsilon, chosen * epsilon], {"color": theme.majority, "width": 2, "dash": "dot"})
    end = marker_trace([chosen], [chosen * epsilon], {"size": 9, "color": theme.majority})
    top = 1.18 * max(*finite, chosen * epsilon)
    height = totals[chosen - 1]
    large = {"size": FONT_SIZE + 2, "color": theme.ink}
    notes = [note(f"<b>{height:.3g}</b>", chosen, height, yanchor="bottom", yshift=2, font=large)] * math.isfinite(height)
    if chosen > 1:
        anchor = "right" if chosen > 5 else "left"
        small = {"size": FONT_SIZE - 1, "color": theme.majority}
        text, at = f"plain sum {chosen * epsilon:.3g}", chosen * epsilon
        notes.append(note(text, chosen, at, yanchor="bottom", yshift=6, xanchor=anchor, font=small))
    return figure(
        theme,
        [bars, plain_sum, end],
        height=280,
        margin=margin(left=64, top=12),
        showlegend=False,
        annotations=notes,
        x={"title": "trainings", "dtick": 1, "showgrid": False, "range": [0.4, len(totals) + 0.6]},
        y={"title": "total ε", "range": [0, top]},
    )
