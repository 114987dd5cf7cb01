"""Attribute-relation files (.arff) of Weka and OpenML, read by their declaration.

A nominal column is text, whatever its values look like; `?` without quotes is a gap, with quotes it is a value. Format:
https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpviz.common.digits import counted
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.cell_text import ASK_TEXT, declared_column
from dpviz.datasets.table.names import check_names

_RELATION = re.compile(r"(?:[ \t]*(?:%.*)?\n)*[ \t]*@relation\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s*@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(.*)", re.IGNORECASE)
_DATA = re.compile(r"\s*@data\b", re.IGNORECASE)
#: one value, in quotes or not, and the sign after it
_VALUE = re.compile(r"""[ \t]*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"\t][^,\t]*|))[ \t]*(,|\t|$)""")
_NOMINAL_END = re.compile(r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^}'"])*\}""")
_NUMBERS, _TEXTS = ("numeric", "real", "integer"), ("string", "date")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class _Attribute(NamedTuple):
    name: str
    kind: str
    levels: tuple[str, ...] = ()


def is_arff(text: str) -> bool:
    """True where a text begins as such a file does."""
    return _RELATION.match(text) is not None


def read_arff(text: str, limits: Limits, notes: list[str]) -> pd.DataFrame:
    """The table; nominal columns, strings and dates are text by declaration, numbers are floats, NaN for gaps.

    Values of a nominal column that it does not declare are kept as further categories, and a note counts them.

    Raises:
        InvalidInput: it has no rows, too many of them, a line that cannot be read, or text in a column of numbers.
    """
    lines = text.split("\n")
    start = next((k for k, line in enumerate(lines) if _DATA.match(line)), None)
    if start is None:
        raise InvalidInput("file", "is an ARFF file without @data", "Make or download it again.")
    attributes = [_attribute(match, k + 1) for k, line in enumerate(lines[:start]) if (match := _ATTRIBUTE.match(line))]
    limits.check_columns(len(attributes))
    if len(attributes) < 2:
        raise InvalidInput("file", "has one column only", "A label and at least one feature are needed.")
    check_names([one.name for one in attributes], sure=True)
    numbered = [(at, line) for at, line in enumerate(lines[start + 1 :], start + 2) if line.strip() and line.lstrip()[0] != "%"]
    limits.check_rows(len(numbered))
    if not numbered:
        raise InvalidInput("file", "has a header but no rows", "Choose a file with rows.")
    rows = [_cells(line.strip(), at, len(attributes)) for at, line in numbered]
    at = [line for line, _ in numbered]
    columns = {one.name: _column(one, [row[k] for row in rows], at, notes) for k, one in enumerate(attributes)}
    return pd.DataFrame(columns)


def _attribute(match: re.Match[str], line: int) -> _Attribute:
    name, declaration = match[1], match[2].strip()
    name = _plain(name[1:-1]) if name[0] in "'\"" else name
    if declaration.startswith("{"):
        end = _NOMINAL_END.match(declaration, 1)
        if end is None:
            raise InvalidInput("file", f"line {line:,} does not close the list of values of {show(name)}", "Correct that line.")
        inside = declaration[1 : end.end() - 1]
        return _Attribute(name, "nominal", tuple(value for value in _cells(inside, line, None, quoted_gap=False) if value))
    kind = declaration.split()[0].lower() if declaration else ""
    if kind not in (*_NUMBERS, *_TEXTS):
        known = ", ".join(("{...}", *_NUMBERS, *_TEXTS))
        raise InvalidInput(
            "file", f"line {line:,} declares {show(name)} as {show(kind)}", f"These can be read: {known}. {ASK_TEXT}"
        )
    return _Attribute(name, kind)


def _cells(row: str, at: int, width: int | None, *, quoted_gap: bool = True) -> list[str | None]:
    """The values of a line; None for gaps.

    Args:
        width: how many there must be.
        quoted_gap: whether `?` without quotes is a gap.
    """
    if row.startswith("{"):
        cause = f"is a sparse ARFF file: line {at:,} lists only the values that are not 0"
        raise InvalidInput("file", cause, f"Write every value (Weka: SparseToNonSparse). {ASK_TEXT}")
    values = list(_VALUE.finditer(row))
    if "".join(value[0] for value in values) != row:
        raise InvalidInput("file", f"line {at:,} cannot be read", "Correct the quotes on that line.")
    cells: list[str | None] = []
    for single, double, bare, end in (value.groups() for value in values):
        if bare is not None:
            bare = bare.strip()
            cells.append(None if bare == "" or (bare == "?" and quoted_gap) else bare)
        else:
            cells.append(_plain(single if single is not None else double))
        if not end:
            break
    if width is not None and len(cells) == width + 1 and cells[-1] is None:
        cells.pop()  # the line ends with the sign between values
    if width is not None and len(cells) != width:
        cause = f"line {at:,} has {counted(len(cells), 'value')} where {width} columns are declared"
        raise InvalidInput("file", cause, "Put values that hold a comma or a blank in quotes.")
    return cells


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), quoted)


def _column(attribute: _Attribute, cells: list[str | None], lines: list[int], notes: list[str]) -> pd.Series:
    if attribute.kind in _NUMBERS:
        return _numbers(attribute.name, cells, lines)
    counts = Counter(cell for cell in cells if cell is not None)
    levels = [level for level in attribute.levels if level in counts]
    others = sorted(set(counts) - set(levels))
    if attribute.kind == "nominal" and others:
        first = lines[next(k for k, cell in enumerate(cells) if cell in set(others))]
        some = ", ".join(f"{show(value)} ({counts[value]:,})" for value in others[:6]) + (", ..." if len(others) > 6 else "")
        count = sum(counts[value] for value in others)
        notes.append(
            f"Not among the declared values of {attribute.name}: {counted(count, 'value')}, {some}, first on line {first:,}. "
            "The column has categories for them."
        )
    if not counts:
        return pd.Series(np.full(len(cells), np.nan))
    return declared_column(cells, [*levels, *others])


def _numbers(name: str, cells: list[str | None], lines: list[int]) -> pd.Series:
    texts = pd.Series([None if cell is None or cell.lower() == "nan" else cell for cell in cells], dtype=object)
    values = pd.to_numeric(texts, errors="coerce").astype(np.float64)
    wrong = (values.isna() & texts.notna()) | np.isinf(values)
    if wrong.any():
        at = int(wrong.argmax())
        cause = f"line {lines[at]:,} holds {show(cells[at])} where a finite number is declared"
        raise InvalidInput(name, cause, "Correct that value, or declare the column as nominal or string.")
    return values
