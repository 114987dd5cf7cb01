"""The gallery: static pages that ask for nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import LIMIT, until

from dpviz.cli.main import main
from dpviz.dashboard.components.lessons import LESSONS
from dpviz.experiments.run.spec import RunSpec

LIVE = "https://class.example.org/dpviz/"


@pytest.mark.long
def test_the_gallery_opens_offline_and_every_page_leads_to_the_app(
    chromium: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    assert main(["report", "--all", "--out", str(site), "--live", LIVE, "--figure-rows", "150", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
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
def test_bad_input_is_one_line(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    places = {"full": tmp_path / "full", "new": tmp_path / "new"}
    assert main(["report", "--all", *(one.format(**places) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()
