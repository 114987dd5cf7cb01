"""The symbols of points, as SVG paths around (0, 0)."""

import math
from functools import cache

from dpviz.figures.svg.text import format_number

#: cosine and sine of quarter turns, and the corners of a cross in one of them
_QUARTERS, _CORNERS = ((1, 0), (0, 1), (-1, 0), (0, -1)), ((-1, -0.33), (-0.33, -0.33), (-0.33, -1))
_POLYGONS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle-up": ((-1.15, 0.6), (1.15, 0.6), (0, -1.2)),
    "cross": tuple((1.2 * (x * c - y * s), 1.2 * (x * s + y * c)) for c, s in _QUARTERS for x, y in _CORNERS),
    "hexagon": tuple((math.sin(k * math.pi / 3), math.cos(k * math.pi / 3)) for k in range(6)),
    "star": tuple(
        ((1.4 if k % 2 == 0 else 0.55) * math.sin(k * math.pi / 5), -(1.4 if k % 2 == 0 else 0.55) * math.cos(k * math.pi / 5))
        for k in range(10)
    ),
}
_POLYGONS["x"] = tuple(((x - y) * math.sqrt(0.5), (x + y) * math.sqrt(0.5)) for x, y in _POLYGONS["cross"])
_STROKES: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "line-ns": (((0, -1.4), (0, 1.4)),),
    "x-thin": (((-1, -1), (1, 1)), ((-1, 1), (1, -1))),
    "y-down": (((0, 0), (0, 1.3)), ((0, 0), (1.1, -0.7)), ((0, 0), (-1.1, -0.7))),
}


def is_open(symbol: str) -> bool:
    """True where a symbol is an outline only."""
    return "-open" in symbol or symbol in _STROKES


def is_stroke(symbol: str) -> bool:
    """True where a symbol consists of strokes in the colour of its outline."""
    return symbol in _STROKES


@cache
def path(symbol: str, radius: float) -> str:
    """The path of a symbol, relative to its centre; an unknown symbol is a circle."""
    name = symbol.replace("-open", "").removesuffix("-dot")
    if name in _STROKES:
        return "".join(_line(points, radius, closed=False) for points in _STROKES[name])
    ring = _line(_POLYGONS[name], radius, closed=True) if name in _POLYGONS else _circle(radius)
    return ring + _circle(max(1.0, radius / 4)) if symbol.endswith("-dot") else ring


def _circle(radius: float) -> str:
    r, d = format_number(radius), format_number(2 * radius)
    return f"m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0m{r} 0"


def _line(points: tuple[tuple[float, float], ...], radius: float, *, closed: bool) -> str:
    at, steps = (0.0, 0.0), []
    for k, (x, y) in enumerate(points):
        here = (round(x * radius, 1), round(y * radius, 1))
        steps.append(f"{'l' if k else 'm'}{format_number(here[0] - at[0])} {format_number(here[1] - at[1])}")
        at = here
    start = (round(points[0][0] * radius, 1), round(points[0][1] * radius, 1)) if closed else at
    return "".join(steps) + ("z" if closed else "") + f"m{format_number(-start[0])} {format_number(-start[1])}"
