"""Groups that are computed side by side, and threads that work on parts of a step."""

import threading
import time

import pytest

from dpviz.common import threads
from dpviz.common.threads import Team, groups


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

    def work(part: int) -> int:
        who.append(threading.current_thread().name)
        time.sleep(0.01 * (4 - part))  # the first part is the last to be done
        return part

    with Team(4) as team:
        for _ in range(3):
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
