"""Two-dimensional data: the points, and where each model changes its mind."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Floats, Look, Theme, Trace, build, escape, fade, figure, margin
from dpviz.figures.traces import line_trace, marker_trace

PLOT = 279  # pixels from axis to axis
_BELOW = 64  # pixels of the margins without the legend
FRAME = 250  # milliseconds of one step of training
_CONTROLS = 84  # pixels of the button and the slider
_MOST = 20_000  # segments that are joined


_BESIDE = 12  # signs of a legend entry that leave room for another one beside it on a projected page
#: below the plot: the picture itself comes first
_LEGEND: Trace = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": (10 - _BELOW) / PLOT,
    "yanchor": "top",
    "font": {"size": FONT_SIZE - 2},
}


def decision_lines(
    points: Floats,
    labels: Floats,
    outlier: NDArray[np.bool_],
    axes: tuple[Floats, Floats],
    private: Floats,
    non_private: Floats,
    look: Look,
    theme: Theme,
    *,
    names: tuple[str, str],
    classes: tuple[str, str],
    overlay: Floats | None = None,
    narrow: bool = False,
    noised: NDArray[np.bool_] | None = None,
    person: int | None = None,
    without: Floats | None = None,
    height: int = PLOT,
) -> go.Figure:
    """Points of two classes with the decision lines of private replicas and of the model without privacy.

    Args:
        points: (n, 2).
        labels: (n,) in {-1, +1}.
        outlier: (n,) points to ring.
        axes: grid coordinates, (nx,) and (ny,).
        private: (S, ny, nx) decision values of the replicas on the grid.
        non_private: (ny, nx) decision values of the model without privacy.
        names: of the two axes.
        classes: words for -1 and +1.
        overlay: (S', ny, nx) decision values of another run, drawn dotted and called A.
        narrow: whether the legend has room for one entry a line only.
        noised: (n,) points that received noise; None for none.
        person: the point of a person who leaves.
        without: (ny, nx) decision values of the model without that person.
        height: of the plot, in pixels.
    """
    traces = _points(points, labels, outlier, theme, classes)
    if noised is not None and noised.any():
        diamond = {"color": theme.noise, "size": 13, "symbol": "diamond-open", "line": {"width": 2}}
        traces.append(marker_trace(points[noised, 0], points[noised, 1], diamond, name="received noise"))
    traces += _lines(axes, private, non_private, look, theme, overlay, without)
    if person is not None:
        ring = {"color": theme.noise, "size": 24, "symbol": "circle-open", "line": {"width": 4}}
        traces.append(marker_trace(points[[person], 0], points[[person], 1], ring, name="this person"))
    side_by_side = not narrow and len(look.name) <= _BESIDE and max(map(len, classes)) <= _BESIDE
    rows = -(-len(traces) // (2 if side_by_side else 1))  # of the legend
    wide = height != PLOT and not narrow  # 60 signs of the legend are a line at 1280 pixels
    below = LEGEND_LINE * (math.ceil(sum(len(t.get("name") or "") for t in traces) / 60) if wide else rows)
    shared, seen = {"showgrid": False, "constrain": "domain"}, points[[] if person is None else [person]]
    return figure(
        theme,
        traces,
        height=height + _BELOW + below,
        margin=margin(left=78, top=4, bottom=_BELOW - 4 + below),
        legend=_LEGEND | {"y": (10 - _BELOW) / height},
        x=shared | {"title": escape(names[0]), "standoff": 2, "range": _span(axes[0], seen[:, 0])},
        y=shared | {"title": escape(names[1]), "range": _span(axes[1], seen[:, 1])},
    )


def _span(along: Floats, seen: Floats) -> list[float]:
    """Ends of an axis that holds its grid and what must be seen."""
    together = np.r_[along, seen]
    return [together.min(), together.max()]


def _lines(
    axes: tuple[Floats, Floats],
    private: Floats,
    non_private: Floats,
    look: Look,
    theme: Theme,
    overlay: Floats | None,
    without: Floats | None,
) -> list[Trace]:
    """Decision lines of run A, of private models, and of the model without privacy, with a person and without."""
    thin = {"color": fade(look.colour, 0.8 if len(private) <= 20 else 0.35), "width": 2}
    drawn: list[tuple[Floats | None, str, Trace]] = [
        (overlay, "A", {"color": theme.majority, "width": 2, "dash": "dot"}),
        (private, look.name, thin),
        (non_private[None], "without privacy", {"color": theme.ink, "width": 4}),
        (None if without is None else without[None], "without them", {"color": theme.noise, "width": 4, "dash": "dash"}),
    ]
    return [
        # plotly would make corners out of bends
        line_trace(*join_segments(*zero_lines(values, axes)), line | {"simplify": False}, name=word)
        for values, word, line in drawn
        if values is not None
    ]


def training(base: go.Figure, axes: tuple[Floats, Floats], iterates: Floats, names: Sequence[str], theme: Theme) -> go.Figure:
    """The decision lines step by step: a frame for each iterate, with a button that plays them and a slider.

    Args:
        base: `decision_lines` of the last iterate.
        iterates: (K, S, ny, nx) decision values on the grid.
        names: (K,) what the slider says at each iterate.
    """
    private = next(k for k, trace in enumerate(base.data) if trace.name == "without privacy") - 1
    frames = []
    for k, values in enumerate(iterates):
        x, y = join_segments(*zero_lines(values, axes))
        frames.append({"name": str(k), "data": [{"type": "scatter", "x": x, "y": y}], "traces": [private]})
    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    slow = {"mode": "immediate", "frame": {"duration": FRAME, "redraw": True}, "transition": {"duration": 0}}
    font = {"color": theme.ink, "size": FONT_SIZE}
    buttons = [
        {"label": "▶ Train", "method": "animate", "args": [None, slow]},
        {"label": "❚❚ Pause", "method": "animate", "args": [[None], at_once]},
    ]
    layout = base.to_plotly_json()["layout"]
    top = layout["margin"]["t"]
    above = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    layout |= {
        "height": layout["height"] + _CONTROLS,
        "margin": layout["margin"] | {"t": top + _CONTROLS},
        "updatemenus": [
            above
            | {
                "type": "buttons",
                "direction": "right",
                "buttons": buttons,
                "showactive": False,
                "pad": {"b": _CONTROLS - 34},
                "font": font,
                "bgcolor": theme.paper,
                "bordercolor": theme.ink,
            }
        ],
        "sliders": [
            above
            | {
                "active": len(names) - 1,
                "steps": [{"label": name, "method": "animate", "args": [[str(k)], at_once]} for k, name in enumerate(names)],
                "len": 1.0,
                "pad": {"l": 8, "r": 8, "t": 8},
                "ticklen": 0,
                "minorticklen": 0,
                "font": {"color": "rgba(0,0,0,0)", "size": 1},  # only the present step is written
                "currentvalue": {"font": font, "xanchor": "right"},
            }
        ],
    }
    return build({"data": base.to_plotly_json()["data"], "layout": layout, "frames": frames})


def _points(points: Floats, labels: Floats, outlier: NDArray[np.bool_], theme: Theme, classes: tuple[str, str]) -> list[Trace]:
    """The points of each class, and rings around outliers."""
    traces: list[Trace] = []
    for value, colour, symbol, word in zip((-1, 1), theme.labels, ("circle", "square"), map(escape, classes), strict=True):
        at = labels == value
        marker = {"color": fade(colour, 0.75), "size": 8, "symbol": symbol}
        hover = f"(%{{x:.2f}}, %{{y:.2f}})<extra>{word}</extra>"
        traces.append(marker_trace(points[at, 0], points[at, 1], marker, hover, name=word))
    if outlier.any():
        ring = {"color": theme.ink, "size": 17, "symbol": "circle-open", "line": {"width": 2}}
        traces.append(marker_trace(points[outlier, 0], points[outlier, 1], ring, name="outlier"))
    return traces


def zero_lines(values: Floats, axes: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The zero lines of functions on a grid, as one line with gaps (NaN); exact for affine functions.

    Each cell is cut into two triangles; a triangle whose corners differ in sign holds one segment.

    Args:
        values: (S, ny, nx).
        axes: (nx,) and (ny,).
    """
    gx, gy = np.meshgrid(*axes)
    first, last = slice(None, -1), slice(1, None)
    segments = []
    for corners in (((first, first), (first, last), (last, first)), ((last, last), (first, last), (last, first))):
        f = np.stack([values[(slice(None), *k)] for k in corners], axis=-1)
        xy = np.stack([np.stack([gx[k], gy[k]], axis=-1) for k in corners], axis=-2)
        xy = np.broadcast_to(xy, (*f.shape, 2))
        positive = f >= 0
        mixed = positive.any(axis=-1) & ~positive.all(axis=-1)
        f, xy, positive = f[mixed], xy[mixed], positive[mixed]
        # one corner is alone on its side; the segment joins the two edges that leave it
        alone = np.where(positive.sum(axis=-1) == 1, positive.argmax(axis=-1), (~positive).argmax(axis=-1))
        row = np.arange(len(f))
        ends = []
        for other in ((alone + 1) % 3, (alone + 2) % 3):
            share = f[row, alone] / (f[row, alone] - f[row, other])
            ends.append(xy[row, alone] + share[:, None] * (xy[row, other] - xy[row, alone]))
        segments.append(np.stack([*ends, np.full_like(ends[0], np.nan)], axis=1))
    line = np.concatenate(segments).reshape(-1, 2)
    return line[:, 0], line[:, 1]


def join_segments(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The segments of `zero_lines` with those that meet drawn in one go, so that a thick bent line has a smooth edge.

    Beyond `_MOST` segments they stay as they are: joining would take longer than it is worth.
    """
    segments = np.column_stack([x, y]).reshape(-1, 3, 2)[:, :2]
    if not 0 < len(segments) <= _MOST:
        return x, y
    names = [[(a, b) for a, b in pair] for pair in np.round(segments, 9).tolist()]
    names = [pair for pair in names if pair[0] != pair[1]]  # a zero at a corner of the grid
    if not names:
        return np.empty(0), np.empty(0)
    at: dict[tuple[float, float], list[int]] = {}
    for k, pair in enumerate(names):
        for end in pair:
            at.setdefault(end, []).append(k)
    left = set(range(len(names)))
    # open lines from one of their ends, then closed ones from anywhere
    order = [k for k, (a, b) in enumerate(names) if min(len(at[a]), len(at[b])) == 1]
    out: list[tuple[float, float]] = []
    for k in (*order, *range(len(names))):
        if k not in left:
            continue
        a, b = names[k] if len(at[names[k][0]]) == 1 else names[k][::-1]
        left.discard(k)
        out += [a, b]
        while (following := next((j for j in at[b] if j in left), None)) is not None:
            left.discard(following)
            first, second = names[following]
            b = second if first == b else first
            out.append(b)
        out.append((np.nan, np.nan))
    line = np.array(out)
    return line[:, 0], line[:, 1]
