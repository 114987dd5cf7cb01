"""Reading a CSV that anyone may have made: strict, bounded, and in words where something is wrong.

Nothing is repaired in silence. What a person may want to know (encoding and delimiter found, spaces trimmed) is in
`Table.notes`.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from dpviz.common.validate import InvalidInput, show
from dpviz.common.words import Words
from dpviz.datasets.process.limits import Limits
from dpviz.datasets.table.cell_text import ASK_TEXT, cells_of, is_number, typed
from dpviz.datasets.table.decode import decode
from dpviz.datasets.table.delimiters import DELIMITERS, WHITE_SPACE, find_delimiter, tabs
from dpviz.datasets.table.encoding import INTERCEPT

_BOM = b"\xef\xbb\xbf"
_MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"SQLite format 3": "a database",
    b"\x7fELF": "a program",
    b"{\\rtf": "a rich text document",
}
_MARKUP = re.compile(r"<[A-Za-z!?/]")
_JSON = re.compile(r"[\[{]\s*[\[\]{}(\"'0-9-]")
MAX_NAME = 120


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes:
        frame: columns are float64 or categories of str; NaN where missing.
        notes: what was found or done, one sentence each.
    """

    frame: pd.DataFrame
    notes: tuple[Words, ...]


def read_csv(
    content: bytes,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: Limits | None = None,
) -> Table:
    """A table from the bytes of a CSV file, plain or gzipped.

    Args:
        content: the file.
        header: whether the first line holds the names; without, columns are "column 1", "column 2", ... None takes
            a line of numbers for data and any other for names, and refuses names that look like data.
        delimiter: one of `DELIMITERS`; None finds it.
        encoding: one of `dpviz.datasets.table.decode.ENCODINGS`; None finds it.
        limits: bounds; the environment's by default.

    Raises:
        InvalidInput: with what is wrong, the line where it is, and what to do.
    """
    limits = limits or Limits.from_environment()
    if delimiter is not None and delimiter not in DELIMITERS:
        raise InvalidInput("delimiter", f"unknown value {show(delimiter)}", f"Choose one of: {', '.join(DELIMITERS.values())}.")
    notes: list[Words] = []
    text = decode(unpack(content, limits), encoding, notes)
    _no_markup(text)
    return read_text(text, header=header, delimiter=delimiter, limits=limits, notes=notes)


def read_text(text: str, *, header: bool | None, delimiter: str | None, limits: Limits, notes: list[Words]) -> Table:
    """`read_csv` from the text of the file; `notes` is what was found before."""
    excel = re.match(r"\"?sep=([,;\t|])\"?\n", text, re.IGNORECASE)
    if excel:
        text = text[excel.end() - 1 :]  # the line break stays, so that later lines keep their numbers
        notes.append("Excel's first line, which names the separator, was skipped.")
    separator = delimiter or (excel[1] if excel else find_delimiter(text))
    if delimiter is None and separator != ",":
        notes.append(f"Columns are separated by {DELIMITERS[separator]}.")
    if separator == WHITE_SPACE:
        text, separator = tabs(text), "\t"
    if header is None and _numbers_only(text, separator):
        header = False
        notes.append(
            "The first line holds numbers only, so it was read as data; columns are called column 1, column 2 and so on."
        )
    names, rows = _check(text, separator, header, limits)
    named = header is not False
    raw = cells_of(text, separator, len(names))
    del text
    raw = raw[1:] if named else raw  # the first row that is not blank, wherever it stands
    if len(raw) != rows:
        raise InvalidInput(
            "file", "quotes are used in a way that programs read differently", "Quote whole values only, with double quotes."
        )
    trimmed = 0
    columns: dict[str, pd.Series] = {}
    for position, name in enumerate(names):
        values, changed = typed(name, raw[position], separator, notes)
        columns[name] = values
        trimmed += changed
    if trimmed:
        notes.append(f"Spaces around {trimmed:,} values were removed.")
    if header is None:
        _no_data_in_header(columns)
    return Table(pd.DataFrame(columns), tuple(notes))


def unpack(content: bytes, limits: Limits) -> bytes:
    """A file's bytes, unpacked where it is a gzip archive.

    Raises:
        InvalidInput: it is empty, too large, damaged, or of a kind that is not text.
    """
    most = limits.megabytes * 1_000_000
    fix: Words = f"The limit is {limits.megabytes} MB (DPVIZ_MAX_MEGABYTES). Take a sample of the rows, or fewer columns."
    if len(content) > most:
        raise InvalidInput("file", f"is {len(content) / 1e6:.0f} MB large", fix)
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as archive:  # all parts, where several were joined
                content = archive.read(most + 1)
        except EOFError as error:
            raise InvalidInput("file", "is a gzip archive that ends too early", "Make or download it again.") from error
        except (OSError, zlib.error) as error:
            raise InvalidInput("file", f"is a damaged gzip archive ({error})", "Make or download it again.") from error
        if len(content) > most:
            raise InvalidInput("file", f"unpacks to more than {limits.megabytes} MB", fix)
    if not content.removeprefix(_BOM).strip():
        raise InvalidInput("file", "is empty", "Choose a file with a header and rows.")
    start = content[:64].removeprefix(_BOM).lstrip()
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            raise InvalidInput("file", f"is {kind}, not text", ASK_TEXT)
    return content


def _no_markup(text: str) -> None:
    start = text[:64].lstrip("\ufeff \t\n")
    for pattern, kind in ((_MARKUP, "a web page or XML"), (_JSON, "JSON")):
        if pattern.match(start):
            raise InvalidInput("file", f"is {kind}, not a table", ASK_TEXT)
    if not start.strip() and not text.strip("\ufeff \t\n"):
        raise InvalidInput("file", "is empty", "Choose a file with a header and rows.")


def _numbers_only(text: str, delimiter: str) -> bool:
    """Whether all values of the first line are numbers, with a decimal point or comma."""
    first = next((line for line in text.split("\n", 20)[:20] if line.strip()), "")
    cells = [cell.strip() for cell in first.split(delimiter)]
    return len(cells) > 1 and all(_is_number(cell if delimiter == "," else cell.replace(",", ".")) for cell in cells)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        what = str(error)
        if "unexpected end of data" in what:
            cause = f"a quote that opens on line {line:,} is never closed"
        elif "field larger" in what:
            cause = f"a value on line {line:,} is longer than {csv.field_size_limit():,} characters; a quote may be left open"
        else:
            cause = f"line {line:,} cannot be read ({what})"
        raise InvalidInput("file", cause, "Correct the quotes on that line.") from error


def _check(text: str, delimiter: str, header: bool | None, limits: Limits) -> tuple[list[str], int]:
    """(names, number of data rows) of a table whose every row has the same number of cells."""
    rows = _rows(text, delimiter)
    line, first = next(rows)
    width = len(first)
    if width > limits.columns:
        raise InvalidInput(
            "file", f"has {width:,} columns", f"The limit is {limits.columns:,} (DPVIZ_MAX_COLUMNS). Leave some out."
        )
    names = [f"column {k + 1}" for k in range(width)]
    if header is not False:
        names = [cell.strip() for cell in first]
    count = 1 if header is False else 0
    for at, row in rows:
        if len(row) != width:
            if width == 1:
                raise InvalidInput(
                    "file",
                    f"line {line} has one value where line {at:,} has {len(row)}",
                    "Remove titles and comments above the line with the names.",
                )
            raise InvalidInput(
                "file",
                f"line {at:,} has {len(row)} values where line {line} has {width}",
                "Give every line the same number of values; put values that contain the delimiter in double quotes.",
            )
        count += 1
        if count > limits.rows:
            raise InvalidInput(
                "file", f"has more than {limits.rows:,} rows", "Take a sample of the rows, or raise DPVIZ_MAX_ROWS."
            )
    if width == 1:
        raise InvalidInput("file", "has one column only", "Check the delimiter; a label and at least one feature are needed.")
    if header is not False:
        check_names(names, sure=header is True)
    if count == 0:
        raise InvalidInput("file", "has a header but no rows", "Choose a file with rows.")
    return names, count


_NO_NAMES: Words = "If the first line holds data, say that there are no names; otherwise correct the name."


def check_names(names: list[str], sure: bool) -> None:
    """Checks names of columns.

    Args:
        sure: whether a person said that they are names.

    Raises:
        InvalidInput: one is empty, too long, given twice, cannot be seen, or looks like data.
    """
    numbers = [name for name in names if _is_number(name)]
    if numbers and not sure:
        raise InvalidInput(
            "header",
            f"the first line looks like data: {show(numbers[0])} would be the name of a column",
            "Say whether the first line holds names or data.",
        )
    same: dict[str, str] = {}
    for k, name in enumerate(names):
        if not name:
            raise InvalidInput("header", f"column {k + 1} has no name", "Name every column on the first line.")
        if len(name) > MAX_NAME:
            raise InvalidInput("header", f"the name of column {k + 1} has {len(name):,} characters", f"Use {MAX_NAME} at most.")
        if not name.isprintable():
            raise InvalidInput(
                "header",
                f"the name of column {k + 1} holds a character that cannot be seen: {ascii(name)[:60]}",
                "Remove line breaks, control characters and marks that hide or turn text.",
            )
        if name == INTERCEPT:
            raise InvalidInput("header", f"the name {name!r} stands for the constant feature", "Give the column another name.")
        alike = unicodedata.normalize("NFKC", name)
        if alike in same:
            twin = "is given twice" if same[alike] == name else f"looks the same as {show(same[alike])}"
            raise InvalidInput("header", f"the name {show(name)} {twin}", f"Give each column its own name. {_NO_NAMES}")
        same[alike] = name


def _no_data_in_header(columns: dict[str, pd.Series]) -> None:
    """Refuses a first line of words that are values of their own columns."""
    hits = [name for name, values in columns.items() if not is_number(values) and name in values.cat.categories]
    if len(hits) > len(columns) / 2:
        raise InvalidInput(
            "header",
            f"the first line looks like data: {show(hits[0])} is also a value in its column",
            "Say whether the first line holds names or data.",
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
