"""The gauges of the first page: labels do not cover each other."""

import pytest

from dpviz.figures.gauges import _SIGN, Gauge, Mark, Part, gauges
from dpviz.figures.style import FONT_SIZE, LIGHT, Look


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
