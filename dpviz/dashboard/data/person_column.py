"""The choice of an upload's person column: whose rows they are, and how many of one person are kept."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dpviz.common.persons import MOST_ROWS
from dpviz.datasets.table.spec import TableSpec

_EACH = "each row is another person"


def with_person(declared: TableSpec, names: Sequence[str]) -> TableSpec:
    """The spec with the answers of two controls: the column of the person, and the rows of one person that are kept."""
    columns = st.columns(2)
    chosen = columns[0].selectbox(
        "Person (whose row it is)",
        [_EACH, *(name for name in names if name != declared.target)],
        key="dpviz.person",
        help="Where a person has several rows, name the column that says whose they are: ε is then for the person and not for a "
        "row, the parts for training and testing share no person, and the column is no feature.",
    )
    if chosen == _EACH:
        return declared
    most = columns[1].number_input(
        "Rows of one person, at most",
        1,
        MOST_ROWS,
        1,
        key="dpviz.person_rows",
        help="So many are kept, drawn at random. Noise grows with the number, which is public: choose it without seeing rows.",
    )
    return replace(declared, person=chosen, person_rows=int(most))
