"""A report as a value, and as one HTML file that needs nothing else: no network, no other file."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any, TypeAlias

import pandas as pd
from jinja2 import Environment, Template

from dpviz.common.version import __version__
from dpviz.figures import svg
from dpviz.figures.style import light_theme

_ROWS = 60  # of a table that are written out
_LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "plotly")
#: text between tags, and a piece of a long word in it: words are not broken but there, so that no number is
_TEXT, _LONG = re.compile(r">[^<]+<"), re.compile(r"([^\s&;<>]{24})(?=[^\s&;<>])")


@dataclass(frozen=True)
class Text:
    """A heading or a paragraph, shown as it is."""

    text: str
    heading: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table with its caption."""

    caption: str
    frame: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture with its content in words, and the table behind it where there is one.

    Attributes:
        figure: a plotly figure of `dpviz.figures`.
        words: what a reader sees in it, with numbers.
        table: its data, folded below, or what makes it when the report is written.
    """

    figure: Any
    words: str
    table: pd.DataFrame | Callable[[], pd.DataFrame] | None = None

    @property
    def data(self) -> pd.DataFrame | None:
        """Its data; None where there is none."""
        return self.table() if callable(self.table) else self.table


Part: TypeAlias = Text | Table | Chart


@dataclass(frozen=True, eq=False)
class Document:
    """The content of a report.

    Attributes:
        question: what is asked.
        sentence: the answer.
        badges: labels of guarantees, each with its sign.
        parts: pictures, tables and texts, in order.
        repeat: (language, code) that gives the same numbers.
        settings: names and values of all that decides the numbers.
        link: the address of the page, or the part of it that holds the run.
        subject: method, data and ε that it is about.
        live: address at which the app shows it, where it is a page of a gallery.
    """

    question: str
    sentence: str
    badges: Sequence[str] = ()
    parts: Sequence[Part] = ()
    repeat: Sequence[tuple[str, str]] = ()
    settings: Sequence[tuple[str, object]] = ()
    link: str = ""
    subject: str = ""
    live: str = ""


def render(document: Document, *, date: datetime | None = None) -> str:
    """The report as HTML: light, without JavaScript or a call to any host; pictures are SVG and say their values on hovering.

    Args:
        date: to be written into it; now by default.
    """
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return _template("report").render(
        document=document,
        parts=_shown(document.parts),
        settings=[(name, f"{value:.6g}" if isinstance(value, float) else value) for name, value in document.settings],
        date=(date or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        libraries=libraries,
    )


def gallery(parts: Mapping[str, Sequence[tuple[str, str, str]]], live: str) -> str:
    """The first page of a folder of reports.

    Args:
        parts: heading to (file, title, sentence) of each report.
        live: address of the app.
    """
    return _template("gallery").render(parts=parts, live=live, version=__version__)


def slides(lessons: Sequence[Document], live: str) -> str:
    """Lessons as one file of slides: for each its question, then its answer with a picture, then the reason.

    Args:
        lessons: each ends with a text, a chart and texts below the heading “Answer”.
        live: address of the app.
    """
    shown = []
    for number, lesson in enumerate(lessons, 1):
        heading = max(k for k, part in enumerate(lesson.parts) if isinstance(part, Text) and part.heading)
        shown.append((lesson, _shown(lesson.parts[heading + 1 :], f"slide-{number}")))
    return _template("slides").render(lessons=shown, live=live, version=__version__)


def _shown(parts: Sequence[Part], name: str = "picture") -> list[dict[str, Any]]:
    """Parts as the templates show them; pictures are named by `name` and a number."""
    shown: list[dict[str, Any]] = []
    drawn = 0
    for part in parts:
        if isinstance(part, Text):
            shown.append({"kind": "heading" if part.heading else "text", "text": part.text})
        elif isinstance(part, Table):
            shown.append({"kind": "table", "text": part.caption, "table": _html(part.frame), "more": _more(part.frame)})
        else:
            drawn += 1
            data = part.data
            table = None if data is None else _html(data)
            more = "" if data is None else _more(data)
            picture = svg.picture(light_theme(part.figure), f"{name}-{drawn}", part.words)
            shown.append({"kind": "chart", "text": part.words, "picture": picture, "table": table, "more": more})
    return shown


def _template(name: str) -> Template:
    text = files("dpviz.reporting").joinpath(f"{name}.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(text)


def _html(table: pd.DataFrame) -> str:
    made = table.head(_ROWS).to_html(index=False, border=0, escape=True, float_format=lambda value: f"{value:.4g}", na_rep="–")
    return _TEXT.sub(lambda part: _LONG.sub(r"\1<wbr>", part[0]), made)


def _more(table: pd.DataFrame) -> str:
    return f"The first {_ROWS:,} of {len(table):,} rows." if len(table) > _ROWS else ""
