"""The meaning of colours, dashes and sizes, the same everywhere and in both themes.

One hue per family of mechanisms; methods of a family differ by shade and dash. Non-private is black or white,
majority is grey dashes, noise is amber. Hues were chosen so that the closest two stay apart for protan, deutan and
tritan readers (tests/figures/test_figures.py measures it), and nothing is shown by colour alone.

A figure in the colours of the light theme, whatever theme it was drawn in: for paper.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
LEAST_CONTRAST = 3.0  # of lines against paper (WCAG 2.2, 1.4.11)

FONT = '"Source Sans", "Source Sans Pro", "Liberation Sans", sans-serif'
FONT_SIZE = 16
HEIGHT = 320
CHECKED = False  # plotly's checks take ten times as long as the figure; the tests have them made on every figure
LISTED = 10_000  # numbers of an array that a browser is sent as a list
LEGEND_LINE = 23  # pixels of one entry
LEGEND_WIDTH = 34  # signs of a legend entry that fit at 300 pixels, half of a projected page
ABOVE = 10  # pixels between the plot and the legend

Trace = dict[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Theme:
    """Colours of one theme.

    Attributes:
        ink: text, and everything without privacy.
        paper: background.
        grid: faint lines.
        majority: the majority line.
        noise: whatever is noise.
        families: one hue per family.
        labels: the two classes of points, for negative and positive.
        groups: of rows, in their order; chosen to stay apart for colour-blind readers, and none means a method.
        verdicts: of claims, by kind; their signs are in the paper's colour on them.
        scale: of amounts, from least to largest.
    """

    name: str
    ink: str
    paper: str
    grid: str
    majority: str
    noise: str
    families: dict[str, str]
    labels: tuple[str, str]
    groups: tuple[str, ...]
    verdicts: dict[str, str]
    scale: tuple[str, str, str]


LIGHT = Theme(
    name="light",
    ink="#111111",
    paper="#ffffff",
    grid="#e4e6ea",
    majority="#767676",
    noise="#d67900",
    families={
        "reference": "#111111",
        "output": "#1a4a94",
        "objective": "#00827f",
        "gradient": "#8f1d2c",
        "input": "#8b35d6",
        "local": "#b0854f",
    },
    labels=("#2273bd", "#c46f00"),
    groups=("#3886fa", "#950404", "#959504", "#5b0495", "#c76bb5", "#6706f9", "#e0526e", "#821757"),
    verdicts={"green": "#1b6e35", "blue": "#1a5fb4", "red": "#b3261e", "gray": "#5f6368"},
    scale=("#7f94bd", "#41609b", "#0b1f45"),
)
DARK = Theme(
    name="dark",
    ink="#ffffff",
    paper="#0e1117",
    grid="#2b313c",
    majority="#9a9a9a",
    noise="#ffb81c",
    families={
        "reference": "#ffffff",
        "output": "#6d86d6",
        "objective": "#5fc9c5",
        "gradient": "#d14f60",
        "input": "#c65cff",
        "local": "#c9c46b",
    },
    labels=("#6fb1ee", "#ffc14d"),
    groups=("#a8b7f0", "#c70505", "#26d9b5", "#8638fa", "#c7b56b", "#ad1fad", "#f99806", "#2a6f6f"),
    verdicts={"green": "#6ad08a", "blue": "#8ab4f8", "red": "#ff8a80", "gray": "#b0b6be"},
    scale=("#53698f", "#8fadda", "#f2f6ff"),
)
THEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Look:
    """The look of one method.

    Attributes:
        name: what the legend says.
        colour: hex.
        dash: a plotly dash.
        symbol: a plotly marker.
    """

    name: str
    colour: str
    dash: str
    symbol: str


def look(theme: Theme, name: str, family: str, rank: int = 0) -> Look:
    """The look of a method.

    Args:
        name: shown to people.
        family: one of the theme's families.
        rank: the method's place within its family, from 0.
    """
    colour = shades(theme, family)[rank % _SHADES]
    return Look(name, colour, DASHES[rank % len(DASHES)], SYMBOLS[rank % len(SYMBOLS)])


def group_look(theme: Theme, name: str, rank: int) -> Look:
    """The look of a group of rows.

    Args:
        name: shown to people.
        rank: the group's place, from 0; beyond the eighth a colour returns with another dash and marker.
    """
    again = rank // len(theme.groups)
    dash, symbol = DASHES[(rank + again) % len(DASHES)], SYMBOLS[(rank + again) % len(SYMBOLS)]
    return Look(name, theme.groups[rank % len(theme.groups)], dash, symbol)


_SHADES = 12


@cache
def shades(theme: Theme, family: str) -> tuple[str, ...]:
    """The family's hue, then lighter and darker ones that stand out from the paper, far ones first."""
    hue = theme.families[family]
    usable = [t / 100 for t in range(-35, 51) if contrast(shade(hue, t / 100), theme.paper) >= LEAST_CONTRAST]
    low, high = min(usable), max(usable)
    # ends first, then middles: 0, 1, 1/2, 1/4, 3/4, 1/8, ...
    order = [0.0, 1.0, *((2 * k + 1) / 2**m for m in (1, 2, 3, 4) for k in range(2 ** (m - 1)))]
    spread = [low + (high - low) * share for share in order]
    return (hue, *(shade(hue, t) for t in spread if abs(t) > 0.04))[:_SHADES]


def sibling(theme: Theme, colour: str, steps: int) -> str:
    """The colour so many shades on in the same family; a colour of no family stays."""
    family = next((shades(theme, f) for f in theme.families if colour in shades(theme, f)), (colour,))
    return family[(family.index(colour) + steps) % len(family)]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""

    def luminance(colour: str) -> float:
        parts = (c / 255 for c in channels(colour))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def shade(colour: str, amount: float) -> str:
    """A colour mixed with white (amount above 0) or black (below 0), amount in [-1, 1]."""
    target, weight = (255.0, amount) if amount >= 0 else (0.0, -amount)
    return "#" + "".join(f"{round(c + (target - c) * weight):02x}" for c in channels(colour))


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of "#rrggbb", 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def named_axis(names: Sequence[str]) -> dict[str, Any]:
    """A y axis whose lines, from 0 upwards, carry long names instead of numbers."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [shorten(name) for name in names],
        "range": [-0.7, len(names) - 0.3],
        "showgrid": False,
        "tickfont": {"size": FONT_SIZE - 2},
    }


def fade(colour: str, alpha: float) -> str:
    """A colour at an opacity in [0, 1]."""
    return f"rgba({','.join(map(str, channels(colour)))},{alpha:g})"


def escape(text: str) -> str:
    """Text whose markup is shown and not obeyed."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(name: str, length: int = 22) -> str:
    """A name that leaves room for the picture.

    >>> shorten("Output perturbation (Gaussian)", 17)
    'Output perturbat…'
    """
    return escape(name if len(name) <= length else f"{name[: length - 1].rstrip()}…")


def room_for(names: Sequence[str]) -> int:
    """Pixels of the left margin that the longest name of `named_axis` takes."""
    return 24 + 8 * max(len(shorten(name)) for name in names)


def figure(
    theme: Theme, traces: list[Trace], *, x: dict[str, Any], y: dict[str, Any], height: int = HEIGHT, **layout: Any
) -> go.Figure:
    """A figure in the house style: large type, no title (the page has headings), legend above.

    Built in one go: plotly's update methods cost about ten times as much, and a slider waits for them.

    Args:
        traces: plotly traces as dicts; the type is "scatter" where none is given.
        x, y: axis settings; "title" is plain text, "standoff" its distance from the ticks in pixels.
        layout: further settings of the layout.
    """
    base: Trace = {
        "template": "none",
        "height": height,
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": FONT_SIZE, "color": theme.ink},
        # fixed margins: plotly's automatic ones draw every figure twice
        "margin": margin(),
        # data stay as they are until the chart is made anew
        "datarevision": 1,
        "hoverlabel": {"font": {"size": FONT_SIZE - 1}},
        # one entry a line from the left edge: nothing is cut off at 400 pixels
        "legend": {
            "orientation": "v",
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        # the same revision keeps a reader's zoom while controls move
        "uirevision": "keep",
        "dragmode": False,
        # labels that are rotated lie over the title
        "xaxis": {"tickangle": 0} | _axis(theme, x),
        "yaxis": _axis(theme, y | {"title": ""}),
    }
    settings: Trace = base | layout
    if "legend" not in layout:
        # the label of a tick at the very top reaches above the plot
        inside = settings["height"] - settings["margin"]["t"] - settings["margin"]["b"]
        settings["height"] += ABOVE
        settings["margin"] = settings["margin"] | {"t": settings["margin"]["t"] + ABOVE}
        settings["legend"] = settings["legend"] | {"y": 1 + ABOVE / inside}
    if y.get("title"):
        settings["annotations"] = [*settings.get("annotations", []), _beside(y["title"], settings["margin"]["l"])]
    return build({"data": [{"type": "scatter"} | t for t in traces], "layout": settings})


def build(parts: Trace) -> go.Figure:
    """A figure from its data, layout and frames, with short arrays as lists."""
    return go.Figure(_listed(parts), _validate=CHECKED)


def _listed(node: Any) -> Any:
    """Plotly takes the arrays that its own encoding makes anew for new data, and draws the whole chart a second time."""
    if isinstance(node, dict):
        return node if node.get("type") == "scattergl" else {name: _listed(value) for name, value in node.items()}
    if isinstance(node, np.ndarray):
        return node.tolist() if node.size <= LISTED else node
    return [_listed(one) for one in node] if isinstance(node, list | tuple) and node and isinstance(node[0], dict) else node


def _beside(title: str, left: int) -> Trace:
    """The title of the y axis; plotly's own lies over the plot where margins are fixed."""
    place = {"x": 0, "xref": "paper", "xshift": 4 - left, "xanchor": "left", "y": 0.5, "yref": "paper"}
    return {"text": title, **place, "textangle": -90, "showarrow": False}


def margin(*, left: int = 14, right: int = 16, top: int = 36, bottom: int = 58) -> Trace:
    """Margins in pixels; the bottom one holds ticks and a title."""
    return {"l": left, "r": right, "t": top, "b": bottom, "autoexpand": False}


def tens(low: float, *, shares: bool) -> dict[str, Any]:
    """Ticks of an axis that ends at 100 %: as many as a narrow picture has room for; other axes choose their own.

    Args:
        low: where it begins, in per cent.
    """
    return {"dtick": 10 if low > 65 else 20} if shares else {}


def _axis(theme: Theme, settings: dict[str, Any]) -> dict[str, Any]:
    base = {
        "gridcolor": theme.grid,
        "linecolor": theme.majority,
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": theme.grid,
        "exponentformat": "power",
    }
    shown = {key: value for key, value in settings.items() if key not in ("title", "standoff")}
    away = {"standoff": settings["standoff"]} if "standoff" in settings else {}
    return base | shown | {"title": {"text": settings.get("title", "")} | away}


def stack(values: ArrayLike, width: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Dots that would cover each other go on top of each other: (x, height), in the order given."""
    x = np.asarray(values, float)
    heights = np.zeros(len(x))
    bins = np.round(x / width)
    for b in np.unique(bins):
        at = np.flatnonzero(bins == b)
        heights[at[np.argsort(x[at], kind="stable")]] = np.arange(len(at))
    return x, heights * min(1.0, 12 / max(heights.max(initial=0), 1.0))


_HEX = re.compile("#[0-9a-fA-F]{6}")
_IN_TEXT = re.compile("(?<=color:)#[0-9a-fA-F]{6}")
_FAINT = re.compile(r"rgba\((\d+),(\d+),(\d+),([^)]+)\)")


def light_theme(figure: go.Figure) -> go.Figure:
    """The same figure with each colour of the dark theme as that of the light theme in its place."""
    drawn = figure.to_plotly_json()
    return build(_changed(drawn, "")) if drawn["layout"].get("paper_bgcolor") == DARK.paper else figure


@cache
def light_colours() -> dict[str, str]:
    """From each colour of the dark theme to that of the light theme with the same meaning."""
    pairs = list(zip(_all(DARK), _all(LIGHT), strict=True))
    return dict(reversed(pairs))  # the first meaning of a colour wins


def _all(theme: Theme) -> list[str]:
    colours = [theme.ink, theme.paper, theme.grid, theme.majority, theme.noise]
    colours += [colour for family in theme.families for colour in shades(theme, family)]
    return [*colours, *theme.labels, *theme.verdicts.values(), *theme.scale, *theme.groups]


def _changed(node: Any, key: str) -> Any:
    if isinstance(node, dict):
        return {name: _changed(value, name if "color" in name else "") for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [_changed(one, key) for one in node]
    if not isinstance(node, str):
        return node
    return _colour(node) if key else _IN_TEXT.sub(lambda found: _colour(found[0]), node)


def _colour(text: str) -> str:
    if _HEX.fullmatch(text):
        return light_colours().get(text.lower(), text)
    parts = _FAINT.fullmatch(text)
    if parts is None:
        return text
    solid = "#" + "".join(f"{int(part):02x}" for part in parts.groups()[:3])
    light = light_colours().get(solid)
    return text if light is None else fade(light, float(parts[4]))
