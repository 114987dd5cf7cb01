"""Results of the tests of claims, as pictures: all verdicts at a glance, and one chart for each panel of a test's table."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.style import DASHES, FONT_SIZE, SYMBOLS, Look, Theme, Trace, escape, fade, figure, margin, shorten
from dpviz.figures.traces import band_trace, marker_trace, note, vertical_line

_ROW = 74  # pixels of a paper's name and its tiles
_TILE = 24


def board(tiles: pd.DataFrame, theme: Theme, chosen: str) -> go.Figure:
    """All verdicts at a glance: a row of tiles for each paper, one tile a claim.

    Args:
        tiles: columns claim (id), meaning, paper (name), sign, kind (of colour) and outcome (words).
        chosen: id of the claim that is marked.
    """
    papers = list(dict.fromkeys(tiles["paper"]))
    place = tiles["paper"].map(papers.index)
    column = tiles.groupby("paper", sort=False).cumcount()
    traces: list[Trace] = []
    for outcome, part in tiles.assign(row=place, column=column).groupby("outcome", sort=False):
        here = part["claim"] == chosen
        edge = {"color": theme.ink, "width": [3 if h else 0 for h in here]}
        size, colour = [_TILE + 3 if h else _TILE for h in here], theme.verdicts[part["kind"].iloc[0]]
        marker = {"symbol": "square", "size": size, "color": colour, "line": edge, "opacity": 1}
        signs: Trace = {"text": part["sign"], "textfont": {"color": theme.paper, "size": FONT_SIZE}, "mode": "markers+text"}
        signs |= {
            "hovertext": [f"{'<br>'.join(map(escape, wrap(m, 46)))}<br><b>{outcome}</b>" for m in part["meaning"]],
            "hoverinfo": "text",
        }
        dots = marker_trace(part["column"], part["row"], marker, name=str(outcome), customdata=part[["claim"]], showlegend=False)
        traces.append(dots | signs)
    names = [note(escape(name), 0, k, paper="x", xanchor="left", yshift=31) for k, name in enumerate(papers)]
    return figure(
        theme,
        traces,
        height=_ROW * len(papers) + 24,
        margin=margin(left=4, right=4, top=12, bottom=4),
        annotations=names,
        legend={"visible": False},
        hovermode="closest",
        dragmode="pan",
        x={"range": [-0.5, max(8.5, column.max() + 0.5)], "visible": False, "fixedrange": True},
        y={"range": [len(papers) - 0.55, -0.75], "visible": False, "fixedrange": True},
    )


def panel(table: pd.DataFrame, theme: Theme, looks: Mapping[str, Look], *, picture: Any) -> go.Figure:
    """One panel.

    Args:
        table: columns series, mechanism, x, y, low, high.
        looks: how each mechanism in the table is drawn; other series are drawn in ink.
        picture: titles, scales and the limit (`dpviz.papers.claims.Picture`).
    """
    traces: list[Trace] = []
    words = not pd.api.types.is_numeric_dtype(table["x"])
    names = list(dict.fromkeys(table["series"]))
    for k, name in enumerate(names):
        part = table[table["series"] == name]
        look = looks.get(str(part["mechanism"].iloc[0]))
        colour = look.colour if look else (theme.ink, theme.majority, theme.noise)[k % 3]
        dash = look.dash if look and len({*table["mechanism"]}) == len(names) else DASHES[k % len(DASHES)]
        x = [shorten(str(v), 30) for v in part["x"]] if words else part["x"]
        y = part["y"]
        spread = part["high"] - part["y"]
        if not words and (spread.fillna(0) > 0).any() and not picture.log_y:
            traces.append(band_trace(part["x"], part["high"], part["low"], fade(colour, 0.15)))
        one = np.ptp(y.to_numpy(float)) == 0 and look is not None and len(part) > 1  # a baseline
        across = {"x": y, "y": x} if words else {"x": x, "y": y}
        traces.append(
            across
            | {
                "mode": "markers" if words else ("lines" if one else "lines+markers"),
                "name": name,
                "line": {"color": colour, "width": 3, "dash": dash},
                "marker": {"color": colour, "size": 12 if words else 9, "symbol": SYMBOLS[k % len(SYMBOLS)]},
            }
        )
    shapes = [] if picture.limit is None else [_limit(picture.limit, words, theme)]
    value = _values(table, picture, words)
    room = 40 + 23 * len(names)
    if words:
        rows = len(set(table["x"]))
        return figure(
            theme,
            traces,
            height=room + 80 + 44 * rows,
            margin=margin(left=250, top=room),
            shapes=shapes,
            x=value,
            y={"title": "", "autorange": "reversed", "ticks": ""},
        )
    bottom: Trace = {"title": picture.x, "type": "log" if picture.log_x else "linear"}
    if picture.log_x:
        bottom |= {"dtick": 1, "exponentformat": "power"} if np.ptp(np.log10(table["x"].astype(float))) > 1.5 else {"nticks": 5}
    return figure(theme, traces, height=room + 290, margin=margin(left=86, top=room), shapes=shapes, x=bottom, y=value)


def _limit(limit: float, words: bool, theme: Theme) -> Trace:
    """The line of the claimed limit, across the axis of values."""
    line = {"color": theme.majority, "width": 2, "dash": "dot"}
    return (
        vertical_line(limit, line)
        if words
        else vertical_line(limit, line, x0=0, x1=1, y0=limit, y1=limit, yref="y", xref="paper")
    )


def _values(table: pd.DataFrame, picture: Any, words: bool) -> Trace:
    """The axis of values; only numbers have a scale."""
    value: Trace = {"title": picture.y, "type": "log" if picture.log_y else "linear"}
    if picture.log_y:
        value |= {"dtick": 1 if np.ptp(np.log10(table["y"][table["y"] > 0])) > 1.5 else "D2", "exponentformat": "power"}
    elif picture.y.endswith("%") and not words and np.ptp(table["y"]) == 0 and 0 <= table["y"].iloc[0] <= 100:
        value |= {"range": [0, 103]}  # a share that stays the same, not one that could lie above 100 %
    return value
