"""Approximate changes of the model by single rows against exact retraining. It shows private data."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dpviz.figures.influence import WEBGL_FROM
from dpviz.figures.lines import decades, powers
from dpviz.figures.style import LEGEND_LINE, Floats, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import line_trace, marker_trace, note


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
