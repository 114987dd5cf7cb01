"""`map_streams`: order, progress, errors and pauses of independent streams on several threads."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from support import LIMIT, Cancelled, cancel

from dpviz.common.threads import map_streams, processors


def test_streams_keep_their_order_and_report_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 3)
    seen: list[float] = []
    for parallel in (True, False):
        out = map_streams(lambda s, tick: (tick(0.5), s)[1], 7, seen.append, parallel=parallel)
        assert out == list(range(7))
    assert all(0 <= share <= 1 for share in seen)


def test_no_more_streams_at_once_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 8)

    def busiest(most: int | None, together: int) -> int:
        """The most streams at work at once, where each waits until `together` of them are."""
        meeting, lock, now, peak = threading.Barrier(together), threading.Lock(), [0], [0]

        def work(s: int, tick: object) -> None:
            with lock:
                now[0] += 1
                peak[0] = max(peak[0], now[0])
            meeting.wait(LIMIT)
            with lock:
                now[0] -= 1

        map_streams(work, 8, lambda done: None, most=most)
        return peak[0]

    assert busiest(2, together=2) == 2
    assert busiest(None, together=8) == 8


@pytest.mark.parametrize("parallel", [True, False])
def test_a_monitor_that_raises_stops_the_work(parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 2)

    def endless(s: int, tick: object) -> None:
        while True:
            tick(0.1)  # type: ignore[operator]

    with pytest.raises(Cancelled):
        map_streams(endless, 4, cancel, parallel=parallel)  # type: ignore[arg-type]


def test_workers_pause_while_the_monitor_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 2)
    ticks, moved = [0, 0], []
    enough = threading.Event()

    def work(s: int, tick: Callable[[float], None]) -> None:
        while not enough.is_set():
            ticks[s] += 1
            time.sleep(0.001)
            tick(0.5)

    def monitor(done: float) -> None:
        before = sum(ticks)
        time.sleep(0.2)
        moved.append(sum(ticks) - before)
        worked = sum(ticks) > sum(moved)  # between two calls
        if (len(moved) >= 2 and worked) or time.monotonic() > end:
            enough.set()

    end = time.monotonic() + LIMIT
    map_streams(work, 2, monitor)
    assert max(moved[:-1]) <= 2, "each worker ends the step that it is at"
    assert sum(ticks) > sum(moved), "and they work between two calls"


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_comes_out_and_stops_the_others(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: workers)

    def bad(s: int, tick: Callable[[float], None]) -> None:
        if s == 0:
            raise ZeroDivisionError
        while True:
            tick(0.1)

    with pytest.raises(ZeroDivisionError):
        map_streams(bad, 3, lambda done: None)
    assert processors() >= 1


def test_settings_for_threads_end_with_the_last_user() -> None:
    """In a process of its own: they are the process's, and here there is one thread from the start."""
    script = (
        "import numpy, sys, threadpoolctl\n"
        "from dpviz.common.threads import thread_settings\n"
        "def number():\n"
        "    blas = {lib['num_threads'] for lib in threadpoolctl.threadpool_info() if lib['user_api'] == 'blas'}\n"
        "    return *blas, sys.getswitchinterval()\n"
        "threadpoolctl.threadpool_limits(2, 'blas')\n"
        "with thread_settings():\n"
        "    with thread_settings(): inside = number()\n"
        "    between = number()\n"
        "print(inside == between == (1, 0.0005), number())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True (2, 0.005)", ran.stderr
