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
import pyarrow.compute as pc

from dpviz.common.digits import counted
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.arff import is_arff, read_arff
from dpviz.datasets.table.cell_text import ASK_TEXT, gap_notes, typed_column
from dpviz.datasets.table.decode import decode
from dpviz.datasets.table.delimiters import DELIMITERS, NUMBER, WHITE_SPACE, find_delimiter, is_remark, tabs
from dpviz.datasets.table.names import SECOND, Header, check_names, complete_names, is_number_text, no_data_in_header

_HEAD = 50  # rows by which the lines around a table are told from it
_EXCEL = re.compile(r"\"?sep=([,;\t|])\"?[ \t]*\n", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:[A-Za-z]{0,2}|var|col|column|field|unnamed:?)[ _.]*\d*", re.IGNORECASE)
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
    excel = _EXCEL.match(text)
    if excel is not None:
        notes.append("Excel's first line, which names the separator, was skipped.")
        text = text[excel.end() - 1 :]  # the line break stays, so that later lines keep their numbers
    separator = delimiter or (excel[1] if excel is not None else find_delimiter(text))
    if delimiter is None and separator != ",":
        notes.append(f"Columns are separated by {DELIMITERS[separator]}.")
    sign = "\t" if separator == WHITE_SPACE else separator
    rows = _rows(tabs(text) if separator == WHITE_SPACE else text, sign)
    head = list(itertools.islice(rows, _HEAD))
    if delimiter is None and excel is None:
        _one_form(head, sign)
    del head[: _titles(head, sign, notes)]
    found: dict[str, Any] = {"delimiter": separator, "header": header is not False}
    # below a title the second line is the first of these, unless that only numbers the columns
    looks = header is None or (header == SECOND and [line for line, _ in head[:1]] >= [SECOND])
    if _names_on_second_line(head, notes) if looks else header == SECOND:
        del head[:1]
        header = SECOND
    if header == SECOND:
        found["header"], header = SECOND, True
    if header is None and _numbers_only(head):
        found["header"] = header = False
        notes.append(
            "The first line holds numbers only, so it was read as data; columns are called column 1, column 2 and so on."
        )
    raw = _cells(head, rows, header, limits, notes)
    if len(raw) == 1 and verbatim is None:
        raise InvalidInput("file", "has one column only", "Check the delimiter; a label and at least one feature are needed.")
    if len(raw) == 1 and re.search(r"\S[ \t]*\n[ \t]*\n\s*\S", text):
        cause = "has one column and a blank line inside, which may be a row with a gap or none"
        raise InvalidInput("file", cause, "Write ? for a gap, or remove the line.")
    trimmed, marked = 0, dict[str, dict[str, int]]()
    columns: dict[str, pd.Series] = {}
    for name, cells in raw.items():
        columns[name], changed = typed_column(name, cells, sign, notes, name in (verbatim or ()), marked)
        trimmed += changed
    notes += gap_notes(marked)
    if trimmed:
        notes.append(f"Spaces around {counted(trimmed, 'value')} were removed.")
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


Row = tuple[int, list[str]]  # its first line, and its cells


def _rows(text: str, delimiter: str) -> Iterator[Row]:
    """Every row that is not blank; a quote may follow blanks. Strict, unlike Arrow, to which a stray quote is no error."""
    blanks = re.search(rf"(?m)(^|{re.escape(delimiter)}) +\"", text) is not None
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, skipinitialspace=blanks, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        cause = f"line {line:,} cannot be read ({error}): a quote may be left open, or stand inside a value"
        raise InvalidInput("file", cause, "Correct the quotes on that line.") from error


def _filled(row: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _is_number(cell: str) -> bool:
    return is_number_text(cell.replace(",", "."))


def _titles(head: Sequence[Row], delimiter: str, notes: list[str]) -> int:
    """The number of rows above the names: remarks, and titles of one value.

    Names may begin with "#": such a row that is as wide as the next one, which holds a number, holds the names.
    """
    width = max((len(row) for _, row in head[-_HEAD // 2 :]), default=0)
    above: list[str] = []
    for k, (_, row) in enumerate(head):
        line, below = delimiter.join(row), head[k + 1][1] if k + 1 < len(head) else []
        filled, numbers = _filled(row), any(map(_is_number, _filled(below)))
        remark = is_remark(line) and not (1 < len(row) == len(below) and numbers and not is_remark(below[0]))
        if k + 1 == len(head) or not (remark or not filled or (len(filled) == 1 < width and (width > 2 or len(row) == 1))):
            break
        above += filled[:1]
    else:
        return 0
    _skipped("above", above, notes)
    return k


def _one_form(head: Sequence[Row], delimiter: str) -> None:
    """
    Raises:
        InvalidInput: the first line separates its values by another sign than the rows.
    """
    names, rows = [row for _, row in head[:1]], [row for _, row in head[1:7]]
    here = DELIMITERS.get(delimiter, "tab")
    for sign, word in DELIMITERS.items() if len(rows) > 1 else ():
        for one, others, said in ((names, rows, (word, here)), (rows, names, (here, word))):
            if sign == WHITE_SPACE and one is names:  # a title
                continue
            cells = {
                len((tabs(row[0]) if sign == WHITE_SPACE else row[0]).split(sign if sign != WHITE_SPACE else "\t")) for row in one
            }
            if {len(row) for row in one} == {1} and cells == {len(row) for row in others} != {1}:
                raise InvalidInput(
                    "file", f"separates the names by {said[0]} and the rows by {said[1]}", "Write all lines alike."
                )


def _skipped(where: str, lines: Sequence[str], notes: list[str]) -> None:
    if lines:
        many = f"{len(lines):,} lines {where} the table were skipped, such as" if len(lines) > 1 else "One line"
        one = "" if len(lines) > 1 else f" {where} the table was skipped:"
        notes.append(f"{many}{one} {show(lines[0][:60])}.")


def _names_on_second_line(head: Sequence[Row], notes: list[str]) -> bool:
    """True where the names stand on the second line, because the first one only numbers the columns.

    Raises:
        InvalidInput: both lines may hold names.
    """
    first, second, *rows = [[cell.strip() for cell in row] for _, row in head] if len(head) > 7 else [[], []]
    if len(first) != len(second) or len(set(second) - {""}) < max(3, len(second)):
        return False
    if any(map(NUMBER.fullmatch, (*first, *second))) or any(len(row) != len(second) for row in rows):
        return False
    of_numbers = [all(not cell or NUMBER.fullmatch(cell) for cell in column) for column in zip(*rows, strict=True)]
    if sum(of_numbers) <= len(second) / 2:
        return False
    if sum(_NUMBERED.fullmatch(cell) is not None for cell in first) > len(first) / 2:
        notes.append(f"The names are on line 2; line 1 ({', '.join(first[1:4])}, ...), which numbers the columns, was skipped.")
        return True
    cause = f"the first two lines both look like names ({show(first[1])}, then {show(second[1])}), above columns of numbers"
    raise InvalidInput("header", cause, "Remove one of them, or say that the second holds the names.")


def _numbers_only(head: Sequence[Row]) -> bool:
    """True where all values of the first line are numbers, with a decimal point or comma."""
    cells = [cell.strip(" \t'\"") for cell in head[0][1]] if head else []
    if len(cells) > 2 and not cells[-1]:
        cells.pop()  # the line ends with the delimiter
    return len(cells) > 1 and all(map(_is_number, cells))


def _cells(head: list[Row], rows: Iterator[Row], header: Header, limits: Limits, notes: list[str]) -> dict[str, pa.ChunkedArray]:
    """The cells of each column as text, by the names of the columns; every row has the same number of cells."""
    line, first = head[0] if head else (1, [])
    limits.check_columns(len(first))
    if len(head) < 1 + (header is not False):
        raise InvalidInput("file", "has a header but no rows", "Choose a file with rows.")
    names = [f"column {k + 1}" for k in range(len(first))] if header is False else _plain_names(first)
    short = header is not False and len(head[1][1]) == len(first) + 1 > 2  # R writes no name of its names of rows
    width = len(first) + short
    count, pending, below = 0, list[list[str]](), list[Row]()
    chunks: list[list[pa.Array]] = []
    for at, row in itertools.chain(head[header is not False :], rows):
        if width > 2 and (len(row) < width or not row[-1]) and _is_total(row):
            below.append((at, row))
            continue
        for place, cells in (*below, (at, row)):
            if len(cells) != width:
                raise _uneven(line, len(first), place, len(cells))
            pending.append(cells)
        below.clear()
        if len(pending) >= _AT_ONCE:
            chunks.append(_columns(pending))
            count, pending = count + len(pending), []
        limits.check_rows(count + len(pending))
    _skipped("below", [_filled(row)[0] for _, row in below], notes)
    chunks += [_columns(pending)] if pending else []
    columns = [pa.chunked_array(parts) for parts in zip(*chunks, strict=True)]
    names = [*names, ""] if short else names
    empty_end = not names[-1].strip() or (header is False and width > 2)
    if empty_end and width > 2 and not pc.any(pc.not_equal(pc.utf8_trim_whitespace(columns[-1]), "")).as_py():
        notes.append("Every row ends with the sign between columns, so the empty last column was left out.")
        del names[-1], columns[-1]
    elif short:
        if len(pc.unique(columns[0])) < len(columns[0]):
            raise _uneven(line, len(first), head[1][0], width)
        names = ["", *names[:-1]]
    if header is not False:
        names = complete_names(names, notes)
        check_names(names, sure=header is True)
    return dict(zip(names, columns, strict=True))


def _plain_names(row: Sequence[str]) -> list[str]:
    """Names without spaces around them and, where all are in single quotes, without these."""
    names = [cell.strip() for cell in row]
    quoted = all(len(name) > 2 and name[0] == name[-1] == "'" for name in names)
    return [name[1:-1] for name in names] if quoted else names


def _is_total(row: Sequence[str]) -> bool:
    """True for a row of one value of several words, as stands below a table: no short value of a row that ends too early."""
    filled = _filled(row)
    return len(filled) == 1 and len(row[0].split()) > 1


def _columns(rows: list[list[str]]) -> list[pa.Array]:
    return [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]


def _uneven(line: int, width: int, at: int, other: int) -> InvalidInput:
    """The error for a row of another width than the first one."""
    if width == 1:
        cause = f"line {line} has one value where line {at:,} has {other}"
        return InvalidInput("file", cause, "Remove titles and comments above the line with the names.")
    return InvalidInput(
        "file",
        f"line {at:,} has {counted(other, 'value')} where line {line} has {width}",
        "Give every line the same number of values; put values that contain the delimiter in double quotes.",
    )
