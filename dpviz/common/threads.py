"""Independent trainings on all processors, with the same bits on any number of them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, TypeVar

from dpviz.common.progress import Monitor

T = TypeVar("T")

THREADS_FROM = 200_000  # multiplications in a step from which threads gain more than they lose
MOST_GROUPS = 4

_lock = threading.Lock()
_holders = 0
_limit: Any = None


class _Cancelled(Exception):
    """Stops the workers; never seen outside."""


def processors() -> int:
    """Processors that this process may use; OMP_NUM_THREADS can ask for fewer."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(there, int(asked)) if asked.isdigit() and int(asked) > 0 else there


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products run on the calling thread only.

    Products of mini-batches are too small to share, sums come out in the same order on every machine, and workers
    do not fight over processors. The setting is the process's: it ends when the last of overlapping users leaves.
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


class Team:
    """Threads that work side by side on parts of the same thing again and again, as in the steps of one training.

    For steps that are too short to start threads for each, and too long for one thread.
    """

    def __init__(self, most: int) -> None:
        """
        Args:
            most: threads that there is work for.
        """
        self._others = max(0, min(most, processors()) - 1)
        self._pool = ThreadPoolExecutor(self._others) if self._others else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, work: Callable[[int], T], parts: int) -> list[T]:
        """[work(0), ..., work(parts - 1)], by the calling thread and the others."""
        done: dict[int, T] = {}
        left = iter(range(parts))  # shared: whoever is free takes the next part

        def take() -> None:
            for part in left:
                done[part] = work(part)

        others = [self._pool.submit(take) for _ in range(min(self._others, parts - 1))] if self._pool is not None else []
        try:
            take()
        finally:
            wait(others)
        for other in others:
            other.result()
        return [done[part] for part in range(parts)]


def map_streams(
    work: Callable[[int, Monitor], T],
    count: int,
    monitor: Monitor,
    *,
    parallel: bool = True,
    most: int | None = None,
) -> list[T]:
    """[work(0, tick), ..., work(count - 1, tick)], run side by side where that pays.

    Args:
        work: trains stream s and calls `tick` with the share of its own work that is done, at least every 0.1 s.
        monitor: called on the caller's own thread with the total share; an exception from it stops all workers, and while
            it has not returned they pause at their next `tick`.
        parallel: False for steps so short that threads would only wait for the interpreter.
        most: streams worked on at once, where each holds much memory.
    """
    shares = [0.0] * count
    stop = threading.Event()
    turn = threading.Lock()  # held by whoever listens to the monitor

    def run(s: int) -> T:
        def tick(share: float) -> None:
            shares[s] = share
            if stop.is_set():
                raise _Cancelled
            if not threaded:
                monitor(sum(shares) / count)
            elif turn.locked():
                with turn:
                    pass

        result = work(s, tick)
        shares[s] = 1.0
        return result

    workers = min(count, processors(), most or count) if parallel else 1
    threaded = workers > 1
    with one_blas_thread():
        if not threaded:
            return [run(s) for s in range(count)]
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(run, s) for s in range(count)]
            try:
                while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                    for future in futures:
                        if future.done():
                            future.result()
                    with turn:
                        monitor(sum(shares) / count)
            except BaseException:
                stop.set()
                for future in futures:
                    future.cancel()
                raise
            return [future.result() for future in futures]
