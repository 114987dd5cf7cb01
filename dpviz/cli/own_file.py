"""A table on the command line: `dpviz run mine.csv --target income --positive ">50K"`; `-` reads standard input."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpviz.common.validate import InvalidInput, number_from_text

STANDARD_INPUT = "-"
_HEADER = {"names": True, "data": False}
DELIMITER_NAMES = ("comma", "semicolon", "tab", "vertical bar", "white space")


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how a table is read."""
    group = parser.add_argument_group("a table of your own", "A TOML file beside the table may say the same; options win.")
    group.add_argument("--target", metavar="COLUMN", help="the column with the label; the last one by default")
    add_reading(group)
    group.add_argument("--positive", action="append", metavar="VALUE", help="a label that counts as +1; may be repeated")
    group.add_argument("--above", metavar="NUMBER", help="labels above this count as +1")
    group.add_argument(
        "--columns", metavar="NAME,NAME", help='the features; every column that can be used by default; "A,B" with a comma inside'
    )
    group.add_argument("--drop", action="append", metavar="NAME", help="a column that is no feature; may be repeated")
    group.add_argument("--range", action="append", metavar="NAME=LOW,HIGH", help="a declared range; may be repeated")
    group.add_argument("--categories", action="append", metavar="NAME=A|B", help="declared categories; may be repeated")
    group.add_argument(
        "--fill", action="append", metavar="NAME=VALUE", help="a value for gaps in a column; rows with other gaps are left out"
    )


def add_reading(parser: argparse._ActionsContainer) -> None:
    """Adds the options that say how the text of a table is read."""
    parser.add_argument("--encoding", metavar="NAME", help="of the text, such as utf-16 or cp1252; found by default")
    parser.add_argument("--header", choices=_HEADER, help="what the first line holds; found by default")
    parser.add_argument("--delimiter", metavar="NAME", help=f"{', '.join(DELIMITER_NAMES)}; found by default")


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """What the options of `add_reading` say."""
    how = {
        "encoding": options.encoding,
        "header": None if options.header is None else _HEADER[options.header],
        "delimiter": options.delimiter,
    }
    return {name: value for name, value in how.items() if value is not None}


def dataset_name(options: argparse.Namespace, file: str | None) -> str | None:
    """The dataset's name: that of the table that was named, else what --dataset says.

    Raises:
        InvalidInput: the table cannot be read, or both are given, or options for a table without one.
    """
    how, text = _how(options), reading(options)
    if file is None:
        for name in (*text, *how):
            raise InvalidInput(f"--{name}", "says how a table is read, and none is named", "Name a file, or - .")
        return None if options.dataset is None else str(options.dataset)
    if options.dataset is not None:
        raise InvalidInput("--dataset", "cannot go with a file", "Give one of them.")
    from dpviz.datasets.sources import own

    if file == STANDARD_INPUT:
        return own.hold(own.from_file(None, sys.stdin.buffer.read(), reading=text, **how))
    return own.hold(own.from_file(Path(file), reading=text, **how))


def shown(dataset: str, file: str | None) -> str:
    """What to call the rows in an answer."""
    return dataset if file is None else "standard input" if file == STANDARD_INPUT else file


def _how(options: argparse.Namespace) -> dict[str, Any]:
    how = {
        "target": options.target,
        "positive": options.positive,
        "above": None if options.above is None else number_from_text("--above", options.above),
        "columns": _several(options.columns, ",") if options.columns else None,
        "drop": options.drop,
        "ranges": {c: _ends(item, v) for item in options.range or () for c, v in [_parts("--range", item)]},
        "categories": {c: _several(v, "|") for item in options.categories or () for c, v in [_parts("--categories", item)]},
        "defaults": filling(options.fill or ()),
    }
    if how["defaults"]:
        how["missing"] = "default"
    return {name: value for name, value in how.items() if value not in (None, {})}


def filling(items: Sequence[str]) -> dict[str, float | str]:
    """Values for gaps by column, of --fill NAME=VALUE."""
    return {c: _filled(v) for item in items for c, v in [_parts("--fill", item)]}


def _parts(option: str, item: str) -> tuple[str, str]:
    name, equals, value = item.rpartition("=")
    if not equals:
        raise InvalidInput(option, f"needs NAME=..., got {item!r}", "For example: --range age=17,90.")
    return name, value


def _several(text: str, between: str) -> list[str]:
    """The words of a list; one that holds the separator stands in quotation marks, as in CSV."""
    return next(csv.reader([text], delimiter=between, skipinitialspace=True), [])


def _filled(text: str) -> float | str:
    try:
        return number_from_text("--fill", text)
    except InvalidInput:  # a category
        return text


def _ends(item: str, value: str) -> list[float]:
    ends = [number_from_text("--range", text) for text in value.split(",")]
    if len(ends) != 2:
        raise InvalidInput("--range", f"needs NAME=LOW,HIGH, got {item!r}", "For example: --range age=17,90.")
    return ends
