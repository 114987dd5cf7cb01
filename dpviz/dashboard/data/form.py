"""The form about a table's columns: what it starts with, and the spec that a filled-in one stands for."""

from dataclasses import replace
from typing import Any

import pandas as pd

from dpviz.common.validate import InvalidInput, number_from_text
from dpviz.datasets.table.cell_text import is_number
from dpviz.datasets.table.features import default_reason
from dpviz.datasets.table.proposals import count_outside, round_range
from dpviz.datasets.table.spec import TableSpec

SEPARATOR = "|"  # of words in one cell


def words_in_cell(text: object) -> tuple[str, ...]:
    """The words in a cell."""
    return tuple(part.strip() for part in str(text or "").split(SEPARATOR) if part.strip())


def describe(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per column with what can be declared about it, nothing declared yet."""
    spec = TableSpec("")
    rows: list[dict[str, Any]] = []
    for column in frame:
        series = frame[column]
        reason = default_reason(series, spec)
        values = series.to_numpy(dtype=float) if is_number(series) else None
        proposed = None if values is None else round_range(values)
        rows.append(
            {
                "use": reason is None,
                "column": str(column),
                "kind": "number" if is_number(series) else "text",
                "rows with gaps": int(series.isna().sum()),
                "low": None,
                "high": None,
                "round range": f"from {proposed[0]:g} to {proposed[1]:g}" if proposed else "",
                "it clips": count_outside(values, *proposed) if proposed and values is not None else None,
                "round": False,
                "round low": proposed[0] if proposed else None,
                "round high": proposed[1] if proposed else None,
                "categories": "",
                "words for gaps": "",
                "gap value": "",
                "left out because": reason or "",
            }
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(("low", "high", "round low", "round high"), "Float64") | {"it clips": "Int64"})


def spec_of(edited: pd.DataFrame, declared: TableSpec, positive: tuple[str, ...], above: float | None) -> TableSpec:
    """The spec that a filled-in form stands for.

    Args:
        declared: the label, which words are gaps, and the column of the person.

    Raises:
        InvalidInput: a range has one end only, or a value for gaps in numbers is no number.
    """
    ranges: dict[str, tuple[float, float]] = {}
    categories: dict[str, tuple[str, ...]] = {}
    defaults: dict[str, float | str] = {}
    missing_in = dict(declared.missing_in)
    columns, proposed = [], []
    for row in edited.to_dict("records"):
        column = str(row["column"])
        if not row["use"] or column == declared.person:
            continue
        columns.append(column)
        low, high = row["low"], row["high"]
        if pd.isna(low) and pd.isna(high) and row["round"] and row["round range"]:
            low, high = row["round low"], row["round high"]
            proposed.append(column)
        if pd.isna(low) != pd.isna(high):
            raise InvalidInput(column, "has one end of a range only", "Give both ends, or none.")
        if not pd.isna(low):
            ranges[column] = (float(low), float(high))
        if levels := words_in_cell(row["categories"]):
            categories[column] = levels
        if gaps := words_in_cell(row["words for gaps"]):
            missing_in[column] = gaps
        value = str(row["gap value"] or "").strip()
        if value:
            defaults[column] = (
                value if row["kind"] == "text" else float(number_from_text(column, value, fix="Give a number for its gaps."))
            )
    return replace(
        declared,
        positive=positive,
        above=above,
        columns=tuple(columns),
        ranges=ranges,
        categories=categories,
        missing_in=missing_in,
        defaults=defaults,
        proposed=tuple(proposed),
    )
