"""Run A on the other pages: a mark in their pictures, a column in their tables, a sentence; kept in the address of all."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support import mostly_long
from support_pages import opened, settled, text

import dpviz
from dpviz.dashboard.frame import pinned

A = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=0.5, seeds=2)
#: page, column of its table, what its picture holds
PAGES = {
    "Accounting": ("", '"name":"A"'),
    "Sensitivity": ("", "A: Output perturbation"),
    "Trade-off": ("Against A", "<b>A</b>"),
    "Groups": ("A: accuracy", '"name":"A"'),
    "Person": ("A", ""),
    "Guarantees": ("Against A", "<b>A</b>"),
    "Audit": ("", "A allows"),
}


def pictures(page: AppTest) -> str:
    """All charts of a page as text."""
    found: list[Any] = [chart.proto.spec or chart.proto.figure.spec for chart in page.get("plotly_chart")]
    return "\n".join(json.dumps(json.loads(spec), separators=(",", ":"), ensure_ascii=False) for spec in found)


@pytest.mark.parametrize("name", mostly_long(PAGES, "Trade-off"))
def test_a_stays_on_every_page(name: str) -> None:
    column, mark = PAGES[name]
    query = {"mechanism": "output-gaussian", "epsilon": "2", "pinned": pinned.PINNED.write(A)}
    page = settled(settled(opened(name, **query)))  # the ranking chooses the methods of the sweep
    assert "A is Output perturbation (Gaussian) at ε = 0.5" in text(page)
    if column:
        assert any(str(head).replace("\\", "").startswith(column) for table in page.table for head in table.value.columns)
    assert not mark or mark in pictures(page)
    page.button(key="drop").click().run()
    assert "pinned" not in page.query_params
    assert "A is Output" not in text(page)
    page.button(key="keep-a").click().run()
    assert page.query_params["pinned"]


def test_the_map_marks_rows_whose_noise_differs_in_a() -> None:
    a = dpviz.RunSpec("teaching", mechanism="pidp-sgd", epsilon=0.5, seeds=2)
    page = settled(opened("Person", mechanism="output-gaussian", pinned=pinned.PINNED.write(a)))
    assert " differ in A" in pictures(page)
    assert "moves its model most" in text(page)


def test_a_run_on_other_rows_is_named_and_not_drawn() -> None:
    other = dpviz.RunSpec("breast-cancer", mechanism="output-gaussian", epsilon=0.5, seeds=2)
    page = settled(opened("Trade-off", methods="output-gaussian", pinned=pinned.PINNED.write(other)))
    assert "is trained on other rows" in text(page)
    assert all("Against A" not in "".join(map(str, table.value.columns)) for table in page.table)
