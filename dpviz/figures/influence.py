"""Training rows: what each does to the model, by approximation and by retraining, and what the noise did. Private data."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.lines import decades, powers, ticks
from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, Floats, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import legend_entry, line_trace, marker_trace, note

_Looks: TypeAlias = tuple[tuple[NDArray[np.bool_], str, str, Trace], ...]

MAP = 430  # pixels of the map with its legend
_BAR = 74  # pixels of the colour scale below the map
_SCALED = 24  # pixels of the ticks of the axis above it
WEBGL_FROM = 10_000  # points above which the browser needs WebGL to stay fluid
DENSE, CELLS, STRONGEST = 4_000, 60, 150  # rows from which their density is drawn; its cells a side; rows drawn on it as points
_FLOOR = 1e-4  # influences below this share of the largest one look alike


def training_map(
    points: NDArray[np.floating],
    influence: Floats,
    row_ids: NDArray[np.integer],
    theme: Theme,
    *,
    names: tuple[str, str],
    with_noise: NDArray[np.bool_] | None = None,
    chosen: NDArray[np.bool_] | None = None,
    group: NDArray[np.bool_] | None = None,
    scaled: bool = False,
    used: NDArray[np.bool_] | None = None,
    named: NDArray[np.bool_] | None = None,
    overlay: NDArray[np.bool_] | None = None,
    narrow: bool = False,
    shade: tuple[str, Floats] | None = None,
    classes: tuple[NDArray[np.bool_], tuple[str, str]] | None = None,
) -> go.Figure:
    """Every training row as a point: colour is influence or another amount, shape and outline say its class and its noise.

    An amber diamond received noise, a disc or a square was trained without, a hollow disc was never used; named rows lie above.
    Of many rows the density is drawn, and on it, as points, the most influential ones and the chosen ones.

    Args:
        points, names: (n, 2), and names of the two axes.
        influence: (n,) >= 0, shown on a logarithmic scale, over four decades at most.
        row_ids: (n,) what a selection returns.
        with_noise: (n,) rows that received noise; None where noise is not put on rows.
        chosen: (n,) rows to ring.
        group: (n,) rows that stand out while all others fade; None or none of them fades nothing.
        scaled: whether the axes have a scale that means something.
        used: (n,) rows that training used; None where that is not counted.
        named: (n,) rows whose ids are written beside them, a few.
        overlay: (n,) rows that received noise in one of this run and run A and not in the other: a cross on each.
        narrow: whether the colour scale stands below the map.
        shade: name and (n,) values >= 0 of the colour, where that is not the influence.
        classes: (n,) rows labelled +1, which are squares, and the names of -1 and +1; None where all are discs.
    """
    n = len(points)
    kind, base = ("scattergl", 5.0) if n > WEBGL_FROM else ("scatter", 8.0 if n > 1000 else 11.0)
    above = np.any([np.zeros(n, bool), *(group for group in (named, chosen) if group is not None)], axis=0)
    looks = _looks(n, with_noise, used, theme, classes)
    title, values = shade or ("influence", influence)
    colour, bar = _logarithmic(values, title, below=narrow)
    amounts = None if n > WEBGL_FROM else np.array([f"{v:.3g}" for v in values], str)  # every selected point sends all of it
    drawn = _Rows(points.astype(np.float32), row_ids, kind, theme, above, colour, np.full(n, base), title, amounts)
    traces = drawn.points(looks, influence, group if group is not None and group.any() else None) + _keys(looks, theme)
    more = LEGEND_LINE if overlay is not None and overlay.any() else 0
    if overlay is not None and more:
        marker = {"symbol": "x-thin", "size": base + 3, "color": theme.ink, "line": {"width": 1.5, "color": theme.ink}}
        traces.append(drawn.marks(overlay, marker, name=f"{int(overlay.sum()):,} differ in A"))
    if chosen is not None and chosen.any():
        ring = {"symbol": "circle-open", "size": base + 14, "color": theme.ink, "line": {"width": 3, "color": theme.ink}}
        traces.append(drawn.marks(chosen, ring, showlegend=False, customdata=row_ids[chosen]))
    scale = {"colorscale": [[0.0, theme.scale[0]], [0.5, theme.scale[1]], [1.0, theme.scale[2]]]} | bar
    notes = drawn.names(chosen) + ([note(title, 0.5, 0, paper="xy", yshift=-72 - _SCALED * scaled)] if narrow else [])
    lower = (_BAR + _SCALED * scaled) if narrow else 0
    layout = _layout(names, scaled, more, below=lower)
    return figure(theme, traces, coloraxis=scale, annotations=notes, height=MAP + more + lower, **layout)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a map and how they are drawn.

    Attributes:
        xy, ids: (n, 2) places and (n,) ids.
        kind: of the traces.
        above: (n,) rows that are raised above the others.
        colour, width: (n,).
        title, amounts: of the colour, and (n,) to be read; None for none.
    """

    xy: NDArray[np.float32]
    ids: NDArray[np.integer]
    kind: str
    theme: Theme
    above: NDArray[np.bool_]
    colour: NDArray[Any]
    width: NDArray[Any]
    title: str
    amounts: NDArray[Any] | None

    def marks(self, at: NDArray[np.bool_], marker: Trace, hover: str = "", **more: Any) -> Trace:
        """A marker on some of the rows."""
        return marker_trace(self.xy[at, 0], self.xy[at, 1], marker, hover, type=self.kind, **more)

    def points(self, looks: _Looks, influence: Floats, picked: NDArray[np.bool_] | None) -> list[Trace]:
        """All rows as points, or, where they are many, their density and some of them as points on it."""
        if len(self.xy) <= DENSE:
            return self.layers(looks, picked)
        strong = self.above.copy() if picked is None else self.above | picked
        strong[np.argsort(-influence, kind="stable")[:STRONGEST]] = True
        return [*self.density(~strong), *self.layers(looks, None, strong)]

    def layers(self, looks: _Looks, picked: NDArray[np.bool_] | None, only: NDArray[np.bool_] | None = None) -> list[Trace]:
        """The points of each kind of rows, those that are raised after the others.

        Args:
            picked: (n,) rows that stand out; None where all do.
            only: (n,) rows that are drawn; None for all.
        """

        def dots(rows: NDArray[np.bool_], symbol: str, line: Trace, raised: bool) -> Trace:
            outline = _outline(self.width[rows], line, symbol, raised, self.theme)
            marker = {"color": self.colour[rows], "symbol": symbol, "coloraxis": "coloraxis"} | outline
            text = None if self.amounts is None else self.amounts[rows]
            hover = f"row %{{customdata}}{'' if text is None else f': {self.title} %{{text}}'}<extra></extra>"
            made = self.marks(rows, marker, hover, customdata=self.ids[rows], showlegend=False, text=text)
            return made if picked is None else made | {"selectedpoints": np.flatnonzero(picked[rows]).tolist()}

        below = ~self.above if only is None else only & ~self.above
        layers = [
            (rows & part, symbol, line, part is self.above) for part in (below, self.above) for rows, _, symbol, line in looks
        ]
        return [dots(*one) for one in layers if one[0].any()]

    def density(self, rest: NDArray[np.bool_]) -> list[Trace]:
        """Rows in each cell of the plane, on a logarithmic scale, and the rest as points that are not seen, for a lasso."""
        counts, x, y = np.histogram2d(self.xy[:, 0], self.xy[:, 1], CELLS)
        with np.errstate(divide="ignore"):
            shade = np.where(counts > 0, np.log10(counts), np.nan).T
        heat = {
            "type": "heatmap",
            "x": (x[1:] + x[:-1]) / 2,
            "y": (y[1:] + y[:-1]) / 2,
            "z": shade,
            "text": counts.T.astype(int),
            "colorscale": [[0, self.theme.majority], [1, self.theme.ink]],
            "showscale": False,
            "hovertemplate": "%{text} rows here<extra></extra>",
        }
        unseen = {"color": fade(self.theme.paper, 0.0), "size": 5}
        return [heat, self.marks(rest, unseen, customdata=self.ids[rest], showlegend=False)]

    def names(self, chosen: NDArray[np.bool_] | None) -> list[Trace]:
        """The ids of the rows that stand out; annotations lie above all points, also where WebGL draws these."""
        notes = []
        rows = np.flatnonzero(self.above)
        for k, at in enumerate(rows[np.argsort(self.xy[rows, 1], kind="stable")]):
            mine = chosen is not None and bool(chosen[at])
            text = f"<b>row {self.ids[at]}</b>" if mine else f"{self.ids[at]}"
            side, shift = (("left", 14), ("right", -14))[k % 2]  # names of rows at nearly one height go to different sides
            font = {"size": FONT_SIZE - (1 if mine else 3), "color": self.theme.ink}
            place: Trace = {"xanchor": side, "xshift": shift, "bgcolor": fade(self.theme.paper, 0.75)}
            notes.append(note(text, float(self.xy[at, 0]), float(self.xy[at, 1]), font=font, **place))
        return notes


def _outline(width: NDArray[np.floating], line: Trace, symbol: str, raised: bool, theme: Theme) -> Trace:
    """Sizes and outline of points; raised ones are large enough to see and have an edge."""
    if not raised:
        return {"size": width, "line": line}
    edge = line | {"color": theme.noise if symbol == "diamond" else theme.ink, "width": 2}
    return {"size": np.maximum(width, 12.0), "line": edge}


def _looks(
    n: int,
    with_noise: NDArray[np.bool_] | None,
    used: NDArray[np.bool_] | None,
    theme: Theme,
    classes: tuple[NDArray[np.bool_], tuple[str, str]] | None,
) -> _Looks:
    """(rows, name, shape, outline) of the kinds of rows: never used, trained without noise by class, received noise."""
    kind = "training rows" if with_noise is None else "trained without noise"
    positive, names = classes or (np.zeros(n, bool), (kind, kind))
    received = np.zeros(n, bool) if with_noise is None else with_noise
    never = np.zeros(n, bool) if used is None else ~used & ~received
    return (
        (never, "never used", "circle-open", {"width": 1.5}),
        *(
            (~received & ~never & (positive == value), escape(name), symbol, {"width": 0})
            for value, name, symbol in zip((False, True), names, ("circle", "square"), strict=True)
        ),
        (received, "received noise", "diamond", {"width": 2, "color": theme.noise}),
    )


def _layout(names: tuple[str, str], scaled: bool, more: int, *, below: int) -> Trace:
    """Axes, margins and legend of the map; `more` pixels for a further line of the legend, `below` for a colour scale there."""
    axis: Trace = {} if scaled else {"showgrid": False, "showticklabels": False, "ticks": ""}
    return {
        # clicks reach the page where dragging moves the picture; box and lasso are tools of the picture's own bar
        "dragmode": "pan",
        "margin": margin(
            left=70 if scaled else 34, right=16 if below else 112, top=40 + 2 * LEGEND_LINE + more, bottom=58 + below
        ),
        "legend": {"orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "x": axis | {"title": escape(names[0])},
        "y": axis | {"title": escape(names[1])},
    }


def _keys(looks: _Looks, theme: Theme) -> list[Trace]:
    """Legend entries of the kinds of rows that there are: plotly draws that of a colour scale as black, also on a dark page."""
    look = {"size": 12, "color": theme.majority}
    there = [(int(rows.sum()), name, look | {"symbol": symbol, "line": line}) for rows, name, symbol, line in looks]
    return [legend_entry(f"{count:,} {name}", marker) for count, name, marker in there if count]


def _logarithmic(values: Floats, title: str, *, below: bool) -> tuple[NDArray[np.float32], dict[str, object]]:
    """log10 of values for a colour axis, and the axis: from the 2 % quantile to the largest, four decades at most."""
    top = float(values.max(initial=0.0)) or 1.0
    low = max(_FLOOR * top, float(np.quantile(values, 0.02)) if len(values) else 0.0, 1e-300)
    low = low if low < top else 0.1 * top
    bar = {"title": {"text": title, "side": "right"}, "thickness": 14, "len": 0.9}
    bar |= ticks(np.log10(low), np.log10(top))
    if below:
        bar |= {"orientation": "h", "title": {"text": ""}, "len": 1, "y": 0, "yref": "container", "yanchor": "bottom"}
    axis = {"cmin": float(np.log10(low)), "cmax": float(np.log10(top)), "colorbar": bar}
    return np.log10(np.maximum(values, low)).astype(np.float32), axis


def against_truth(
    approximate: Floats,
    truth: Floats,
    error: Floats,
    row_ids: NDArray[np.integer],
    theme: Theme,
    *,
    bound: float = np.inf,
    names: tuple[str, str] = ("influence", "exact leave-one-out"),
) -> go.Figure:
    """Approximate changes of the model against exact retraining, with the identity line and the proved error bound.

    Args:
        approximate, truth: (k,) norms of the changes, >= 0; rows with 0 in either are counted, not drawn.
        error: (k,) norms of the difference of the two changes, which is what the bound speaks about.
        row_ids: (k,).
        bound: proved bound on the error; drawn where it fits the picture, named in words where it does not.
        names: of the two quantities.
    """
    shown = (approximate > 0) & (truth > 0)
    x, y = approximate[shown], truth[shown]
    span = np.array([min(x.min(), y.min()) / 1.3, max(x.max(), y.max()) * 1.3]) if shown.any() else np.array([0.1, 1.0])
    kind = "scattergl" if shown.sum() > WEBGL_FROM else "scatter"
    equal = line_trace(span, span, {"color": theme.majority, "width": 3, "dash": "dash"}, name="equal")
    hover = "row %{customdata}: %{x:.4g} against %{y:.4g}<extra></extra>"
    marker = {"color": fade(theme.ink, 0.55), "size": 8}
    dots = marker_trace(x, y, marker, hover, type=kind, name=f"{int(shown.sum()):,} rows", customdata=row_ids[shown])
    traces: list[Trace] = [equal, dots]
    words = f"largest error {_three(error.max(initial=0.0))}"
    if np.isfinite(bound):
        times = bound / max(float(error.max(initial=0.0)), 1e-300)
        words += f"<br>proved bound {_three(bound)}" + (f":<br>{times:,.0f} times that error" if times < 1e7 else "")
        traces += _bound(span, bound, theme)
    if not shown.all():
        words += f"<br>{int((~shown).sum()):,} rows move nothing"
    ticks = decades(*np.log10(span))
    axis = {"type": "log", "range": np.log10(span), "tickvals": 10**ticks, "ticktext": powers(ticks)}
    return figure(
        theme,
        traces,
        height=460,
        annotations=[_corner(words, theme)],
        margin=margin(left=86, top=40 + LEGEND_LINE * len(traces)),
        x=axis | {"title": escape(names[0])},
        y=axis | {"title": escape(names[1])},
    )


def _three(value: float) -> str:
    return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")


def _bound(span: Floats, bound: float, theme: Theme) -> list[Trace]:
    """The proved bound as a line above equality, where any of it lies in the picture."""
    grid = np.geomspace(float(span[0]), float(span[1]), 60)
    above = grid + bound
    inside = above <= span[1]
    if not inside.any():
        return []
    return [line_trace(grid[inside], above[inside], {"color": theme.noise, "width": 3, "dash": "dot"}, name="bound")]


def _corner(words: str, theme: Theme) -> Trace:
    """Words at the lower right.

    The influence function falls short of retraining: points lie on the line or above it, so there is room below.
    """
    place: Trace = {"xanchor": "right", "yanchor": "bottom", "align": "right"}
    return note(words, 0.99, 0.02, paper="xy", bgcolor=fade(theme.paper, 0.85), **place)
