"""The choice of an upload's person column: whose rows they are, and how many of one person are kept."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dpviz.common.persons import MOST_ROWS
from dpviz.dashboard.components import panels
from dpviz.datasets.table.columns import is_identifier
from dpviz.datasets.table.spec import TableSpec

_EACH = "each row is another person"


def with_person(declared: TableSpec, frame: pd.DataFrame) -> TableSpec:
    """The spec with the answers of two controls: the column of the person, and the rows of one person that are kept."""
    columns = st.columns([3, 2])
    names = [str(name) for name in frame if name != declared.target]
    repeated = [name for name in names if is_identifier(frame[name]) and frame[name].nunique() < frame[name].count()]
    chosen = columns[0].selectbox(
        panels.LABELS["person"],
        [_EACH, *names],
        index=1 + names.index(repeated[0]) if repeated else 0,
        key="dpviz.person",
        help="Where a person has several rows, name the column that says whose they are: ε is then for the person and not for a "
        "row, the parts for training and testing share no person, and the column is no feature.",
    )
    if chosen == _EACH:
        return declared
    if [chosen] == repeated[:1]:
        st.caption("Guessed: it has the name of an id, and some of its values repeat.")
    counts = frame[chosen].value_counts()
    kept = "; ".join(f"at most {k}: {counts.clip(upper=k).sum():,} rows" for k in (1, 2, 5))
    st.caption(f"{len(counts):,} persons, the largest with {counts.max():,} rows. Kept of each person: {kept}.")
    most = columns[1].number_input(
        panels.LABELS["person_rows"],
        1,
        MOST_ROWS,
        1,
        key="dpviz.person_rows",
        help="So many are kept, drawn at random. Noise grows with the number, which is public: choose it without seeing rows.",
    )
    return replace(declared, person=chosen, person_rows=int(most))
