"""Attribute-relation files (.arff) of Weka and OpenML: names and values of columns, then the rows as in a CSV."""

from __future__ import annotations

import csv
import io
import re

from dpviz.common.validate import InvalidInput
from dpviz.datasets.table.cell_text import ASK_TEXT

_RELATION = re.compile(r"(?:[ \t]*(?:%.*)?\n)*[ \t]*@relation\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s*@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s", re.IGNORECASE)
_DATA = re.compile(r"\s*@data\b", re.IGNORECASE)


def is_arff(text: str) -> bool:
    """Whether a text begins as such a file does."""
    return _RELATION.match(text) is not None


def as_csv(text: str) -> str:
    """The table as the text of a CSV with a line of names; rows stay on their lines.

    Raises:
        InvalidInput: it has no rows, its quotes are not closed, or rows list only what is not 0.
    """
    lines = text.split("\n")
    start = next((k for k, line in enumerate(lines) if _DATA.match(line)), None)
    if start is None:
        raise InvalidInput("file", "is an ARFF file without @data", "Make or download it again.")
    attributes = [match[1] for line in lines[:start] if (match := _ATTRIBUTE.match(line + " "))]
    out = io.StringIO()
    out.write("\n" * start)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name for name in attributes])
    for at, line in enumerate(lines[start + 1 :], start + 2):
        row = line.strip()
        if row.startswith("{"):
            cause = f"is a sparse ARFF file: line {at:,} lists only the values that are not 0"
            raise InvalidInput("file", cause, f"Write every value (Weka: SparseToNonSparse). {ASK_TEXT}")
        if not row or row.startswith("%"):
            out.write("\n")
            continue
        quote = '"' if "'" not in row or row.find('"') in range(row.find("'")) else "'"
        try:
            writer.writerow(next(csv.reader([row], quotechar=quote, escapechar="\\", skipinitialspace=True, strict=True)))
        except csv.Error as error:
            raise InvalidInput("file", f"line {at:,} cannot be read ({error})", "Correct the quotes on that line.") from error
    return out.getvalue()
