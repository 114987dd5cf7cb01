"""Groups that are computed side by side, and threads that work on parts of a step."""

import threading
import time
from collections.abc import Sequence

import pytest
from support import LIMIT

from dpviz.common import threads
from dpviz.common.progress import Monitor, silent
from dpviz.common.threads import Team, groups, map_streams, processor_seconds, side_by_side


@pytest.mark.parametrize(
    ("things", "most", "lengths"),
    [(10, 4, [2, 3, 2, 3]), (3, 4, [1, 1, 1]), (10, 1, [10]), (10, 2, [5, 5]), (1, 4, [1]), (7, 0, [7])],
)
def test_groups_have_nearly_equal_lengths(things: int, most: int, lengths: list[int]) -> None:
    found = groups(things, most)
    assert [group.stop - group.start for group in found] == lengths
    assert [k for group in found for k in range(things)[group]] == list(range(things))


@pytest.mark.parametrize("processors", [1, 2, 8])
def test_a_team_does_each_part_once_and_returns_them_in_order(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: processors)
    who: list[str] = []
    second = threading.Event()

    def work(part: int) -> int:
        who.append(threading.current_thread().name)
        if part == 1:
            second.set()
        if part == 0 and processors > 1:
            assert second.wait(LIMIT)  # the first part is not the first to be done, and one thread cannot do all
        return part

    with Team(4) as team:
        for _ in range(3):
            second.clear()
            assert team.each(work, 4) == [0, 1, 2, 3]
    assert len(who) == 12
    assert threading.current_thread().name in who, "the calling thread works too"
    assert len(set(who)) <= min(processors, 4)
    assert (len(set(who)) > 1) == (processors > 1)


@pytest.mark.parametrize("bad", [0, 3])
def test_a_mistake_in_any_part_reaches_the_caller_when_the_others_have_ended(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 3)
    ended = []

    def work(part: int) -> None:
        if part == bad:
            raise ValueError(f"part {part}")
        time.sleep(0.05)
        ended.append(part)

    with Team(4) as team:
        with pytest.raises(ValueError, match=f"part {bad}"):
            team.each(work, 4)
        assert sorted(ended) == [part for part in range(4) if part != bad]
        assert team.each(lambda part: part, 4) == [0, 1, 2, 3], "and the team can go on"


def go_on(tick: Monitor) -> None:
    """Minutes of work, unless it is not wanted any more."""
    for _ in range(int(LIMIT / 0.01)):
        tick(0.1)
        time.sleep(0.01)


def test_pieces_come_in_order_while_later_ones_are_worked_on() -> None:
    second_is_done = threading.Event()

    def work(k: int, tick: Monitor) -> int:
        tick(0.5)
        if k == 0:
            assert second_is_done.wait(LIMIT)
        if k == 1:
            second_is_done.set()
        return k * k

    told: list[list[float]] = []
    assert list(side_by_side(work, 4, lambda shares: told.append(list(shares)), workers=2)) == [0, 1, 4, 9]
    assert told[-1] == [1.0] * 4


@pytest.mark.parametrize("workers", [1, 3])
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
        list(side_by_side(work, 5, listen, workers=workers))
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

    pieces = side_by_side(work, 3, lambda shares: None, workers=workers)
    assert next(pieces) == 0
    pieces.close()  # type: ignore[attr-defined]
    assert not at_work


def test_a_mistake_in_a_later_piece_is_not_kept_back() -> None:
    ended: list[int] = []

    def work(k: int, tick: Monitor) -> None:
        if k == 1:
            time.sleep(0.3)
            raise ValueError("piece 1")
        go_on(tick)
        ended.append(k)

    with pytest.raises(ValueError, match="piece 1"):
        list(side_by_side(work, 2, lambda shares: None, workers=2))
    assert not ended, "all of the first piece was waited for"


def test_a_piece_gets_helpers_only_while_others_have_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 2)
    both, alone = threading.Barrier(2, timeout=LIMIT), threading.Event()
    used: dict[str, int] = {}

    def threads_used() -> int:
        seen: set[int] = set()

        def look(*_: object) -> None:
            seen.add(threading.get_ident())
            time.sleep(0.05)

        with Team(2) as team:
            team.each(look, 2)
        map_streams(look, 2, silent)
        return len(seen)

    def work(k: int, tick: Monitor) -> None:
        both.wait()
        used[f"both {k}"] = threads_used()
        both.wait()
        if k == 0:
            assert alone.wait(LIMIT)
            end = time.monotonic() + LIMIT
            while (found := threads_used()) == 1 and time.monotonic() < end:
                pass  # until the other one has left
            used["alone"] = found
        else:
            alone.set()

    list(side_by_side(work, 2, lambda shares: None, workers=2))
    assert used["both 0"] == used["both 1"] == 1
    assert used["alone"] > 1


def test_processor_time_is_that_of_a_piece_and_its_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 2)

    def burn(*_: object) -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass

    def work(k: int, tick: Monitor) -> float:
        start = processor_seconds()
        if k == 0:
            burn()
        else:
            with Team(2) as team:
                team.each(burn, 3)
            map_streams(burn, 2, silent)
        return processor_seconds() - start

    one, five = list(side_by_side(work, 2, lambda shares: None, workers=2))
    assert 0.1 <= one < 0.3
    assert five >= 0.5
