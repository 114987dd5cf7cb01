"""The picture of curves over epsilon: names stand apart, one band, the chosen budget marked."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from dpviz.figures.curves import Curve, trade_off
from dpviz.figures.labels import apart
from dpviz.figures.style import THEMES, look


@pytest.mark.parametrize("wished", [[10.0, 11.0, 12.0], [290.0, 295.0, 299.0], [0.0, 150.0, 300.0], [50.0] * 28])
def test_labels_stand_apart_and_inside(wished: list[float]) -> None:
    sizes = [20.0] * len(wished)
    room = max(300.0, sum(sizes))
    places = sorted(apart(wished, sizes, room))
    assert all(b - a >= 20 - 1e-9 for a, b in pairwise(places))
    assert places[-1] <= room - 10 + 1e-9
    assert apart([40.0, 120.0], [20.0, 20.0], 300.0) == [40.0, 120.0], "what does not collide stays"


@pytest.mark.parametrize("count", [2, 28])
def test_every_line_carries_its_whole_name_and_one_its_band(count: int) -> None:
    theme = THEMES["light"]
    points = pd.DataFrame({"epsilon": [0.1, 1.0], "mean": [0.5, 0.8], "low": [0.4, 0.7], "high": [0.6, 0.9]})
    points = points.assign(draws=10, exact=False)
    names = [f"A method with a rather long name, number {k}" for k in range(count)]
    lines = [
        Curve(str(k), look(theme, name, "output", k), points, False, "proved", banded=k == 1) for k, name in enumerate(names)
    ]
    fig = trade_off(
        lines, theme, quantity="accuracy", title="a", baselines={"majority": 0.4}, wanted=None, span=(0.1, 1.0), here=0.5
    )
    said = [note.text.replace("<br>", " ") for note in fig.layout.annotations]
    assert all(name in said for name in names)
    assert "majority 40.0 %" in said
    assert "chosen ε = 0.5" in said
    assert sum(t.fill == "toself" for t in fig.data) == 1
    assert fig.layout.shapes[0].x0 == 0.5
