"""Colours mean one thing and can be distinguished; static pictures have their width and no text that a browser obeys.

Pictures of rows: what they show is what they were given, for any number of rows and at the edges.
"""

import itertools
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dpviz.experiments.studies.inspected import principal_plane
from dpviz.figures import heat, style
from dpviz.figures import style as st
from dpviz.figures.influence import WEBGL_FROM, training_map
from dpviz.figures.rows_with_noise import rule_histogram
from dpviz.figures.style import THEMES, Theme, light_theme
from dpviz.figures.svg import picture
from dpviz.mechanisms.base import FAMILIES

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())

#: linear RGB as seen without one kind of cone, severity 1 (Machado, Oliveira, Fernandes 2009, table 1)
SIGHT = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
    x = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(colours: list[str], sight: str) -> float:
    seen = [lab(np.asarray(SIGHT[sight]) @ linear(c)) for c in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_families_and_noise_can_be_told_apart(theme: st.Theme, sight: str) -> None:
    assert tuple(theme.families) == FAMILIES
    assert closest([*theme.families.values(), theme.noise], sight) > 15
    # the control: red and green of equal lightness fail for the readers they fail
    assert closest(["#c23b3b", "#5b7d1e"], "deutan") < 15


@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_lines_and_text_stand_out_from_the_paper(theme: st.Theme) -> None:
    """3 for lines, 4.5 for text: ink on paper, and the signs of verdicts, in the paper's colour on their tiles."""
    lines = (theme.ink, theme.majority, theme.noise, *theme.labels, *theme.scale, *theme.families.values())
    assert min(st.contrast(colour, theme.paper) for colour in lines) >= 3
    signs = (theme.verdicts[kind] for kind in ("green", "blue", "red", "gray"))
    assert min(st.contrast(colour, theme.paper) for colour in (theme.ink, *signs)) >= 4.5
    assert st.contrast("#7f7f7f", "#ffffff") < 4.5, "the control"


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_groups_can_be_told_apart(theme: st.Theme, sight: str) -> None:
    looks = [st.group_look(theme, str(k), k) for k in range(13)]
    assert closest([one.colour for one in looks[:8]], sight) > 25
    assert min(st.contrast(one.colour, theme.paper) for one in looks) >= 3
    assert len({(one.colour, one.dash, one.symbol) for one in looks}) == 13
    # the control: five shades of one family, as groups were drawn before
    assert closest([st.look(theme, "", "gradient", k).colour for k in range(5)], sight) < 25


@pytest.mark.parametrize("sight", SIGHT)
def test_ten_chart_colours(sight: str) -> None:
    ten = CONFIG["theme"]["chartCategoricalColors"]
    assert len(set(ten)) == 10
    assert closest(ten, sight) > 15


@pytest.mark.parametrize("family", FAMILIES[1:])
@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_methods_of_a_family_differ_in_more_than_shade(theme: st.Theme, family: str) -> None:
    looks = [st.look(theme, str(k), family, k) for k in range(12)]
    assert looks[0].colour == theme.families[family]
    assert len({one.colour for one in looks}) == 12
    assert len({(one.dash, one.symbol) for one in looks}) == 12
    assert min(st.contrast(one.colour, theme.paper) for one in looks) >= 2.99


def test_shipped_configuration() -> None:
    assert (CONFIG["server"]["address"], CONFIG["server"]["maxUploadSize"]) == ("127.0.0.1", 50)
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "none"
    for theme, name in ((st.LIGHT, "light"), (st.DARK, "dark")):
        assert CONFIG["theme"][name]["backgroundColor"] == theme.paper


@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
@pytest.mark.parametrize("family", FAMILIES[1:])
def test_numbers_on_a_heat_map_are_readable_in_every_cell(theme: st.Theme, family: str) -> None:
    for k in (0, 1, 5):
        hue = st.look(theme, "", family, k).colour
        means = np.linspace(0.4, 0.9, 49).reshape(7, 7)
        ticks = [str(n) for n in range(7)]
        made = heat.heat(means, (ticks, ticks), ("a", "b"), theme, percent=True, best=None, present=None, hue=hue)
        shares = (means.ravel() - 0.4) / 0.5
        grounds = [heat._mix(theme.grid, hue, float(s)) for s in shares]
        assert min(map(st.contrast, made.data[1].textfont.color, grounds)) >= 3.9


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


@pytest.fixture
def theme() -> Theme:
    return THEMES["light"]


def points(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 2)), rng.random(n), 3 * np.arange(n) + 7


@pytest.mark.parametrize("n", [1, 500, WEBGL_FROM + 1])
def test_map_shows_every_row_once_under_its_id(n: int, theme: Theme) -> None:
    xy, influence, ids = points(n)
    with_noise = influence > 0.9
    fig = training_map(xy, influence, ids, theme, names=("a", "b"), with_noise=with_noise)
    drawn = [t for t in fig.data if t.customdata is not None]
    assert all(t.type == ("scattergl" if n > WEBGL_FROM else "scatter") for t in drawn)
    shown = np.concatenate([np.asarray(t.customdata) for t in drawn])
    assert shown.ndim == 1
    assert sorted(shown) == list(ids)
    for trace in (t for t in drawn if t.hoverinfo != "skip"):  # of many rows most are there for box and lasso alone
        assert trace.type == "scatter" or np.asarray(trace.x).dtype == np.float32
        at = (np.asarray(trace.customdata) - 7) // 3
        np.testing.assert_allclose(trace.x, xy[at, 0], rtol=1e-6)
        assert np.all(with_noise[at]) or not np.any(with_noise[at])
        assert trace.marker.symbol == ("diamond" if with_noise[at].any() else "circle")
    words = [t.name for t in fig.data if t.name]
    assert any(w == f"{int((~with_noise).sum()):,} trained without noise" for w in words) or with_noise.all()
    assert fig.layout.dragmode == "pan"


def test_principal_plane_keeps_the_largest_variance() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((200, 5)) * [5.0, 3.0, 0.1, 0.1, 0.1]
    xy, share = principal_plane(rows)
    assert xy.dtype == np.float32
    assert share[0] > share[1] > 0
    assert sum(share) == pytest.approx(xy.var(axis=0).sum() / rows.var(axis=0).sum(), rel=1e-5)
    again, _ = principal_plane(rows[::-1])
    np.testing.assert_allclose(again[::-1], xy, atol=1e-4)
    assert principal_plane(rows[:, :1])[0].shape == (200, 2)
    assert np.isfinite(principal_plane(np.ones((10, 3)))[0]).all()


@pytest.mark.parametrize(
    ("statistic", "low", "high"),
    [
        (np.geomspace(1e-3, 1, 100), -np.inf, 0.1),
        (np.geomspace(1e-3, 1, 100), 0.01, 0.1),
        (np.geomspace(1e-3, 1, 100), -np.inf, 1e-12),
        (np.geomspace(1e-3, 1, 100), -np.inf, 1e12),
        (np.r_[np.zeros(50), np.full(50, np.inf)], -np.inf, 1.0),
        (np.zeros(100), -np.inf, np.inf),
        (np.full(100, np.inf), -np.inf, np.inf),
    ],
)
def test_histogram_counts_every_row_and_shows_the_threshold(statistic: np.ndarray, low: float, high: float, theme: Theme) -> None:
    passes = (statistic >= low) & (statistic <= high)
    fig = rule_histogram(statistic, passes, low, high, theme, label="influence")
    passed, with_noise = fig.data
    assert np.sum(passed.y) == passes.sum()
    assert np.sum(with_noise.y) == (~passes).sum()
    left, right = fig.layout.xaxis.range
    lines = [s.x0 for s in fig.layout.shapes]
    assert lines == [pytest.approx(np.log10(t)) for t in (low, high) if 0 < t < np.inf]
    assert all(left < x < right for x in lines)
    if lines and np.isfinite(statistic).all() and low == -np.inf:
        # no bar of rows that pass stands beyond the threshold, none of the others before it
        width = np.asarray(passed.width)
        x = np.asarray(passed.x)
        assert np.all((x - width / 2)[np.asarray(passed.y) > 0] < lines[0])
        assert np.all((x + width / 2)[np.asarray(with_noise.y) > 0] > lines[0])
