"""The chosen rows: one person, another to compare with, a group, and the two axes of the map.

Person, other and axes are in the address; a group is kept for the session, because it may hold thousands of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dpviz.common.validate import InvalidInput, check_choice, number_from_text
from dpviz.dashboard.frame import address, fields
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import dataset_of, fit_key, resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.influence import Influence
from dpviz.mechanisms import HasRule, IndividualBudget, NoisesRows, NoisesShare, list_mechanisms
from dpviz.mechanisms.knobs import Choice

MAP = "map"
TABLE = "rows-table"
FOUND = "found-table"
COMPONENTS = ("principal component 1", "principal component 2")

_GROUP = "dpviz.group"  # (key of the data, row ids)
_HELD = "dpviz.held"  # (inputs, ring, group) of the map as drawn, while a selection that was made on it is shown
_MADE = "dpviz.made"  # set by a selection on the map, until the page has seen it
_SHOWN = "dpviz.shown"  # row ids of the tables, in their order

#: share of the rows, the most influential, that receive noise with a method that takes a share
SHARE = 0.1
COLOURS = {"influence": "influence", "epsilon": "individual ε", "noise": "noise received"}

NUMBER_TESTS = {">": np.greater, "≥": np.greater_equal, "=": np.equal, "≤": np.less_equal, "<": np.less}
TEXT_TESTS = ("is", "is not", "contains")


@dataclass(frozen=True)
class Chosen:
    """Positions in the training rows.

    Attributes:
        person: the row that the page is about.
        other: the row to compare with, or None.
        group: (n,) rows of the group; all False where there is none.
        axes: names of the map's axes.
    """

    person: int
    other: int | None
    group: NDArray[np.bool_]
    axes: tuple[str, str]

    @property
    def people(self) -> list[int]:
        """The person, and the other one where there is one."""
        return [self.person] if self.other is None else [self.person, self.other]


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The page's fields in the address, for a run's rows; none where they cannot be read, which the page says."""
    dataset = fields.read_or_default(lambda: dataset_of(spec), None)
    if dataset is None:
        return ()
    usual = dataset.plane or COMPONENTS
    axes = [
        fields.Field(key, Choice(label=label, help="", options=axis_names(dataset)), default, few=0)
        for key, label, default in zip(("x", "y"), ("Across", "Upwards"), usual, strict=True)
    ]
    people = (fields.row("row", "Row id", spec), fields.row("other", "Compare with row id", spec))
    mine = list_mechanisms()[resolve(spec).spec.mechanism]
    known = issubclass(mine, IndividualBudget), issubclass(mine, NoisesRows | HasRule | NoisesShare)
    options = [name for name, there in zip(COLOURS, (True, *known), strict=True) if there]
    return (
        *people,
        *axes,
        fields.Field("colour", Choice(label="Colour", help="", options=tuple(options), names=COLOURS), "influence"),
    )


def offer_methods(spec: RunSpec) -> None:
    """A button that offers the methods that put noise on rows, where the run's does not."""
    if issubclass(list_mechanisms()[spec.mechanism], NoisesRows | HasRule | NoisesShare):
        return
    with st.popover("Methods that put noise on rows"):
        st.caption("Each becomes the method of the sidebar, and of every page.")
        for run in inspected.noising_rows(spec, SHARE):
            label = list_mechanisms()[run.mechanism].label
            st.button(label, key=f"noising-{run.mechanism}", on_click=address.set_run, args=(run,), width="stretch")


def choose(own: fields.Group, run: inspected.Inspected, influence: Influence) -> Chosen:
    """The chosen rows, the most influential one where none is named; impossible wishes are reported and dropped."""
    group = _group(run)
    person, other = (None if row is None else run.position(row) for row in (own["row"].value(), own["other"].value()))
    if person is None:
        order = influence.order
        person = int(order[group[order]][0] if group.any() else order[0])
    if other == person:
        other = None
        fix = "Give the id of another training row to compare."
        address.report(InvalidInput(own["other"].knob.label, f"row {run.row_ids[person]} is the person shown", fix))
        own["other"].keep(None)
        address.amend(own.keys)
    return Chosen(person, other, group, (own["x"].value(), own["y"].value()))


def row_name(run: inspected.Inspected, position: int) -> str:
    """`inspected.row_name` of a training row."""
    return inspected.row_name(dataset_of(run.spec), int(run.row_ids[position]))


def axis_names(dataset: Dataset) -> tuple[str, ...]:
    """The names of possible axes."""
    features = dataset.feature_names[: -1 if dataset.intercept else None]
    return (*COMPONENTS, *features) if dataset.d > 1 else features


def from_map() -> None:
    """Callback of the map: a click chooses a person, a box or a lasso a group, a double click lets the group go."""
    event = st.session_state[MAP].selection
    ids = [int(p["customdata"]) for p in event.points if "customdata" in p]
    if event.box or event.lasso or len(ids) > 1:
        set_group(ids)
        st.session_state[_MADE] = True
    elif ids:
        st.session_state["row"] = str(ids[0])
    else:
        set_group([])


def map_rows(inputs: str, chosen: Chosen) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) rows to ring and (n,) rows to leave unfaded on the map.

    After a box or lasso the browser itself fades the other points. The picture then stays exactly as it was, because a
    new one is slow to draw for many points; the next change of anything draws the choice in.

    Args:
        inputs: what else decides the picture.
    """
    ring = np.zeros(len(chosen.group), bool)
    ring[chosen.people] = True
    held = st.session_state.get(_HELD)
    if st.session_state.pop(_MADE, False) and held is not None and held[0] == inputs:
        return held[1], held[2]
    st.session_state[_HELD] = (inputs, ring, chosen.group)
    return ring, chosen.group


def from_table(key: str) -> None:
    """Callback of a table in which one row can be chosen."""
    rows = st.session_state[key].selection.rows
    shown = st.session_state.get(_SHOWN, {}).get(key, [])
    if rows and rows[0] < len(shown):
        st.session_state["row"] = str(shown[rows[0]])


def remember_shown(key: str, ids: NDArray[np.integer]) -> None:
    """Keeps which rows a table shows, for `from_table`."""
    st.session_state[_SHOWN] = st.session_state.get(_SHOWN, {}) | {key: ids}


def set_group(ids: Sequence[int] | NDArray[np.integer]) -> None:
    """Makes these row ids the group, and the most influential of them the person."""
    st.session_state[_GROUP] = np.unique(np.asarray(ids, np.intp))
    st.session_state["row"] = ""


def forget_group() -> None:
    """Callback: no group."""
    st.session_state.pop(_GROUP, None)


def _group(run: inspected.Inspected) -> NDArray[np.bool_]:
    cut = {name: getattr(run.spec, name) for name in ("split_seed", "folds", "published_split")}
    key = fit_key(RunSpec(run.spec.dataset, **cut))
    if st.session_state.get(f"{_GROUP}.of") != key:
        if f"{_GROUP}.of" in st.session_state:
            forget_group()
        st.session_state[f"{_GROUP}.of"] = key
    ids = st.session_state.get(_GROUP)
    return np.zeros(len(run.row_ids), bool) if ids is None else np.isin(run.row_ids, ids)


@dataclass(frozen=True)
class Condition:
    """One test on one readable column.

    Attributes:
        column: a column of `Dataset.frame`.
        test: one of `NUMBER_TESTS` for numeric columns, of `TEXT_TESTS` for others.
        value: what to compare with, as typed.
    """

    column: str
    test: str
    value: str


def tests_of(series: pd.Series) -> tuple[str, ...]:
    """The tests that a column allows."""
    numeric = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    return tuple(NUMBER_TESTS) if numeric else TEXT_TESTS


def matching_rows(frame: pd.DataFrame, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
    """(rows,) which rows meet all conditions. Values are compared, never evaluated.

    Raises:
        InvalidInput: unknown column or test, or a number that is none.
    """
    mask = np.ones(len(frame), bool)
    for condition in conditions:
        column = frame[check_choice("column", condition.column, tuple(map(str, frame.columns)))]
        test = check_choice("test", condition.test, tests_of(column))
        if test in NUMBER_TESTS:
            value = number_from_text(condition.column, condition.value)
            numbers = column.to_numpy(float)
            mask &= NUMBER_TESTS[test](numbers, value)
            continue
        texts = column.astype(str)
        if test == "contains":
            mask &= texts.str.contains(condition.value, case=False, regex=False).to_numpy(bool)
        else:
            mask &= (texts == condition.value).to_numpy() == (test == "is")
    return mask
