"""Reading a CSV that anyone may have made: strict, bounded, and in words where something is wrong.

Nothing is repaired in silence. What a person may want to know (encoding and delimiter found, spaces trimmed) is in
`Table.notes`.
"""

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import pyarrow as pa

from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.arff import is_arff, read_arff
from dpviz.datasets.table.cell_text import ASK_TEXT, typed
from dpviz.datasets.table.decode import decode
from dpviz.datasets.table.delimiters import DELIMITERS, WHITE_SPACE, find_delimiter, tabs
from dpviz.datasets.table.layout import (
    SECOND,
    Header,
    names_on_second_line,
    one_form,
    without_excel_line,
    without_line,
    without_remarks,
    without_titles,
)
from dpviz.datasets.table.names import check_names, is_number_text, named, no_data_in_header

_AT_ONCE = 1 << 16  # rows that are taken from lists to columns together
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
_SPARSE = re.compile(r"[-+]?\d[\d.]*([ \t]+\d+:\S+)+[ \t]*(#.*)?\n")
_JSON = re.compile(r"[\[{]\s*[\[\]{}(\"'0-9-]")


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes:
        frame: columns are float64 or categories of str; NaN where missing.
        notes: what was found or done, one sentence each.
        reading: options for the file: header, delimiter, encoding and sheet, where they were not left to be found.
        found: the same options as the file was read, whether they were said or found.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)


def read_csv(
    content: bytes,
    *,
    header: Header = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    verbatim: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Table:
    """A table from the bytes of a CSV file, plain or gzipped.

    Args:
        content: the file.
        header: whether the first line holds the names; without, columns are "column 1", "column 2", ... None takes
            a line of numbers for data and any other for names, and refuses names that look like data; 2 takes the names
            from the second line and skips the first.
        delimiter: one of `DELIMITERS`; None finds it.
        encoding: one of `dpviz.datasets.table.decode.ENCODINGS`; None finds it.
        verbatim: of rows without a label, for which one column is enough: the columns that stay text as they are written.
        limits: bounds; the environment's by default.

    Raises:
        InvalidInput: with what is wrong, the line where it is, and what to do.
    """
    limits = limits or Limits.from_environment()
    if delimiter is not None and delimiter not in DELIMITERS:
        raise InvalidInput("delimiter", f"unknown value {show(delimiter)}", f"Choose one of: {', '.join(DELIMITERS.values())}.")
    notes: list[str] = []
    text, encoding = decode(unpack(content, limits), encoding, notes)
    found = {} if encoding is None else {"encoding": encoding}
    if is_arff(text):
        notes.append("The file is an ARFF file: its @attribute lines name the columns.")
        return Table(read_arff(text, limits, notes), tuple(notes), found=found)
    _no_markup(text)
    table = read_text(text, header=header, delimiter=delimiter, verbatim=verbatim, limits=limits, notes=notes)
    return replace(table, found={**found, **table.found})


def read_text(
    text: str, *, header: Header, delimiter: str | None, verbatim: Sequence[str] | None, limits: Limits, notes: list[str]
) -> Table:
    """`read_csv` from the text of the file; `notes` is what was found before."""
    text, of_excel = without_excel_line(text, notes)
    text = without_remarks(text, delimiter or of_excel, notes)
    separator = delimiter or of_excel or find_delimiter(text)
    if delimiter is None and of_excel is None:
        one_form(text, separator)
    text = without_titles(text, separator, notes)
    if delimiter is None and separator != ",":
        notes.append(f"Columns are separated by {DELIMITERS[separator]}.")
    found: dict[str, Any] = {"delimiter": separator}
    if separator == WHITE_SPACE:
        text, separator = tabs(text), "\t"
    if header == SECOND or (header is None and names_on_second_line(text, separator, notes)):
        text, header = without_line(text), True
        found["header"] = SECOND
    if header is None and _numbers_only(text, separator):
        header = False
        notes.append(
            "The first line holds numbers only, so it was read as data; columns are called column 1, column 2 and so on."
        )
    found.setdefault("header", header is not False)
    raw = _cells(text, separator, header, limits, notes, verbatim is not None)
    trimmed = 0
    columns: dict[str, pd.Series] = {}
    for name, cells in raw.items():
        columns[name], changed = typed(name, cells, separator, notes, name in (verbatim or ()))
        trimmed += changed
    if trimmed:
        notes.append(f"Spaces around {trimmed:,} values were removed.")
    if header is None:
        no_data_in_header(columns)
    return Table(pd.DataFrame(columns), tuple(notes), found=found)


def unpack(content: bytes, limits: Limits) -> bytes:
    """A file's bytes, unpacked where it is a gzip archive.

    Raises:
        InvalidInput: it is empty, too large, damaged, or of a kind that is not text.
    """
    most = limits.megabytes * 1_000_000
    limits.check_bytes(len(content))
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as archive:  # all parts, where several were joined
                content = archive.read(most + 1)
        except EOFError as error:
            raise InvalidInput("file", "is a gzip archive that ends too early", "Make or download it again.") from error
        except (OSError, zlib.error) as error:
            raise InvalidInput("file", f"is a damaged gzip archive ({error})", "Make or download it again.") from error
        if len(content) > most:
            fix: str = f"The limit is {limits.megabytes} MB (DPVIZ_MAX_MEGABYTES). Take a sample of the rows, or fewer columns."
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
    if _SPARSE.match(text):
        fix: str = "Write every value; in Python, sklearn.datasets.load_svmlight_file and to_csv do it."
        raise InvalidInput("file", "is in the sparse format of LIBSVM (label 1:value 2:value), not a table", fix)
    if not start.strip() and not text.strip("\ufeff \t\n"):
        raise InvalidInput("file", "is empty", "Choose a file with a header and rows.")


def _numbers_only(text: str, delimiter: str) -> bool:
    """True where all values of the first line are numbers, with a decimal point or comma."""
    first = text.lstrip().partition("\n")[0]
    cells = [cell.strip().strip("'\"") for cell in first.split(delimiter)]
    if len(cells) > 2 and not cells[-1]:
        cells.pop()  # the line ends with the delimiter
    return len(cells) > 1 and all(is_number_text(cell if delimiter == "," else cell.replace(",", ".")) for cell in cells)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of every row that is not blank; a quote may follow blanks."""
    blanks = re.search(rf"(?m)(^|{re.escape(delimiter)}) +\"", text) is not None
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, skipinitialspace=blanks, strict=True)
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


def _cells(text: str, delimiter: str, header: Header, limits: Limits, notes: list[str], one: bool) -> dict[str, pa.ChunkedArray]:
    """The cells of each column as text, by the names of the columns; every row has the same number of cells."""
    rows = _rows(text, delimiter)
    line, first = next(rows, (1, list[str]()))
    if not first:
        raise _no_rows()
    width = len(first)
    limits.check_columns(width)
    names = [f"column {k + 1}" for k in range(width)] if header is False else [cell.strip() for cell in first]
    count, pending = 0, list[list[str]]()
    chunks: list[list[pa.Array]] = []
    empty_end, short, beginnings = not first[-1].strip(), False, set[str]()
    for at, row in itertools.chain([(line, first)] if header is False else [], rows):
        if header is not False and count == 0 and len(row) == width + 1 > 2:
            width, empty_end, short = width + 1, True, True
        if len(row) != width:
            raise _uneven(line, len(first), at, len(row))
        empty_end = empty_end and not row[-1].strip()
        count += 1
        pending.append(row)
        if len(pending) == _AT_ONCE:
            chunks.append(_columns(pending))
            pending = []
        if short:
            beginnings.add(row[0])
        limits.check_rows(count)
    empty_end = empty_end and width > 2 and count > 0
    if short and not empty_end:
        if len(beginnings) < count:
            raise _uneven(line, len(first), line + 1, width)
        names = ["", *names]  # as R writes names of rows
    if empty_end:
        notes.append("Every row ends with the sign between columns, so the empty last column was left out.")
        names = names[: width - 1]
    if width == 1 and one and re.search(r"\S[ \t\r]*\n[ \t\r]*\n\s*\S", text):
        cause = "has one column and a blank line inside, which may be a row with a gap or none"
        raise InvalidInput("file", cause, "Write ? for a gap, or remove the line.")
    if width == 1 and not one:
        raise InvalidInput("file", "has one column only", "Check the delimiter; a label and at least one feature are needed.")
    if header is not False:
        names = named(names, notes)
        check_names(names, sure=header is True)
    if count == 0:
        raise _no_rows()
    chunks += [_columns(pending)] if pending else []
    return {name: pa.chunked_array(parts) for name, parts in zip(names, zip(*chunks, strict=True), strict=False)}


def _columns(rows: list[list[str]]) -> list[pa.Array]:
    return [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]


def _no_rows() -> InvalidInput:
    return InvalidInput("file", "has a header but no rows", "Choose a file with rows.")


def _uneven(line: int, width: int, at: int, other: int) -> InvalidInput:
    """The error for a row of another width than the first one."""
    if width == 1:
        cause = f"line {line} has one value where line {at:,} has {other}"
        return InvalidInput("file", cause, "Remove titles and comments above the line with the names.")
    return InvalidInput(
        "file",
        f"line {at:,} has {other} value{'s' * (other != 1)} where line {line} has {width}",
        "Give every line the same number of values; put values that contain the delimiter in double quotes.",
    )
