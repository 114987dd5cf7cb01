"""Cells of a table as text, and text as numbers, categories and gaps. Every conversion that is not plain gets a note."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.common.digits import counted
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.written import first_match, matches, plain_numbers

#: words that stand for a gap and for nothing else
CERTAIN = ("N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
#: words that may also be a value: an answer that was not given, Namibia, nothing
DOUBTFUL = ("?", "NA", "None")
MISSING = (*CERTAIN, *DOUBTFUL)
ASK_TEXT: str = "Save the table as CSV in UTF-8 and upload that."
_COMMA_NUMBER = r"^[-+]?[0-9]+(,[0-9]+)?$"
_IN_QUOTES = "^'(.*)'$"
_GROUPED_BY_POINTS = r"^[-+]?[1-9][0-9]{0,2}\.[0-9]{3}$"
_MOST_NAMED = 6  # columns that a note names
_EXACT = 2.0**53  # up to here every whole number is a float of its own


def gap_notes(marked: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One sentence a word that was read as a gap, of {word: {column: count}}."""
    notes = []
    for value, where in marked.items():
        places = [f"{column} ({count:,})" for column, count in list(where.items())[:_MOST_NAMED]]
        more = f" and {len(where) - len(places):,} more columns" if len(where) > len(places) else ""
        many = f" {len(where):,} columns," if more else ""
        notes.append(f"{show(value)} was read as a gap in{many} {', '.join(places)}{more}.")
    return notes


def is_number(series: pd.Series) -> bool:
    """True where a column as read holds numbers."""
    return bool(pd.api.types.is_numeric_dtype(series))


def is_declared(series: pd.Series) -> bool:
    """True where a column is text by declaration and not by what its cells look like; its categories are ordered then."""
    return isinstance(series.dtype, pd.CategoricalDtype) and bool(series.dtype.ordered)


def declared_column(values: Sequence[str | None], levels: Sequence[str]) -> pd.Series:
    """A column of text by declaration; None for gaps."""
    return pd.Series(pd.Categorical(values, categories=list(levels), ordered=True))


def typed_column(
    name: str,
    raw: pa.ChunkedArray,
    delimiter: str,
    notes: list[str],
    as_text: bool = False,
    marked: dict[str, dict[str, int]] | None = None,
) -> tuple[pd.Series, int]:
    """(numbers with NaN for `MISSING` words, or categories that keep these words, number of cells trimmed).

    Args:
        marked: receives the words that were gaps beside numbers, with their counts by column.
        as_text: take numbers for texts too, so that 007 stays 007.

    Which words are gaps in a column of text is decided later (`dpviz.datasets.table.gaps`), where the label is known.
    """
    cells = pc.utf8_trim_whitespace(raw)
    trimmed = pc.sum(pc.not_equal(cells, raw)).as_py() or 0
    nothing = pa.scalar(None, pa.string())
    cells = _unquoted(name, pc.if_else(pc.equal(cells, ""), nothing, cells), notes)
    words = cells = pc.if_else(pc.equal(cells, ""), nothing, cells)
    if as_text:
        return _texts(name, words, notes), trimmed
    cells = pc.if_else(pc.is_in(cells, value_set=pa.array(MISSING)), nothing, cells)
    if cells.null_count == len(cells):
        return pd.Series(np.full(len(cells), np.nan)), trimmed
    numbers = _numbers(cells)
    if numbers is not None and delimiter != "," and matches(cells.filter(pc.match_substring(cells, ".")), _GROUPED_BY_POINTS):
        example = first_match(cells, r"\.")
        if example is not None:
            notes.append(f"Points in {name}, as in {example}, were read as decimal points, not as thousands.")
    if numbers is None:
        cells = plain_numbers(name, cells, notes)
        numbers = _numbers(cells)
    if numbers is None and delimiter != "," and matches(cells, _COMMA_NUMBER):
        cause = f"may hold decimal commas or thousands: {show(first_match(cells, ','))} can be either"
        raise InvalidInput(name, cause, "Write numbers with a decimal point and without thousands separators.")
    if numbers is None:
        return _texts(name, words, notes), trimmed
    if np.isinf(numbers).any():
        at = int(np.argmax(np.isinf(numbers)))
        cause = f"row {at + 1:,} holds {show(cells[at].as_py())}, which is infinite or too large for a number"
        raise InvalidInput(name, cause, "Correct or remove that value.")
    if _merges(cells, numbers):
        notes.append(f"{name} holds whole numbers with more digits than a number keeps apart; they were read as text.")
        return _texts(name, words, notes), trimmed
    for gap in pc.value_counts(words.filter(pc.and_(pc.is_null(cells), pc.is_valid(words)))).to_pylist():
        ({} if marked is None else marked).setdefault(gap["values"], {})[name] = gap["counts"]
    zeros = first_match(cells, r"^[-+]?0[0-9]")
    if zeros is not None:
        notes.append(f"Leading zeros in {name}, as in {zeros}, do not count: its values were read as numbers.")
    return pd.Series(numbers), trimmed


def _unquoted(name: str, cells: pa.ChunkedArray, notes: list[str]) -> pa.ChunkedArray:
    """The cells without single quotes around them, where all but gaps have them."""
    if first_match(cells, _IN_QUOTES) is None:
        return cells
    if not matches(cells.filter(pc.invert(pc.is_in(cells, value_set=pa.array(MISSING)))), _IN_QUOTES):
        return cells
    notes.append(f"Single quotes around all values of {name} were removed.")
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(cells, _IN_QUOTES, r"\1"))


def _texts(name: str, cells: pa.ChunkedArray, notes: list[str]) -> pd.Series:
    """Categories in order; one text is one category, however its accents are encoded."""
    if not pc.all(pc.string_is_ascii(cells)).as_py():
        # not Arrow's own: before version 26 its NFC decomposed, so that one text became two categories
        texts = {text: unicodedata.normalize("NFC", text) for text in pc.unique(cells).to_pylist() if text is not None}
        normal = pa.chunked_array([pa.array([text and texts[text] for text in cells.to_pylist()], pa.string())])
        changed = pc.sum(pc.not_equal(normal, cells)).as_py()
        if changed:
            notes.append(f"Accents in {counted(changed, 'value')} of {name} were written in another form of Unicode (NFC).")
        cells = normal
    text = cells.dictionary_encode().combine_chunks()
    order = pc.array_sort_indices(text.dictionary)  # of UTF-8: that of the characters, as Python sorts them
    levels = text.dictionary.take(order)
    rare = levels.filter(pc.match_substring_regex(levels, r"[^ -~]")).to_pylist()
    hidden = [level for level in rare if not level.isprintable()]
    if hidden:
        notes.append(
            f"In {counted(len(hidden), 'value')} of {name} are characters that cannot be seen, such as {ascii(hidden[0])[:60]}."
        )
    place = np.empty(len(order) + 1, np.int32)
    place[order.to_numpy()] = np.arange(len(order))
    place[-1] = -1  # gaps
    codes = pc.fill_null(text.indices, -1).to_numpy(zero_copy_only=False)
    dtype = pd.CategoricalDtype(pd.Index(levels.to_pandas()), ordered=False)
    return pd.Series(pd.Categorical.from_codes(place[codes], dtype=dtype))


def _merges(cells: pa.ChunkedArray, numbers: NDArray[np.float64]) -> bool:
    """True where different whole numbers would become the same float, as identifiers of many digits do."""
    large = np.abs(numbers) >= _EXACT
    if not large.any():
        return False
    texts = set(cells.filter(pa.array(large)).to_pylist())
    whole = {int(text) for text in texts if re.fullmatch(r"[-+]?[0-9]+", text)}
    return len(whole) > len({float(value) for value in whole})


def _numbers(cells: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """The cells as numbers, NaN for gaps; None where one is no number."""
    try:
        # Arrow does not take "+5" for a number
        numbers = pc.cast(pc.replace_substring_regex(cells, r"^\+([0-9.])", r"\1"), pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
