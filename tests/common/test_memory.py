"""The cache: bounded in bytes, one value for several threads, and nothing left of an owner who went."""

import gc
import threading
from collections.abc import Callable

import pytest
from support import LIMIT, Cancelled

from dpviz.common import memory
from dpviz.common.progress import Monitor


def cache(most: int = 100) -> memory.Cache[bytes]:
    return memory.Cache("of a test", most, len)


def side_by_side(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()


def test_it_holds_no_more_bytes_than_it_may_and_drops_what_was_used_least_recently() -> None:
    kept = cache(100)
    for key in range(5):
        kept.put(key, bytes(30), owner="")
        kept.get(0)
        assert memory.held_bytes()["of a test"] <= 100
    assert [key for key in range(5) if key in kept] == [0, 3, 4]
    kept.put("large", bytes(101), owner="")
    assert "large" not in kept, "a value that alone is too large is not kept"
    assert len(kept.values()) == 3, "and drives nothing out"
    assert kept.compute("large", lambda _: bytes(101), owner="") == bytes(101)


def test_two_threads_that_ask_at_once_make_it_once() -> None:
    kept, made, asked = cache(), [], threading.Barrier(2)
    inside = threading.Event()

    def make(_: Monitor) -> bytes:
        made.append(threading.get_ident())
        inside.wait(0.2)  # time for the other one to ask
        assert kept.get("another") is None, "the lock is free while a value is made"
        return b"value"

    found = []

    def ask() -> None:
        asked.wait(LIMIT)
        found.append(kept.compute("key", make, owner=""))

    side_by_side(ask, ask)
    assert len(made) == 1
    assert found == [b"value", b"value"]
    assert found[0] is found[1]


def test_who_waits_can_stop_and_takes_over_after_a_failure() -> None:
    kept, inside, go = cache(), threading.Event(), threading.Event()
    heard: list[float] = []

    def fail(monitor: Monitor) -> bytes:
        monitor(0.25)
        inside.set()
        go.wait(LIMIT)
        raise ArithmeticError

    def first() -> None:
        with pytest.raises(ArithmeticError):
            kept.compute("key", fail, owner="")

    def stops() -> None:
        def monitor(done: float) -> None:
            heard.append(done)
            raise Cancelled

        inside.wait(LIMIT)
        with pytest.raises(Cancelled):
            kept.compute("key", lambda _: b"never", owner="", monitor=monitor)
        go.set()

    def takes_over() -> None:
        inside.wait(LIMIT)
        assert kept.compute("key", lambda _: b"second", owner="") == b"second"

    side_by_side(first, stops, takes_over)
    assert heard == [0.0]
    assert kept.get("key") == b"second"


def test_an_owner_who_goes_takes_everything_along_from_all_caches() -> None:
    first, second = cache(), cache()
    for kept in (first, second):
        kept.put("hers", b"1", owner="ann")
        kept.put("his", b"2", owner="bob")
        kept.put("nobody's", b"3", owner="")
    assert memory.owned_entries("ann") == {"of a test": 1}
    memory.forget("ann")
    assert memory.owned_entries("ann") == {}
    assert memory.is_forgotten("ann")
    for kept in (first, second):
        assert [key in kept for key in ("hers", "his", "nobody's")] == [False, True, True]


def test_what_is_being_made_when_its_owner_goes_is_not_kept() -> None:
    kept = cache()

    def make(_: Monitor) -> bytes:
        memory.forget("carl")
        return b"made"

    assert kept.compute("key", make, owner="carl") == b"made"
    assert "key" not in kept
    kept.put("key", b"late", owner="carl")
    assert "key" not in kept


def test_other_holders_are_told_for_as_long_as_they_live() -> None:
    class Holder:
        def __init__(self) -> None:
            self.told: list[str] = []

        def forget(self, owner: str) -> None:
            self.told.append(owner)

    one, two = Holder(), Holder()
    told = two.told
    memory.register(one)
    memory.register(two)
    del two
    gc.collect()
    memory.forget("dora")
    assert (one.told, told) == (["dora"], [])


def test_another_version_is_made_again_and_replaces_the_old_one() -> None:
    kept = cache()
    assert kept.compute("file", lambda _: b"old", owner="", version=1) == b"old"
    assert kept.compute("file", lambda _: b"unused", owner="", version=1) == b"old"
    assert kept.compute("file", lambda _: b"new", owner="", version=2) == b"new"
    assert kept.values() == [b"new"]


def test_all_caches_are_emptied() -> None:
    kept = cache()
    kept.put("a", b"12", owner="grace")
    memory.clear()
    assert "a" not in kept
