"""The list right of a plot: what its lines are called, each with its mark and colour, ranked from top to bottom."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.figures.style import FONT_SIZE, Theme, Trace, escape
from dpviz.figures.traces import note

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


def listed(names: Sequence[Label], lines: Sequence[list[str]], theme: Theme, *, rising: bool) -> list[Trace]:
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
