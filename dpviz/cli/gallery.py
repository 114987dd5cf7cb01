"""`dpviz report --all`: lessons, slides, pages and figures of the papers as static pages, each with a link to the app."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dpviz.cli import answers, output
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.dashboard.components.lessons import Lesson
    from dpviz.reporting import Document
    from dpviz.reporting.document import Part

LIVE = "http://127.0.0.1:8501/"
_LESSONS, _PAGES, _PICTURES, _FIGURES = "Lessons", "Pages of the app", "Pictures that a setting shows", "Figures of papers"
_FILES = {_LESSONS: "lesson", _PAGES: "page", _PICTURES: "picture", _FIGURES: "figure"}
#: (title, page, address) of pictures that no page shows by itself
_SET = (
    ("The boundary of a network", "One model", {"model": "mlp", "mechanism": "dp-sgd"}),
    ("Sensitivity step by step", "Sensitivity", {"mechanism": "rsgd-ar", "part": "training"}),
    ("Rows that receive noise", "Person", {"mechanism": "pidp-sgd"}),
    ("Attacks on ordinary rows", "Audit", {"attacked": "ordinary", "shadows": "64"}),
)

#: options of it alone, as attributes
OPTIONS = ("live", "figure_rows")


def add(group: argparse._ActionsContainer) -> None:
    """Adds the options."""
    group.add_argument("--live", metavar="ADDRESS", help=f"all: the app that “Open live” leads to ({LIVE})")
    group.add_argument(
        "--figure-rows", metavar="N", help="all: figures on sets of up to so many rows (2000); 0 for none, 100000 for all"
    )


def run(options: argparse.Namespace) -> None:
    """Writes the pages."""
    from dpviz.reporting.document import gallery, render, slides

    out = Path(options.out)
    if not options.out.strip() or out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise InvalidInput("--out", f"{options.out!r} is no new or empty folder", "Name a new one; nothing is overwritten.")
    if not os.path.isdir(out.absolute().parent):
        raise InvalidInput("--out", f"the folder of {options.out!r} is not there", "Make it first, or name one that is there.")
    live = (options.live or LIVE).rstrip("/") + "/"
    if urlsplit(live).scheme not in ("http", "https") or not urlsplit(live).netloc:
        raise InvalidInput("--live", f"{live[:60]!r} is no address", f"Give one like {LIVE}.")
    most = check_integer("--figure-rows", number_from_text("--figure-rows", options.figure_rows or "2000"), 0, 10**9)
    parts: dict[str, list[tuple[str, str, str]]] = {heading: [] for heading in _FILES}
    try:
        os.makedirs(out, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InvalidInput("--out", f"cannot be made: {error}", "Name a folder that can be written.") from error
    lessons: list[Document] = []
    with Bar() as bar:
        for heading, title, document in _documents(live, most, bar):
            name = f"{_FILES[heading]}-{re.sub('[^a-z0-9]+', '-', title.lower().replace('ε', 'epsilon')).strip('-')}.html"
            output.save(out / name, render(document).encode())
            parts[heading].append((name, title, document.sentence))
            lessons += [document] * (heading == _LESSONS)
    output.save(out / "slides.html", slides(lessons, live).encode())
    index = gallery({heading: pages for heading, pages in parts.items() if pages}, live)
    output.save(out / "index.html", index.encode())
    count, size = sum(map(len, parts.values())), sum(path.stat().st_size for path in out.iterdir())
    text = f"{out / 'index.html'}: {count} pages, {size / 1e6:.1f} MB"
    answers.give(options, text, {"out": out, "pages": count, "bytes": size})


def _documents(live: str, most: int, bar: Bar) -> Iterator[tuple[str, str, Document]]:
    """(part of the gallery, title, content) of each page."""
    from dpviz.cli.main import app_script
    from dpviz.dashboard.components.lessons import LESSONS
    from dpviz.dashboard.frame import headless, links
    from dpviz.dashboard.trade_off.presets import figure_run
    from dpviz.datasets.sources.synthetic import SOURCE
    from dpviz.papers.figures import catalogue
    from dpviz.reporting.calls import address_text

    script = app_script()

    def drawn(title: str, query: dict[str, str]) -> Document:
        page = headless.page_of(script, title)
        record = headless.record_page(script, page, query, bar)
        assert record.run is not None  # every page has the controls of a run
        path = "" if page == script else re.sub(r"^\d+_", "", page.stem)
        rows = SOURCE.owns(record.run[0].dataset)  # rows of synthetic sets are of no person
        return replace(record.document(*record.run, rows=rows), live=f"{live}{path}{address_text(query).removeprefix('/')}")

    for number, lesson in enumerate(LESSONS, 1):
        yield _LESSONS, f"{number}. {lesson.title}", _lesson(lesson, drawn(lesson.page, lesson.address()))
    for stem in ["", *(path.stem for path in sorted((script.parent / "pages").glob("*.py")))]:
        title = links.title(stem) or links.FIRST
        if title != _LESSONS:
            yield _PAGES, title, drawn(title, {})
    for title, name, query in _SET:
        yield _PICTURES, title, replace(drawn(name, query), question=title)
    for name, (figure, panel) in catalogue.PANELS.items():
        if panel.rows <= most:
            spec, beside = figure_run(name, 1.0)
            document = drawn("Trade-off", spec.to_query() | {key: value for key, value in beside.items() if value})
            title = f"{figure.source.name}, {figure.number}, {panel.title}"
            yield _FIGURES, title, replace(document, question=title)


def _lesson(lesson: Lesson, page: Document) -> Document:
    """A lesson: its question, the pictures that answer it, and the engine's answer below."""
    from dpviz.dashboard.lessons.view import picture, sentence
    from dpviz.reporting import Chart, Text

    answer = lesson.measure(lesson.spec)
    parts: list[Part] = [
        *(part for part in page.parts if isinstance(part, Chart)),
        Text("Answer", heading=True),
        Text(f"{sentence(lesson, answer)}."),
        Chart(*picture(lesson, answer), answer.evidence.drop(columns="chosen", errors="ignore")),
        Text(lesson.explanation),
        Text(f"A common mistake: {lesson.pitfall}"),
    ]
    return replace(page, question=lesson.title, sentence=lesson.question, parts=parts)
