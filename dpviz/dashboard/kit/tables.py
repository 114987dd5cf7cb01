"""Tables on a page, and tables as files that no spreadsheet takes for formulas."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence

import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import words


def table(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> None:
    """A small table as plain HTML, readable by a screen reader; text is shown as it is."""
    frame = pd.DataFrame([[words.markdown(str(v)) for v in row] for row in rows], columns=list(columns))
    st.table(frame.set_index(columns[0]))


def download(data: Callable[[], pd.DataFrame], key: str, label: str = "Download data (CSV)") -> None:
    """A button that saves a table as CSV; the table is made when it is pressed."""
    st.download_button(
        label,
        lambda: csv(data()),
        file_name=f"dpviz-{key}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        type="tertiary",
        on_click="ignore",
    )


def csv(table: pd.DataFrame) -> bytes:
    """A table as CSV in which no cell can act as a spreadsheet formula: such text gets a leading apostrophe."""
    out = io.StringIO()
    harmless(table).to_csv(out, index=False)
    return out.getvalue().encode("utf-8-sig")


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with an apostrophe before every text that a spreadsheet would take for a formula."""
    safe = table.copy()
    safe.columns = [_neutral(str(c)) for c in safe.columns]
    for k in range(safe.shape[1]):
        column = safe.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(column):
            safe.isetitem(k, [_neutral(v) if isinstance(v, str) else v for v in column])
    return safe


def _neutral(text: str) -> str:
    return "'" + text if text.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else text
