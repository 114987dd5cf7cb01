"""Figures inside an HTML file that works without a network: plotly's JavaScript once, and a script for each figure."""

from __future__ import annotations

import json

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_CONFIG = {"displaylogo": False, "displayModeBar": False, "responsive": True}


def library() -> str:
    """Plotly's JavaScript as a script element; it must come before the first figure."""
    return f"<script>{get_plotlyjs()}</script>"


def drawing(figure: go.Figure, name: str) -> str:
    """A figure as an element and the script that draws it.

    Args:
        name: id of the element, unique in the file.
    """
    # not `to_html`: it needs figures that plotly has checked, which takes ten times as long as making them
    values = json.loads(figure.to_json(validate=False))
    parts = (name, values["data"], values["layout"], _CONFIG)
    arguments = ", ".join(json.dumps(part, separators=(",", ":")).replace("<", "\\u003c") for part in parts)
    height = values["layout"].get("height", 320)
    return f'<div id="{name}" style="height:{height}px"></div>\n<script>Plotly.newPlot({arguments});</script>'
