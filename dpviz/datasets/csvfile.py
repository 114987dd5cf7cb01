"""Reading a CSV that anyone may have made: strict, bounded, and in words where something is wrong.

Nothing is repaired in silence. What a person may want to know (delimiter found, spaces trimmed) is in `Table.notes`.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.datasets.limits import Limits
from dpviz.validate import InvalidInput, show

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")

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
}
_ASK_TEXT = "Save the table as CSV in UTF-8 and upload that."


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes:
        frame: columns are float64 (NaN where missing) or str objects (None where missing).
        notes: what was found or done, one sentence each.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]


def read_csv(content: bytes, *, header: bool = True, delimiter: str | None = None, limits: Limits | None = None) -> Table:
    """A table from the bytes of a CSV file, plain or gzipped.

    Args:
        content: the file.
        header: whether the first line holds the names; without, columns are "column 1", "column 2", ...
        delimiter: one of `DELIMITERS`; None finds it.
        limits: bounds; the environment's by default.

    Raises:
        InvalidInput: with what is wrong, the line where it is, and what to do.
    """
    limits = limits or Limits.from_environment()
    if delimiter is not None and delimiter not in DELIMITERS:
        raise InvalidInput("delimiter", f"unknown value {show(delimiter)}", "Choose comma, semicolon, tab or vertical bar.")
    text = _decode(_unpack(content, limits))
    notes = []
    found = delimiter or _find_delimiter(text)
    if delimiter is None and found != ",":
        notes.append(f"Columns are separated by {DELIMITERS[found]}.")
    names, rows = _check(text, found, header, limits)
    try:
        raw = pd.read_csv(
            io.StringIO(text), sep=found, header=None, names=list(range(len(names))), skiprows=1 if header else 0, dtype=str,
            keep_default_na=False, na_filter=False, skipinitialspace=True, skip_blank_lines=True,
        )  # fmt: skip
    except (pd.errors.ParserError, ValueError) as error:
        raise InvalidInput("file", f"cannot be read as a table: {error}", _ASK_TEXT) from error
    if len(raw) != rows:
        raise InvalidInput(
            "file", "quotes are used in a way that programs read differently", "Quote whole values only, with double quotes."
        )
    trimmed = 0
    columns: dict[str, pd.Series] = {}
    for position, name in enumerate(names):
        values, changed = _typed(name, raw[position], header)
        columns[name] = values
        trimmed += changed
    if trimmed:
        notes.append(f"Spaces around {trimmed:,} values were removed.")
    return Table(pd.DataFrame(columns), tuple(notes))


def _unpack(content: bytes, limits: Limits) -> bytes:
    most = limits.megabytes * 1_000_000
    fix = f"The limit is {limits.megabytes} MB (DPVIZ_MAX_MEGABYTES). Take a sample of the rows, or fewer columns."
    if len(content) > most:
        raise InvalidInput("file", f"is {len(content) / 1e6:.0f} MB large", fix)
    if content[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            content = unpacker.decompress(content, most + 1)
            complete = unpacker.eof or len(content) > most
        except zlib.error as error:
            raise InvalidInput("file", f"is a damaged gzip archive ({error})", "Make or download it again.") from error
        if len(content) > most:
            raise InvalidInput("file", f"unpacks to more than {limits.megabytes} MB", fix)
        if not complete:
            raise InvalidInput("file", "is a gzip archive that ends too early", "Make or download it again.")
    if not content.strip():
        raise InvalidInput("file", "is empty", "Choose a file with a header and rows.")
    for magic, kind in _MAGIC.items():
        if content.startswith(magic):
            raise InvalidInput("file", f"is {kind}, not text", _ASK_TEXT)
    return content


def _decode(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InvalidInput("file", "is in UTF-16", _ASK_TEXT)
    if b"\x00" in content:
        raise InvalidInput("file", f"holds a zero byte at position {content.index(0):,}, so it is not text", _ASK_TEXT)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput("file", f"is not UTF-8: byte 0x{content[error.start]:02x} on line {line:,}", _ASK_TEXT) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _find_delimiter(text: str) -> str:
    lines = [line for line in text[:200_000].split("\n")[:50] if line.strip()]
    best, columns = ",", 1
    for candidate in DELIMITERS:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=candidate, skipinitialspace=True))
        except csv.Error:
            continue
        width, _ = widths.most_common(1)[0]
        if width > columns:
            best, columns = candidate, width
    return best


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


def _check(text: str, delimiter: str, header: bool, limits: Limits) -> tuple[list[str], int]:
    """(names, number of data rows) of a table whose every row has the same number of cells."""
    rows = _rows(text, delimiter)
    line, first = next(rows)
    width = len(first)
    if width == 1:
        raise InvalidInput("file", "has one column only", "Check the delimiter; a label and at least one feature are needed.")
    if width > limits.columns:
        raise InvalidInput("file", f"has {width:,} columns", f"The limit is {limits.columns:,} (DPVIZ_MAX_COLUMNS).")
    names = [cell.strip() for cell in first] if header else [f"column {k + 1}" for k in range(width)]
    if header:
        _check_names(names)
    count = 0 if header else 1
    for at, row in rows:
        if len(row) != width:
            raise InvalidInput(
                "file", f"line {at:,} has {len(row)} values where line {line} has {width}",
                "Give every line the same number of values; put values that contain the delimiter in double quotes.",
            )  # fmt: skip
        count += 1
        if count > limits.rows:
            raise InvalidInput(
                "file", f"has more than {limits.rows:,} rows", "Take a sample of the rows, or raise DPVIZ_MAX_ROWS."
            )
    if count == 0:
        raise InvalidInput("file", "has a header but no rows", "Choose a file with rows.")
    return names, count


def _check_names(names: list[str]) -> None:
    empty = [k + 1 for k, name in enumerate(names) if not name]
    if empty:
        raise InvalidInput("header", f"column {empty[0]} has no name", "Name every column on the first line.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidInput("header", f"the name {show(twice[0])} is given twice", "Give each column its own name.")
    numbers = sum(_is_number(name) for name in names)
    if numbers > len(names) / 2:
        raise InvalidInput(
            "header", f"the first line looks like data: {show(names[0])}, ...", "Say that the first line holds no names."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _typed(name: str, raw: pd.Series, header: bool) -> tuple[pd.Series, int]:
    """(numbers or text with missing values marked, number of cells trimmed)."""
    stripped = raw.str.strip()
    trimmed = int((stripped.str.len() != raw.str.len()).sum())
    missing = stripped.isin(MISSING).to_numpy(dtype=bool)
    numbers = pd.to_numeric(stripped.where(~missing), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    numeric = ~np.isnan(numbers)
    if (~missing).any() and numeric[~missing].all():
        infinite = np.isinf(numbers)
        if infinite.any():
            at = int(np.argmax(infinite))
            raise InvalidInput(
                name, f"row {at + 1:,} holds {show(stripped.iloc[at])}, which is infinite or too large for a number",
                "Correct or remove that value.",
            )  # fmt: skip
        return pd.Series(numbers), trimmed
    text = stripped.astype(object)
    text[missing] = None
    return text.reset_index(drop=True), trimmed
