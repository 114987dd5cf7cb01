"""Accuracy or optimality gap over epsilon: a line and a band per method, baselines, and odds of an attacker on demand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Look, Theme, Trace, faint, figure, margin, plain

PLOT = 430  # pixels from axis to axis, whatever the legend holds
FLOOR = 1e-9  # smallest gap that is drawn
#: quantities that are better where they are lower
LOSSES = ("optimality_gap", "objective", "log_loss", "brier", "calibration_error")


@dataclass(frozen=True)
class Curve:
    """One method's line.

    Attributes:
        mechanism: its id.
        look: colour, dash, marker and name.
        points: epsilon rising; columns epsilon, mean, low, high, draws, exact, and where they are known claimed_epsilon,
            proved_epsilon.
        claim_only: whether nothing is proved about its epsilon.
        label: the guarantee in a word or two, for the hover text.
        needs: the budget at which it reaches the wanted value, None where it does not.
        dim: whether it belongs to settings that have changed since.
    """

    mechanism: str
    look: Look
    points: pd.DataFrame
    claim_only: bool
    label: str
    needs: float | None = None
    dim: bool = False


def trade_off(
    curves: Sequence[Curve],
    theme: Theme,
    *,
    quantity: str,
    title: str,
    baselines: Mapping[str, float],
    wanted: float | None,
    span: tuple[float, float],
    odds: Sequence[tuple[float, float]] = (),
) -> go.Figure:
    """Curves over a logarithmic epsilon axis.

    Each point's customdata is "<index of curve>|<epsilon>", so that a click can be told from any other.

    Args:
        quantity: `LOSSES` are drawn on a logarithmic axis, others in percent.
        baselines: "none" and "majority" to their level, where the quantity has one.
        wanted: a level to draw and to mark on the curves.
        span: smallest and largest epsilon.
        odds: (epsilon, chance that an attacker wins a bet at most) for a second axis on top.
    """
    percent = quantity not in LOSSES
    scale = 100.0 if percent else 1.0
    traces: list[Trace] = []
    for k, curve in enumerate(curves):
        traces += _line(k, curve, scale, percent)
    for k, curve in enumerate(curves):
        if curve.needs is not None and wanted is not None:
            traces.append(_needs(k, curve, curve.needs, wanted * scale, theme))
    x = [math.log10(e) for e in span]
    pad = max(0.04 * (x[1] - x[0]), 0.05)
    x = [x[0] - pad, x[1] + pad]
    traces = [*_levels(baselines, wanted, scale, theme, percent, x), *traces]
    y = _vertical(curves, baselines, wanted, scale, percent)
    top = 40
    layout: Trace = {}
    if odds:
        top += 44
        layout["xaxis2"] = _odds_axis(odds, x, theme)
        traces.append(
            {"x": [odds[0][0]], "y": [None], "xaxis": "x2", "mode": "markers", "showlegend": False, "hoverinfo": "skip"}
        )
    entries = sum(1 for t in traces if t.get("showlegend") is not False)
    bottom = 90 + LEGEND_LINE * entries
    return figure(
        theme,
        traces,
        height=PLOT + top + bottom,
        margin=margin(left=64, top=top, bottom=bottom),
        legend=_LEGEND,
        # a click is only told to the page while dragging means something
        dragmode="pan",
        hovermode="closest",
        clickmode="event+select",
        annotations=[_caption(title, 52 if odds else 8)],
        x=_horizontal(span, x),
        y={"fixedrange": True} | y,
        **layout,
    )


_LEGEND: Trace = {
    "orientation": "v",
    "x": 0,
    "xref": "container",
    "xanchor": "left",
    "y": -72 / PLOT,
    "yref": "paper",
    "yanchor": "top",
    "traceorder": "normal",
    "itemclick": False,
    "itemdoubleclick": False,
}


def _caption(title: str, shift: int) -> Trace:
    """The title of the vertical axis above it: along the axis it would lie in the picture at 400 pixels."""
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "xshift": -56,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": shift,
        "text": plain(title),
        "showarrow": False,
        "font": {"size": FONT_SIZE},
    }


def _odds_axis(odds: Sequence[tuple[float, float]], ends: list[float], theme: Theme) -> Trace:
    """A second axis on top: the chance that an attacker wins a bet, at each epsilon."""
    return {
        "overlaying": "x",
        "side": "top",
        "type": "log",
        "range": ends,
        "showgrid": False,
        "ticks": "outside",
        "tickvals": [e for e, _ in odds],
        "ticktext": [f"{100 * win:.0f} %" for _, win in odds],
        "fixedrange": True,
        "title": {"text": "bets an attacker wins at most", "standoff": 6},
        "color": theme.ink,
    }


def _horizontal(span: tuple[float, float], ends: list[float]) -> Trace:
    return {
        "title": "privacy budget ε (strong ← → weak)",
        "type": "log",
        "range": ends,
        "tickvals": _ticks(span),
        "ticktext": [f"{e:g}" for e in _ticks(span)],
        "fixedrange": True,
    }


def _line(k: int, curve: Curve, scale: float, percent: bool) -> list[Trace]:
    points, look = curve.points, curve.look
    e = points["epsilon"].to_numpy(float)
    mean, low, high = (_shown(points[name], scale, percent) for name in ("mean", "low", "high"))
    strength = 0.35 if curve.dim else 1.0
    band = {
        "x": np.r_[e, e[::-1]],
        "y": np.r_[high, low[::-1]],
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": faint(look.colour, 0.14 * strength),
        "hoverinfo": "skip",
        "showlegend": False,
    }
    symbol = look.symbol + "-open" if curve.claim_only else look.symbol
    unit = " %" if percent else ""
    form = ".1f" if percent else ".3g"
    draws = points["draws"].to_numpy(int)
    text = [
        f"{m:{form}}{unit} ({a:{form}} to {b:{form}}), {n} draw{'s' if n != 1 else ''}{', mean exact' if x else ''}{_proved(p)}"
        for m, a, b, n, x, p in zip(mean, low, high, draws, points["exact"], points.to_dict("records"), strict=True)
    ]
    name = plain(look.name) + (f" ({plain(curve.label)})" if curve.claim_only else "") + (" (before)" if curve.dim else "")
    line = {
        "x": e,
        "y": mean,
        "mode": "lines+markers",
        "name": name,
        "opacity": strength,
        "line": {"color": look.colour, "dash": look.dash, "width": 2 if curve.claim_only else 3.5},
        "marker": {"symbol": symbol, "size": 11, "color": look.colour, "line": {"color": look.colour, "width": 2}},
        "customdata": [f"{k}|{x!r}" for x in map(float, e)],
        "text": text,
        "hovertemplate": f"<b>{plain(look.name)}</b>, {plain(curve.label)}<br>ε = %{{x:.3g}}: %{{text}}<extra></extra>",
        # what was clicked is opened; the others stay as they are
        "unselected": {"marker": {"opacity": strength}},
    }
    return [band, line]


def _proved(point: dict[str, object]) -> str:
    proved, epsilon = float(point.get("proved_epsilon", math.nan)), float(point["epsilon"])  # type: ignore[arg-type]
    if math.isnan(proved) or abs(proved - epsilon) <= 0.01 * epsilon:
        return ""
    return f", proved ε = {proved:.3g}"


def _needs(k: int, curve: Curve, epsilon: float, level: float, theme: Theme) -> Trace:
    return {
        "x": [epsilon],
        "y": [level],
        "mode": "markers",
        "showlegend": False,
        "customdata": [f"{k}|{epsilon!r}"],
        "marker": {
            "symbol": "circle",
            "size": 15,
            "color": theme.paper,
            "line": {"color": curve.look.colour, "width": 4},
        },
        "hovertemplate": f"<b>{plain(curve.look.name)}</b> needs ε = %{{x:.3g}}<extra></extra>",
        "unselected": {"marker": {"opacity": 1}},
    }


def _levels(
    baselines: Mapping[str, float], wanted: float | None, scale: float, theme: Theme, percent: bool, ends: list[float]
) -> list[Trace]:
    """Horizontal lines; their names stand in the legend, since any place in the picture may have a curve on it."""
    kinds = {
        "none": ("non-private", {"color": theme.ink, "width": 3}),
        "majority": ("majority", {"color": theme.majority, "width": 3, "dash": "dash"}),
        "wanted": ("wanted", {"color": theme.noise, "width": 3, "dash": "dot"}),
    }
    levels = dict(baselines) | ({"wanted": wanted} if wanted is not None else {})
    lines = []
    for kind, value in levels.items():
        word, line = kinds[kind]
        level = value * scale if percent else max(value * scale, FLOOR)
        number = f"{level:.1f} %" if percent else f"{level:.3g}"
        lines.append(
            {
                "x": [10**end for end in ends],
                "y": [level, level],
                "mode": "lines",
                "line": line,
                "name": f"{word}: {number}",
                "hoverinfo": "skip",
                "legendrank": 2000,
            }
        )
    return lines


def _vertical(
    curves: Sequence[Curve], baselines: Mapping[str, float], wanted: float | None, scale: float, percent: bool
) -> Trace:
    parts = [_shown(c.points[name], scale, percent) for c in curves for name in ("mean", "low", "high")]
    extra = [v * scale for v in (*baselines.values(), *([wanted] if wanted is not None else []))]
    values = np.concatenate([*parts, np.array(extra, float)]) if parts or extra else np.array([0.0, 1.0])
    values = values[np.isfinite(values)]
    if percent:
        # whole fives, so that the axis mostly stays where it is while the picture fills
        low = max(0.0, 5 * math.floor((values.min() - 1.5) / 5)) if len(values) else 0.0
        return {"range": [low, 102], "ticksuffix": " %"}
    low, high = (math.log10(max(v, FLOOR)) for v in (values.min(), values.max())) if len(values) else (-3.0, 0.0)
    room = max(0.06 * (high - low), 0.1)
    return {"type": "log", "range": [low - room, high + room], "exponentformat": "power"}


def _shown(values: pd.Series, scale: float, percent: bool) -> np.ndarray:
    raw = values.to_numpy(float) * scale
    return raw if percent else np.maximum(raw, FLOOR)


def _ticks(span: tuple[float, float]) -> list[float]:
    low, high = (math.floor(math.log10(v)) for v in span)
    steps = (1, 3) if high - low <= 5 else (1,)
    found = [float(f"{m}e{p}") for p in range(low, high + 2) for m in steps]
    return [v for v in found if span[0] * 0.9 <= v <= span[1] * 1.1] or [span[0], span[1]]
