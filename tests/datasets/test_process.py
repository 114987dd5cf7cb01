"""The process that reads a table: what is said when it dies, and its memory limit where a kernel takes none."""

from __future__ import annotations

import signal
import sys
import types

import pytest

from dpviz.common.validate import InvalidInput
from dpviz.datasets.process import child_read, reading


def test_a_reader_that_is_killed_is_said_to_be_killed() -> None:
    def kill(state: str) -> None:
        if state == "reading":
            for child in list(reading._children):
                child.send_signal(signal.SIGKILL)

    with pytest.raises(InvalidInput, match=r"was killed \(SIGKILL, exit code -9\)") as caught:
        reading.read_table(b"a,y\n" + b"1,0\n2,1\n" * 20, listen=kill)
    assert "3,000 MB" not in str(caught.value)
    assert not reading._children


@pytest.mark.parametrize(("code", "said"), [(child_read.OUT_OF_MEMORY, "3,000 MB of memory"), (1, "ended with exit code 1")])
def test_memory_is_named_only_where_it_was_memory(code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*args: object) -> bytes:
        raise reading.Ended(code)

    monkeypatch.setattr(reading, "run_child", ended)
    with pytest.raises(InvalidInput, match=said):
        reading.read_table(b"a,y\n1,0\n")


@pytest.mark.parametrize("refused", [True, False])
def test_where_the_kernel_limits_no_memory_it_is_watched(refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def setrlimit(what: int, limits: tuple[int, int]) -> None:
        if refused:
            raise ValueError("current limit exceeds maximum limit")

    stand_in = types.ModuleType("resource")
    vars(stand_in).update(
        RLIMIT_AS=1, RLIMIT_FSIZE=2, RLIMIT_CORE=3, RLIM_INFINITY=-1, getrlimit=lambda what: (-1, -1), setrlimit=setrlimit
    )
    watched: list[int] = []
    monkeypatch.setitem(sys.modules, "resource", stand_in)
    monkeypatch.setattr(child_read, "_watch_memory", watched.append)
    monkeypatch.setattr(sys, "platform", "linux")
    child_read.bound_memory(100)
    assert watched == ([100 << 20] if refused else [])


def test_without_limits_of_a_kernel_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    child_read.bound_memory(100)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is watched there")
def test_too_much_resident_memory_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_read.os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        child_read._watch_memory(1)
    assert ended.value.code == child_read.OUT_OF_MEMORY
