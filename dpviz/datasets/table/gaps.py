"""Missing values of a table: words that stand for them, found by rule or named by a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.common.validate import show
from dpviz.datasets.table.cell_text import DOUBTFUL, MISSING, gap_notes, is_declared, is_number, typed_column
from dpviz.datasets.table.columns import FEW_LEVELS, MANY_GAPS, NUMBER_TEXT, first_names

if TYPE_CHECKING:
    from dpviz.datasets.table.spec import TableSpec

_WORD = re.compile(r"[^\W\d_][^\d<>=+]*")


def mark_all_gaps(frame: pd.DataFrame, spec: TableSpec, notes: list[str]) -> pd.DataFrame:
    """The table with NaN for every gap; a column that holds only numbers beside its gaps holds numbers.

    Words that a person named (`TableSpec.missing`, `missing_in`) are gaps, and no others. Where none are named:

    - in the label, no word is a gap;
    - in a column whose values have a declared type, no word is a gap (ARFF, frames);
    - in any other column of text, `CERTAIN` words are gaps; `DOUBTFUL` ones are where they fill at most a tenth of the rows;
    - a column with a declared value for gaps takes all these words for gaps, and a declared category is none;
    - words beside many different numbers are gaps.

    Args:
        frame: as read.
        notes: what was decided is added.
    """
    marked: dict[str, dict[str, int]] = {}
    kept: dict[str, dict[str, int]] = {}
    columns: dict[str, pd.Series] = {}
    for column in map(str, frame.columns):
        series = frame[column]
        words = (
            _counts(series, spec.missing_in.get(column, spec.missing or ()))
            if _is_named(column, spec)
            else _by_rule(series, column, spec, kept)
        )
        columns[column] = _without(series, words, notes) if words else series
        for value, count in words.items():
            marked.setdefault(value, {})[column] = count
    notes += gap_notes(marked)
    for value, where in kept.items():
        places = first_names([f"{column} ({count:,})" for column, count in where.items()])
        notes.append(
            f"{show(value)} fills more than a tenth of {places} and was read as a category. "
            "Rows with a gap are left out, unless the column has a value for gaps: a number, or a category of its own. "
            "If it is a gap, say so."
        )
    return pd.DataFrame(columns, index=frame.index)


def decisions(frame: pd.DataFrame, spec: TableSpec) -> dict[str, tuple[str, ...]]:
    """Words that are gaps, by column, for every column in which there are words that might be."""
    decided: dict[str, tuple[str, ...]] = {}
    for column in map(str, frame.columns):
        series = frame[column]
        if _is_named(column, spec):
            decided[column] = spec.missing_in.get(column, spec.missing or ())
        elif not is_number(series) and not is_declared(series):
            words = tuple(_by_rule(series, column, spec, {}))
            if words or _counts(series, MISSING):
                decided[column] = words
    return decided


def doubtful_words(frame: pd.DataFrame, target: str) -> dict[str, dict[str, int]]:
    """{word: {column: count}} of words that may be gaps in the label, or in more than a tenth of a column of text."""
    found: dict[str, dict[str, int]] = {}
    for column in map(str, frame.columns):
        series = frame[column]
        if is_number(series) or is_declared(series):
            continue
        for value, count in _counts(series, MISSING if column == target else DOUBTFUL).items():
            if column == target or count > MANY_GAPS * len(series):
                found.setdefault(value, {})[column] = count
    return found


def _is_named(column: str, spec: TableSpec) -> bool:
    return column in spec.missing_in or spec.missing is not None


def _by_rule(series: pd.Series, column: str, spec: TableSpec, kept: dict[str, dict[str, int]]) -> dict[str, int]:
    if is_number(series) or is_declared(series) or column == spec.target:
        return {}
    found = _counts(series, [value for value in MISSING if value not in spec.categories.get(column, ())])
    for value in [value for value in found if value in DOUBTFUL and column not in spec.defaults]:
        if found[value] > MANY_GAPS * len(series):
            kept.setdefault(value, {})[column] = found.pop(value)
    return found | ({} if column in spec.categories else _among_numbers(series, found))


def _among_numbers(series: pd.Series, gaps: Mapping[str, int]) -> dict[str, int]:
    """Words beside many different numbers, which fill at least half of a column."""
    levels = [str(level) for level in series.cat.categories if level not in gaps]
    words = [level for level in levels if _WORD.fullmatch(level)]
    if not words or len(levels) <= FEW_LEVELS:
        return {}
    if any(NUMBER_TEXT.fullmatch(level) is None for level in levels if level not in words):
        return {}
    counts = _counts(series, words)
    return counts if sum(counts.values()) <= 0.5 * series.notna().sum() else {}


def _counts(series: pd.Series, words: Sequence[str]) -> dict[str, int]:
    """Counts of these words in a column, of those that occur."""
    if is_number(series):
        values = series.to_numpy(dtype=np.float64)
        numbers = {value: float(value) for value in words if NUMBER_TEXT.fullmatch(value)}
        counts = {value: int((values == at).sum()) for value, at in numbers.items()}
    else:
        by_level = np.bincount(series.cat.codes.to_numpy() + 1, minlength=len(series.cat.categories) + 1)[1:]
        here = dict(zip(map(str, series.cat.categories), by_level, strict=True))
        counts = {value: int(here[value]) for value in words if value in here}
    return {value: count for value, count in counts.items() if count}


def _without(series: pd.Series, words: Mapping[str, int], notes: list[str]) -> pd.Series:
    if is_number(series):
        return series.mask(series.isin([float(value) for value in words]))
    left = series.cat.remove_categories([level for level in series.cat.categories if str(level) in words])
    if is_declared(series) or not len(left.cat.categories):
        return left if len(left.cat.categories) else pd.Series(np.full(len(left), np.nan), index=series.index)
    levels, _ = typed_column(
        str(series.name), pa.chunked_array([pa.array(map(str, left.cat.categories), pa.string())]), ",", notes
    )
    if not is_number(levels):
        return left
    return pd.Series(np.r_[levels.to_numpy(), np.nan][left.cat.codes.to_numpy()], index=series.index)


def mark_gaps(series: pd.Series, words: Sequence[str]) -> pd.Series:
    """A column of new rows with NaN for these words, and with numbers where only they stood between numbers."""
    found = _counts(series, list(words))
    return _without(series, found, []) if found else series
