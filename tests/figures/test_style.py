"""Colours mean one thing and can be distinguished."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpviz.figures import heat
from dpviz.figures import style as st
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
def test_lines_stand_out_from_the_paper(theme: st.Theme) -> None:
    for colour in (theme.ink, theme.majority, theme.noise, *theme.labels, *theme.scale, *theme.families.values()):
        assert st.contrast(colour, theme.paper) >= 3


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


def test_figures_have_the_pages_background() -> None:
    for theme, name in ((st.LIGHT, "light"), (st.DARK, "dark")):
        assert CONFIG["theme"][name]["backgroundColor"] == theme.paper


@pytest.mark.parametrize("family", FAMILIES[1:])
@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_methods_of_a_family_differ_in_more_than_shade(theme: st.Theme, family: str) -> None:
    looks = [st.look(theme, str(k), family, k) for k in range(12)]
    assert looks[0].colour == theme.families[family]
    assert len({one.colour for one in looks}) == 12
    assert len({(one.dash, one.symbol) for one in looks}) == 12
    assert min(st.contrast(one.colour, theme.paper) for one in looks) >= 2.99


def test_contrast_is_that_of_the_standard() -> None:
    assert st.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert st.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_shipped_configuration() -> None:
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["maxUploadSize"] == 50
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "none"


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


@pytest.mark.parametrize("theme", st.THEMES.values(), ids=st.THEMES)
def test_text_and_signs_in_figures_have_contrast(theme: st.Theme) -> None:
    """4.5 for text: ink on paper, and the signs of verdicts, in the paper's colour on their tiles."""
    assert st.contrast(theme.ink, theme.paper) >= 4.5
    for kind in ("green", "blue", "red", "gray"):
        assert st.contrast(theme.verdicts[kind], theme.paper) >= 4.5
    assert st.contrast("#7f7f7f", "#ffffff") < 4.5, "the control"
