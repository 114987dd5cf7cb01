"""One button makes a report of what a page shows."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from support_pages import ACCOUNTING, ROOT, opened

import dpviz
from dpviz.dashboard.kit import recorder


def made(page: AppTest) -> str:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)
    found: recorder.Recorder = page.session_state["dpviz.recorder"]
    return found.html(spec, "Teaching")


def test_a_page_is_written_with_its_charts_tables_and_badges() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for key, value in (("dataset", "teaching"), ("seeds", "2"), ("mechanism", "output-gaussian")):
        page.query_params[key] = value
    page.run()
    assert not page.exception
    html = made(page)
    body = html.rpartition("</script>")[2] + html.partition("<main>")[2][:3000]
    assert "✓ proved" in body
    assert html.count("<figcaption>") >= 3
    assert "Training accuracy" in html
    page.run()  # what was drawn before is forgotten
    assert made(page).count("<figcaption>") == html.count("<figcaption>")


@pytest.mark.long
def test_other_pages_too() -> None:
    assert made(opened(ACCOUNTING, mechanism="output-gaussian")).count("<figcaption>") >= 3
