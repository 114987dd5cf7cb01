"""Progress and cancelling of long work."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Monitor(Protocol):
    """Receives the share of the work done, in [0, 1]; raises to cancel. Call it at least every half second."""

    def __call__(self, share: float, /) -> None: ...


class _Ignore:
    """A monitor that does nothing."""

    def __call__(self, share: float, /) -> None:
        """Does nothing."""

    def __repr__(self) -> str:
        return "ignore"  # as signatures show it


ignore = _Ignore()


def part(monitor: Monitor, start: float, share: float) -> Monitor:
    """A monitor for a piece of the work that begins at `start` and is `share` of it, both in [0, 1]."""
    return lambda fraction: monitor(start + share * fraction)


def track(monitor: Monitor, items: Iterable[T], weigh: Callable[[T], float] = lambda item: 1.0) -> Iterator[tuple[T, Monitor]]:
    """(item, monitor for its share of the work) one after the other; shares are alike or as heavy as `weigh` says.

    >>> shares = []
    >>> for item, inside in track(shares.append, [1, 3], float):
    ...     inside(1.0)
    >>> shares
    [0.25, 1.0]
    """
    listed, start = list(items), 0.0
    total = sum(map(weigh, listed))
    for item in listed:
        yield item, part(monitor, start / total, weigh(item) / total)
        start += weigh(item)


def throttle(monitor: Monitor, seconds: float = 0.1) -> Monitor:
    """The monitor, called at most every so many seconds: after each report work may have to step aside for a page."""
    due = time.monotonic()

    def report(share: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            monitor(share)
            due = time.monotonic() + seconds

    return report
