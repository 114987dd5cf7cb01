"""The numbers of a figure as a table for screen readers."""

import re

import numpy as np

from dpviz.figures import data, read_out
from dpviz.figures.style import THEMES, figure

THEME = THEMES["light"]


def rows(html: str) -> list[list[str]]:
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", html)]


def test_every_mark_is_a_row_with_the_names_of_the_axes_and_no_markup() -> None:
    html = read_out.table(data.label_balance((300, 100), ("a<b>", "b & c"), THEME), "What <it> shows.")
    assert rows(html) == [["", "300", "a&lt;b&gt; (−1) 300 (75.0 %)"], ["", "100", "b &amp; c (+1) 100 (25.0 %)"]]
    assert "<caption>What &lt;it&gt; shows.</caption>" in html
    assert '<th scope="col">rows</th>' in html


def test_many_marks_are_cut_and_said_and_areas_are_left_out() -> None:
    x = np.linspace(0, 1, 100)
    traces = [{"x": x, "y": 2 * x, "name": "line"}, {"x": x, "y": x, "fill": "toself", "name": "band"}]
    html = read_out.table(figure(THEME, traces, x={"title": "ε"}, y={"title": ""}), "A line.")
    assert len(rows(html)) == read_out.MOST
    assert rows(html)[1] == ["line", "0.0101", "0.0202"]
    assert f"The first {read_out.MOST} of 100 values." in html
    assert "band" not in html


def test_positions_that_are_exponents_are_read_as_the_numbers_that_they_stand_for() -> None:
    """As the axis says them, unit included; a name that is no power leaves all of them as they are."""
    traces = [{"x": [-1.0, 0.5, 2.0], "y": [0.0, 1.0, 3.0], "name": "line"}]
    powers = {"tickvals": [-1, 0, 2], "ticktext": ["0.1 %", "1 %", "100 %"]}
    plain = {"tickvals": [0, 1, 3], "ticktext": ["1", "10", "three"]}
    html = read_out.table(figure(THEME, traces, x={"title": "alarms", **powers}, y={"title": "", **plain}), "A line.")
    assert rows(html) == [["line", "0.1 %", "1"], ["line", "3.162 %", "10"], ["line", "100 %", "three"]]
    html = read_out.table(figure(THEME, traces, x={"title": "", **plain}, y={"title": ""}), "A line.")
    assert [row[1] for row in rows(html)] == ["-1", "0.5", "2"]
