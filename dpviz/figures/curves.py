"""Accuracy or optimality gap over epsilon: a line and a band per method, baselines, and odds of an attacker on demand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.lines import FLOOR, SIGNS, Label, list_entries, room, wrap
from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Look, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import axis_title_above, band_trace, line_trace, marker_trace, note, vertical_line

PLOT = 270  # pixels from axis to axis
_WRAPPED = 9  # labels up to which long names take two lines
#: quantities that are better where they are lower
LOSSES = ("optimality_gap", "objective", "log_loss", "brier", "calibration_error")
#: a click is only sent to the page while dragging means something
_CLICKS: Trace = {"dragmode": "pan", "hovermode": "closest", "clickmode": "event+select"}


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
        banded: whether its band is drawn; one band at a time can be read.
    """

    mechanism: str
    look: Look
    points: pd.DataFrame
    claim_only: bool
    label: str
    needs: float | None = None
    dim: bool = False
    banded: bool = False


_LEGEND_BELOW = {
    "x": 0,
    "xref": "container",
    "xanchor": "left",
    "y": -66 / PLOT,
    "yanchor": "top",
    "font": {"size": FONT_SIZE - 2},
}


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
    attacked: str = "",
    here: float | None = None,
    narrow: bool = False,
    overlay: tuple[float, float] | None = None,
    tall: int = 0,
) -> go.Figure:
    """Curves over a logarithmic epsilon axis; at its right a list of what they are, ranked by their values at the chosen budget.

    Each point's customdata is "<index of curve>|<epsilon>", so that a click can be distinguished from any other.

    Args:
        quantity: `LOSSES` are drawn on a logarithmic axis, others in percent.
        baselines: "none" and "majority" to their level, where the quantity has one.
        wanted: a level to draw and to mark on the curves.
        span: smallest and largest epsilon.
        odds, attacked: (epsilon, largest attack accuracy) for a second axis on top, and the method that these are of.
        here: the budget that is chosen elsewhere, marked by a vertical line.
        narrow: whether the screen is too narrow for names beside the lines; they stand below the plot then.
        overlay: (epsilon, value) of another run, marked A.
        tall: pixels of the picture that stands beside it on a wide screen.
    """
    x = _padded(span)
    traces, y, names = _drawn(curves, theme, quantity not in LOSSES, baselines, wanted, span, here)
    traces += [] if overlay is None else [_overlay(*overlay, quantity, theme)]
    lines = [wrap(one.text) if len(names) <= _WRAPPED else [one.text] for one in names]
    least, right = room(lines)
    top = 84 if odds else 40
    # a point that is not seen: an axis without anything on it is not drawn
    traces += [marker_trace([epsilon], [None], {}, xaxis="x2", showlegend=False) for epsilon, _ in odds[:1]]
    marks = [_here(here, theme, bool(odds))] if here is not None and x[0] <= math.log10(here) <= x[1] else []
    below = LEGEND_LINE * len(names) if narrow else 0
    return figure(
        theme,
        traces,
        height=PLOT + top + 66 + below if narrow else max(max(PLOT, least) + top + 66, tall),
        margin=margin(left=64, top=top, bottom=66 + below, right=16 if narrow else right),
        showlegend=narrow,
        legend=_LEGEND_BELOW,
        **_CLICKS,
        annotations=[
            axis_title_above(title, 56, 52 if odds else 8),
            *([] if narrow else list_entries(names, lines, theme, rising=quantity not in LOSSES)),
            *(name for _, name in marks),
        ],
        shapes=[mark for mark, _ in marks],
        x=_horizontal(span, x),
        y={"fixedrange": True} | y,
        **({"xaxis2": _odds_axis(odds, attacked, x, theme)} if odds else {}),
    )


def _drawn(
    curves: Sequence[Curve],
    theme: Theme,
    percent: bool,
    baselines: Mapping[str, float],
    wanted: float | None,
    span: tuple[float, float],
    here: float | None,
) -> tuple[list[Trace], Trace, list[Label]]:
    """Lines of levels and curves, the vertical axis, and the names to list beside them."""
    scale = 100.0 if percent else 1.0
    traces = [trace for k, curve in enumerate(curves) for trace in _line(k, curve, scale, percent)]
    if wanted is not None:
        traces += [_needs(k, c, c.needs, wanted * scale, theme) for k, c in enumerate(curves) if c.needs is not None]
    lines, levels = _levels(baselines, wanted, scale, theme, percent, _padded(span))
    names = [one for one in (*levels, *(_curve_name(c, scale, percent, here) for c in curves)) if math.isfinite(one.y)]
    return [*lines, *traces], _vertical(curves, baselines, wanted, scale, percent), names


def _padded(span: tuple[float, float]) -> list[float]:
    """Ends of the logarithmic axis, a little beyond the smallest and the largest epsilon."""
    low, high = (math.log10(e) for e in span)
    pad = max(0.04 * (high - low), 0.05)
    return [low - pad, high + pad]


def _curve_name(curve: Curve, scale: float, percent: bool, here: float | None) -> Label:
    """A curve's name, with its value at the chosen budget once that is computed, or ranked by its last one."""
    e, means = curve.points["epsilon"].to_numpy(float), _shown(curve.points["mean"], scale, percent)
    at = np.flatnonzero(e == here)
    value = float(means[at[0] if len(at) else -1])
    number = "" if not len(at) else f" {value:.1f} %" if percent else f" {value:.3g}"
    label = curve.look.name + (f" ({curve.label})" if curve.claim_only else "") + (" (before)" if curve.dim else "") + number
    return Label(label, value, curve.look.colour, SIGNS.get(curve.look.symbol, "●"), 0.6 if curve.dim else 1.0)


def _here(epsilon: float, theme: Theme, within: bool) -> tuple[Trace, Trace]:
    """A vertical line at the chosen budget, and its name above the plot, or within it where an axis is above it."""
    shape = vertical_line(epsilon, {"color": theme.ink, "width": 1.5, "dash": "dot"}, layer="below")
    place: Trace = {"paper": "y", "yanchor": "bottom", "font": {"size": FONT_SIZE - 2, "color": theme.ink}}
    return shape, note(f"chosen ε = {epsilon:.3g}", math.log10(epsilon), 0 if within else 1, **place)


def _horizontal(span: tuple[float, float], ends: list[float]) -> Trace:
    return {
        "title": "privacy budget ε (strong ← → weak)",
        "type": "log",
        "range": ends,
        "tickangle": 0,
        "tickvals": _ticks(span),
        "ticktext": [f"{e:g}" for e in _ticks(span)],
        "fixedrange": True,
    }


def _odds_axis(odds: Sequence[tuple[float, float]], attacked: str, ends: list[float], theme: Theme) -> Trace:
    """A second axis on top: the largest attack accuracy at each epsilon."""
    of = f" ({escape(attacked)})" if attacked else ""
    return {
        "overlaying": "x",
        "side": "top",
        "type": "log",
        "range": ends,
        "showgrid": False,
        "ticks": "outside",
        "tickvals": [e for e, _ in odds],
        "ticktext": [f"{100 * win:.1f} %" for _, win in odds],
        "fixedrange": True,
        "title": {"text": f"attack accuracy at most{of}", "standoff": 6},
        "color": theme.ink,
    }


def _line(k: int, curve: Curve, scale: float, percent: bool) -> list[Trace]:
    points, look = curve.points, curve.look
    e = points["epsilon"].to_numpy(float)
    mean, low, high = (_shown(points[name], scale, percent) for name in ("mean", "low", "high"))
    strength = 0.35 if curve.dim else 1.0
    symbol = look.symbol + "-open" if curve.claim_only else look.symbol
    unit = " %" if percent else ""
    form = ".1f" if percent else ".3g"
    draws = points["draws"].to_numpy(int)
    text = [
        f"{m:{form}}{unit} ({a:{form}} to {b:{form}}), {n} draw{'s' if n != 1 else ''}{', mean exact' if x else ''}{_proved(p)}"
        for m, a, b, n, x, p in zip(mean, low, high, draws, points["exact"], points.to_dict("records"), strict=True)
    ]
    name = escape(look.name) + (f" ({escape(curve.label)})" if curve.claim_only else "") + (" (before)" if curve.dim else "")
    stroke = {"color": look.colour, "dash": look.dash, "width": 2 if curve.claim_only else 3.5}
    marker = {"symbol": symbol, "size": 11, "color": look.colour, "line": {"color": look.colour, "width": 2}}
    hover = f"<b>{escape(look.name)}</b>, {escape(curve.label)}<br>ε = %{{x:.3g}}: %{{text}}<extra></extra>"
    line = line_trace(e, mean, stroke, hover, marker=marker, name=name, opacity=strength, text=text) | {
        "mode": "lines+markers",
        "customdata": [f"{k}|{x!r}" for x in map(float, e)],
        # what was clicked is opened; the others stay as they are
        "unselected": {"marker": {"opacity": strength}},
    }
    return [band_trace(e, high, low, fade(look.colour, 0.14 * strength)), line] if curve.banded else [line]


def _proved(point: dict[str, object]) -> str:
    proved, epsilon = float(point.get("proved_epsilon", math.nan)), float(point["epsilon"])  # type: ignore[arg-type]
    if math.isnan(proved) or abs(proved - epsilon) <= 0.01 * epsilon:
        return ""
    return f", proved ε = {proved:.3g}"


def _needs(k: int, curve: Curve, epsilon: float, level: float, theme: Theme) -> Trace:
    marker = {"symbol": "circle", "size": 15, "color": theme.paper, "line": {"color": curve.look.colour, "width": 4}}
    hover = f"<b>{escape(curve.look.name)}</b> needs ε = %{{x:.3g}}<extra></extra>"
    unselected = {"marker": {"opacity": 1}}
    return marker_trace(
        [epsilon], [level], marker, hover, showlegend=False, customdata=[f"{k}|{epsilon!r}"], unselected=unselected
    )


def _overlay(epsilon: float, value: float, quantity: str, theme: Theme) -> Trace:
    """A run that is kept for comparison."""
    marker = {"symbol": "circle-open-dot", "size": 17, "color": theme.ink, "line": {"color": theme.ink, "width": 2}}
    text = {"text": ["<b>A</b>"], "textposition": "top center", "textfont": {"size": FONT_SIZE, "color": theme.ink}}
    level, hover = value if quantity in LOSSES else 100 * value, "A: ε = %{x:.3g}: %{y:.3g}<extra></extra>"
    made = marker_trace([epsilon], [level], marker, hover, showlegend=False, unselected={"marker": {"opacity": 1}})
    return made | text | {"mode": "markers+text"}


def _levels(
    baselines: Mapping[str, float], wanted: float | None, scale: float, theme: Theme, percent: bool, ends: list[float]
) -> tuple[list[Trace], list[Label]]:
    """Horizontal lines, and their names."""
    kinds = {
        "none": ("non-private", {"color": theme.ink, "width": 3}),
        "majority": ("majority", {"color": theme.majority, "width": 3, "dash": "dash"}),
        "wanted": ("wanted", {"color": theme.noise, "width": 3, "dash": "dot"}),
    }
    lines, names = [], []
    for kind, value in (dict(baselines) | ({"wanted": wanted} if wanted is not None else {})).items():
        word, line = kinds[kind]
        level = value * scale if percent else max(value * scale, FLOOR)
        text = f"{word} {level:.1f} %" if percent else f"{word} {level:.3g}"
        names.append(Label(text, level, str(line["color"])))
        lines.append(line_trace([10**end for end in ends], [level, level], line, name=escape(text)))
    return lines, names


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
    steps = (1, 3) if high - low <= 3 else (1,)
    marks = [float(f"{m}e{p}") for p in range(low, high + 2) for m in steps]
    return [v for v in marks if span[0] * 0.9 <= v <= span[1] * 1.1] or [span[0], span[1]]
