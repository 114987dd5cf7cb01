"""Tables of any kind that is read: CSV, Parquet (pyarrow) and spreadsheets (Excel, OpenDocument, by python-calamine)."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput, check_choice, show
from dpviz.datasets.table.cell_text import ASK_TEXT, typed_column
from dpviz.datasets.table.columns import word
from dpviz.datasets.table.csv import Table, read_csv, read_text
from dpviz.datasets.table.names import Header, check_names

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

#: what a person can say about how a file is read
READING = ("header", "delimiter", "encoding", "sheet")
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".test", ".arff", ".gz", ".parquet", ".xlsx", ".xls", ".ods")
_PARQUET, _ZIP, _OLD_EXCEL = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_PARTS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")  # one of them is in every workbook
_UNPACKED = 10  # times the limit of a file: cells are written out at length inside a workbook


def read_file(
    content: bytes,
    *,
    header: Header = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    verbatim: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Table:
    """A table from the bytes of a file, recognised by its first bytes and not by its name.

    Args:
        content: the file.
        header, delimiter, encoding, verbatim: as `read_csv`; a Parquet file has none of them, a workbook has a header only.
        sheet: of a workbook; the first one that is shown and has cells by default.
        limits: bounds; the environment's by default.

    Raises:
        InvalidInput: with what is wrong and what to do.
    """
    limits = limits or Limits.from_environment()
    limits.check_bytes(len(content))
    most = _UNPACKED * limits.megabytes * 1_000_000
    if content.startswith(_OLD_EXCEL) or (content.startswith(_ZIP) and _is_workbook(content, most)):
        return _workbook(content, header, sheet, verbatim, limits)
    if sheet is not None:
        raise InvalidInput("sheet", "is a part of a workbook, and this file is none", "Leave it out.")
    if content.startswith(_PARQUET):
        return _parquet(content, verbatim, limits)
    return read_csv(content, header=header, delimiter=delimiter, encoding=encoding, verbatim=verbatim, limits=limits)


def _parquet(content: bytes, verbatim: Sequence[str] | None, limits: Limits) -> Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
        limits.check_columns(len(names))
        limits.check_rows(rows)
        check_names(names, sure=True)
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput("file", f"is a damaged Parquet file ({str(error)[:200]})", "Make or download it again.") from error
    if len(names) + (verbatim is not None) < 2:
        raise InvalidInput("file", "has one column only", "A label and at least one feature are needed.")
    notes: list[str] = []
    columns: dict[str, pd.Series] = {}
    for name, column in zip(names, table.columns, strict=True):
        values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        try:
            cells = pc.fill_null(values.cast(pa.string()), "")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(name, f"holds values of type {column.type}, which is no number or text", ASK_TEXT) from error
        columns[name] = typed_column(name, cells, ",", notes, name in (verbatim or ()))[0]
    if not rows:
        raise InvalidInput("file", "has columns but no rows", "Choose a file with rows.")
    return Table(pd.DataFrame(columns), tuple(notes))


def _is_workbook(content: bytes, most: int) -> bool:
    """True where a zip archive is a workbook.

    Raises:
        InvalidInput: it is one that unpacks to more than `most` bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile:
        return False
    if not any(part.filename in _PARTS for part in parts):
        return False
    if sum(part.file_size for part in parts) > most:
        raise InvalidInput("file", f"is a workbook that unpacks to more than {most / 1e6:.0f} MB", ASK_TEXT)
    return True


def _workbook(content: bytes, header: Header, sheet: str | None, verbatim: Sequence[str] | None, limits: Limits) -> Table:
    """One sheet of a workbook; its cells go the way of a CSV, so that both mean the same."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
    except ImportError as error:
        fix: str = f"Install python-calamine: pip install python-calamine. Or: {ASK_TEXT}"
        raise InvalidInput("file", "is a workbook, and no reader of workbooks is installed", fix) from error
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        hidden = {one.name for one in book.sheets_metadata if one.visible != SheetVisibleEnum.Visible}
        names = [name for name in book.sheet_names if name not in hidden and book.get_sheet_by_name(name).height]
        if sheet is not None:
            chosen = check_choice("sheet", sheet, book.sheet_names)
        elif not names:
            cause = "is a workbook whose sheets with cells are hidden" if hidden else "is a workbook without cells"
            raise InvalidInput("file", cause, "Show a sheet with a header and rows, or name it.")
        else:
            chosen = names[0]
        text = _cells(book.get_sheet_by_name(chosen), limits)
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("file", f"is a workbook that cannot be read ({str(error)[:200]})", ASK_TEXT) from error
    notes: list[str] = [f"The sheet {show(chosen)} of the workbook was read."]
    others = [name for name in names if name != chosen]
    if others:
        notes.append(f"Other sheets were not: {', '.join(show(name) for name in others)}. To read one of them, name it.")
    table = read_text(text, header=header, delimiter=",", verbatim=verbatim, limits=limits, notes=notes)
    return replace(table, found={"sheet": chosen, "header": table.found["header"]})


def _cells(sheet: CalamineSheet, limits: Limits) -> str:
    """A sheet as the text of a CSV."""
    limits.check_rows(sheet.height - 1)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in sheet.iter_rows():
        writer.writerow([word(cell) for cell in row])  # dates and times in ISO form
    return out.getvalue()
