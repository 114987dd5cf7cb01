"""The address is the saved state: read when a page opens or its address changes, written after every change.

Streamlit's own binding of widgets to the address drops bad values in silence and forgets them on "Back"; here bad
values are reported, and going back and forward restores the run.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import private
from dpviz.dashboard.jobs import watching
from dpviz.experiments.run import links
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.knobs import AUTOMATIC

FIELDS = tuple(SETTINGS)
HELD = "dpviz.address-held"  # True while the address stays as it is: each one written is a step of Back
AGAIN = "draw-again"  # the button that a page presses when a cut connection is back

_ADDRESS = "dpviz.address"  # the address as last written
_LATE = "dpviz.late"  # addresses with which the browser may still ask that has not heard of the newest one
_WIDGETS = "dpviz.widgets"  # what the controls said when it was written
_PROBLEMS = "dpviz.problems"
_PAGE = "dpviz.page"  # the page that wrote it
_OWN = "dpviz.own"  # what pages keep in the address beside the run, kept while other pages are open
_SENT = "dpviz.sent"  # controls drawn since a cut connection came back; what the browser says of others it may have dropped
_TYPED = "dpviz.typed"  # a problem found by a callback, which runs before the page


def read(own: Sequence[str] = ()) -> None:
    """Sets the controls' state from the address, where that is news; call before any control is drawn.

    Args:
        own: further keys that the page keeps in the address as text, each a key of `st.session_state`.
    """
    query = dict(st.query_params.to_dict())
    address: dict[str, str] | None = st.session_state.get(_ADDRESS)
    widgets: dict[str, Any] = st.session_state.get(_WIDGETS, {})
    # a new session, or another page was open before: its controls have these keys, but their state is not carried over
    opened = address is None or FIELDS[0] not in st.session_state or st.session_state.get(_PAGE) != watching.page()
    if st.session_state.get(AGAIN):
        st.session_state[_SENT] = set()
    if not opened:
        # Streamlit forgets what controls said that a run did not reach which was stopped
        for key in widgets:
            if key not in own and key not in st.session_state:
                st.session_state[key] = widgets[key]
    moved = not opened and any(k in st.session_state and st.session_state[k] != v for k, v in widgets.items())
    typed = st.session_state.pop(_TYPED, None)
    if moved or typed is not None:
        st.session_state[_PROBLEMS] = []
    if opened or (query != address and not moved and not _late(query)):  # back, forward, or an address changed by hand
        seed(query if query or address is None or not opened else address, own)
    else:
        for key in widgets:
            if key in st.session_state:
                set_widget(key, st.session_state[key])
    if typed is not None:
        report(typed)
    if opened or query == address or _LATE not in st.session_state:
        st.session_state[_LATE] = [query]


def _late(query: Mapping[str, str]) -> bool:
    """True where a browser asks with an old address because it has not heard of a newer one, or its connection was cut before.

    Then what its controls say is news, and the address is not. Going back is announced as such.
    """
    return not private.came_by_history() and query in st.session_state.get(_LATE, ())


def set_widget(key: str, value: Any) -> None:
    """Sets a control that is drawn afterwards; the browser is notified where the value is new to it, and only there.

    Streamlit sends it all that a page sets, and that replaces what a reader is just choosing. It also sends a
    control's state in one run of the page only. A browser that is still loading meets just the next run's control, draws it
    at its minimum, and would send that as the reader's choice with the next click. So does one whose connection was cut in
    the middle of a run: it drops the controls that it did not get, after it has spoken of them.
    """
    heard = key in st.session_state.get(_SENT, (key,)) and private.browser_knows(key)
    if key not in st.session_state or st.session_state[key] != value or not heard:
        st.session_state[key] = value
    if _SENT in st.session_state and key not in st.session_state.get(_WIDGETS, {}):
        st.session_state[_SENT].add(key)


def seed(query: Mapping[str, str], own: Sequence[str] = ()) -> None:
    """Sets every control from an address and keeps what was wrong with it."""
    kept: dict[str, str] = st.session_state.setdefault(_OWN, {})
    mistakes: list[InvalidInput] = []
    kept |= {key: value for key, value in query.items() if key in page_keys()}
    query = links.drop_version(query, mistakes)
    kept |= {key: query.get(key, "") for key in own}
    spec = resolve(RunSpec.from_query(query, mistakes), mistakes).request
    unknown = [key for key in query if not _known(key)]
    if unknown:
        names = ", ".join(repr(key[:40]) for key in unknown[:5]) + (" …" if len(unknown) > 5 else "")
        mistakes.append(InvalidInput("address", f"holds names that mean nothing here: {names}", "They are ignored."))
    st.session_state[_PROBLEMS] = mistakes
    set_run(spec)
    for key in own:
        st.session_state[key] = kept.get(key, "")


def set_run(spec: RunSpec) -> None:
    """Sets every control to a run."""
    values = {name: (knob, getattr(spec, name)) for name, knob in SETTINGS.items()}
    if spec.mechanism != AUTOMATIC:
        own = spec.build()
        values |= {f"{spec.mechanism}.{name}": (knob, getattr(own, name)) for name, knob in own.knobs().items()}
    for key, (knob, value) in values.items():
        st.session_state[key] = knob.form(value).widget_value(knob, value)


def write(spec: RunSpec, widgets: Sequence[str], own: Sequence[str] = ()) -> dict[str, str]:
    """Writes the run into the address, and returns it."""
    kept: dict[str, str] = st.session_state.setdefault(_OWN, {})
    kept |= {key: str(st.session_state.get(key) or "") for key in own}
    query = links.add_version(spec.to_query() | {key: value for key, value in kept.items() if value})
    _write(query)
    st.session_state[_PAGE] = watching.page()
    _remember(widgets, own)
    return query


def _write(query: dict[str, str]) -> None:
    """Writes an address. One that says the same without a version stays as it was typed: another one is one more step of Back."""
    if st.session_state.get(HELD):
        return
    there = dict(st.query_params.to_dict())
    if there != query and (not there or links.add_version(there) != query):
        st.query_params.from_dict(query)
        there = query
    _written(there)


def _written(query: dict[str, str]) -> None:
    """Keeps an address that is sent to the browser."""
    st.session_state[_ADDRESS] = query
    late = st.session_state.setdefault(_LATE, [])
    if query not in late:
        late.append(query)


def _remember(widgets: Sequence[str], own: Sequence[str]) -> None:
    """Keeps what the controls say; call `remember_drawn` when they are drawn, which gives some of them their first value."""
    st.session_state[_WIDGETS] = {key: st.session_state[key] for key in (*widgets, *own) if key in st.session_state}


def remember_drawn(widgets: Sequence[str], own: Sequence[str]) -> None:
    """Keeps what the controls say, now that all of them were sent to the browser."""
    _remember(widgets, own)
    if _SENT in st.session_state:
        st.session_state[_SENT] |= {*widgets, *own}


def amend(own: Sequence[str]) -> None:
    """Writes the page's own keys into the address again, after they were checked or corrected."""
    kept: dict[str, str] = st.session_state.setdefault(_OWN, {})
    kept |= {key: str(st.session_state.get(key) or "") for key in own}
    rest = {key: value for key, value in st.session_state[_ADDRESS].items() if key not in own}
    query = links.add_version(rest | {key: kept[key] for key in own if kept[key]})
    _write(query)
    st.session_state[_WIDGETS] |= {key: st.session_state.get(key) for key in own}


def open_page(page: str, query: Mapping[str, str]) -> None:
    """Opens another page at an address; an empty one means the defaults there too."""
    there = complete(query)
    _written(there)
    st.switch_page(page, query_params=there)


def complete(query: Mapping[str, str]) -> dict[str, str]:
    """An address as the page that it leads to will write it.

    A page that has to correct its address puts a second entry into the browser's history, and "Back" stays on the page.
    """
    asked = _run_of(query)
    run = resolve(RunSpec.from_query(asked, []), []).request.to_query()
    beside = st.session_state.get(_OWN, {}) | {key: value for key, value in query.items() if key not in asked}
    return links.add_version(run | {key: value for key, value in beside.items() if value})


def _run_of(query: Mapping[str, str]) -> dict[str, str]:
    """The part of an address that holds the run."""
    return {key: value for key, value in query.items() if key in FIELDS or "." in key}


def previous_value(key: str, otherwise: Any) -> Any:
    """The value of a control when the address was last written."""
    return st.session_state.get(_WIDGETS, {}).get(key, otherwise)


def report(problem: InvalidInput) -> None:
    """Keeps a problem for the page to show until the next control is moved."""
    st.session_state[_PROBLEMS] = [*st.session_state.get(_PROBLEMS, []), problem.bare()]


def report_typed(problem: InvalidInput) -> None:
    """The same from a control's callback."""
    st.session_state[_TYPED] = problem.bare()


def problems() -> list[InvalidInput]:
    """Problems of the address or of the last thing typed."""
    return list(st.session_state.get(_PROBLEMS, []))


@cache
def page_keys() -> frozenset[str]:
    """All keys that any page keeps in the address: `KEYS` of the pages' folders."""
    package = importlib.import_module("dpviz.dashboard")
    names = [info.name for info in pkgutil.iter_modules(package.__path__, "dpviz.dashboard.") if info.ispkg]
    return frozenset(key for name in names for key in getattr(importlib.import_module(name), "KEYS", ()))


def _known(key: str) -> bool:
    if key in FIELDS or key in page_keys():
        return True
    mechanism, _, knob = key.partition(".")
    return mechanism in list_mechanisms() and knob in list_mechanisms()[mechanism].knobs()
