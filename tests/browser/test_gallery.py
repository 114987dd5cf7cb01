"""The gallery, reports and the site of the docs: static pages that ask for nothing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import LIMIT, until
from support_shell import Shell

import dpviz
from dpviz.dashboard.components.lessons import LESSONS
from dpviz.dashboard.frame import headless, links
from dpviz.experiments.run.spec import RunSpec

LIVE = "https://class.example.org/dpviz/"


@pytest.mark.long
def test_the_gallery_opens_offline_and_every_page_leads_to_the_app(chromium: Any, tmp_path: Path, shell: Shell) -> None:
    site = tmp_path / "site"
    answer = shell.json(["report", "--all", "--out", str(site), "--live", LIVE, "--figure-rows", "150"])
    assert list(answer) == ["command", "version", "schema", "out", "pages", "bytes"]
    names = {path.name for path in site.iterdir()}
    assert len([name for name in names if name.startswith("lesson-")]) == len(LESSONS)
    assert len([name for name in names if name.startswith("page-")]) == 11
    assert len([name for name in names if name.startswith("figure-")]) == 2
    assert len(names) == answer["pages"] + 2
    assert sum(path.stat().st_size for path in site.iterdir()) < 3_000_000
    asked: list[str] = []
    page = chromium.new_page()
    page.set_default_timeout(1000 * LIMIT)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto(f"file://{site}/index.html")
    links = page.eval_on_selector_all("li a", "all => all.map(a => a.getAttribute('href'))")
    assert set(links) == names - {"index.html", "slides.html"}
    for name in links:
        page.goto(f"file://{site}/{name}")
        assert page.locator("h1").inner_text()
        lives = page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))")
        assert {link for link in lives if link != "index.html"} == {next(link for link in lives if link.startswith(LIVE))}
        if name.startswith("lesson-2"):
            run = RunSpec.from_query(lives[1].partition("?")[2])
            assert (run.dataset, run.epsilon) == ("census-2000", 0.1)
            assert "v=" in lives[1]
    said = {path.name: path.read_text() for path in site.iterdir()}
    shown = {
        "picture-the-boundary-of-a-network.html": "best of 3 long trainings",
        "picture-sensitivity-step-by-step.html": "worst-case distance of two runs",
        "picture-rows-that-receive-noise.html": "asks for noise on",
        "picture-attacks-on-ordinary-rows.html": "of the members",
    }
    assert {name for name in names if name.startswith("picture-")} == set(shown)
    assert all(words in said[name] for name, words in shown.items())
    assert not any(words in said[name] for name in names if name.startswith("page-") for words in list(shown.values())[:3])
    assert "Colour is influence" in said["page-person.html"]  # the rows of a synthetic set are shown,
    assert not any("Colour is influence" in text for text in said.values() if "on Breast cancer" in text)  # others are not
    page.goto(f"file://{site}/slides.html")
    slides = page.locator("section")
    assert slides.count() == 1 + 3 * len(LESSONS)
    assert page.locator("svg").count() == len(LESSONS)
    assert page.get_by_text("Open live").count() == len(LESSONS)
    for key, shown in (("ArrowRight", 1), ("PageDown", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        until(lambda shown=shown: abs(slides.nth(shown).bounding_box()["y"]) < 5, f"slide {shown}")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == slides.count()
    page.close()
    assert all(url.startswith("file://") for url in asked), asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "{full}"], "no new or empty folder"),
        (["--out", ""], "no new or empty folder"),
        (["--out", "{new}/deeper"], "is not there"),
        (["--out", "{new}", "--live", "javascript:alert(1)"], "is no address"),
        (["--out", "{new}", "--figure-rows", "-1"], "figure-rows"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    places = {"full": tmp_path / "full", "new": tmp_path / "new"}
    error = shell.refused(["report", "--all", *(one.format(**places) for one in arguments)])
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


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


DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs() -> None:
    cells = [cell for path in NOTEBOOKS for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert len(NOTEBOOKS) == 2
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.long
def test_the_site_is_built_without_warnings_and_asks_for_nothing(chromium: Any, tmp_path: Path) -> None:
    for name in ("sphinx", "myst_nb", "furo", "latex2mathml"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'dpviz[docs]'")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    paths = os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])
    built = subprocess.run(build, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert built.returncode == 0, built.stderr[-3000:]
    text = "".join(path.read_text() for path in tmp_path.glob("python*.html"))
    assert [name for name in dpviz.__all__ if f'id="dpviz.{name}"' not in text] == ["__version__"]
    assert "claim exceeded" in (tmp_path / "notebook_audit.html").read_text()
    assert "<svg" in (tmp_path / "notebook_cost.html").read_text()
    asked: list[str] = []
    page = chromium.new_page()
    page.set_default_timeout(1000 * LIMIT)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    for path in [*DOCS.glob("*.md"), *NOTEBOOKS, Path("genindex")]:
        page.goto((tmp_path / f"{path.stem}.html").as_uri())
        assert page.locator("h1").first.inner_text()
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
