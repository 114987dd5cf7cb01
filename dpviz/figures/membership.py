"""Attacks as pictures: clouds of outputs, an attacker's curve and the best possible one, boards, ROC curves, exposure."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.lines import ticks
from dpviz.figures.style import LEGEND_LINE, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import (
    area_trace,
    band_trace,
    bar_trace,
    coin_toss,
    error_bars,
    line_trace,
    marker_trace,
    note,
    vertical_line,
)

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
    traces += [
        _line(other, theme.labels[0], 1.5, "dot", "the other attacks", lowest) | {"showlegend": k == 0}
        for k, other in enumerate(others)
    ]
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


_ROW = 36  # pixels of one mechanism
_ABOVE = 150  # pixels of the legend and the axis above the board
_BAD = "#d62728"  # a claim that is exceeded; its sign and words say so too


def guesses(
    right: float, limits: tuple[float, float], allowed: float | None, theme: Theme, exceeded: bool, overlay: float | None = None
) -> go.Figure:
    """Share of correct guesses with its limits, between a coin toss and what the guarantee allows, on one scale.

    Args:
        right, limits: shares in [0, 1].
        allowed: the same, None where nothing is claimed.
        exceeded: whether the claim is exceeded, which colours the bar.
        overlay: what another run allows, marked A; None for none.
    """
    top = max(limits[1], allowed or 0.0, overlay or 0.0)
    high = min(100.0, 10.0 * np.ceil(10 * top + 0.3))
    low = min(50.0, 10.0 * np.floor(10 * limits[0]))
    places = [(50.0, "coin toss", "dot", -0.62)]
    if allowed is not None:
        places.append((100 * allowed, f"allowed {100 * allowed:.1f} %", "solid", 0.62))
    if overlay is not None:
        places.append((100 * overlay, f"A allows {100 * overlay:.1f} %", "dot", -1.0))
    line = {"color": theme.ink, "width": 3}
    lines = [vertical_line(x, line | {"dash": dash}, y0=-0.45, y1=0.45, yref="y") for x, _, dash, _ in places]
    ends = low + 0.3 * (high - low), low + 0.7 * (high - low)
    notes = [
        note(text, x, y, xanchor="left" if x < ends[0] else "right" if x > ends[1] else "center") for x, text, _, y in places
    ]
    return figure(
        theme,
        [_share(right, limits, _BAD if exceeded else fade(theme.majority, 0.7), theme)],
        height=180 if overlay is None else 204,
        shapes=lines,
        annotations=notes,
        margin=margin(top=4),
        x={"title": "guesses that were right", "range": [low - 1, high + 1], "ticksuffix": " %", "nticks": 6},
        y={"visible": False, "range": [-0.9 if overlay is None else -1.25, 0.9]},
    )


def _share(right: float, limits: tuple[float, float], colour: str, theme: Theme) -> Trace:
    """A bar from a coin toss to a share of correct guesses, with its limits."""
    at, low, high = (100 * np.array([share]) for share in (right, *limits))
    error_x = error_bars(at, low, high, color=theme.ink, thickness=3, width=10)
    hover = f"guessed right: {100 * right:.1f} % (95 % limits {100 * limits[0]:.1f} to {100 * limits[1]:.1f} %)<extra></extra>"
    marker = {"color": colour, "line": {"color": theme.ink, "width": 1}}
    place: Trace = {"orientation": "h", "base": [50], "width": 0.5, "showlegend": False}
    return bar_trace(at - 50, [0], marker, hover, **place, name="guessed right", error_x=error_x)


def attack(curve: pd.DataFrame, theme: Theme, allowed: tuple[np.ndarray, np.ndarray] | None = None, label: str = "") -> go.Figure:
    """The attacker's curve with its confidence limits beside what the claim allows.

    Args:
        curve: columns false_positive and true_positive with *_low and *_high.
        allowed: (k,) false alarms and the most detections that the claim allows at each.
        label: the claim in words.
    """
    fp, tp = 100 * curve["false_positive"], 100 * curve["true_positive"]
    x = pd.concat([100 * curve["false_positive_high"], 100 * curve["false_positive_low"][::-1]])
    y = pd.concat([100 * curve["true_positive_low"], 100 * curve["true_positive_high"][::-1]])
    band = area_trace(x, y, "rgba(128,128,128,0.25)", name="95 % limits, point by point")
    line = line_trace(
        fp, tp, {"color": theme.ink, "width": 3}, "%{x:.1f} % false alarms: %{y:.1f} % found<extra></extra>", name="the attacker"
    )
    traces: list[Trace] = [band, line, coin_toss(theme)]
    if allowed is not None:
        traces.append(
            line_trace(
                100 * allowed[0], 100 * allowed[1], {"color": theme.noise, "width": 4, "dash": "dot"}, name=f"allowed by {label}"
            )
        )
    return figure(
        theme,
        traces,
        height=400,
        margin=margin(left=76, right=28, top=112),
        x={"title": "false alarms", "range": [-1, 101], "ticksuffix": " %"},
        y={"title": "true detections", "range": [-1, 103], "ticksuffix": " %"},
    )


def board(rows: Sequence[tuple[str, float, float, bool, bool]], theme: Theme) -> go.Figure:
    """Claimed and audited epsilon of many mechanisms, with the axis on top, where one looks first.

    Args:
        rows: (label, claimed epsilon or NaN, audited lower bound, whether it exceeds the claim, whether the claim is proved).
    """
    names = [_lines(name) + ("" if proved or np.isnan(claimed) else " ✎") for name, claimed, _, _, proved in rows]
    bad = np.array([r[3] for r in rows], bool)
    proved = np.array([r[4] for r in rows], bool)
    claimed, audited = (np.array([r[k] for r in rows], float) for k in (1, 2))
    tick = {"size": 15, "color": theme.ink, "line": {"width": 3, "color": theme.ink}}
    parts = (
        (claimed, proved, "proved ε", tick | {"symbol": "line-ns-open"}),
        (claimed, ~proved, "✎ paper's claim, not proved", tick | {"symbol": "y-down-open"}),
        (audited, ~bad, "audited, at least", {"size": 11, "symbol": "circle", "color": theme.majority}),
        (audited, bad, "audited, claim exceeded", {"size": 12, "symbol": "x", "color": _BAD}),
    )
    traces: list[Trace] = [
        {"x": x[at], "y": np.flatnonzero(at), "mode": "markers", "name": name, "marker": marker}
        for x, at, name, marker in parts
        if (at & np.isfinite(x)).any()
    ]
    return figure(
        theme,
        traces,
        height=_ABOVE + _ROW * len(rows),
        margin=margin(left=178, top=_ABOVE - 10, bottom=10),
        x={"title": "ε", "rangemode": "tozero", "side": "top"},
        y={
            "title": "",
            "range": [len(rows) - 0.4, -0.6],
            "ticks": "",
            "tickvals": list(range(len(rows))),
            "ticktext": names,
            "tickfont": {"size": 13},
        },
    )


def _lines(name: str, width: int = 24) -> str:
    """A whole name on as many lines as it needs."""
    return "<br>".join(map(escape, wrap(name, width)))
