"""A table on the command line: `dpviz run mine.csv --target income --positive ">50K"`; `-` reads standard input."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.common.validate import InvalidInput, check_choice, number_from_text

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.cli.parser import Parser
    from dpviz.datasets.sources.own import Content

STANDARD_INPUT = "-"
_HEADER: dict[str, bool | int] = {"names": True, "data": False, "second": 2}
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
#: options that mean nothing without a table
_GIVEN = (
    *("encoding", "header", "delimiter", "sheet", "target", "positive", "above", "columns", "drop", "range", "round_range"),
    *("categories", "missing", "fill", "person", "person_rows"),
)


def option_of(field: str) -> str:
    """The option that sets a field of a table or a release, which an error names; the field itself where none does.

    >>> option_of("round_range"), option_of("epsilon")
    ('--round-range', 'epsilon')
    """
    return f"--{field.replace('_', '-')}" if field in (*_GIVEN, "public_n", "out", "scheduler", "write_toml") else field


def add(parser: Parser, group: argparse._ActionsContainer | None = None) -> None:
    """Adds the options that say how a table is read.

    Args:
        group: for those that are not in the short help of most commands; one of their own by default.
    """
    from dpviz.datasets.table.cell_text import MISSING

    group = group or parser.add_argument_group(
        "a table of your own",
        "A TOML file beside the table may say the same (dpviz show TABLE --write-toml writes one); options win. In NAME=..., "
        "a name that holds = stands in double quotes.",
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column with the label; the last one by default")
    add_reading(parser.rest)
    parser.add_argument("--positive", action="append", metavar="VALUE", help="a label that counts as +1; may be repeated")
    group.add_argument("--above", metavar="NUMBER", help="labels above this count as +1")
    group.add_argument(
        "--columns", metavar="NAME,NAME", help='the features; every column that can be used by default; "A,B" with a comma inside'
    )
    group.add_argument("--drop", action="append", metavar="NAME", help="a column that is no feature; may be repeated")
    group.add_argument("--range", action="append", metavar="NAME=LOW,HIGH", help="a declared range; may be repeated")
    parser.rest.add_argument(
        "--round-range",
        action="append",
        metavar="NAME",
        help="a round range for a column of numbers: proposed from the rows, so it stays in what was read from them",
    )
    group.add_argument("--categories", action="append", metavar="NAME=A|B", help="declared categories; may be repeated")
    group.add_argument(
        "--missing",
        action="append",
        metavar="WORD|NAME=A|B",
        help="a word or number that is a gap, in all columns or in one; no other words are gaps then (found by default: "
        f"{', '.join(MISSING)}); '' for none but empty cells; may be repeated",
    )
    group.add_argument(
        "--fill", action="append", metavar="NAME=VALUE", help="a value for gaps in a column; rows with other gaps are left out"
    )
    group.add_argument(
        "--person", metavar="COLUMN", help="the column that names the person of a row: ε is then for a person instead of a row"
    )
    group.add_argument(
        "--person-rows",
        metavar="K",
        help="rows of one person that are kept at most, drawn at random; public, and noise grows with it (1)",
    )


def add_reading(parser: argparse._ActionsContainer) -> None:
    """Adds the options that say how the text of a table is read."""
    from dpviz.datasets.table.delimiters import DELIMITERS

    parser.add_argument("--encoding", metavar="NAME", help="of the text, such as utf-16 or cp1252; found by default")
    parser.add_argument(
        "--header", choices=_HEADER, help="what the first line holds, or that the second holds the names; found by default"
    )
    parser.add_argument("--delimiter", metavar="NAME", help=f"{', '.join(DELIMITERS.values())}; found by default")
    parser.add_argument("--sheet", metavar="NAME", help="of a workbook; the first that is shown and has cells by default")


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """The values of the options of `add_reading`."""
    how = {
        "encoding": options.encoding,
        "header": None if options.header is None else _HEADER[options.header],
        "delimiter": options.delimiter,
        "sheet": options.sheet,
    }
    return {name: value for name, value in how.items() if value is not None}


def dataset_name(options: argparse.Namespace, file: str | None) -> str | None:
    """The dataset's name: that of the table that was named, else what --dataset says.

    Raises:
        InvalidInput: the table cannot be read, or both are given, or options for a table without one.
    """
    if file is None:
        for name in _GIVEN:
            if getattr(options, name, None) is not None:
                raise InvalidInput(option_of(name), "says how a table is read, and none is named", "Name a file, or - .")
        return None if options.dataset is None else str(options.dataset)
    if options.dataset is not None:
        raise InvalidInput("--dataset", "cannot go with a file", "Give one of them.")
    from dpviz.datasets import list_datasets
    from dpviz.datasets.sources import own
    from dpviz.datasets.sources.remote import REMOTE
    from dpviz.mechanisms import list_mechanisms

    option = next((name for name in ("mechanism", "mechanisms") if hasattr(options, name)), None)
    if option and file in list_mechanisms() and not Path(file).exists():
        raise InvalidInput("file", f"{file!r} is a mechanism's name, and no file here has it", f"Write --{option} {file}.")
    if file in (*list_datasets(), *REMOTE) and not Path(file).exists():
        raise InvalidInput("file", f"{file!r} is a dataset's name, and no file here has it", f"Write --dataset {file}.")

    return own.hold(content(options, file))


def content(options: argparse.Namespace, file: str) -> Content:
    """The table that was named, with what the options say of it."""
    from dpviz.datasets.sources import own

    path, piped = source(file)
    return own.from_file(path, piped, reading=reading(options), by_frame=lambda frame: _by_frame(options, frame), **_how(options))


def source(file: str) -> tuple[Path | None, bytes | None]:
    """(path of a table, nothing), or (nothing, all of standard input) as far as a table may be large.

    Raises:
        InvalidInput: there is more, or standard input is closed.
    """
    from dpviz.common.limits import Limits
    from dpviz.datasets.sources.folder import read_bounded

    if file != STANDARD_INPUT:
        return Path(file), None
    if sys.stdin is None:
        raise InvalidInput("file", "standard input is closed", "Pipe a table into it, or name a file.")
    return None, read_bounded(sys.stdin.buffer, Limits.from_environment().widen())


def display_name(dataset: str, file: str | None) -> str:
    """The name of the rows in an answer."""
    return dataset if file is None else "standard input" if file == STANDARD_INPUT else file


def _how(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "target": options.target,
        "positive": options.positive,
        "above": None if options.above is None else number_from_text("--above", options.above),
        "columns": split_list(options.columns, ",") if options.columns else None,
        "drop": options.drop,
        "proposed": options.round_range,
        "person": options.person,
        "person_rows": None if options.person_rows is None else number_from_text("--person-rows", options.person_rows),
    }


def _by_frame(options: argparse.Namespace, frame: pd.DataFrame) -> dict[str, Any]:
    """Options for single columns, whose names are looked up in the table."""
    names = [str(name) for name in frame.columns]
    how: dict[str, Any] = {
        "ranges": {c: _ends(item, v) for item in options.range or () for c, v in [_parts("--range", item, names)]},
        "categories": {
            c: split_list(v, "|") for item in options.categories or () for c, v in [_parts("--categories", item, names)]
        },
        "defaults": filling(options.fill or (), frame),
        "missing_in": {},
    }
    for item in options.missing or ():
        word = _quoted(item)
        if word is not None and word[1] == "":
            how.setdefault("missing", []).append(word[0])
        elif "=" in item:
            column, value = _parts("--missing", item, names)
            how["missing_in"].setdefault(column, []).extend(split_list(value, "|"))
        else:
            how.setdefault("missing", []).extend([item] if item else [])
    return {name: value for name, value in how.items() if value != {}}


def filling(items: Sequence[str], frame: pd.DataFrame) -> dict[str, float | str]:
    """Values for gaps by column of a table, of --fill NAME=VALUE."""
    names = [str(name) for name in frame.columns]
    return {c: _filled(v, frame[c]) for item in items for c, v in [_parts("--fill", item, names)]}


def _parts(option: str, item: str, names: Sequence[str]) -> tuple[str, str]:
    """A column of the table and what follows it; a name may hold "=" itself."""
    if "=" not in item:
        raise InvalidInput(option, f"needs NAME=..., got {item!r}", "For example: --range age=17,90.")
    quoted = _quoted(item)
    if quoted is not None and quoted[1].startswith("="):
        return check_choice(option, quoted[0], names), quoted[1][1:]
    cuts = [at for at, sign in enumerate(item) if sign == "=" and item[:at] in names]
    if len(cuts) > 1:
        both = " or ".join(repr(item[:at]) for at in cuts)
        raise InvalidInput(option, f"may name the column {both}", f"Put the name in double quotes: {option} '\"NAME\"=...'.")
    if not cuts:
        return check_choice(option, item.partition("=")[0], names), ""
    return item[: cuts[0]], item[cuts[0] + 1 :]


def _quoted(item: str) -> tuple[str, str] | None:
    """(what stands in double quotes at the beginning, the rest); None where nothing does."""
    found = _QUOTED.match(item)
    return None if found is None else (found[1].replace('""', '"'), item[found.end() :])


def split_list(text: str, between: str) -> list[str]:
    """The words of a list; one that holds the separator stands in quotation marks, as in CSV."""
    return next(csv.reader([text], delimiter=between, skipinitialspace=True), [])


def _filled(text: str, series: pd.Series) -> float | str:
    from dpviz.datasets.table.cell_text import is_number

    return number_from_text("--fill", text) if is_number(series) else text


def _ends(item: str, value: str) -> list[float]:
    ends = [number_from_text("--range", text) for text in value.split(",")]
    if len(ends) != 2:
        raise InvalidInput("--range", f"needs NAME=LOW,HIGH, got {item!r}", "For example: --range age=17,90.")
    return ends
