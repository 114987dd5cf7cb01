"""Pictures: labels, legends and lines are whole, on a narrow page too, and are read out as tables."""

import re

import numpy as np
import pandas as pd
import pytest
from support import assert_words

from dpviz.figures import guarantees, plane
from dpviz.figures.curves import Curve, trade_off
from dpviz.figures.gauges import _SIGN, Gauge, Mark, Part, gauges
from dpviz.figures.style import FONT_SIZE, LIGHT, THEMES, Look, look
from dpviz.mechanisms import list_mechanisms


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
    assert_words(said, "majority 40.0 %", "chosen ε = 0.5")
    assert [t.y for t in fig.data if t.name == "majority 40.0 %"] == [(40.0, 40.0)]
    assert sum(t.fill == "toself" for t in fig.data) == 1
    assert fig.layout.shapes[0].x0 == 0.5


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


def test_the_lowest_labels_of_a_gauge_stay_clear_of_the_next_title() -> None:
    marks = [Mark("majority 63.1 %", 0.631), Mark("private 64.0 %", 0.64), Mark("non-private 65.0 %", 0.65)]
    rows = [Gauge("Accuracy", [], marks), Gauge("Best possible attack", [], [Mark("any attacker 73.1 %", 0.731)])]
    fig = gauges(rows, Look("m", "#123456", "solid", "circle"), LIGHT)
    lowest = min(y for trace in fig.data if "non-private 65.0 %" in (trace.text or ()) for y in trace.y)
    (title,) = (trace.y[0] for trace in fig.data if "<b>Best possible attack</b>" in (trace.text or ()))
    low, high = fig.layout.yaxis.range
    margins = fig.layout.margin
    pixels = (fig.layout.height - margins.t - margins.b) / (high - low)
    assert (lowest - title) * pixels > FONT_SIZE + 10


@pytest.mark.parametrize(
    "places", [(66.7, 66.7, 70.0, 83.3), (43.8, 87.2, 92.5, 92.5), (50.0, 50.0, 50.0), (76.0, 82.0, 85.0, 85.1)]
)
def test_labels_of_one_gauge_do_not_cover_each_other(places: tuple[float, ...]) -> None:
    names = ("majority", "private", "no noise", "non-private")
    marks = [Mark(f"{name} {at:.1f} %", at / 100) for name, at in zip(names, places, strict=False)]
    fig = gauges(
        [Gauge("Accuracy", [Part("", 0.0, places[1] / 100, "base")], marks)], Look("m", "#123456", "solid", "circle"), LIGHT
    )
    low, high = fig.layout.xaxis.range
    (notes,) = (trace for trace in fig.data if trace.textposition == "middle center")
    assert len(notes.text) == len(marks)
    widths = [(high - low) * _SIGN * len(text) for text in notes.text]
    spans = [(y, x - w / 2, x + w / 2) for x, y, w in zip(notes.x, notes.y, widths, strict=True)]
    for k, (y, left, right) in enumerate(spans):
        assert low - 1e-9 <= left
        assert right <= high + 1e-9
        for other, start, end in spans[k + 1 :]:
            assert y != other or right <= start + 1e-9 or end <= left + 1e-9


THEME = THEMES["light"]


LOOK = Look("Output perturbation (Gaussian)", "#1a4a94", "solid", "circle")


def test_methods_of_one_technique_are_told_apart() -> None:
    points = [guarantees.Point(cls.label, "proved", 0.8, LOOK) for cls in list_mechanisms().values()]
    names = guarantees.ranking(points, ["proved"], 0.9, 0.5, LIGHT, narrow=True).layout.yaxis.ticktext
    assert sorted(name.replace("<br>", " ") for name in names) == sorted(point.label for point in points)
    assert max(len(line) for name in names for line in name.split("<br>")) <= 21


AXIS = np.linspace(-1.0, 1.0, 41)
X, Y = np.meshgrid(AXIS, AXIS)


METHOD = Look("method", "#1a4a94", "solid", "circle")
POINTS, LABELS = np.array([[0.1, 0.2], [-0.3, 0.4]]), np.array([1.0, -1.0])


def length(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.nansum(np.hypot(np.diff(x), np.diff(y))))


def test_a_circle_is_one_closed_line_of_its_length() -> None:
    loose = plane.zero_lines((X**2 + Y**2 - 0.5)[None], (AXIS, AXIS))
    x, y = plane.join_segments(*loose)
    assert np.isnan(x).sum() == 1
    assert np.isnan(loose[0]).sum() > 100
    assert (x[0], y[0]) == (x[-2], y[-2])
    assert np.allclose(np.hypot(x[:-1], y[:-1]), 0.5**0.5, atol=2e-3)
    assert length(x, y) == pytest.approx(length(*loose), rel=1e-6)
    assert length(x, y) == pytest.approx(2 * np.pi * 0.5**0.5, rel=5e-3)


def test_lines_that_do_not_meet_stay_apart() -> None:
    values = np.stack([X - 0.31, (X - 0.52) * (X + 0.47), Y + 3.0])
    loose = plane.zero_lines(values, (AXIS, AXIS))
    x, y = plane.join_segments(*loose)
    parts = np.split(x, np.flatnonzero(np.isnan(x)) + 1)
    assert sorted(round(float(np.nanmean(p)), 2) for p in parts if len(p)) == [-0.47, 0.31, 0.52]
    assert length(x, y) == pytest.approx(6.0)
    assert np.isfinite(y).any()


def test_no_line_and_too_many_segments_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [len(v) for v in plane.join_segments(*plane.zero_lines((Y + 3.0)[None], (AXIS, AXIS)))] == [0, 0]
    corner = np.ones((1, 41, 41))
    corner[0, 20, 20] = -1e-30  # changes sign in one point only
    assert [len(v) for v in plane.join_segments(*plane.zero_lines(corner, (AXIS, AXIS)))] == [0, 0]
    monkeypatch.setattr(plane, "_MOST", 5)
    loose = plane.zero_lines((X - 0.31)[None], (AXIS, AXIS))
    assert plane.join_segments(*loose)[0] is loose[0]


def test_training_has_a_frame_for_each_iterate_and_changes_the_private_lines_only() -> None:
    iterates = np.stack([(X - shift)[None] for shift in (-0.4, 0.0, 0.4)])
    drawn = (POINTS, LABELS, np.zeros(2, bool), (AXIS, AXIS), iterates[0], Y, METHOD, LIGHT)
    base = plane.decision_lines(*drawn, names=("a", "b"), classes=("no", "yes"))
    figure = plane.training(base, (AXIS, AXIS), iterates, ["one", "two", "three"], LIGHT)
    assert [float(np.nanmean(frame.data[0].x)) for frame in figure.frames] == pytest.approx([-0.4, 0.0, 0.4])
    assert {frame.traces for frame in figure.frames} == {(2,)}
    assert figure.data[2].name == "method"
    assert [step.label for step in figure.layout.sliders[0].steps] == ["one", "two", "three"]
