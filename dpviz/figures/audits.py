"""An attack as pictures: the two clouds of outputs, the attacker's curve, and a board of many attacks."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import area_trace, bar_trace, coin_toss, error_bars, line_trace, note, vertical_line

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
