"""Reports in Chromium with the network and JavaScript off: every picture is there, and each can be printed."""

from pathlib import Path
from typing import Any

import pytest
from support import LIMIT

from dpviz.dashboard.frame import headless, links

ROOT = Path(__file__).parents[2]
PAGES = (links.FIRST, "Person", "Claims")
QUERY = {"dataset": "teaching", "seeds": "2", "mechanism": "output-gaussian"}


@pytest.mark.long
def test_reports_work_offline_and_print(chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    context = chromium.new_context(offline=True, java_script_enabled=False, viewport={"width": 1280, "height": 900})
    view = context.new_page()
    view.set_default_timeout(1000 * LIMIT)
    asked: list[str] = []
    wrong: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    for name in PAGES:
        found = headless.record_page(ROOT / "app.py", headless.page_of(ROOT / "app.py", name), QUERY)
        assert found.run is not None
        file = tmp_path / "report.html"
        html = found.html(*found.run)
        file.write_text(html)
        view.goto(file.as_uri())
        pictures = html.count("<figcaption>")
        assert view.locator("figure > svg[role=img]").count() == pictures, name
        assert len(html.encode()) < 2_000_000, name
        assert max(one.bounding_box()["width"] for one in view.query_selector_all("main, figure")) <= 1280, name
        assert len(view.pdf(prefer_css_page_size=True)) > 10_000
        assert wrong == [], name
        assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}, name
    context.close()
