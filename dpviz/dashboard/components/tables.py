"""Tables on a page, and tables as files that no spreadsheet takes for formulas."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from csv import QUOTE_NONNUMERIC
from typing import Any

import pandas as pd
import streamlit as st
from numpy.typing import ArrayLike

from dpviz.dashboard.components import folds, recorder
from dpviz.reporting import Table, words

#: where a formula may begin: at the start of a cell, and after what a program may take for the end of one. A number is none.
_STARTS = r"=+\-@\t\r\n|%\uff1d\uff0b\uff0d\uff20"
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*(?:$|[;,\t\r\n])"
_FORMULA = re.compile(rf"(^\ *|[;,\t\r\n]\s*)(?!{_NUMBER})([{_STARTS}])")


def table(
    rows: Iterable[Sequence[object]] | Callable[[], Iterable[Sequence[object]]], columns: Sequence[str], *, real: bool = False
) -> None:
    """A small table as plain HTML, readable by a screen reader; text is shown as it is.

    Args:
        rows: or what makes them, which is called in a closed fold only when a report is written.
        real: whether it speaks of single real rows; reports leave it out unless they are asked for.
    """

    def make_rows() -> list[list[object]]:
        return [list(row) for row in (rows() if callable(rows) else rows)]

    def part(made: list[list[object]]) -> Table:
        return Table("", pd.DataFrame(made, columns=list(columns)))

    name = f"table {' '.join(columns)}"
    if callable(rows) and folds.in_closed_fold():
        recorder.keep(name, lambda: part(make_rows()), rows=real)
        return
    found = make_rows()
    recorder.keep(name, part(found), rows=real)
    if folds.in_closed_fold():
        return
    heads = [words.keep_together(words.markdown(head)) for head in columns]
    shown = pd.DataFrame([[words.keep_together(words.markdown(str(v))) for v in row] for row in found], columns=heads)
    st.table(shown.set_index(heads[0]))


def join_readable(columns: Mapping[str, ArrayLike], frame: pd.DataFrame) -> pd.DataFrame:
    """A dataset's readable rows behind columns about them; one of the dataset's with such a name says that it is the table's.

    >>> list(join_readable({"row id": [0]}, pd.DataFrame({"row id": [7], "age": [40]})))
    ['row id', 'row id (of the table)', 'age']
    """
    named = frame.rename(columns={name: f"{name} (of the table)" for name in columns})
    return pd.concat([pd.DataFrame(columns, index=frame.index), named], axis=1)


def download(data: Callable[[], pd.DataFrame], key: str, label: str = "Download data (CSV)") -> None:
    """A button that saves a table as CSV; the table is made when it is pressed."""
    st.download_button(
        label,
        lambda: csv(data()),
        file_name=f"dpviz-{key}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def csv(table: pd.DataFrame) -> bytes:
    """A table as CSV in which no cell can act as a spreadsheet formula: such text gets an apostrophe, and all text quotes."""
    out = io.StringIO()
    escape_formulas(table).to_csv(out, index=False, quoting=QUOTE_NONNUMERIC)
    return out.getvalue().encode("utf-8-sig")


def escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with an apostrophe before every text that a spreadsheet would take for a formula."""
    safe = table.copy()
    safe.columns = pd.Index(unique_names([_neutral(str(c)) for c in safe.columns]))
    for k in range(safe.shape[1]):
        column = safe.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(column):
            cells = column.tolist()
            neutral = {v: _neutral(v) for v in {v for v in cells if isinstance(v, str)}}  # most tables repeat their texts
            safe.isetitem(k, [neutral[v] if isinstance(v, str) else v for v in cells])
    return safe


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names without repeats, which a table on a page cannot show."""
    counts: dict[str, int] = {}
    out = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        out.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return out


def _neutral(text: str) -> str:
    return _FORMULA.sub(r"\1'\2", text)


def frame(table: pd.DataFrame, **more: Any) -> None:
    """A table that can be sorted and scrolled; what its own menu saves holds no formulas.

    Args:
        more: further arguments of `st.dataframe`.
    """
    if not folds.in_closed_fold():
        st.dataframe(escape_formulas(table), **more)
