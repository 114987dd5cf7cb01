"""Membership attacks on ordinary rows as pictures: log-log ROC curves, and exposure against a fact.

A picture of the best possible attack at a budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.lines import ticks
from dpviz.figures.style import LEGEND_LINE, Theme, Trace, fade, figure, margin
from dpviz.figures.traces import band_trace, coin_toss, line_trace, marker_trace

Floats = NDArray[np.floating]

_INSIDE = {"x": 1, "xref": "paper", "xanchor": "right", "y": 0.01, "yref": "paper", "yanchor": "bottom", "orientation": "v"}


@dataclass(frozen=True, eq=False)
class Roc:
    """One attack's curve.

    Attributes:
        name: for people.
        points: columns false_alarms, detections, low, high, shares in [0, 1].
    """

    name: str
    points: pd.DataFrame


def roc(
    best: Roc, others: Sequence[Roc], theme: Theme, *, allowed: tuple[Floats, Floats] | None = None, without: Roc | None = None
) -> go.Figure:
    """Detections over false alarms on logarithmic axes: few false alarms are what an attacker can afford.

    Args:
        best: the attack that the page speaks of, with its limits.
        others: drawn faintly.
        allowed: false alarms, and the most detections that the guarantee allows at each; None where nothing is proved.
        without: the best attack on the non-private model; None for none.
    """
    band = best.points
    lowest = _exponents(pd.concat([roc.points["false_alarms"] for roc in (best, *others)])).min()
    low, high = (_exponents(band[name], 10**lowest) for name in ("low", "high"))
    traces = [band_trace(_exponents(band["false_alarms"]), low, high, fade(theme.labels[0], 0.3))]
    for k, other in enumerate(others):
        traces.append(_line(other, theme.labels[0], 1.5, "dot", "the other attacks", lowest) | {"showlegend": k == 0})
    traces.append(_line(best, theme.labels[0], 4, "solid", f"{best.name}, 95 % limits", lowest))
    if without is not None:
        traces.append(_line(without, theme.ink, 2.5, "solid", f"without privacy: {without.name}", lowest))
    if allowed is not None:
        bound = Roc("", pd.DataFrame({"false_alarms": allowed[0], "detections": allowed[1]}))
        traces.append(_line(bound, theme.noise, 4, "dash", "allowed by the guarantee", lowest))
    at = np.array([lowest, 2.0])
    traces.append(coin_toss(theme) | {"x": at, "y": at})
    axis = {"range": [lowest - 0.02, 2.04], **ticks(lowest, 2.0, " %")}
    return figure(
        theme,
        traces,
        height=350,
        margin=margin(left=92, right=20, top=8),
        legend=_INSIDE | {"bgcolor": fade(theme.paper, 0.7), "font": {"size": 14}},
        x={"title": "false alarms", **axis},
        y={"title": "members found", **axis},
    )


def risk(
    values: Floats, separation: Floats, theme: Theme, *, fact: str, found: NDArray[np.bool_], names: Sequence[str]
) -> go.Figure:
    """The separation of each row's signals against a fact about the row; rows that an attack finds are marked.

    Args:
        values: (n,) of the fact; drawn on a logarithmic axis where all are above 0 and span more than a decade.
        found: (n,) whether any attack finds the row.
        names: (n,) for the hover text.
    """
    there = np.isfinite(values) & np.isfinite(separation)
    positive = values[there & (values > 0)]
    logarithmic = len(positive) == there.sum() > 0 and float(np.log10(positive.max() / positive.min())) > 1
    x = np.log10(np.where(values > 0, values, np.nan)) if logarithmic else values
    marks = [(~found, "circle", "not found", theme.labels[0], 6), (found, "diamond-open", "found by an attack", theme.noise, 10)]
    traces = []
    for mask, symbol, name, colour, size in marks:
        at = mask & there
        marker = {"size": size, "symbol": symbol, "color": colour, "opacity": 0.7}
        text = [names[int(i)] for i in np.flatnonzero(at)]
        if text:
            hover = "%{text}: %{y:.2f}<extra></extra>"
            traces.append(marker_trace(x[at], separation[at], marker, hover, type="scattergl", name=name, text=text))
    named = ticks(float(np.nanmin(x[there])), float(np.nanmax(x[there]))) if logarithmic else {}
    return figure(
        theme,
        traces,
        height=380,
        margin=margin(left=76, top=64),
        x={"title": fact, **named},
        y={"title": "standard deviations apart"},
    )


def _line(roc: Roc, colour: str, width: float, dash: str, name: str, lowest: float) -> Trace:
    alarms, found = roc.points["false_alarms"].to_numpy(float), roc.points["detections"].to_numpy(float)
    kept = (found > 0) & (alarms >= 10.0 ** (lowest - 2) * 0.999)
    hover = f"{roc.name or name}: %{{customdata[1]:.2f}} % at %{{customdata[0]:.2f}} % false alarms<extra></extra>"
    customdata = np.column_stack([100 * alarms[kept], 100 * found[kept]])
    line = {"color": colour, "width": width, "dash": dash}
    return line_trace(_exponents(alarms[kept]), _exponents(found[kept]), line, hover, name=name, customdata=customdata)


def _exponents(shares: pd.Series | Floats, least: float = 1e-12) -> Floats:
    """log10 of shares in per cent; what is below `least` per cent is drawn there."""
    return np.log10(np.maximum(100 * np.asarray(shares, float), least))


def best_attack(
    table: pd.DataFrame, best: tuple[float, float], theme: Theme, *, overlay: pd.DataFrame | None = None
) -> go.Figure:
    """The most that an attacker can detect at each rate of false alarms, and what (epsilon, delta) alone would allow.

    Args:
        table: columns false_alarms, detections_at_most and by_epsilon_delta_alone, shares in [0, 1].
        best: (false alarms, detections) at which most guesses are right.
        overlay: the table of another run, drawn dotted and called A.
    """
    alarms = 100 * table["false_alarms"].to_numpy()
    hover = "%{x:.1f} % false alarms: at most %{y:.1f} %<extra></extra>"
    stroke = {"color": theme.noise, "width": 4}
    bound = line_trace(alarms, 100 * table["detections_at_most"].to_numpy(), stroke, hover, name="upper limit for any attacker")
    line = {"color": theme.ink, "width": 2, "dash": "dot"}
    alone = 100 * table["by_epsilon_delta_alone"].to_numpy()
    allowed: list[Trace] = [line_trace(alarms, alone, line, name="what (ε, δ) alone allows")]
    if overlay is not None:
        line = {"color": theme.majority, "width": 3, "dash": "dot"}
        x, y = (100 * overlay[name].to_numpy() for name in ("false_alarms", "detections_at_most"))
        allowed.append(line_trace(x, y, line, name="A"))
    marker = {"size": 14, "symbol": "diamond", "color": theme.noise, "line": {"color": theme.ink, "width": 2}}
    point = marker_trace([100 * best[0]], [100 * best[1]], marker, name="most guesses right")
    return figure(
        theme,
        [bound, *allowed, coin_toss(theme), point],
        height=400 + (LEGEND_LINE if overlay is not None else 0),
        margin=margin(left=76, right=28, top=112 + (LEGEND_LINE if overlay is not None else 0)),
        x={"title": "false alarms", "range": [0, 101], "ticksuffix": " %"},
        y={"title": "true detections", "range": [0, 103], "ticksuffix": " %"},
    )
