"""People found by their feature values."""

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.rows import selection
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.studies.inspected import Inspected
from dpviz.influence import Influence


def draw(run: Inspected, influence: Influence) -> None:
    """People by their feature values."""
    frame = dataset_of(run.spec).frame
    columns = st.multiselect("Columns", [str(c) for c in frame], max_selections=4, placeholder="for example age")
    conditions = []
    for name in columns:
        series = frame[name]
        tests = selection.tests_of(series)
        left, right = st.columns(2)
        test = left.selectbox(f"{name}: test", tests, key=f"find-test-{name}")
        if tests != selection.TEXT_TESTS:
            value = right.text_input(f"{name}: value", f"{float(series.median()):.6g}", key=f"find-value-{name}")
        elif test == "contains" or series.nunique() > 200:
            value = right.text_input(f"{name}: text", key=f"find-text-{name}")
        else:
            value = right.selectbox(f"{name}: value", sorted(series.astype(str).unique()), key=f"find-level-{name}")
        conditions.append(selection.Condition(name, str(test), str(value)))
    if not conditions:
        st.caption("Choose columns; people who meet all conditions are listed by influence.")
        return
    try:
        positions = np.flatnonzero(selection.matching_rows(frame.iloc[run.row_ids], conditions))
    except InvalidInput as problem:
        panels.problem(problem)
        return
    _found(run, influence, frame, positions)


def _found(run: Inspected, influence: Influence, frame: pd.DataFrame, positions: np.ndarray) -> None:
    n = len(run.row_ids)
    if not len(positions):
        panels.empty(f"None of the {n:,} training rows meets all conditions. Loosen one of them.")
        return
    positions = influence.order[np.isin(influence.order, positions)]
    ids = run.row_ids[positions]
    st.markdown(
        f"{len(positions):,} of {n:,} training rows, by influence"
        + (", the first 200 shown." if len(positions) > 200 else ".")
        + " A tick at the left chooses the person."
    )
    shown = tables.join_readable(
        {"row id": ids[:200], "influence, Newton step": influence.newton_norm[positions[:200]]}, frame.iloc[ids[:200]]
    )
    selection.remember_shown(selection.FOUND, ids)
    tables.frame(
        shown,
        key=selection.FOUND,
        hide_index=True,
        selection_mode="single-row",
        on_select=lambda: selection.from_table(selection.FOUND),
    )
    st.button("Make them the group", on_click=selection.set_group, args=(ids,))
