"""A person's own table: read it, say what it means, and train on it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.boundary import Boundary
from dpviz.common.digits import counted
from dpviz.common.limits import Limits, demo
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.data.form import SEPARATOR, describe, spec_of, words_in_cell
from dpviz.dashboard.data.person_column import with_person
from dpviz.dashboard.data.settings import FIRST
from dpviz.dashboard.frame import private, session
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources import uploads
from dpviz.datasets.table.cell_text import CERTAIN, MISSING, is_number
from dpviz.datasets.table.columns import classes, word
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.decode import ENCODINGS
from dpviz.datasets.table.delimiters import DELIMITERS
from dpviz.datasets.table.formats import SUFFIXES
from dpviz.datasets.table.gaps import doubtful_words, mark_all_gaps
from dpviz.datasets.table.names import SECOND
from dpviz.datasets.table.prepare import look, rows_left
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.metrics import METRICS, default_metric
from dpviz.reporting import words

T = TypeVar("T")

_TABLE, _TURN, _REFUSED, _DESCRIBED = "dpviz.table", "dpviz.turn", "dpviz.refused", "dpviz.described"
_MARKED, _LOOKED, _TWO_VALUED = "dpviz.marked", "dpviz.looked", "dpviz.two-valued"
#: columns of the form, what most people decide first; the page says in other places what else `describe` finds
_SHOWN = (
    *("use", "column", "kind", "rows with gaps", "round range", "it clips", "round", "low", "high", "categories"),
    *("words for gaps", "gap value"),
)
_HEADERS = {"automatic": None, "names": True, "data": False, "names on line 2": SECOND}
_FEW = 20


def draw_upload() -> None:
    """Upload, choices, and the button that makes it a dataset."""
    if demo():
        st.info("This server is a demonstration and takes no data. Install dpviz on your own machine to use a table of yours.")
        return
    limits = Limits.from_environment()
    upload: tuple[str, Table] | None = st.session_state.get(_TABLE)
    if upload is None:
        _upload(limits)
    else:
        _choices(upload[0], upload[1], limits)
    st.caption(
        "The file is kept in this app's memory for this session. No other session sees it, and it is gone with the session, two "
        "minutes after the page is closed at the latest; a page that is loaded again before that finds it. While a file above "
        "1 MB arrives, the web server may buffer it in a temporary file without a name; nothing else is written to disk. "
        f"Limits: {limits.megabytes} MB, {limits.rows:,} rows, {limits.features:,} features after encoding."
    )


def _upload(limits: Limits) -> None:
    # a new key after each file, so that Streamlit lets go of the bytes
    file = st.file_uploader(
        f"A table: CSV or ARFF (plain or gzipped, {', '.join(SUFFIXES[:7])}), Parquet, or an Excel workbook",
        key=f"dpviz.file.{st.session_state.get(_TURN, 0)}",
        max_upload_size=limits.megabytes,  # what Streamlit takes is what the reader takes, so that one variable sets both
    )
    columns = st.expander("Reading options").columns(4)
    header = columns[0].radio(panels.LABELS["header"], list(_HEADERS), horizontal=True, key="dpviz.header")
    delimiters = {"automatic": None} | {word: sign for sign, word in DELIMITERS.items()}
    delimiter = columns[1].selectbox(panels.LABELS["delimiter"], list(delimiters), key="dpviz.delimiter")
    encodings: dict[str, str | None] = {"automatic": None} | {word: sign for sign, word in ENCODINGS.items()}
    encoding = columns[2].selectbox(panels.LABELS["encoding"], list(encodings), key="dpviz.encoding")
    sheet = columns[3].text_input(panels.LABELS["sheet"], placeholder="the first", key="dpviz.sheet").strip()
    if file is None:
        st.session_state.pop(_REFUSED, None)
        return
    question = (file.file_id, header, delimiter, encoding, sheet)
    refusal: tuple[tuple[str, ...], InvalidInput] | None = st.session_state.get(_REFUSED)
    if refusal is not None and refusal[0] == question:  # it is not read again before something changes
        panels.problem(refusal[1], grave=True)
        return
    box = st.status("Reading the table")

    def listen(state: str) -> None:
        box.update(label="Waiting: another file is being read" if state == "waiting" else "Reading the table")

    table: Table | None = None
    with Boundary("reading an upload") as work:  # whatever a library makes of a strange file ends in words here
        table = read_table(
            file.getvalue(),
            name=file.name,
            header=_HEADERS[header],
            delimiter=delimiters[delimiter],
            encoding=encodings[encoding],
            sheet=sheet or None,
            limits=limits,
            listen=listen,
        )
        uploads.count(table, limits)
    if work.error is not None or table is None:
        box.update(label="This file was not read", state="error")
        problem = work.error
        if not isinstance(problem, InvalidInput):
            problem = InvalidInput("file", f"could not be read ({type(problem).__name__})", "Save it again as CSV in UTF-8.")
        st.session_state[_REFUSED] = (question, problem.bare())
        panels.problem(problem, grave=True)
        return
    st.session_state[_TABLE] = (file.name[:120], table)
    session.carry(_TABLE)
    private.release_files()
    _next_file()
    st.rerun()


def forget(name: str) -> None:
    """Forgets an upload of this session, and the table that it was made of where that is still shown."""
    upload, shown = session.held_uploads().get(name), st.session_state.get(_TABLE)
    if upload is not None and shown is not None and shown[1] is upload.table:
        _forget_table()
    session.drop(name)


def _next_file() -> None:
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1


def _choices(title: str, table: Table, limits: Limits) -> None:
    names = [str(c) for c in table.frame.columns]
    st.markdown(f"**{words.markdown(title)}**: {counted(len(table.frame), 'row')}, {counted(len(names), 'column')}.")
    for note in table.notes:
        panels.note(note)
    form, beside = st.columns(2, gap="large")
    with beside:
        panels.privacy_warning("The first rows as read.")
        tables.frame(table.frame.head(10), width="stretch")
    with form:
        st.subheader("1. What to predict", anchor=False)
        target = _label(table, names)
        if target is None:
            st.button("Take another file", on_click=_forget_table, key="dpviz.another")
            return
        gaps_said = _gap_words(table.frame, target)
        frame = _once(_MARKED, table, gaps_said, lambda: mark_all_gaps(table.frame, gaps_said, []))
        positive, above = _positive(frame[target])
        st.subheader("2. Whose rows", anchor=False)
        panels.text(_balance(frame[target], positive, above))
        declared = with_person(gaps_said, frame)
    edited = _public(table, frame, gaps_said, declared)
    _what_is_left(frame, edited, declared)
    _remarks(table, edited, declared, positive, above)
    buttons = st.columns(2)
    if buttons[0].button("Make it my dataset", type="primary", key="dpviz.make"):
        try:
            made = uploads.Upload(table, spec_of(edited, declared, positive, above), title, limits=limits)
        except InvalidInput as problem:
            panels.problem(problem, grave=True)
            return
        except MemoryError:
            panels.problem(InvalidInput("upload", "needs more memory than available", "Choose fewer columns."), grave=True)
            return
        _use(made)
    buttons[1].button("Take another file", on_click=_forget_table, key="dpviz.another")


def _public(table: Table, frame: pd.DataFrame, gaps_said: TableSpec, declared: TableSpec) -> pd.DataFrame:
    """The third step: the form on the columns as it is filled in."""
    st.subheader("3. What is public", anchor=False)
    st.markdown(
        f"{rows_left(frame, [], declared.target, declared.person, declared.person_rows):,} rows have a label and are kept. What "
        "you declare is public knowledge; what is left empty is read from the rows, which ε does not cover."
    )
    every_round = st.toggle(
        "Take all round ranges",
        key="dpviz.round",
        help="The round range of a column covers all but about a hundredth of its values at each end; the others are clipped. It "
        "was proposed from the rows, and ε does not cover it. Only a range that you type under low and high is public.",
    )
    st.caption(
        "Read from the rows, a range tells the smallest and the largest value, which are two people's own, and an outlier "
        "squeezes all other values together. A declared range tells nothing and often gives better accuracy at the same ε."
    )
    described = _once(_DESCRIBED, table, gaps_said, lambda: describe(frame.drop(columns=declared.target))).copy()
    described["round"] = every_round & described["round low"].notna().to_numpy()
    edited = st.data_editor(
        tables.escape_formulas(described),
        hide_index=True,
        width="stretch",
        key=f"dpviz.columns.{st.session_state.get(_TURN, 0)}.{every_round}.{gaps_said}",
        disabled=["column", "kind", "rows with gaps", "round range", "it clips"],
        column_order=_SHOWN,
        column_config=_cells(),
    )
    edited["column"] = described["column"].to_numpy()  # as they are in the file, not as they are shown
    return edited


def _label(table: Table, names: Sequence[str]) -> str | None:
    """The column that is predicted; None until it is chosen, or certain because it alone has two values."""
    found = _once(_TWO_VALUED, table, TableSpec(""), lambda: [name for name in names if table.frame[name].nunique() == 2])
    certain = names.index(found[0]) if len(found) == 1 else None
    target = st.selectbox(
        panels.LABELS["target"], names, index=certain, placeholder="What do you want to predict?", key="dpviz.target"
    )
    if [target] == found:
        st.caption("Guessed: no other column has two values.")
    return target


def _balance(series: pd.Series, positive: tuple[str, ...], above: float | None) -> str:
    """The effect of the first step: labels, rows of class +1, and the measure that suits them."""
    labels = series.dropna()
    yes = labels > above if above is not None else labels.map(word).isin(positive)
    measured = f" Suggested measure: {METRICS[default_metric(np.where(yes, 1.0, -1.0))].within}." if len(labels) else ""
    return f"{counted(len(labels), 'row')} with a label, {yes.sum():,} of them +1.{measured}"


def _cells() -> dict[str, Any]:
    """The widths of the form's columns: enough for their contents."""
    return {
        "use": st.column_config.CheckboxColumn("use", width=65, pinned=True),
        "column": st.column_config.TextColumn("column", width=110, pinned=True),
        "kind": st.column_config.TextColumn("kind", width=70),
        "rows with gaps": st.column_config.NumberColumn("gaps", help="Rows with a gap in this column.", width=65),
        "round range": st.column_config.TextColumn("round range", width=145),
        "it clips": st.column_config.NumberColumn("it clips", help="Values outside the round range.", width=70),
        "round": st.column_config.CheckboxColumn(
            "take it", help="Takes the round range where low and high are empty. ε does not cover it.", width=75
        ),
        "low": st.column_config.NumberColumn("low", width=80),
        "high": st.column_config.NumberColumn("high", width=80),
        "categories": st.column_config.TextColumn(f"categories, separated by {SEPARATOR}", width=200),
        "words for gaps": st.column_config.TextColumn(
            "words for gaps",
            help=f"Words or numbers that are gaps in this column alone, such as 0 or -9, separated by {SEPARATOR}.",
            width=110,
        ),
        "gap value": st.column_config.TextColumn("value for gaps", width=120),
    }


def _use(made: uploads.Upload) -> None:
    """Keeps an upload for the session and draws the page anew, with it."""
    for old in session.hold(made):
        st.toast(f"{words.markdown(old.title)} made room and was forgotten.")
    st.session_state[session.WANTED] = made.name
    FIRST.keep(False)
    st.rerun()


def _gap_words(frame: pd.DataFrame, target: str) -> TableSpec:
    """The words for missing values: those that a person named, and the answers about words that may be gaps or values."""
    typed = st.text_input(
        panels.LABELS["missing"],
        key="dpviz.missing",
        placeholder="automatic",
        help=f"Words or numbers, separated by {SEPARATOR}, that are gaps in all columns, such as -9; no others are then. "
        f"For one column, name them below. By rule, these are: {', '.join(MISSING)}; the last three only where they are few.",
    )
    if typed.strip():
        return TableSpec(target, missing=words_in_cell(typed))
    missing_in: dict[str, tuple[str, ...]] = {}
    for text, where in doubtful_words(frame, target).items():
        places = ", ".join(f"{column} ({count:,})" for column, count in list(where.items())[:6]) + (
            ", …" if len(where) > 6 else ""
        )
        answer = st.radio(
            words.markdown(f"“{text}” stands in {places}. It is"), ("a value", "a gap"), horizontal=True, key=f"dpviz.gap.{text}"
        )
        if answer == "a gap":
            for column in where:
                always = missing_in.get(column, () if column == target else CERTAIN)
                missing_in[column] = (*always, text)
    return TableSpec(target, missing_in=missing_in)


def _once(place: str, table: Table, spec: TableSpec, make: Callable[[], T]) -> T:
    """The result of `make`, which passes over all values, kept while the same table is read in the same way."""
    kept: tuple[Table, TableSpec, T] | None = st.session_state.get(place)
    if kept is None or kept[0] is not table or kept[1] != spec:
        kept = st.session_state[place] = (table, spec, make())
    return kept[2]


def _remarks(table: Table, edited: pd.DataFrame, declared: TableSpec, positive: tuple[str, ...], above: float | None) -> None:
    """Remarks on this choice, and the words for missing values."""
    try:
        spec = spec_of(edited, declared, positive, above)
        gaps, remarks = _once(_LOOKED, table, spec, lambda: look(table.frame, spec))
    except InvalidInput:  # said when it is made
        return
    for note in gaps:
        panels.note(note)
    for remark in remarks:
        panels.warning(remark)
    if remarks:
        panels.note("To leave a column out, untick “use” in step 3; step 2 asks whose rows they are.")


def _what_is_left(frame: pd.DataFrame, edited: pd.DataFrame, declared: TableSpec) -> None:
    """Rows that the choice leaves, and every reason in full: cells of the table above cut long texts off."""
    used = edited[edited["use"]]
    filled = used["gap value"].astype(str).str.strip() != ""
    features = [name for name in used["column"][~filled] if name != declared.person]
    left = rows_left(frame, features, declared.target, declared.person, declared.person_rows)
    sentence = f"With these columns {left:,} of {counted(len(frame), 'row')} remain{'s' * (len(frame) == 1)}."
    gaps = used[(used["rows with gaps"] > 0) & ~filled].sort_values("rows with gaps", ascending=False)
    if len(gaps):
        each = ", ".join(f"{c} ({n:,})" for c, n in zip(gaps["column"], gaps["rows with gaps"], strict=True))
        sentence += f" Rows with gaps by column: {each}; they stay where you give a value for gaps."
    panels.text(sentence)
    reasons = edited[edited["left out because"] != ""]
    if len(reasons):
        st.markdown("Left out unless you tick “use” (the last cell of a line takes a value for gaps, so that their rows stay):")
        lines = zip(reasons["column"], reasons["left out because"], strict=True)
        st.markdown("\n".join(f"- {words.markdown(f'{column} {reason}')}" for column, reason in lines))


def _forget_table() -> None:
    for key in (_TABLE, _DESCRIBED, _MARKED, _LOOKED, _TWO_VALUED):
        st.session_state.pop(key, None)
    session.carry(_TABLE)
    _next_file()


def _positive(series: pd.Series) -> tuple[tuple[str, ...], float | None]:
    counts = classes(series)
    if is_number(series) and len(counts) > _FEW:
        above = st.number_input("Values above this count as +1", value=None, format="%.6g", key="dpviz.above")
        return (), None if above is None else float(above)
    options = list(counts)[:200]
    default = sorted(counts)[1:2] if len(counts) == 2 else []
    chosen = st.multiselect(
        panels.LABELS["positive"],
        options,
        default=default,
        key=f"dpviz.positive.{series.name}",
        format_func=lambda v: f"{v} ({counted(counts.get(v, 0), 'row')})",
    )
    return tuple(chosen), None
