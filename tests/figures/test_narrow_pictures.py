"""Pictures on a page of 390 pixels: labels, legends and markers are whole, and numbers are as precise as beside them."""

import numpy as np
import pandas as pd
import pytest

from dpviz.figures import groups, guarantees, retraining, scores
from dpviz.figures.lines import Bar, bars, powers
from dpviz.figures.style import LIGHT, Look
from dpviz.mechanisms import list_mechanisms

LOOK = Look("Output perturbation (Gaussian)", "#1a4a94", "solid", "circle")
RATES = pd.DataFrame({"model": ["private", "private", "non-private"], "x": [0.0, 1.0, 0.5]})


@pytest.mark.parametrize("diagonal", [True, False])
def test_axes_carry_names_of_quantities_and_the_legend_those_of_models(diagonal: bool) -> None:
    table = RATES.assign(mean=[0.0, 1.0, 0.5], low=0.0, high=1.0)
    fig = scores.curve(table, LOOK, LIGHT, x="false-positive rate", y="recall", diagonal=diagonal)
    assert [one.name for one in fig.data if one.name] == [LOOK.name, "non-private"]
    assert "recall" in [one.text for one in fig.layout.annotations]
    assert fig.layout.xaxis.ticksuffix == fig.layout.yaxis.ticksuffix == " %"
    assert max(fig.data[1].x) == 100


def test_methods_of_one_technique_are_told_apart() -> None:
    points = [guarantees.Point(cls.label, "proved", 0.8, LOOK) for cls in list_mechanisms().values()]
    names = guarantees.ranking(points, ["proved"], 0.9, 0.5, LIGHT, narrow=True).layout.yaxis.ticktext
    assert len(set(names)) == len(points)
    assert max(map(len, names)) <= 17


def test_numbers_have_three_digits_and_no_padded_exponent() -> None:
    given = np.array([0.1, 0.2]), np.array([0.1, 0.25]), np.array([0.0, 0.0871]), np.arange(2)
    (words,) = (
        one.text for one in retraining.against_truth(*given, LIGHT, bound=1.17e8).layout.annotations if "error" in one.text
    )
    assert words.startswith("largest error 0.0871<br>proved bound 1.17e8")
    assert powers(np.array([7.0, 5.0, -1.0])) == ["1e7", "100,000", "0.1"]
    fig = bars([Bar("a", 60.0, "60")], LOOK, LIGHT, x="accuracy, %", span=(50, 118), most=100.0)
    assert list(fig.layout.xaxis.tickvals) == [60, 80, 100]


def test_a_bar_that_leaves_the_axis_has_its_words_behind_its_name() -> None:
    fig = bars([Bar("in use", 0.7, "0.7"), Bar("any number of epochs", 314.0, "314")], LOOK, LIGHT, x="distance", span=(0, 1.1))
    assert list(fig.data[0].x) == [0.7, 314.0]
    assert list(fig.data[0].text) == ["0.7", ""]
    assert [a.text for a in fig.layout.annotations] == ["in use", "any number of epochs: 314 (bar cut)"]


def test_every_name_beside_the_groups_is_tied_to_its_line() -> None:
    points = pd.DataFrame({"epsilon": [0.1, 10.0], "mean": 0.5, "low": 0.4, "high": 0.6})
    lines = [groups.GroupLine(name, points, at, LOOK) for name, at in (("b", 0.80), ("a", 0.81))]
    fig = groups.groups(lines, LIGHT, here=99.0)
    assert [(line.y0, line.line.color) for line in fig.layout.shapes] == [(81.0, LOOK.colour), (80.0, LOOK.colour)]
    assert fig.layout.yaxis.range[1] > fig.layout.shapes[0].y1 > fig.layout.shapes[1].y1
