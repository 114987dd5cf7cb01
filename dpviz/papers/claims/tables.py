"""Tables and words of the claims' tests: one row per drawn point, and numbers as people read them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.papers.checks import points

#: columns of a verdict's table
COLUMNS = ("panel", "series", "mechanism", "x", "y", "low", "high")


def lines(panel: str, series: str, mechanism: str, x: Iterable[Any], values: Floats) -> pd.DataFrame:
    """Rows of a table from (E, S) values: mean, and one standard deviation to each side."""
    spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    mean = values.mean(axis=1)
    return pd.DataFrame(
        {
            "panel": panel,
            "series": series,
            "mechanism": mechanism,
            "x": list(x),
            "y": mean,
            "low": mean - spread,
            "high": mean + spread,
        }
    )


def tenths(values: Floats) -> list[Floats]:
    """Positions of ten equal parts by value, the smallest first."""
    return np.array_split(np.argsort(values, kind="stable"), 10)


def percent(share: float) -> str:
    """0.8213 is "82.1 %"."""
    return f"{100 * share:.1f} %"


def span(values: Sequence[float]) -> str:
    """Smallest and largest difference, in points."""
    return f"{points(min(values))} to {points(max(values))}"
