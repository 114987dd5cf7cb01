"""Progress and cancelling of long work."""

import time
from typing import Protocol


class Monitor(Protocol):
    """Told the share of the work done, in [0, 1]; raises to cancel. Call it at least every half second."""

    def __call__(self, share: float, /) -> None: ...


def silent(share: float, /) -> None:
    """A monitor that does nothing."""


def part(monitor: Monitor, start: float, share: float) -> Monitor:
    """A monitor for a piece of the work that begins at `start` and is `share` of it, both in [0, 1]."""
    return lambda fraction: monitor(start + share * fraction)


def seldom(monitor: Monitor, seconds: float = 0.1) -> Monitor:
    """The monitor, called at most every so many seconds: after each report work may have to step aside for a page."""
    due = time.monotonic()

    def report(share: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            monitor(share)
            due = time.monotonic() + seconds

    return report
