"""Links to the other pages that carry the run in their address.

Streamlit's own list drops the query first and puts an empty address into the browser's history at every change of
page, so that "Back" would land on the defaults.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import streamlit as st

from dpviz.dashboard.components.panels import TASK
from dpviz.dashboard.frame import address, private
from dpviz.experiments.run.spec import RunSpec
from dpviz.papers.claims import claims_of

FIRST = "Story"
#: pages by the question that they belong to
GROUPS = {
    "": (FIRST,),
    "Explore": ("One model", "Trade-off", "Groups"),
    "Protect": ("Person", "Audit"),
    "Prove": ("Accounting", "Guarantees", "Sensitivity", "Claims"),
    "Yours": ("Data", "Lessons"),
}


def pages() -> dict[str, str]:
    """Path, relative to the app, to title: app.py and what lies in pages/, in the order of the file names."""
    main = private.main_script()
    return {} if main is None else _pages(main)


@cache
def _pages(main: Path) -> dict[str, str]:
    others = sorted((main.parent / "pages").glob("*.py"))
    return {main.name: FIRST} | {f"pages/{path.name}": title(path.stem) for path in others}


def title(stem: str) -> str:
    """ "3_Person" is "Person"."""
    return re.sub(r"^\d+[_ -]*", "", stem).replace("_", " ").strip()


def page_link(name: str, label: str, *, run: RunSpec | None = None, **more: str) -> None:
    """A link to the page with this title that carries the run, and more; nothing where there is no such page.

    Args:
        run: another one than the page's own.
    """
    path = next((path for path, heading in pages().items() if heading == name), None)
    if path is not None:
        query = st.query_params.to_dict() if run is None else run.to_query()
        there = address.complete(query | more)
        st.page_link(path, label=label, query_params=there if TASK in more else _done(there))


def links(query: Mapping[str, str]) -> None:
    """A link to each page in its group, with the run in it; nothing where there is one page only."""
    paths = {title: path for path, title in pages().items()}
    for heading, titles in GROUPS.items() if len(paths) > 1 else ():
        if heading:
            st.caption(heading)
        for label in filter(paths.__contains__, titles):
            st.page_link(paths[label], label=label, query_params=_done(query), width="stretch")


def _done(query: Mapping[str, str]) -> dict[str, str]:
    """An address without the lesson that the present page was opened for."""
    return {key: value for key, value in query.items() if key != TASK}


def examine(mechanism: str, name: str = "") -> None:
    """Links from an epsilon to the audit of its mechanism and to the papers' claims about it.

    Args:
        mechanism: id.
        name: what it is called, where several stand side by side.
    """
    with st.container(horizontal=True, key="buttons-examine"):
        page_link("Audit", f"Attack {name or 'it'}", mechanism=mechanism)
        claims_about(mechanism)


def claims_about(mechanism: str) -> None:
    """A link to the claims of papers that speak about a mechanism; nothing where there is none."""
    count = len(claims_of(mechanism))
    if count:
        text = f"{count} claim{'s' if count > 1 else ''} of papers about it, tested"
        page_link("Claims", text, about="mechanism", mechanism=mechanism)
