"""Lines around a table in a text file: Excel's separator line, titles and remarks above the names, a second line of names,
totals below the rows."""

import csv
import re
from itertools import islice

from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.delimiters import DELIMITERS, NUMBER, WHITE_SPACE, find_delimiter, tabs

#: whether the first line holds names; `SECOND` where the second does; None where that is to be found
Header = bool | int | None
SECOND = 2
_MOST_AROUND = 20  # lines of titles above a table, or of totals below it
_LOOKED_AT = 50  # rows
_NUMBERED = re.compile(r"(?:[A-Za-z]{0,2}|var|col|column|field|unnamed:?)[ _.]*\d*", re.IGNORECASE)

_EXCEL = re.compile(r"\"?sep=([,;\t|])\"?[ \t]*\n", re.IGNORECASE)


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
    if len(names) == len(row) > 1 and any(NUMBER.fullmatch(cell) for cell in row):
        remarks.pop()
    if not remarks:
        return text
    example = show(lines[remarks[0]].strip()[:60])
    many = f"{len(remarks):,} lines above the table were skipped as remarks, such as {example}."
    notes.append(many if len(remarks) > 1 else f"One line above the table was skipped as a remark: {example}.")
    skipped = set(remarks)
    return "\n".join("" if k in skipped else line for k, line in enumerate(lines))


def one_form(text: str, delimiter: str) -> None:
    """
    Raises:
        InvalidInput: the first line separates its values by another sign than the rows.
    """
    lines = list(islice((line for line in text.split("\n", 1000) if line.strip()), 7))[:6]
    if len(lines) < 3 or _quotes_are_open(lines):
        return
    widths = {len(_cells(line, delimiter)) for line in lines}
    if len(widths) == 1 and widths != {1}:
        return
    for of_rows, rows in DELIMITERS.items():
        width = {len(_cells(line, of_rows)) for line in lines[1:]}
        for of_names, names in DELIMITERS.items():
            if of_names != of_rows and width == {len(_cells(lines[0], of_names))} and width != {1}:
                if len(_cells(lines[0], of_rows)) in width:
                    continue
                cause = f"separates the names by {names} and the rows by {rows}"
                raise InvalidInput("file", cause, "Write all lines alike.")


def without_titles(text: str, delimiter: str, notes: list[str]) -> str:
    """The text with blank lines for lines of one value that stand above the names or, as totals do, below the rows."""
    lines = text.split("\n", _MOST_AROUND + 10)
    full = [k for k, line in enumerate(lines[:-1]) if line.strip()]
    if _quotes_are_open([lines[k] for k in full]):
        return text
    rows = {k: _cells(lines[k], delimiter) for k in full}
    start = next((at for at, k in enumerate(full) if len(rows[k]) > 1 and all(rows[k])), 0)
    width = len(rows[full[start]]) if full else 0
    above = full[:start]
    if above and all(sum(map(bool, rows[k])) <= 1 for k in above) and all(len(rows[k]) == width for k in full[start : start + 3]):
        _skipped("above", [lines[k] for k in above if any(rows[k])], notes)
        text = "\n".join("" if k in above else line for k, line in enumerate(lines))
    elif above or width < 3:
        return text
    return _without_totals(text, delimiter, width, notes) if width >= 3 else text


def _without_totals(text: str, delimiter: str, width: int, notes: list[str]) -> str:
    text = text.rstrip("\n")
    below: list[str] = []
    while len(below) < _MOST_AROUND:
        head, _, line = text.rpartition("\n")
        if not head or line.count('"') % 2:
            break
        cells = _cells(line, delimiter)
        if line.strip() and (len(cells) > width or sum(map(bool, cells)) != 1 or not _is_sentence(cells[0])):
            break
        below += [line] if line.strip() else []
        text = head
    if below and text.count('"') % 2 == 0:
        _skipped("below", below[::-1], notes)
        return text + "\n"
    return "\n".join([text, *below[::-1]]) + "\n"


def _quotes_are_open(lines: list[str]) -> bool:
    """True where a quoted value may go on from one line to the next, so that lines are no rows."""
    return any(line.count('"') % 2 for line in lines)


def _is_sentence(cell: str) -> bool:
    """True where a value is several words, or a number after words: no short value of a row that ends too early."""
    return len(cell.split()) > 1


def _skipped(where: str, lines: list[str], notes: list[str]) -> None:
    example = show(lines[0].strip()[:60])
    many = f"{len(lines):,} lines {where} the table were skipped, such as {example}."
    notes.append(many if len(lines) > 1 else f"One line {where} the table was skipped: {example}.")


def names_on_second_line(text: str, delimiter: str, notes: list[str]) -> bool:
    """True where the names stand on the second line, because the first one only numbers the columns.

    Raises:
        InvalidInput: both lines may hold names.
    """
    lines = list(islice((line for line in text.split("\n", _LOOKED_AT + 100) if line.strip()), _LOOKED_AT + 2))
    if len(lines) < 8 or _quotes_are_open(lines):
        return False
    first, second, *rows = (_cells(line, delimiter) for line in lines[:-1])
    if len(first) != len(second) or len(second) < 3 or not all(second) or len(set(second)) < len(second):
        return False
    if any(NUMBER.fullmatch(cell) for cell in (*first, *second)) or any(len(row) != len(second) for row in rows):
        return False
    of_numbers = [all(not row[k] or NUMBER.fullmatch(row[k]) for row in rows) for k in range(len(second))]
    if sum(of_numbers) <= len(second) / 2:
        return False
    some = ", ".join(first[1:4])
    if sum(_NUMBERED.fullmatch(cell) is not None for cell in first) > len(first) / 2:
        notes.append(f"The names are on line 2; line 1 ({some}, ...), which numbers the columns, was skipped.")
        return True
    cause = f"the first two lines both look like names ({show(first[1])}, then {show(second[1])}), above columns of numbers"
    fix: str = (
        "Remove one of them, or say that the second holds the names: --header second, header = 2 in the TOML file beside the "
        "table, or “The first line holds” on the page Data."
    )
    raise InvalidInput("header", cause, fix)


def without_line(text: str) -> str:
    """The text with a blank line for the first line that is none."""
    start = text.lstrip("\n")
    return text[: len(text) - len(start)] + "\n" + start.partition("\n")[2]


def _is_remark(line: str) -> bool:
    start = line.lstrip()
    return start.startswith(("#", "%")) or (start.startswith("|") and start.count("|") == 1)


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == WHITE_SPACE:
        line, delimiter = tabs(line), "\t"
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:  # said with its line when the table is read
        return []
