"""Panels in place of a picture, and the label of views that reveal data."""

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import folds, recorder
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.reporting import words

#: labels of the controls that say how a table is read, by field
LABELS = {
    "delimiter": "Columns are separated by",
    "encoding": "The text is in",
    "header": "The first line holds",
    "missing": "Missing values",
    "person": "Person (whose row it is)",
    "person_rows": "Rows of one person, at most",
    "positive": "Values that count as +1",
    "sheet": "Sheet of a workbook",
    "target": "Label",
}
#: key of the address that says for which lesson a page was opened
TASK = "task"


def headline(*sentences: str, of: RunSpec | None, badge: str = "", without_rows: str | None = None) -> None:
    """The page's answer in large type, a line for each sentence; reports open with it.

    Args:
        of: the run that it speaks of; None where it speaks of none.
        badge: shown behind it, in Markdown.
        without_rows: what a report says that shows no real row; the same where the answer names none.
    """
    message = " ".join(sentences)
    recorder.answer(message, message if without_rows is None else without_rows, of)
    with st.container(key="headline"):
        if of is not None and st.query_params.get(TASK):
            st.caption("The answer of this page is not shown while you look for yours: read it off the picture.")
            return
        st.markdown(" ".join(filter(None, ["  \n".join(words.sentence(words.markdown(one)) for one in sentences), badge])))


def failure(cause: str, fix: str) -> None:
    """The panel in place of a picture that could not be made."""
    st.error(f"**This could not be computed**: {words.markdown(cause)}. {words.markdown(fix)}", icon="⛔")


def problem(error: InvalidInput, then: str = "", *, grave: bool = False) -> None:
    """Field, cause and fix of what was wrong with an input, and what becomes of the page."""
    method = list_mechanisms().get(st.session_state.get("mechanism", ""))
    knobs = SETTINGS | ({} if method is None else dict(method.knobs()))
    name = knobs[error.field].label if error.field in knobs else LABELS.get(error.field, error.field)
    field, cause, fix = (words.markdown(part) for part in (name, error.cause, error.fix))
    message = f"**{field}**: {cause}. {fix} {then}".rstrip()
    if grave:
        st.error(message, icon="⛔")
    else:
        st.warning(message, icon="⚠️")


def title(text: str) -> None:
    """The title of a part of the page."""
    if not folds.in_closed_fold():
        st.header(text, anchor=False)


def text(message: str) -> None:
    """A sentence that is shown as it is: signs that Markdown obeys are escaped."""
    st.markdown(words.markdown(message))


def warning(message: str) -> None:
    """A sentence that warns, shown as it is."""
    st.warning(words.markdown(message), icon="⚠️")


def note(message: str) -> None:
    """A remark in small type, shown as it is."""
    if not folds.in_closed_fold():
        st.caption(words.markdown(message))


def empty(text: str) -> None:
    """The panel in place of a picture that has nothing to show."""
    if not folds.in_closed_fold():
        st.info(text, icon="ℹ️")


def privacy_warning(what: str) -> None:
    """The badge of views that show real rows or numbers computed from them without noise."""
    st.badge("⚠ not private: reveals data", color="orange")
    st.caption(what)
