"""What stands around a table in a text file: Excel's separator line, remarks above the names, delimiters at the ends of lines."""

from __future__ import annotations

import csv
import re

from dpviz.common.validate import show
from dpviz.datasets.table.delimiters import WHITE_SPACE, find_delimiter, tabs

_EXCEL = re.compile(r"\"?sep=([,;\t|])\"?[ \t]*\n", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")


def without_excel_line(text: str, notes: list[str]) -> tuple[str, str | None]:
    """(text whose first line is blank where it named the separator for Excel, that separator)."""
    line = _EXCEL.match(text)
    if line is None:
        return text, None
    notes.append("Excel's first line, which names the separator, was skipped.")
    return text[line.end() - 1 :], line[1]  # the line break stays, so that later lines keep their numbers


def without_remarks(text: str, delimiter: str | None, notes: list[str]) -> str:
    """The text with blank lines for remarks above the table, so that later lines keep their numbers.

    Remarks begin with "#", "%" or, as the first line of adult.test, with a "|" that is the only one. Names may begin with "#"
    too: a last such line that has as many values as the next line, where one is a number, holds the names.
    """
    lines = text.split("\n", 1000)
    first = next((k for k, line in enumerate(lines) if line.strip() and not _is_remark(line)), len(lines))
    remarks = [k for k in range(first) if lines[k].strip()]
    if not remarks or first == len(lines):
        return text
    sign = delimiter or find_delimiter("\n".join(lines[first:]))
    names, row = (_cells(lines[k], sign) for k in (remarks[-1], first))
    if len(names) == len(row) > 1 and any(_NUMBER.fullmatch(cell) for cell in row):
        remarks.pop()
    if not remarks:
        return text
    example = show(lines[remarks[0]].strip()[:60])
    many = f"{len(remarks):,} lines above the table were skipped as remarks, such as {example}."
    notes.append(many if len(remarks) > 1 else f"One line above the table was skipped as a remark: {example}.")
    skipped = set(remarks)
    return "\n".join("" if k in skipped else line for k, line in enumerate(lines))


def with_line(text: str, line: int, *, before: str = "", after: str = "") -> str:
    """The text with something more at the two ends of a line, counted from 1."""
    lines = text.split("\n", line)
    lines[line - 1] = before + lines[line - 1] + after
    return "\n".join(lines)


def _is_remark(line: str) -> bool:
    start = line.lstrip()
    return start.startswith(("#", "%")) or (start.startswith("|") and start.count("|") == 1)


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == WHITE_SPACE:
        line, delimiter = tabs(line), "\t"
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
