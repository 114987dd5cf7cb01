"""Static pictures of figures: values at their pixels, texts as text; and dark figures in light colours."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dpviz.figures import style
from dpviz.figures.style import light_theme
from dpviz.figures.svg import picture

PLOT = {"l": 100, "r": 120, "t": 20, "b": 80, "autoexpand": False}  # the plot is 500 x 300 pixels


def drawn(traces: list[dict[str, object]], x: dict[str, object], y: dict[str, object], **layout: object) -> ElementTree.Element:
    figure = style.figure(style.LIGHT, traces, x=x, y=y, height=400, margin=PLOT, legend={"x": 0, "y": 1}, **layout)
    return ElementTree.fromstring(picture(figure, "a", "words"))


def paths(root: ElementTree.Element) -> list[str]:
    return [e.get("d", "") for e in root.iter("path")]


def test_a_line_goes_through_the_pixels_of_its_values() -> None:
    root = drawn([{"x": [0, 5, None, 10], "y": [0, 1, 2, 3], "mode": "lines"}], {"range": [0, 10]}, {"range": [0, 3]})
    assert "M100 320L350 220M600 20" in paths(root)
    assert root.get("aria-label") == "words"


def test_logarithmic_axes_and_annotations_on_them() -> None:
    note = {"x": 1, "y": 0, "text": "<b>ten</b> &lt;", "showarrow": False}
    root = drawn(
        [{"x": [1, 100, 0], "y": [1, 1, 1], "mode": "lines"}],
        {"type": "log", "range": [0, 2]},
        {"range": [0, 1]},
        annotations=[note],
    )
    assert "M100 20L600 20" in paths(root)  # 0 has no place
    text = next(t for t in root.iter("text") if "ten" in "".join(t.itertext()))
    assert "".join(text.itertext()) == "ten <"
    assert text[0].get("x") == "350"


def test_bars_stack_from_their_base() -> None:
    bars = [
        {"type": "bar", "orientation": "h", "x": [2], "y": [0], "width": 0.5, "marker": {"color": c}} for c in ("red", "blue")
    ]
    root = drawn(bars, {"range": [0, 10]}, {"range": [-0.5, 0.5]}, barmode="stack")
    boxes = [r for r in root.iter("rect") if r.get("fill") in ("red", "blue")]
    assert [(b.get("x"), b.get("width"), b.get("y"), b.get("height")) for b in boxes] == [
        ("100", "100", "95", "150"),
        ("200", "100", "95", "150"),
    ]


def test_heat_maps_leave_cells_without_a_value_out() -> None:
    z = np.array([[0.0, 1.0], [np.nan, 0.5]])
    heat = {"type": "heatmap", "z": z, "colorscale": [[0, "#000000"], [1, "#ffffff"]]}
    root = drawn([heat], {"range": [-0.5, 1.5]}, {"range": [-0.5, 1.5]})
    cells = {r.get("fill"): (r.get("x"), r.get("y")) for r in root.iter("rect") if r.get("fill", "").startswith("#")}
    assert cells == {"#000000": ("100", "170"), "#ffffff": ("350", "170"), "#808080": ("350", "20")}


def test_text_from_outside_stays_text() -> None:
    evil, words = "<script>a</script>", '"><script>'
    svg = picture(style.figure(style.LIGHT, [{"x": [1], "y": [1], "name": evil}] * 2, x={"title": evil}, y={}), "a", words)
    assert "<script" not in svg
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == words
    assert ["".join(text.itertext()) for text in root.iter("text")].count("a") == 3, (
        "both names and the title are there, without tags"
    )


def test_dark_figures_become_light() -> None:
    """The figure drawn in the light theme, colour by colour."""

    dark = style.figure(style.DARK, [{"x": [0], "y": [0], "name": style.DARK.ink}], x={}, y={})
    assert f'"name":"{style.DARK.ink}"' in str(light_theme(dark).to_json())  # names are no colours
    for family in style.LIGHT.families:
        for rank in range(12 if family != "reference" else 1):
            pair = []
            for theme in (style.LIGHT, style.DARK):
                line = {"color": style.fade(style.look(theme, "a", family, rank).colour, 0.5)}
                marker = {"color": list(theme.labels), "line": {"color": theme.noise}}
                pair.append(style.figure(theme, [{"x": [0], "y": [0], "line": line, "marker": marker}], x={}, y={}))
            assert light_theme(pair[1]).to_json() == pair[0].to_json()
    assert light_theme(pair[0]) is pair[0]
    assert not re.search(style.DARK.paper, str(light_theme(pair[1]).to_json()))


@pytest.mark.parametrize("wide", [330, 440])
def test_a_picture_has_the_width_that_is_asked_for(wide: int) -> None:
    figure = style.figure(style.LIGHT, [{"x": [0, 10], "y": [0, 3], "mode": "lines"}], x={"range": [0, 10]}, y={"range": [0, 3]})
    root = ElementTree.fromstring(picture(figure, "a", "", wide))
    assert root.get("viewBox", "").split()[2] == str(wide)
    ends = [float(n) for d in paths(root) for n in re.findall(r"[ML]([0-9.]+) ", d)]
    assert wide - 17 <= max(ends) <= wide
