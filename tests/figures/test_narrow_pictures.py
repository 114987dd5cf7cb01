"""Pictures on a page of 390 pixels: labels, legends and markers are whole, and numbers are as precise as beside them."""

import numpy as np
import pandas as pd
import pytest

from dpviz.figures import accuracy, gauges, groups, guarantees, noised, retraining, rules, scores, weights
from dpviz.figures.decades import powers, ticks
from dpviz.figures.influence import training_map
from dpviz.figures.lines import Bar, Line, bars, curves
from dpviz.figures.still import pictures
from dpviz.figures.style import LIGHT, Look
from dpviz.mechanisms import list_mechanisms

LOOK = Look("Output perturbation (Gaussian)", "#1a4a94", "solid", "circle")
RATES = pd.DataFrame({"model": ["private", "private", "non-private"], "x": [0.0, 1.0, 0.5]})


def test_labels_of_ticks_are_level_and_few() -> None:
    fig = curves([Line("a", np.geomspace(1e-2, 1e3, 9), np.ones(9), LOOK)], LIGHT, x="α", y="ε")
    assert (fig.layout.xaxis.tickangle, fig.layout.xaxis.dtick) == (0, 2)
    assert accuracy.optimality_gap(np.array([0.1, 0.2]), LOOK, LIGHT).layout.xaxis.dtick == 2
    assert weights.weights(np.ones((2, 2)), np.array([-11.0, 6.0]), ["a", "b"], LOOK, LIGHT).layout.xaxis.nticks == 4
    assert len(ticks(0.0, 8.0, most=3)["tickvals"]) <= 5  # type: ignore[arg-type]
    fig = rules.rule_histogram(np.geomspace(1, 1e7, 9), np.ones(9, bool), 0.6, np.inf, LIGHT, label="largest value " * 4)
    assert max(map(len, fig.layout.xaxis.title.text.split("<br>"))) <= 26
    assert len(fig.layout.xaxis.tickvals) <= 5


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
    names = guarantees.ranked(points, ["proved"], 0.9, 0.5, LIGHT, narrow=True).layout.yaxis.ticktext
    assert len(set(names)) == len(points)
    assert max(map(len, names)) <= 17


def test_short_names_of_features_leave_room_for_the_picture() -> None:
    given = np.array([0.1, 0.2]), np.array([[0.1, 0.25]])
    room = {
        name: noised.step_before_after(*given, ["x1", name], LIGHT, title="value").layout.margin.l for name in ("x2", "x" * 40)
    }
    assert room["x2"] < 50
    assert room["x" * 40] == 200


def test_markers_at_the_ends_of_an_axis_are_whole() -> None:
    table = pd.DataFrame({"model": "private", "predicted": [0.2, 0.9], "observed": [0.0, 1.0], "low": 0.0, "high": 1, "rows": 5})
    assert scores.reliability(table, LOOK, LIGHT).data[0].cliponaxis is False
    fig = accuracy.accuracy_distribution(np.array([0.9, 1.0]), 1.0, 0.5, LOOK, LIGHT)
    assert fig.data[0].cliponaxis is False


def test_the_end_of_a_gauge_is_labelled() -> None:
    rows = [gauges.Gauge("Accuracy", [], [gauges.Mark("private 91.5 %", 0.915), gauges.Mark("majority 43.8 %", 0.438)])]
    assert ">100 %<" in pictures(gauges.gauges(rows, LOOK, LIGHT), "a", "words", [330])[0]


def test_the_title_of_a_scale_stands_below_that_of_the_axis() -> None:
    rng = np.random.default_rng(0)
    given = rng.normal(size=(5, 2)), np.ones(5), np.arange(5), LIGHT
    low = {}
    for scaled in (False, True):
        fig = training_map(*given, names=("x1", "x2"), narrow=True, scaled=scaled)
        (title,) = (one for one in fig.layout.annotations if one.text == "influence")
        low[scaled] = -title.yshift, fig.layout.margin.b
    assert np.subtract(low[True], low[False]).tolist() == [24, 24]


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
