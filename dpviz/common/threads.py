"""Independent trainings on all processors, with the same bits on any number of them.

Work that runs beside other work of the same call is done by one thread: only the outermost call starts threads.
"""

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, TypeVar

from dpviz.common.progress import Monitor

T = TypeVar("T")

THREADS_FROM = 200_000  # multiplications in a step from which threads gain more than they lose
MOST_GROUPS = 4
_LISTEN = 0.1  # seconds between two calls of a monitor

_lock = threading.Lock()
_holders = 0
_limit: Any = None
_here = threading.local()  # `inside`: the thread works beside others


#: [work(0), ..., work(count - 1)], by one thread or several
Each = Callable[[Callable[[int], Any], int], list[Any]]


def parallel_sum(each: Each, work: Callable[[int], Any], count: int) -> Any:
    """work(0) + ... + work(count - 1), arrays, written over the first."""
    total, *others = each(work, count)
    for other in others:
        total += other
    return total


class Cancelled(Exception):
    """Raised inside pieces of work that are not wanted any more; never seen by who asked for them."""


def processors() -> int:
    """Processors that this process may use; OMP_NUM_THREADS can ask for fewer. One in a browser, which starts no threads."""
    if sys.platform == "emscripten":
        return 1
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(there, int(asked)) if asked.isdigit() and int(asked) > 0 else there


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def thread_settings() -> Iterator[None]:
    """For threads that compute side by side: matrix products take one thread each.

    Products of mini-batches are too small to share, sums come out in the same order on every machine, and workers
    do not fight over processors. The settings are the process's: they end when the last of overlapping users leaves.
    """
    global _holders, _limit
    with _lock:
        if _holders == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limit.restore_original_limits()


def groups(things: int, most: int = MOST_GROUPS) -> list[slice]:
    """Seeds or rows in at most so many slices of nearly equal length: a matrix computation each, side by side.

    One group would leave processors idle; of many, each would be too short. The number of groups does not depend on the
    machine, so the bits of a result do not either.
    """
    count = max(1, min(most, things))
    edges = [things * g // count for g in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _work_beside() -> None:
    """Marks a thread of a pool: it works beside others."""
    _here.inside = True


@contextmanager
def one_thread(*, when: bool) -> Iterator[None]:
    """Work inside starts no threads where `when` is true: others have work for the processors."""
    before = getattr(_here, "inside", False)
    _here.inside = before or when
    try:
        yield
    finally:
        _here.inside = before


def _threads(most: int) -> int:
    """Threads for work of so many parts."""
    return 1 if getattr(_here, "inside", False) else min(most, processors())


class Team:
    """Threads that work side by side on parts of the same thing again and again, as in the steps of one training.

    For steps that are too short to start threads for each, and too long for one thread.
    """

    def __init__(self, most: int) -> None:
        """
        Args:
            most: threads that there is work for.
        """
        count = _threads(most)
        self._pool = ThreadPoolExecutor(count, initializer=_work_beside) if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, work: Callable[[int], T], parts: int) -> list[T]:
        """[work(0), ..., work(parts - 1)]."""
        if self._pool is None or parts < 2:
            return [work(k) for k in range(parts)]
        futures = [self._pool.submit(work, k) for k in range(parts)]
        wait(futures)
        return [future.result() for future in futures]


def map_streams(
    work: Callable[[int, Monitor], T], count: int, monitor: Monitor, *, parallel: bool = True, most: int | None = None
) -> list[T]:
    """[work(0, tick), ..., work(count - 1, tick)], run side by side where that pays.

    Args:
        work: trains stream s and calls `tick` with the share of its own work that is done, at least every 0.1 s.
        monitor: called on the caller's own thread with the total share; an exception from it stops all workers.
        parallel: False for steps so short that threads would only wait for the interpreter.
        most: streams worked on at once, where each holds much memory.
    """
    workers = _threads(min(count, most or count)) if parallel else 1
    return list(parallel_map(work, count, lambda shares: monitor(sum(shares) / count), workers=workers))


def parallel_map(
    work: Callable[[int, Monitor], T], count: int, listen: Callable[[Sequence[float]], None], *, workers: int
) -> Iterator[T]:
    """work(0, tick), work(1, tick), ... in order, by so many threads; later pieces are worked on meanwhile.

    Args:
        work: does piece k; as of `map_streams`.
        listen: as the monitor of `map_streams`, but with the share of each piece, and called only while a piece is waited for.
    """
    shares, stop = [0.0] * count, threading.Event()

    def piece(k: int, report: Callable[[Sequence[float]], None]) -> T:
        def tick(share: float) -> None:
            shares[k] = share
            if stop.is_set():
                raise Cancelled
            report(shares)

        result = work(k, tick)
        shares[k] = 1.0
        return result

    with thread_settings():
        if workers < 2 or count < 2:
            for k in range(count):
                result = piece(k, listen)
                listen(shares)
                yield result
            return
        with ThreadPoolExecutor(workers, initializer=_work_beside) as pool:
            left = [pool.submit(piece, k, lambda shares: None) for k in range(count)]
            try:
                while left:
                    wait([future for future in left if not future.done()], timeout=_LISTEN, return_when=FIRST_COMPLETED)
                    for future in left:
                        if future.done():
                            future.result()  # a mistake in any piece ends all
                    listen(shares)
                    while left and left[0].done():
                        yield left.pop(0).result()
            finally:
                stop.set()
                for future in left:
                    future.cancel()
