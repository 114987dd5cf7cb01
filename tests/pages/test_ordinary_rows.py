"""Membership attacks on ordinary rows on the page Audit, and their pictures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from support_pages import opened, settled, text

import dpviz
from dpviz.dashboard.audit import ordinary_rows
from dpviz.figures import membership as pictures
from dpviz.figures.style import THEMES

ASKED = {"dataset": "iris", "mechanism": "dp-gd", "attacked": "ordinary", "shadows": "64", "dp-gd.steps": "5"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))


def pressed(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click()
    page.run()
    return settled(page)


def test_the_page_says_what_the_engine_finds_and_explains_it_when_asked() -> None:
    page = opened("Audit", **ASKED)
    page.session_state["fold-attacks"] = page.session_state["fold-exposed"] = page.session_state["fold-computed"] = True
    said = text(settled(page))
    spec = dpviz.RunSpec("iris", mechanism="dp-gd", seeds=2, params={"steps": 5})
    found = dpviz.attack_run(spec, 64)
    assert found.sentence(run="DP-GD at ε = 1") in said
    assert "safe" not in said.lower()
    assert "Which row is attacked" not in [box.label for box in page.selectbox]
    numbers, exposed = page.table[0].value, page.table[1].value
    assert len(numbers) == 5
    assert list(map(str, exposed.index[:3])) == list(map(str, found.rows.index[:3]))
    assert "label" in str(exposed.iloc[0])
    code = next(block.value for block in page.code if "attack_run" in block.value)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["found"].table.equals(found.table)  # type: ignore[attr-defined]


@pytest.mark.long
def test_influence_and_other_epsilons_are_compared_on_request() -> None:
    page = settled(opened("Audit", **ASKED))
    page = pressed(page, "Compare the rows")
    assert "Rank correlation of influence" in text(page)
    page = pressed(page, "Attack at other ε")
    assert "members at ε = 0.1 and" in text(page)


def test_a_method_that_releases_a_label_is_refused_in_words() -> None:
    page = settled(opened("Audit", dataset="iris", mechanism="majority", attacked="ordinary", shadows="64"))
    assert any("releases one label" in error.value for error in page.error)


def test_one_row_stays_the_default() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200"))
    assert "Which row is attacked" in [box.label for box in page.selectbox]
    assert ordinary_rows.fields_of(dpviz.RunSpec("iris"))[0].default == ""


def test_curves_are_drawn_on_logarithmic_axes_and_stay_inside() -> None:
    alarms = np.geomspace(0.001, 1, 30)
    found = np.minimum(1, 3 * alarms)
    points = pd.DataFrame({"false_alarms": alarms, "detections": found, "low": found / 2, "high": np.minimum(1, 2 * found)})
    best, none = pictures.Roc("Best", points), pictures.Roc("Nothing", points.assign(detections=0.0, low=0.0, high=0.0))
    fig = pictures.roc(best, [none], THEMES["light"], allowed=(alarms, np.minimum(1, 5 * alarms)), without=best)
    by_name = {trace.name: trace for trace in fig.data if trace.name}
    assert by_name["Best, 95 % limits"].x[0] == pytest.approx(-1)
    assert by_name["Best, 95 % limits"].y[0] == pytest.approx(np.log10(0.3))
    assert by_name["allowed by the guarantee"].y[0] == pytest.approx(np.log10(0.5))
    assert len(by_name["the other attacks"].x) == 0
    assert all(np.isfinite(np.asarray(trace.y, float)).all() for trace in fig.data)
