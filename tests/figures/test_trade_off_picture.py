"""The picture of curves over epsilon: names are ranked, one band, the chosen budget marked."""

import re

import pandas as pd
import pytest

from dpviz.figures.curves import Curve, trade_off
from dpviz.figures.style import THEMES, look


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
    said = [re.sub(r"<span.*?</span> ", "", note.text.replace("<br>", " ")) for note in fig.layout.annotations]
    assert all(name in said for name in names)
    assert "majority 40.0 %" in said
    assert "chosen ε = 0.5" in said
    assert sum(t.fill == "toself" for t in fig.data) == 1
    assert fig.layout.shapes[0].x0 == 0.5


def test_the_list_is_ranked_by_the_values_at_the_chosen_budget() -> None:
    theme = THEMES["light"]
    ends = pd.DataFrame({"epsilon": [0.1, 1.0], "low": [0.4, 0.7], "high": [0.6, 0.9], "draws": 10, "exact": False})
    means = {"first at 1": [0.5, 0.9], "first at 0.1": [0.6, 0.8]}
    lines = [
        Curve(name, look(theme, name, "output", k), ends.assign(mean=mean), False, "proved")
        for k, (name, mean) in enumerate(means.items())
    ]
    for here, first in ((0.1, "first at 0.1 60.0 %"), (1.0, "first at 1 90.0 %")):
        fig = trade_off(lines, theme, quantity="accuracy", title="a", baselines={}, wanted=None, span=(0.1, 1.0), here=here)
        entries = sorted((n for n in fig.layout.annotations if "<span" in n.text), key=lambda n: -n.yshift)
        assert entries[0].text.replace("<br>", " ").endswith(first)


@pytest.mark.parametrize("odds", [[], [(0.1, 0.506), (1.0, 0.553)]])
def test_attack_odds_stand_above_and_the_chosen_budget_does_not_cover_them(odds: list[tuple[float, float]]) -> None:
    theme = THEMES["light"]
    points = pd.DataFrame({"epsilon": [0.1, 1.0], "mean": [0.5, 0.8], "low": [0.4, 0.7], "high": [0.6, 0.9]})
    line = Curve("a", look(theme, "A", "output", 0), points.assign(draws=10, exact=False), False, "proved")
    fig = trade_off(
        [line],
        theme,
        quantity="accuracy",
        title="a",
        baselines={},
        wanted=None,
        span=(0.1, 1.0),
        here=1.0,
        odds=odds,
        attacked="DP-GD",
    )
    (chosen,) = [note for note in fig.layout.annotations if "chosen" in note.text]
    assert chosen.y == (0 if odds else 1)
    if odds:
        assert list(fig.layout.xaxis2.ticktext) == ["50.6 %", "55.3 %"]
        assert fig.layout.xaxis2.title.text == "attack accuracy at most (DP-GD)"
