"""Independent trainings on all processors, with the same bits on any number of them.

Key terms:
    group: threads that do pieces of one long work side by side (`side_by_side`), one for each processor. Inside a piece, `Team`
        and `map_streams` get further threads only while others of the group have nothing to do.
"""

import functools
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, TypeVar

from dpviz.common.progress import Monitor

T = TypeVar("T")

THREADS_FROM = 200_000  # multiplications in a step from which threads gain more than they lose
MOST_GROUPS = 4
#: seconds that a thread may hold the interpreter while another one waits for it; Python's own 0.005 are many short steps, and
#: make a page that is drawn beside two sweeps several times slower
_SWITCH = 0.0005
_LISTEN = 0.1  # seconds between two calls of a monitor

_lock = threading.Lock()
_holders = 0
_limit: Any = None
_switch = 0.0
_here = threading.local()  # `group` that the thread works in; `helped`: processor time of threads that worked for it


#: [work(0), ..., work(count - 1)], by one thread or several
Each = Callable[[Callable[[int], Any], int], list[Any]]


def summed(each: Each, work: Callable[[int], Any], count: int) -> Any:
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


def processor_seconds() -> float:
    """Processor time of the calling thread, and of those that have worked for it; the difference of two calls is what counts."""
    return time.thread_time() + float(getattr(_here, "helped", 0.0))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def thread_settings() -> Iterator[None]:
    """For threads that compute side by side: matrix products take one thread each, and none waits long for the interpreter.

    Products of mini-batches are too small to share, sums come out in the same order on every machine, and workers
    do not fight over processors. The settings are the process's: they end when the last of overlapping users leaves.
    """
    global _holders, _limit, _switch
    with _lock:
        if _holders == 0:
            _limit, _switch = _controller().limit(limits=1, user_api="blas"), sys.getswitchinterval()
            sys.setswitchinterval(min(_SWITCH, _switch))
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limit.restore_original_limits()
                sys.setswitchinterval(_switch)


def groups(things: int, most: int = MOST_GROUPS) -> list[slice]:
    """Seeds or rows in at most so many slices of nearly equal length: a matrix computation each, side by side.

    One group would leave processors idle; of many, each would be too short. The number of groups does not depend on the
    machine, so the bits of a result do not either.
    """
    count = max(1, min(most, things))
    edges = [things * g // count for g in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


class _WorkerGroup:
    """The number of threads that work side by side, and the number that are busy."""

    def __init__(self, size: int) -> None:
        self._size, self._busy, self._lock = size, 0, threading.Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The calling thread does a piece of the work."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def idle(self, most: int) -> Iterator[int]:
        """So many of those that do nothing, for as long as they are needed; their number."""
        with self._lock:
            count = max(0, min(most, self._size - self._busy))
            self._busy += count
        try:
            yield count
        finally:
            self._add(-count)

    def _add(self, count: int) -> None:
        with self._lock:
            self._busy += count


@contextmanager
def _helpers(most: int) -> Iterator[int]:
    """The number of threads, `most` at most, that may work beside the calling one."""
    group = _group()
    if group is None:
        yield max(0, min(most, processors() - 1))
    else:
        with group.idle(most) as count:
            yield count


def _group() -> _WorkerGroup | None:
    found: _WorkerGroup | None = getattr(_here, "group", None)
    return found


def _helped(seconds: float) -> None:
    """Other threads have worked so long for the calling one."""
    _here.helped = getattr(_here, "helped", 0.0) + seconds


def _timed(work: Callable[[], T], group: _WorkerGroup | None) -> tuple[T, float]:
    """The result of `work` in a thread of a pool, and its processor time."""
    _here.group = group
    start = processor_seconds()
    return work(), processor_seconds() - start


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
        left = iter(range(parts))  # shared: a free thread takes the next part

        def take() -> None:
            for part in left:
                done[part] = work(part)

        if self._pool is None or parts < 2:
            take()
        else:
            with _helpers(min(self._others, parts - 1)) as count:
                others = [self._pool.submit(_timed, take, _group()) for _ in range(count)]
                try:
                    take()
                finally:
                    wait(others)
            _helped(sum(other.result()[1] for other in others))
        return [done[part] for part in range(parts)]


def map_streams(
    work: Callable[[int, Monitor], T], count: int, monitor: Monitor, *, parallel: bool = True, most: int | None = None
) -> list[T]:
    """[work(0, tick), ..., work(count - 1, tick)], run side by side where that pays.

    Args:
        work: trains stream s and calls `tick` with the share of its own work that is done, at least every 0.1 s.
        monitor: called on the caller's own thread with the total share; an exception from it stops all workers, and while
            it has not returned they pause at their next `tick`.
        parallel: False for steps so short that threads would only wait for the interpreter.
        most: streams worked on at once, where each holds much memory.
    """

    def listen(shares: Sequence[float]) -> None:
        monitor(sum(shares) / count)

    with _helpers(min(count, most or count) - 1 if parallel else 0) as others, thread_settings():
        return list(_by_threads(work, count, listen, 1 + others, _group()) if others else _alone(work, count, listen))


def side_by_side(
    work: Callable[[int, Monitor], T], count: int, listen: Callable[[Sequence[float]], None], *, workers: int
) -> Iterator[T]:
    """work(0, tick), work(1, tick), ... in order, by a group of so many threads; later pieces are worked on meanwhile.

    Args:
        work: does piece k; as of `map_streams`.
        listen: as the monitor of `map_streams`, but with the share of each piece, and called only while a piece is waited for.
        workers: threads; with 1 the calling thread does all itself, and gets helpers inside its pieces.
    """
    if workers < 2 or count < 2:
        yield from _alone(work, count, listen)
        return
    group = _WorkerGroup(workers)

    def piece(k: int, tick: Monitor) -> T:
        with group.at_work():
            return work(k, tick)

    with thread_settings():
        yield from _by_threads(piece, count, listen, workers, group)


def _alone(work: Callable[[int, Monitor], T], count: int, listen: Callable[[Sequence[float]], None]) -> Iterator[T]:
    """Piece after piece by the calling thread."""
    shares = [0.0] * count
    for k in range(count):

        def tick(share: float, k: int = k) -> None:
            shares[k] = share
            listen(shares)

        result = work(k, tick)
        tick(1.0)
        yield result


def _by_threads(
    work: Callable[[int, Monitor], T],
    count: int,
    listen: Callable[[Sequence[float]], None],
    workers: int,
    group: _WorkerGroup | None,
) -> Iterator[T]:
    """All pieces in order, by threads that are members of a group."""
    shares = [0.0] * count
    stop = threading.Event()
    turn = threading.Lock()  # held by the thread that listens

    def run(k: int) -> T:
        def tick(share: float) -> None:
            shares[k] = share
            if stop.is_set():
                raise Cancelled
            if turn.locked():
                with turn:
                    pass

        result = work(k, tick)
        shares[k] = 1.0
        return result

    with ThreadPoolExecutor(workers) as pool:
        left = [pool.submit(_timed, functools.partial(run, k), group) for k in range(count)]
        try:
            while left:
                wait([future for future in left if not future.done()], timeout=_LISTEN, return_when=FIRST_COMPLETED)
                for future in left:
                    if future.done():
                        future.result()  # a mistake in any piece ends all
                with turn:
                    listen(shares)
                while left and left[0].done():
                    result, seconds = left.pop(0).result()
                    _helped(seconds)
                    yield result
        except BaseException:
            stop.set()
            for future in left:
                future.cancel()
            raise
