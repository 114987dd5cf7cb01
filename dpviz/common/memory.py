"""A cache that knows whose data it holds. Every cache of rows, or of anything computed from rows, is a `Cache`.

A cache is bounded in bytes and may be used by any number of threads. A value that several threads ask for at once is made
once, and no lock is held meanwhile. Each entry carries its owner: the name of the dataset that it was made from, "" for none.
When an upload goes, `forget(name)` removes its entries from all caches of this process. Values that are being made from it at
that moment are given to those who asked for them and are not kept.

Memoised functions of public numbers, such as calibrations, hold no rows and may use `functools.lru_cache`.

Key terms:
    owner: the name of a dataset. Names of uploads are random and never come back, so a forgotten owner stays forgotten.
    holder: something else that keeps what was made from a dataset, for example the background jobs; see `register`.
    version: a value that changes when what an entry was made from changes, for example a file's time stamp.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

from cachetools import LRUCache

from dpviz.common.progress import Monitor, ignore

T = TypeVar("T")

_LISTEN = 0.1  # seconds between two calls of the monitor of a thread that waits for another one's value


class Holder(Protocol):
    """Keeps what was made from datasets and can let go of it."""

    def forget(self, owner: str) -> None:
        """Lets go of everything that was made from this dataset."""


@dataclass(frozen=True)
class _Entry(Generic[T]):
    value: T
    size: int
    owner: str
    version: Hashable


class Cache(Generic[T]):
    """Values by key, least recently used ones dropped first.

    Attributes:
        name: what it holds, for `owned_entries` and `held_bytes`.
    """

    def __init__(self, name: str, most: int, size: Callable[[T], int]) -> None:
        """
        Args:
            most: bytes that it may hold; a value that alone is larger is given out and not kept.
            size: bytes that a value takes, at least 1.
        """
        self.name, self._size = name, size
        self._kept: LRUCache[Hashable, _Entry[T]] = LRUCache(most, getsizeof=lambda entry: entry.size)
        self._turns: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        with _lock:
            _caches.add(self)

    def get(self, key: Hashable) -> T | None:
        """The value that is kept, of whatever version; None where there is none."""
        with _lock:
            entry = self._kept.get(key)
        return None if entry is None else entry.value

    def compute(
        self, key: Hashable, make: Callable[[Monitor], T], *, owner: str, version: Hashable = None, monitor: Monitor = ignore
    ) -> T:
        """The value that is kept, or what `make` gives, which is then kept.

        A thread that asks while another one makes the value waits for it. Where the other one fails or is cancelled, the next one
        makes it.

        Args:
            make: called with a monitor that receives its progress.
            owner: name of the dataset that it is made from.
            version: an entry of another version is made again.
            monitor: receives progress, or 0 while another thread makes the value; an exception from it ends the call.
        """
        with _lock:
            turn = self._turns.setdefault(key, threading.Lock())
        while not turn.acquire(timeout=_LISTEN):
            monitor(0.0)
        try:
            with _lock:
                entry = self._kept.get(key)
            if entry is None or entry.version != version:
                value = make(monitor)
                entry = _Entry(value, self._size(value), owner, version)
                with _lock:
                    self._keep(key, entry)
            return entry.value
        finally:
            turn.release()

    def put(self, key: Hashable, value: T, *, owner: str) -> None:
        """Keeps a value."""
        entry = _Entry(value, self._size(value), owner, None)
        with _lock:
            self._keep(key, entry)

    def _keep(self, key: Hashable, entry: _Entry[T]) -> None:
        if entry.owner in _gone or entry.size > self._kept.maxsize:
            self._kept.pop(key, None)
        else:
            self._kept[key] = entry

    def __contains__(self, key: Hashable) -> bool:
        with _lock:
            return key in self._kept

    def values(self) -> list[T]:
        """All values that are kept."""
        with _lock:
            return [entry.value for entry in self._kept.values()]

    def clear(self) -> None:
        """Forgets everything."""
        with _lock:
            self._kept.clear()


_lock = threading.Lock()  # of all caches; held for moments, never while a value is made
_caches: WeakSet[Cache[Any]] = WeakSet()
_holders: WeakSet[Holder] = WeakSet()
_gone: LRUCache[str, None] = LRUCache(10_000)  # only computations still under way could bring an owner back


def register(holder: Holder) -> None:
    """Has `forget` tell a holder too, for as long as the holder lives."""
    _holders.add(holder)


def forget(owner: str) -> None:
    """Removes all that was made from a dataset, from every cache and every holder, before it returns."""
    with _lock:
        _gone[owner] = None
        for cache in _caches:
            for key in [key for key, entry in cache._kept.items() if entry.owner == owner]:
                del cache._kept[key]
    for holder in list(_holders):
        holder.forget(owner)


def is_forgotten(owner: str) -> bool:
    """True where a dataset was forgotten."""
    return owner in _gone


def owned_entries(owner: str) -> dict[str, int]:
    """Number of entries that were made from a dataset, by the name of the cache; caches without one are left out."""
    with _lock:
        counts = {cache.name: sum(e.owner == owner for e in cache._kept.values()) for cache in _caches}
    return {name: count for name, count in sorted(counts.items()) if count}


def held_bytes() -> dict[str, int]:
    """Bytes that each cache holds, by its name."""
    with _lock:
        return {cache.name: int(cache._kept.currsize) for cache in sorted(_caches, key=lambda c: c.name)}


def clear() -> None:
    """Empties every cache."""
    for cache in list(_caches):
        cache.clear()
