"""Labels right of a plot: each at the end of its line, and none on another."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.figures.style import FONT_SIZE, Theme, Trace, plain

LINE, SIGN = 20, 7.6  # pixels of a line of a label, and of one of its signs
FLOOR = 1e-9  # smallest value on a logarithmic scale


#: plotly's symbols as signs of a text
SIGNS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "cross": "✚",
    "x": "✖",
    "star": "★",
    "hexagon": "⬢",
}


@dataclass(frozen=True)
class Label:
    """A label at the right end of a line.

    Attributes:
        text: what it says.
        x: log10 of the budget where the line ends.
        y: where it ends, on the scale of the picture.
        colour: of the line.
        sign: how the line is marked, in front of the text.
        strength: opacity of the text.
    """

    text: str
    x: float
    y: float
    colour: str
    sign: str = "–"
    strength: float = 1.0


def wrapped(text: str, width: int = 18) -> list[str]:
    """The lines of a long name."""
    return textwrap.wrap(text, width) or [text]


def beside(names: Sequence[Label], lines: Sequence[list[str]], y: Trace, plot: int, theme: Theme) -> list[Trace]:
    """Labels right of the plot, none on another; each opens with the mark of its line, in the line's colour."""
    low, high = y["range"]
    logarithmic = y.get("type") == "log"
    heights = [math.log10(max(one.y, FLOOR)) if logarithmic else one.y for one in names]
    wished = [plot * (high - h) / (high - low) for h in heights]
    places = apart(wished, [LINE * len(part) for part in lines], plot)
    return [
        {
            "x": one.x,
            "y": height,
            "xshift": 12,
            "yshift": wish - place,
            "text": f'<span style="color:{one.colour}">{one.sign}</span> ' + "<br>".join(map(plain, part)),
            "xanchor": "left",
            "yanchor": "middle",
            "align": "left",
            "showarrow": False,
            "opacity": one.strength,
            "font": {"size": FONT_SIZE - 2, "color": theme.ink},
        }
        for one, height, wish, place, part in zip(names, heights, wished, places, lines, strict=True)
    ]


def apart(wished: Sequence[float], sizes: Sequence[float], room: float) -> list[float]:
    """Middles of labels that touch no other, each as near to its wish as those before it allow.

    Args:
        wished: middles, in pixels from the top.
        sizes: heights of the labels.
        room: pixels from the top that they have; where it is too small they run beyond its end.
    """
    order = sorted(range(len(wished)), key=lambda k: wished[k])
    tops: list[float] = []
    end = -math.inf
    for k in order:
        tops.append(max(wished[k] - sizes[k] / 2, end))
        end = tops[-1] + sizes[k]
    # what runs out at the bottom pushes those above it upwards
    limit = max(room, float(sum(sizes)))
    for at in range(len(order) - 1, -1, -1):
        tops[at] = min(tops[at], limit - sizes[order[at]])
        limit = tops[at]
    middles = [0.0] * len(order)
    for at, k in enumerate(order):
        middles[k] = tops[at] + sizes[k] / 2
    return middles
