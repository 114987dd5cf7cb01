"""Reports of all pages in Chromium with the network off: they ask for nothing, draw every picture and can be printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpviz.dashboard.shell import headless, links

ROOT = Path(__file__).parents[2]
PAGES = [links.FIRST, *(links.title(path.stem) for path in sorted((ROOT / "pages").glob("*.py")))]
QUERY = {"dataset": "teaching", "seeds": "2", "mechanism": "output-gaussian"}


@pytest.mark.long
def test_reports_work_offline_and_print(chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900})
    view = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    for name in PAGES:
        found = headless.drawn(ROOT / "app.py", headless.page_of(ROOT / "app.py", name), QUERY)
        assert found.run is not None
        file = tmp_path / "report.html"
        html = found.html(*found.run)
        file.write_text(html)
        view.goto(file.as_uri())
        pictures = html.count("<figcaption>")
        view.wait_for_function(f"document.querySelectorAll('.js-plotly-plot .main-svg').length >= {pictures}")
        assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert len(view.pdf(prefer_css_page_size=True)) > 10_000
        assert wrong == [], name
        assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}, name
    context.close()


@pytest.mark.long
def test_without_javascript_and_on_paper_there_are_static_pictures(chromium: Any, tmp_path: Path) -> None:
    found = headless.drawn(ROOT / "app.py", headless.page_of(ROOT / "app.py", "Audit"), QUERY)
    assert found.run is not None
    file = tmp_path / "report.html"
    html = found.html(*found.run)
    file.write_text(html)
    pictures = html.count("<figcaption>")
    assert pictures >= 2
    for script, paper in ((False, False), (True, True), (True, False)):
        context = chromium.new_context(offline=True, java_script_enabled=script)
        view = context.new_page()
        view.goto(file.as_uri())
        if paper:
            view.emulate_media(media="print")
        still = [one for one in view.query_selector_all(".still svg[role=img]") if one.is_visible()]
        assert len(still) == (0 if script and not paper else pictures)
        assert any("false alarms" in (one.text_content() or "") for one in still) == bool(still)
        assert view.locator(".js-plotly-plot").first.is_visible() != bool(still)
        context.close()
