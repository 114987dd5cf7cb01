"""A figure in the colours of the light theme, whatever theme it was drawn in: for paper."""

import re
from functools import cache
from typing import Any

import plotly.graph_objects as go

from dpviz.figures.style import DARK, LIGHT, Theme, build, fade, shades

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
