"""A page drawn without a browser, so that the shell can write its report."""

import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from streamlit import logger
from streamlit.testing.v1 import AppTest

from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components.recorder import Recorder, get_recorder
from dpviz.dashboard.frame import links
from dpviz.dashboard.jobs import watching
from dpviz.dashboard.jobs.pool import pool

_LIMIT = 86_400.0  # seconds: a user who waits presses Ctrl-C
_LOOK = 0.2  # seconds between two looks at background work
_DRAW = 20.0  # seconds between two drawings meanwhile


def page_of(script: Path, path: str) -> Path:
    """The page that the path of a link, or a page's name, stands for; the first page for "".

    Args:
        script: app.py.

    Raises:
        InvalidInput: there is no such page.
    """
    name = unquote(path).strip("/").rpartition("/")[2].replace("_", " ").strip().lower()
    pages = {links.title(one.stem).lower(): one for one in sorted((script.parent / "pages").glob("*.py"))}
    pages[links.FIRST.lower()] = script
    if not name:
        return script
    if name not in pages:
        titles = ", ".join(links.title(one.stem) for one in pages.values() if one != script)
        raise InvalidInput("page", f"there is no page {name!r}", f"There are {links.FIRST}, {titles}.")
    return pages[name]


def record_page(script: Path, page: Path, query: Mapping[str, str], monitor: Monitor = ignore) -> Recorder:
    """The record of a page when all its background work is over.

    Args:
        script: app.py.
        page: the page's file.
        query: the address; what it says wrongly is left out, with a remark on standard error by the page's own rules.
        monitor: receives progress; raises to cancel.

    Raises:
        InvalidInput: the page cannot be drawn.
    """
    logger.set_log_level("CRITICAL")  # it would say that there is no browser
    test = AppTest.from_file(str(script), default_timeout=_LIMIT)
    if page != script:
        test.switch_page(str(page))
    for key, value in query.items():
        test.query_params[key] = value
    while True:
        test.run()
        if test.exception:
            raise InvalidInput("page", f"it cannot be drawn: {test.exception[0].message}", "Open it in the app.")
        if not watching.is_live(test.session_state):
            return get_recorder(test.session_state)
        _wait(monitor)


def _wait(monitor: Monitor) -> None:
    """Waits for background work until it is over or the page is to be drawn again."""
    end = time.monotonic() + _DRAW
    while (jobs := pool().jobs()) and not all(job.over for job in jobs) and time.monotonic() < end:
        monitor(sum(job.done for job in jobs) / len(jobs))
        time.sleep(_LOOK)
