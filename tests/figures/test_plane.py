"""Where functions on a grid are zero, as lines."""

import numpy as np
import pytest

from dpviz.figures import plane
from dpviz.figures.style import LIGHT, Look

AXIS = np.linspace(-1.0, 1.0, 41)
X, Y = np.meshgrid(AXIS, AXIS)


LOOK = Look("method", "#1a4a94", "solid", "circle")
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
    drawn = (POINTS, LABELS, np.zeros(2, bool), (AXIS, AXIS), iterates[0], Y, LOOK, LIGHT)
    base = plane.decision_lines(*drawn, names=("a", "b"), classes=("no", "yes"))
    figure = plane.training(base, (AXIS, AXIS), iterates, ["one", "two", "three"], LIGHT)
    assert [float(np.nanmean(frame.data[0].x)) for frame in figure.frames] == pytest.approx([-0.4, 0.0, 0.4])
    assert {frame.traces for frame in figure.frames} == {(2,)}
    assert figure.data[2].name == "method"
    assert [step.label for step in figure.layout.sliders[0].steps] == ["one", "two", "three"]
