"""Curves, points and bars, on logarithmic axes where wanted.

Labels of logarithmic axes whose positions are exponents.

The list right of a plot: what its lines are called, each with its mark and colour, ranked from top to bottom.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from dpviz.figures.style import FONT_SIZE, LEGEND_LINE, LEGEND_WIDTH, Floats, Look, Theme, Trace, escape, fade, figure, margin
from dpviz.figures.traces import error_bars, horizontal_bars, line_trace, marker_trace, note, vertical_line


@dataclass(frozen=True)
class Line:
    """One curve or set of points.

    Attributes:
        name: legend entry; "" hides it from the legend.
        x, y: equally long.
        look: how it is drawn.
        points: markers instead of a line.
        low, high: ends of error bars, None for none.
        width: of the line.
        text: hover text per point, None for the numbers.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    look: Look
    points: bool = False
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    width: float = 3.0
    text: Sequence[str] | None = None


def curves(
    lines: Sequence[Line],
    theme: Theme,
    *,
    x: str,
    y: str,
    log_y: bool = True,
    height: int = 420,
    marks: Sequence[tuple[float, str]] = (),
    y_range: tuple[float, float] | None = None,
    percent: bool = False,
    ticks: Mapping[float, str] | None = None,
) -> go.Figure:
    """Curves with a legend above the plot.

    Args:
        x, y: axis titles.
        marks: (x, words) of vertical lines.
        y_range: ends of the y axis, in its own units.
        percent: whether y is a share, shown in percent.
        ticks: words at places of the x axis, in the place of numbers.
    """
    factor = 100.0 if percent else 1.0
    traces = [_curve(line, theme, factor) for line in lines]
    named = sum(len(_entry(line.name)) for line in lines)
    heights = np.concatenate([np.ravel(t["y"]) for t in traces])
    heights = heights[np.isfinite(heights) & (heights > 0)]
    if y_range is None and log_y and len(heights):
        # room above the highest tick, whose label the legend would cover
        y_range = (float(heights.min()) * 0.7, float(heights.max()) * 1.6)
    in_sight = [np.asarray(y_range, float)] if y_range is not None else [t["y"] for t in traces]
    y_axis: Trace = {"title": y, **(_log(in_sight) if log_y else {})}
    if y_range is not None:
        y_axis["range"] = [math.log10(v) if log_y else factor * v for v in y_range]
    if percent:
        y_axis["ticksuffix"] = " %"
    x_axis: Trace = {"title": x, **_log([t["x"] for t in traces], 4)}
    if ticks is not None:
        x_axis |= {"tickvals": list(ticks), "ticktext": list(ticks.values())}
    words: Trace = {"xanchor": "left", "xshift": 5, "yanchor": "bottom", "textangle": -90, "bgcolor": theme.paper}
    words |= {"paper": "y", "font": {"size": FONT_SIZE - 2}}  # along the lines
    return figure(
        theme,
        traces,
        height=height + LEGEND_LINE * named,
        shapes=[vertical_line(at, {"color": theme.majority, "width": 2, "dash": "dot"}) for at, _ in marks],
        annotations=[note(escape(text), math.log10(at), 0.02, **words) for at, text in marks],
        margin=margin(left=84, top=14 + LEGEND_LINE * named),
        y=y_axis,
        x=x_axis,
    )


def _curve(line: Line, theme: Theme, factor: float) -> Trace:
    """One line or set of points, y multiplied by `factor`."""
    values = factor * np.asarray(line.y, float)
    name, look, x = "<br>".join(map(escape, _entry(line.name))), line.look, np.asarray(line.x, float)
    hover, more = "%{x:.4g}: %{y:.4g}<extra>" + escape(line.name) + "</extra>", {}
    if line.text is not None:
        hover, more = "%{customdata}<extra></extra>", {"customdata": [escape(s) for s in line.text]}
    if line.points:
        marker = {"color": look.colour, "symbol": look.symbol, "size": 11, "line": {"color": theme.ink, "width": 1}}
        t = marker_trace(x, values, marker, hover, name=name, showlegend=bool(line.name), **more)
    else:
        stroke = {"color": look.colour, "dash": look.dash, "width": line.width}
        t = line_trace(x, values, stroke, hover, name=name, showlegend=bool(line.name), **more)
    if line.low is not None and line.high is not None:
        low, high = (factor * np.asarray(end, float) for end in (line.low, line.high))
        t["error_y"] = error_bars(values, low, high, color=look.colour, width=4)
    return t


def _entry(name: str) -> list[str]:
    """A legend entry as lines that fit at 400 pixels."""
    return textwrap.wrap(name, LEGEND_WIDTH)


def _log(values: Sequence[Floats], most: int = 6) -> Trace:
    """A logarithmic axis with ticks for the values on it, about `most` at most."""
    positive = np.concatenate([np.ravel(v) for v in values]) if values else np.ones(1)
    positive = positive[np.isfinite(positive) & (positive > 0)]
    decades = math.log10(positive.max() / positive.min()) if len(positive) else 1.0
    # few decades: 1, 2, 5 between the powers, so that at least two ticks are in sight
    return {"type": "log", "exponentformat": "power", "dtick": "D2" if decades < 1.2 else max(1, math.ceil(decades / most))}


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        name: left of it.
        value: its length; NaN draws no bar.
        words: at its end.
        solid: False hatches it: not proved.
        strong: the one in use.
    """

    name: str
    value: float
    words: str
    solid: bool = True
    strong: bool = False


def bars(
    items: Sequence[Bar], look: Look, theme: Theme, *, x: str, span: tuple[float, float] | None = None, most: float | None = None
) -> go.Figure:
    """Horizontal bars, the first on top, each with its words; hatched ones are not proved.

    Args:
        span: ends of the x axis; a bar that is longer is cut and says so.
        most: the largest value that makes sense; no tick lies beyond.
    """
    top = max((b.value for b in items if math.isfinite(b.value)), default=1.0)
    low, high = span or (0.0, 1.3 * top)
    lengths, font = [b.value if math.isfinite(b.value) else low for b in items], {"size": FONT_SIZE - 1, "color": theme.ink}
    marker = {
        "color": [look.colour if b.strong else fade(look.colour, 0.45) for b in items],
        "line": {"color": look.colour, "width": [3 if b.strong else 1 for b in items]},
        "pattern": {"shape": ["" if b.solid else "/" for b in items], "fgcolor": theme.ink},
    }
    place: Trace = {"paper": "x", "xanchor": "left", "yanchor": "bottom", "yshift": 11, "font": font}
    cut = [
        note(f"{escape(b.words)} (bar cut)", 0, k, **place | {"yanchor": "middle", "yshift": 0, "xshift": 6})
        for k, b in enumerate(items)
        if b.value > high
    ]
    texts = ["" if b.value > high else escape(b.words) for b in items]
    names = [f"<b>{escape(b.name)}</b>" if b.strong else escape(b.name) for b in items]
    return figure(
        theme,
        [horizontal_bars(lengths, texts, marker, "%{text}<extra></extra>", font)],
        height=74 + 58 * len(items),
        annotations=[note(name, 0, k, **place) for k, name in enumerate(names)] + cut,
        bargap=0.58,
        margin=margin(left=12, top=12),
        x={"title": x, "range": [low, high]}
        | ({} if most is None else {"tickvals": np.arange(20 * math.ceil(low / 20), most + 1e-9, 20)}),
        # names stand above their bars, so that nothing is cut off on narrow screens
        y={"visible": False, "range": [len(items) - 0.5, -0.85]},
    )


def decades(low: float, high: float, most: int = 8) -> Floats:
    """Exponents at which to label a logarithmic axis: 1, 2 and 5 where it is short, powers of ten where it is long."""
    digits = (1, 2, 5) if high - low < 2 else (1,)
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    marks = np.array([p + np.log10(d) for p in powers for d in digits])
    marks = marks[(marks >= low) & (marks <= high)]
    return marks[:: max(1, len(marks) // most)]


def ticks(low: float, high: float, unit: str = "", most: int = 8) -> dict[str, object]:
    """Ticks of an axis of exponents."""
    marks = decades(low, high, most)
    return {"tickvals": marks, "ticktext": [f"{text}{unit}" for text in powers(marks)]}


def powers(exponents: Floats) -> list[str]:
    """10^t as people write it."""
    return [f"{10**t:,.0f}" if 3 <= t < 6 else f"{10**t:.3g}".replace("e+0", "e") for t in exponents]


LINE, SIGN = 20, 7.6  # pixels of a line of a label, and of one of its signs
FLOOR = 1e-9  # smallest value on a logarithmic scale
#: plotly's symbols as signs of a text
SIGNS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚", "x": "✖", "star": "★", "hexagon": "⬢"}


@dataclass(frozen=True)
class Label:
    """A line's entry.

    Attributes:
        text: what it says.
        y: the value by which it is ranked, on the scale of the picture.
        colour: of the line.
        sign: how the line is marked, in front of the text.
        strength: opacity of the text.
    """

    text: str
    y: float
    colour: str
    sign: str = "–"
    strength: float = 1.0


def wrap(text: str, width: int = 18) -> list[str]:
    """The lines of a long name."""
    return textwrap.wrap(text, width) or [text]


def room(lines: Sequence[list[str]]) -> tuple[int, int]:
    """Pixels that the list needs: its height, and the margin right of the plot."""
    longest = max((len(line) for part in lines for line in part), default=0)
    return LINE * sum(map(len, lines)), round(34 + SIGN * (longest + 2))


def list_entries(names: Sequence[Label], lines: Sequence[list[str]], theme: Theme, *, rising: bool) -> list[Trace]:
    """The entries right of the plot, the largest value on top, or the smallest where less is better."""
    order = _ranked(names, rising=rising)
    notes, above = [], 0
    for k in order:
        one = names[k]
        text = f'<span style="color:{one.colour}">{one.sign}</span> ' + "<br>".join(map(escape, lines[k]))
        look = {"opacity": one.strength, "font": {"size": FONT_SIZE - 2, "color": theme.ink}}
        place: Trace = {"xanchor": "left", "xshift": 14, "yanchor": "top", "yshift": -above, "align": "left"}
        notes.append(note(text, 1, 1, paper="xy", **place, **look))
        above += LINE * len(lines[k])
    return notes


def leaders(names: Sequence[Label], lines: Sequence[list[str]], span: tuple[float, float], tall: int) -> list[Trace]:
    """Shapes from the value of each entry, at the right end of the plot, to the entry: a list is not as far apart as its lines.

    Args:
        span: the ends of a linear vertical axis.
        tall: pixels of it.
    """
    shapes, above = [], LINE / 2 + 2
    for k in _ranked(names, rising=True):
        end = span[1] - above / tall * (span[1] - span[0])
        place: Trace = {"xref": "paper", "xsizemode": "pixel", "xanchor": 1, "x0": 0, "x1": 14, "y0": names[k].y, "y1": end}
        shapes.append({"type": "line", "line": {"color": names[k].colour, "width": 1}} | place)
        above += LINE * len(lines[k])
    return shapes


def _ranked(names: Sequence[Label], *, rising: bool) -> list[int]:
    return sorted(range(len(names)), key=lambda k: -names[k].y if rising else names[k].y)
