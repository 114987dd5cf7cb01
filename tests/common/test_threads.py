"""Threads that work side by side: order, progress, errors, and only the outermost call starts any."""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from support import LIMIT

from dpviz.common import threads
from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import Team, groups, map_streams, parallel_map


@pytest.fixture(autouse=True)
def _three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 3)


def go_on(tick: Monitor) -> None:
    """Work that ends when it is stopped, and not before."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        time.sleep(0.001)
        tick(0.5)


@pytest.mark.parametrize(
    ("things", "most", "lengths"),
    [(10, 4, [2, 3, 2, 3]), (3, 4, [1, 1, 1]), (10, 1, [10]), (10, 2, [5, 5]), (1, 4, [1]), (7, 0, [7])],
)
def test_groups_have_nearly_equal_lengths(things: int, most: int, lengths: list[int]) -> None:
    found = groups(things, most)
    assert [group.stop - group.start for group in found] == lengths
    assert [k for group in found for k in range(things)[group]] == list(range(things))


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_team_returns_parts_in_order_and_raises_their_errors_when_all_have_ended(most: int) -> None:
    who, meeting = set(), threading.Barrier(min(most, 3))
    ended: list[int] = []

    def work(part: int) -> int:
        who.add(threading.get_ident())
        meeting.wait(LIMIT)  # one thread cannot do all
        return part

    def bad(part: int) -> None:
        if part == 0:
            raise ValueError("part 0")
        time.sleep(0.05)
        ended.append(part)

    with Team(most) as team:
        assert team.each(work, min(most, 3)) == list(range(min(most, 3)))
        assert len(who) == min(most, 3)
        with pytest.raises(ValueError, match="part 0"):
            team.each(bad, 4)
    assert len(ended) == (0 if most == 1 else 3)
    if most > 1:
        with pytest.raises(RuntimeError, match="shutdown"):
            team.each(work, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_pieces_come_in_order_with_the_share_of_each(workers: int) -> None:
    heard: list[list[float]] = []

    def work(k: int, tick: Monitor) -> int:
        tick(0.5)
        return k * k

    assert list(parallel_map(work, 4, lambda shares: heard.append(list(shares)), workers=workers)) == [0, 1, 4, 9]
    assert heard[-1] == [1.0] * 4
    assert map_streams(work, 7, ignore, parallel=workers > 1) == [k * k for k in range(7)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_monitor_that_raises_ends_all_pieces(workers: int) -> None:
    started, over = [], []

    def work(k: int, tick: Monitor) -> None:
        started.append(k)
        try:
            go_on(tick)
        finally:
            over.append(k)

    def listen(shares: Sequence[float]) -> None:
        if started:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        list(parallel_map(work, 5, listen, workers=workers))
    assert sorted(over) == sorted(started)
    assert 0 < len(started) <= workers


@pytest.mark.parametrize("workers", [1, 2])
def test_who_wants_no_more_pieces_leaves_no_work_behind(workers: int) -> None:
    at_work: set[int] = set()

    def work(k: int, tick: Monitor) -> int:
        if k:
            at_work.add(k)
            try:
                go_on(tick)
            finally:
                at_work.remove(k)
        return k

    pieces = parallel_map(work, 3, lambda shares: None, workers=workers)
    assert next(pieces) == 0
    pieces.close()  # type: ignore[attr-defined]
    assert not at_work


def test_work_inside_a_piece_starts_no_threads() -> None:
    def threads_used() -> int:
        seen: set[int] = set()

        def look(*_: object) -> None:
            seen.add(threading.get_ident())
            end = time.thread_time() + 0.03
            while time.thread_time() < end:
                pass

        with Team(2) as team:
            team.each(look, 2)
        map_streams(look, 2, ignore)
        return len(seen)

    assert list(parallel_map(lambda k, tick: threads_used(), 2, lambda shares: None, workers=2)) == [1, 1]
    assert threads_used() > 1, "the control"


def test_settings_for_threads_end_with_the_last_user() -> None:
    """In a process of its own: they are the process's, and here there is one thread from the start."""
    script = (
        "import numpy, threadpoolctl\n"
        "from dpviz.common.threads import thread_settings\n"
        "def number():\n"
        "    blas = {lib['num_threads'] for lib in threadpoolctl.threadpool_info() if lib['user_api'] == 'blas'}\n"
        "    return [*blas]\n"
        "threadpoolctl.threadpool_limits(2, 'blas')\n"
        "with thread_settings():\n"
        "    with thread_settings(): inside = number()\n"
        "    between = number()\n"
        "print(inside == between == [1], number())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True [2]", ran.stderr
