"""Pages that are being drawn: background work steps aside for them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

_lock = threading.Lock()
_drawing: WeakSet[threading.Thread] = WeakSet()
_own = threading.local()  # `patience`: seconds that the page of this thread may still wait for jobs

TOGETHER = 0.6  # seconds that one drawing of a page waits for jobs


def drawing_a_page() -> None:
    """Says that this thread draws a page; call at the start of a page. It ends when the thread does."""
    with _lock:
        _drawing.add(threading.current_thread())
    _own.patience = TOGETHER


@contextmanager
def patience(seconds: float) -> Iterator[float]:
    """Seconds that the page of this thread may wait inside for a job; all waits of one drawing share `TOGETHER`.

    Meanwhile it draws nothing, and the job must not step aside for it.
    """
    left, start = getattr(_own, "patience", TOGETHER), time.monotonic()
    thread = threading.current_thread()
    with _lock:
        draws = thread in _drawing
        _drawing.discard(thread)
    try:
        yield min(seconds, left)
    finally:
        if draws:
            with _lock:
                _drawing.add(thread)
        _own.patience = max(0.0, left - (time.monotonic() - start))


def page_waits() -> bool:
    """True where a page is being drawn."""
    with _lock:
        drawing = list(_drawing)
    return any(thread.is_alive() for thread in drawing)
