"""Pages that are being drawn: jobs step aside for them, because one interpreter draws all pages and runs all jobs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

ASIDE = 1.0  # longest step aside in seconds, so that no job starves
WORK = 0.02  # least seconds of work between two
_LOOK = 0.005  # seconds between two looks

_lock = threading.Lock()
_drawing: WeakSet[threading.Thread] = WeakSet()


def begin() -> None:
    """Says that this thread draws a page, until it ends; call at the start of a page."""
    with _lock:
        _drawing.add(threading.current_thread())


@contextmanager
def pause() -> Iterator[None]:
    """Inside, the page of this thread waits for a job, which must not step aside for it."""
    thread = threading.current_thread()
    with _lock:
        drew = thread in _drawing
        _drawing.discard(thread)
    try:
        yield
    finally:
        if drew:
            begin()


class StepAside:
    """Lets one job work in turns with pages."""

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, over: Callable[[], bool]) -> None:
        """Waits while a page is drawn, `ASIDE` at most, until `over`; not soon after the last time."""
        now = time.monotonic()
        if now < self._due:
            return
        while _page_is_drawn() and time.monotonic() < now + ASIDE and not over():
            time.sleep(_LOOK)
        self._due = time.monotonic() + WORK


def _page_is_drawn() -> bool:
    with _lock:
        return any(thread.is_alive() for thread in _drawing)
