"""Who waits in front of a page: background work steps aside for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

_lock = threading.Lock()
_drawing: WeakSet[threading.Thread] = WeakSet()
_background: WeakSet[threading.Thread] = WeakSet()
_waiting = 0


def drawing_a_page() -> None:
    """Says that this thread draws a page for somebody; call at the start of a page. It ends when the thread does."""
    with _lock:
        _drawing.add(threading.current_thread())


def in_background() -> None:
    """Says that this thread works for a job, which would otherwise step aside for itself."""
    with _lock:
        _background.add(threading.current_thread())


@contextmanager
def waiting() -> Iterator[None]:
    """Says that somebody waits for what is computed inside, unless a job computes it."""
    global _waiting
    if threading.current_thread() in _background:
        yield
        return
    with _lock:
        _waiting += 1
    try:
        yield
    finally:
        with _lock:
            _waiting -= 1


def somebody_waits() -> bool:
    """Whether a page is being drawn, or a run computed, for somebody in front."""
    with _lock:
        drawing = list(_drawing)
    return _waiting > 0 or any(thread.is_alive() for thread in drawing)
