"""Every figure of every test is checked: by plotly, and that its marks lie inside its axes."""

import itertools
from typing import Any

import numpy as np
import pandas as pd

from dpviz.figures import style

build = style.build


def build_with_marks_inside(parts: dict[str, Any]) -> Any:
    """A figure whose marks lie inside the axes, but for the few rows that a plane leaves out on purpose."""
    for trace, letter in itertools.product(parts["data"], "xy"):
        axis = parts["layout"].get(letter + "axis" + trace.get(letter + "axis", letter)[1:], {})
        if "markers" in trace.get("mode", "") and axis.get("range") is not None:
            ends = np.sort(axis["range"])
            low, high = (10.0 ** np.clip(ends, -300, 300) if axis.get("type") == "log" else ends) + 1e-9 * np.array(
                [-1, 1]
            ) * np.abs(ends).max()
            places = pd.to_numeric(pd.Series(trace[letter]), errors="coerce")
            assert not ((places < low) | (places > high)).mean() > 0.04, f"{trace.get('name')}: {places} beyond {axis['range']}"
    return build(parts)


def check_figures() -> None:
    """In this process, from here on."""
    style.CHECKED = True
    style.build = build_with_marks_inside
