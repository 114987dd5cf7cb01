"""The meaning of a person's table: its label, its features, its missing values.

Every choice is a value (`TableSpec`), so that a dataset can be made again exactly. Declared ranges and categories are
public knowledge; those read off the data are not covered by epsilon and are listed in `Dataset.looked_at`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

import pandas as pd
import tomli_w

from dpviz.common.persons import KEPT_ROWS, MOST_ROWS
from dpviz.common.validate import InvalidInput, check_choice, check_integer, check_text, number, show
from dpviz.datasets.table.columns import classes, gap_hint, word

#: what a table's rows decide and guarantees take as public
CLASS_LABELS: str = "the class labels, which were read from the rows"
COMPLETE_ROWS: str = "how many rows have no gaps"
CHOSEN_COLUMNS: str = "which columns were left out because of their values"


@dataclass(frozen=True)
class TableSpec:
    """The choices by which a table becomes a dataset.

    Attributes:
        target: the column with the label.
        positive: target values that count as +1; all other values are -1. Of two values, the second in alphabetical
            order where none is given.
        above: instead of `positive`, for a target of numbers: values above this count as +1.
        columns: features in this order; None takes every column that can be used, but for those of `drop`, those that
            look like identifiers, and, where rows with gaps are dropped, those with gaps in more than a tenth of the rows.
        drop: columns that are not features, used where `columns` is None.
        ranges: declared (low, high) of number columns; values outside are clipped.
        categories: declared values of a column; other values become all zeros.
        missing: words, numbers among them, that are gaps in all columns, and no others; None takes those that
            `dpviz.datasets.table.gaps` finds. Empty cells are gaps always.
        missing_in: the same for single columns.
        defaults: value for gaps by column; rows with gaps in other columns that are used are left out. A text that is no
            value yet becomes a category of its own.
        proposed: columns whose range or categories are not public knowledge though they may stand in `ranges` or
            `categories`: they were proposed from the rows, and stay in `Dataset.looked_at`. A column of numbers without a range
            gets a round one.
        person: the column that names the person of a row, never a feature; "" where epsilon is for a row.
        person_rows: rows of one person that are kept at most, public.
    """

    target: str
    positive: tuple[str, ...] = ()
    above: float | None = None
    columns: tuple[str, ...] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] | None = None
    defaults: Mapping[str, float | str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    missing_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proposed: tuple[str, ...] = ()
    person: str = ""
    person_rows: int = 1

    @property
    def taken_as_public(self) -> tuple[str, ...]:
        """Facts taken from the rows beside ranges and categories; see `Dataset.taken_as_public`."""
        labels = self.above is None and len(self.categories.get(self.target, ())) != 2
        kept = [KEPT_ROWS] if self.person else []
        return (*([CLASS_LABELS] if labels else []), COMPLETE_ROWS, *kept)  # a gap in the label takes its row, whatever is filled

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableSpec:
        """A spec from plain values, as in a TOML file.

        Raises:
            InvalidInput: an unknown key, or a value of the wrong kind.
        """
        values = settle_settings(dict(values))
        for key in values:
            check_choice("sidecar", key, _READ)
        if not isinstance(values.get("target"), str):
            raise InvalidInput("target", "is missing or not a text", 'Write target = "name of the column with the label".')
        made = {key: _READ[key](key, value) for key, value in values.items()}
        for key, value in made.items():
            check_text(key, json.dumps(value, ensure_ascii=False, default=str))
        if "person_rows" in made and not made.get("person"):
            raise InvalidInput("person_rows", "is given without a person", "Name the column of the person.")
        return cls(**made)

    def to_toml(self) -> str:
        """The spec as a TOML document, which `from_dict` takes back."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        empty = [name for name, value in values.items() if value is None or (name not in _MAY_BE_EMPTY and value in ((), {}, ""))]
        if not self.person:
            empty.append("person_rows")
        return tomli_w.dumps({name: value for name, value in values.items() if name not in empty})


_MAY_BE_EMPTY = ("columns", "missing")


def words(key: str, value: object) -> tuple[str, ...]:
    """A list of texts, in which numbers stand for how they are written; a single one is a list of one.

    Raises:
        InvalidInput: it is something else, or an empty list where that means nothing.
    """
    listed = [value] if isinstance(value, str | Real) else value
    if not isinstance(listed, list | tuple) or any(isinstance(one, list | tuple | Mapping) for one in listed):
        raise InvalidInput(key, f"must be a list, got {show(value)}", f'Write {key} = ["one", "two"].')
    if key == "positive" and not listed:
        raise InvalidInput(key, "is an empty list", "Name the values that count as +1, or leave it out.")
    return tuple(str(one) if key in ("columns", "drop", "proposed") else word(one) for one in listed)


def settle_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Settings with words for gaps of single columns under `missing_in`."""
    missing = values.get("missing")
    if isinstance(missing, Mapping):
        by_column = dict(values.pop("missing"))
        if "" in by_column:  # no column can be called so
            values["missing"] = by_column.pop("")
        values["missing_in"] = by_column | dict(values.get("missing_in") or {})
    return values


def _mapping(key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(key, f"must be a table, got {show(value)}", f"Write a [{key}] section with one line per column.")
    out: dict[str, Any] = {}
    for column, item in value.items():
        if key == "defaults":
            if isinstance(item, bool) or not isinstance(item, str | Real):
                raise InvalidInput(
                    f"defaults[{show(column)}]", f"must be a number or a text, got {show(item)}", "Give one value."
                )
            out[str(column)] = item
            continue
        if key == "missing_in":
            out[str(column)] = words(f"missing[{show(column)}]", item)
            continue
        if key == "categories" and item in ([], ()):
            raise InvalidInput(
                f"categories[{show(column)}]", "is an empty list", "Give its values, or put the column under drop."
            )
        if not isinstance(item, list | tuple) or (key == "ranges" and len(item) != 2):
            like = "[low, high]" if key == "ranges" else '["one", "two"]'
            raise InvalidInput(f"{key}[{show(column)}]", f"must be a list, got {show(item)}", f"Write {like}.")
        out[str(column)] = tuple(item) if key == "ranges" else tuple(word(v) for v in item)
    return out


_READ: dict[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("target", "person"), lambda key, value: str(value)),
    **dict.fromkeys(("positive", "columns", "drop", "missing", "proposed"), words),
    **dict.fromkeys(("ranges", "categories", "defaults", "missing_in"), _mapping),
    "above": number,
    "person_rows": lambda key, value: check_integer(key, value, 1, MOST_ROWS),
}


def last_column(frame: pd.DataFrame, *, chosen: bool = False) -> str:
    """The last column's name, where no label was named.

    Args:
        chosen: whether it is known which labels count as +1.

    Raises:
        InvalidInput: it takes more than two values, and it is not declared which of them count as +1.
    """
    last = str(frame.columns[-1])
    counts = classes(frame[last])
    if len(counts) <= 2 or chosen:
        return last
    some = ", ".join(show(value) for value in list(counts)[:6]) + (", ..." if len(counts) > 6 else "")
    raise InvalidInput(
        "target",
        f"no label is named, and the last column, {show(last)}, takes {len(counts):,} values ({some})",
        f"Name the column with the label, or say which of these values count as +1.{gap_hint(last, counts)}",
    )
