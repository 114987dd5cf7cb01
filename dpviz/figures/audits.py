"""An attack as pictures: the two clouds of outputs, the attacker's curve, and a board of many attacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import Theme, Trace, figure, margin, shorten

_SIDES = (("without the change", "circle"), ("with the change", "diamond-open"))


def clouds(cloud: pd.DataFrame, theme: Theme) -> go.Figure:
    """Outputs of both sides in the plane that the attacker looks at.

    Args:
        cloud: columns side (0, 1), u, v.
    """
    u, v = cloud["u"].to_numpy(), cloud["v"].to_numpy()
    traces: list[Trace] = [
        {
            "type": "scattergl",
            "x": u[at],
            "y": v[at],
            "mode": "markers",
            "name": name,
            "hoverinfo": "skip",
            "marker": {"size": 7, "symbol": symbol, "color": theme.labels[side], "opacity": 0.7},
        }
        for side, (name, symbol) in enumerate(_SIDES)
        for at in [(cloud["side"] == side).to_numpy()]
    ]
    return figure(
        theme,
        traces,
        height=400,
        margin=margin(left=86, top=64),
        x={"title": "along the attacker's direction", "nticks": 5},
        y={"title": "across", "nticks": 6},
    )


def attack(curve: pd.DataFrame, theme: Theme, allowed: tuple[np.ndarray, np.ndarray] | None = None, label: str = "") -> go.Figure:
    """The attacker's curve with its confidence limits beside what the claim allows.

    Args:
        curve: columns false_positive and true_positive with *_low and *_high.
        allowed: (k,) false alarms and the most detections that the claim allows at each.
        label: the claim in words.
    """
    fp, tp = 100 * curve["false_positive"], 100 * curve["true_positive"]
    band = {
        "x": pd.concat([100 * curve["false_positive_high"], 100 * curve["false_positive_low"][::-1]]),
        "y": pd.concat([100 * curve["true_positive_low"], 100 * curve["true_positive_high"][::-1]]),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": "rgba(128,128,128,0.25)",
        "hoverinfo": "skip",
        "name": "95 % limits, point by point",
    }
    line = {
        "x": fp,
        "y": tp,
        "mode": "lines",
        "name": "the attacker",
        "line": {"color": theme.ink, "width": 3},
        "hovertemplate": "%{x:.1f} % false alarms: %{y:.1f} % found<extra></extra>",
    }
    coin = {
        "x": [0, 100],
        "y": [0, 100],
        "mode": "lines",
        "name": "coin toss",
        "hoverinfo": "skip",
        "line": {"color": theme.majority, "width": 2, "dash": "dash"},
    }
    traces: list[Trace] = [band, line, coin]
    if allowed is not None:
        traces.append(
            {
                "x": 100 * allowed[0],
                "y": 100 * allowed[1],
                "mode": "lines",
                "name": f"allowed by {label}",
                "line": {"color": theme.noise, "width": 4, "dash": "dot"},
                "hoverinfo": "skip",
            }
        )
    return figure(
        theme,
        traces,
        height=400,
        margin=margin(left=76, right=28, top=112),
        x={"title": "false alarms", "range": [-1, 101], "ticksuffix": " %"},
        y={"title": "true detections", "range": [-1, 103], "ticksuffix": " %"},
    )


def board(rows: Sequence[tuple[str, float, float, bool]], theme: Theme) -> go.Figure:
    """Claimed and audited epsilon of many mechanisms.

    Args:
        rows: (label, claimed epsilon or NaN, audited lower bound, whether it exceeds the claim).
    """
    names = [shorten(r[0], 26) for r in rows]
    bad = np.array([r[3] for r in rows], bool)
    audited = np.array([r[2] for r in rows], float)
    traces: list[Trace] = [
        {
            "x": [r[1] for r in rows],
            "y": names,
            "mode": "markers",
            "name": "claimed ε",
            "marker": {"size": 16, "symbol": "line-ns-open", "color": theme.ink, "line": {"width": 3, "color": theme.ink}},
        },
        *(
            {
                "x": audited[at],
                "y": [n for n, a in zip(names, at, strict=True) if a],
                "mode": "markers",
                "name": name,
                "marker": {"size": 13, "symbol": symbol, "color": colour},
            }
            for at, name, symbol, colour in (
                (~bad, "audited, at least", "circle", theme.majority),
                (bad, "audited, claim exceeded", "x", "#d62728"),
            )
            if at.any()
        ),
    ]
    return figure(
        theme,
        traces,
        height=150 + 28 * len(rows),
        margin=margin(left=230, top=96),
        x={"title": "ε", "rangemode": "tozero"},
        y={"title": "", "autorange": "reversed", "ticks": ""},
    )
