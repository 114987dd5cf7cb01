"""Names of columns on the first line of a table: whether they are names, and whether they differ."""

import unicodedata
from collections.abc import Collection

import pandas as pd

from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.cell_text import is_number
from dpviz.datasets.table.encoding import INTERCEPT

#: whether the first line holds names; `SECOND` where the second does; None where that is to be found
Header = bool | int | None
SECOND = 2
MAX_NAME = 120
UNNAMED = "unnamed column 1"
_SAY_HEADER: str = "Say whether the first line holds names or data."
_NO_NAMES: str = "If the first line holds data, say that there are no names; otherwise correct the name."


def check_names(names: list[str], sure: bool) -> None:
    """Checks names of columns.

    Args:
        sure: whether a person said that they are names.

    Raises:
        InvalidInput: one is empty, too long, given twice, cannot be seen, or looks like data.
    """
    numbers = [name for name in names if is_number_text(name)]
    if numbers and not sure:
        raise InvalidInput(
            "header", f"the first line looks like data: {show(numbers[0])} would be the name of a column", _SAY_HEADER
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
            conflict = "is given twice" if same[alike] == name else f"looks the same as {show(same[alike])}"
            raise InvalidInput("header", f"the name {show(name)} {conflict}", f"Give each column its own name. {_NO_NAMES}")
        same[alike] = name


def no_data_in_header(columns: dict[str, pd.Series]) -> None:
    """Refuses a first line of words that are values of their own columns."""
    texts = {name: values for name, values in columns.items() if not is_number(values)}
    hits = [name for name, values in texts.items() if name in values.cat.categories]
    if len(hits) > len(columns) / 2:
        raise InvalidInput(
            "header", f"the first line looks like data: {show(hits[0])} is also a value in its column", _SAY_HEADER
        )


def unused_name(name: str, taken: Collection[str]) -> str:
    """The name, with as many apostrophes as make it another one than those taken."""
    while name in taken:
        name += "'"
    return name


def complete_names(names: list[str], notes: list[str]) -> list[str]:
    """Names of columns, with one for a first column that has none, as pandas and R write the numbers of rows."""
    if len(names) < 2 or names[0] or not all(names[1:]):
        return names
    notes.append(f"The first column has no name on the first line; it is called {UNNAMED}.")
    return [UNNAMED, *names[1:]]


def is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
