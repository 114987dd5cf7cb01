"""Two settings against each other as a heat map with numbers, the best cell marked."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import FONT_SIZE, Theme, Trace, channels, contrast, escape, figure, margin
from dpviz.figures.traces import axis_title_above, legend_entry, marker_trace

CELL = 52  # pixels


def heat(
    means: NDArray[np.float64],
    ticks: tuple[Sequence[str], Sequence[str]],
    titles: tuple[str, str],
    theme: Theme,
    *,
    percent: bool,
    best: tuple[int, int] | None,
    present: tuple[int, int] | None,
    hue: str,
) -> go.Figure:
    """A heat map whose cells can be clicked: customdata is "<column>|<row>".

    Args:
        means: (rows, columns), NaN where nothing is known.
        ticks: words for columns and rows.
        titles: of the two settings, and the quantity is in the page's words.
        percent: shares, more is better; otherwise gaps on a logarithmic scale, less is better.
        best, present: (column, row) of the best cell and of the settings in use.
        hue: colour of the best end.
    """
    rows = len(means)
    shown = means if percent else -np.log10(np.maximum(means, 1e-12))
    traces = [_surface(shown, theme, hue), _cells(means, shown, ticks, titles, theme, percent, hue)]
    shapes: list[Trace] = []
    if present is not None:
        shape, entry = _in_use(present, theme)
        traces.append(entry)
        shapes.append(shape)
    if best is not None:
        star = {"symbol": "star", "size": 15, "color": theme.noise, "line": {"width": 1, "color": theme.ink}}
        traces.append(marker_trace([float(best[0])], [best[1] + 0.32], star, name="best so far"))
    bare = {"showgrid": False, "fixedrange": True, "zeroline": False}
    return figure(
        theme,
        traces,
        height=110 + CELL * rows + 40,
        margin=margin(left=92, top=66, bottom=66),
        dragmode="pan",
        legend={
            "orientation": "h",
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "yanchor": "bottom",
            "itemclick": False,
            "itemsizing": "constant",
            "y": 1 + 30 / (CELL * rows + 18),  # above the name of the vertical setting
        },
        clickmode="event+select",
        hovermode="closest",
        shapes=shapes,
        x=bare | _scale(ticks[0]) | {"title": escape(titles[0])},
        y=bare | _scale(ticks[1]),
        annotations=[axis_title_above(titles[1], 84, 6)],
    )


def _surface(shown: NDArray[np.float64], theme: Theme, hue: str) -> Trace:
    """The colours of the cells."""
    rows, columns = shown.shape
    surface: Trace = {
        "type": "heatmap",
        "z": shown,
        "x": list(range(columns)),
        "y": list(range(rows)),
        "showscale": False,
        "hoverinfo": "skip",
        "colorscale": [[0, theme.grid], [1, hue]],
        "xgap": 2,
        "ygap": 2,
    }
    if np.isfinite(shown).sum() and np.nanmax(shown) == np.nanmin(shown):
        surface |= {"zmin": float(np.nanmin(shown)) - 1, "zmax": float(np.nanmax(shown))}
    return surface


def _cells(
    means: NDArray[np.float64],
    shown: NDArray[np.float64],
    ticks: tuple[Sequence[str], Sequence[str]],
    titles: tuple[str, str],
    theme: Theme,
    percent: bool,
    hue: str,
) -> Trace:
    """The numbers in the cells, on invisible markers: heat maps do not tell the page about clicks, markers do."""
    rows, columns = means.shape
    y, x = (a.ravel() for a in np.mgrid[:rows, :columns])
    text = [_number(v, percent) for v in means.ravel()]
    hover = [
        f"{escape(titles[0])} {escape(ticks[0][i])}, {escape(titles[1])} {escape(ticks[1][j])}: {t}<extra></extra>"
        for i, j, t in zip(x, y, text, strict=True)
    ]
    marker, unseen = {"symbol": "square", "size": CELL - 14, "color": theme.ink}, {"opacity": 0.01}
    return marker_trace(x, y, marker | unseen, hover, text=text, showlegend=False) | {
        "mode": "markers+text",
        "textfont": {"size": FONT_SIZE - 2, "color": [_readable(c, theme) for c in _grounds(shown, theme, hue)]},
        "customdata": [f"{i}|{j}" for i, j in zip(x, y, strict=True)],
        "selected": {"marker": unseen},
        "unselected": {"marker": unseen, "textfont": {"color": theme.ink}},
    }


def _grounds(shown: NDArray[np.float64], theme: Theme, hue: str) -> list[str]:
    """The colour behind each number, row by row."""
    spread = np.nanmax(shown) - np.nanmin(shown) if np.isfinite(shown).any() else 0.0
    finite = np.isfinite(shown.ravel())
    shares = np.where(finite, (shown.ravel() - np.nanmin(shown)) / spread if spread > 0 else 1.0, 0.0)
    return [_mix(theme.grid if there else theme.paper, hue, float(s)) for s, there in zip(shares, finite, strict=True)]


def _in_use(present: tuple[int, int], theme: Theme) -> tuple[Trace, Trace]:
    """The frame around the settings in use, as wide as the cell is on any screen, and its legend entry."""
    i, j = present
    line = {"width": 3, "color": theme.ink}
    shape = {"type": "rect", "x0": i - 0.46, "x1": i + 0.46, "y0": j - 0.46, "y1": j + 0.46, "line": line}
    frame = {"symbol": "square-open", "size": 17, "color": theme.ink, "line": line}
    return shape, legend_entry("in use", frame)


def _mix(one: str, other: str, share: float) -> str:
    """The colour that lies at `share` of the way from one to the other."""
    mixed = (round(a + (b - a) * share) for a, b in zip(channels(one), channels(other), strict=True))
    return "#" + "".join(f"{c:02x}" for c in mixed)


def _readable(ground: str, theme: Theme) -> str:
    return max((theme.ink, theme.paper), key=lambda colour: contrast(colour, ground))


def _number(value: float, percent: bool) -> str:
    if not np.isfinite(value):
        return ""
    return f"{100 * value:.1f}" if percent else f"{value:.2g}"


def _scale(ticks: Sequence[str]) -> Trace:
    return {"tickvals": list(range(len(ticks))), "ticktext": [escape(t) for t in ticks], "range": [-0.5, len(ticks) - 0.5]}
