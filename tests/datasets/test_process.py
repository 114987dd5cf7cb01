"""The process that reads a table: what is said when it dies, and its memory limit where a kernel takes none."""

import signal
import sys
import types
from pathlib import Path

import pytest

import dpviz
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process import child_read, reading
from tests import support

pytestmark = pytest.mark.reader_process

TABLE = b"a,y\n" + b"1,0\n2,1\n" * 20


def test_a_reader_that_is_killed_is_said_to_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_TICK", 0.01)  # a reader may be done before the first of the usual looks at it

    def kill(state: str) -> None:
        if state == "reading":
            for child in list(reading._children):
                child.send_signal(signal.SIGKILL)

    with pytest.raises(InvalidInput, match=r"was killed \(SIGKILL, exit code -9\)") as caught:
        reading.read_table(TABLE, listen=kill)
    assert "3,000 MB" not in str(caught.value)
    assert not reading._children


def test_a_reader_that_is_killed_once_has_a_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_TICK", 0.01)
    victims: list[int] = []

    def kill(state: str) -> None:
        if state == "reading" and not victims:
            for child in list(reading._children):
                child.send_signal(signal.SIGKILL)
                victims.append(child.pid)

    assert len(reading.read_table(TABLE, listen=kill).frame) == 40
    assert len(victims) == 1


def test_a_table_that_was_not_read_by_chance_is_read_at_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    (tmp_path / "own.csv").write_bytes(TABLE)
    true = reading.run_child

    def ended(*args: object) -> bytes:
        raise reading.Ended(-9)

    monkeypatch.setattr(reading, "run_child", ended)
    with pytest.raises(InvalidInput, match="SIGKILL"):
        dpviz.load_dataset("data/own.csv")
    monkeypatch.setattr(reading, "run_child", true)
    assert dpviz.load_dataset("data/own.csv").n == 40


#: what libraries wrote when they ended for want of memory, with the exit code
OUT_OF_MEMORY = [
    (child_read.OUT_OF_MEMORY, ""),
    (-6, "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"),
    (-6, "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable\n"),
    (-6, "result.cc:27: ValueOrDie called on an error: Out of memory: malloc of size 2280192 failed\n"),
    (127, "<jemalloc>: arena 0 background thread creation failed (11)\ncannot allocate memory for thread-local data: ABORT\n"),
    (1, "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.\n"),
    (1, "ImportError: libx.so: failed to map segment from shared object: Cannot allocate memory\n"),
    (1, "Traceback (most recent call last):\nMemoryError\n"),
]
OTHERWISE = [
    (1, "", "ended with exit code 1"),
    (-9, "std::bad_alloc", "SIGKILL"),
    (-11, "", "SIGSEGV"),
    (-6, "assertion", "SIGABRT"),
]


@pytest.mark.parametrize(
    ("code", "wrote", "said"),
    [(*end, "3,000 MB of memory") for end in OUT_OF_MEMORY] + OTHERWISE,
    ids=lambda value: str(value)[:30],
)
def test_memory_is_named_only_where_it_was_memory(code: int, wrote: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*args: object) -> bytes:
        raise reading.Ended(code, wrote)

    monkeypatch.setattr(reading, "run_child", ended)
    with pytest.raises(InvalidInput, match=said) as caught:
        reading.read_table(b"a,y\n1,0\n")
    assert ("MB of memory" in str(caught.value)) == (said == "3,000 MB of memory")


@pytest.mark.skipif(sys.platform == "win32", reason="nothing aborts there")
def test_the_end_of_what_a_process_wrote_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "sys.stderr.write('x' * 10**6 + 'std::bad_alloc')"
    (tmp_path / "aborting.py").write_text(f"import os, sys\ndef main():\n    {says}\n    sys.stderr.flush()\n    os.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(reading.Ended, match="SIGABRT") as caught:
        reading.run_child("aborting", b"", 60.0, lambda: None)
    assert caught.value.out_of_memory


@pytest.mark.long
@pytest.mark.parametrize("megabytes", [60, 170, 230])
def test_too_little_memory_is_always_said_to_be_that(megabytes: int) -> None:
    big = b"a,b,label\n" + b"".join(b"%d,%d,%d\n" % (k, k * 7, k % 2) for k in range(150_000))
    said = ""
    try:
        assert reading.read_table(big, limits=Limits(memory_megabytes=megabytes)).frame.shape == (150_000, 3)
    except InvalidInput as refused:
        said = str(refused)
    assert f"within {megabytes} MB of memory" in said or (not said and megabytes > 110), "110 MB: resident before a row is read"


@pytest.mark.parametrize("refused", [True, False])
def test_memory_is_watched_whether_or_not_the_kernel_limits_it(refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limited: dict[int, tuple[int, int]] = {}

    def setrlimit(what: int, limits: tuple[int, int]) -> None:
        if refused:
            raise ValueError("current limit exceeds maximum limit")
        limited[what] = limits

    stand_in = types.ModuleType("resource")
    vars(stand_in).update(
        RLIMIT_AS=1, RLIMIT_FSIZE=2, RLIMIT_CORE=3, RLIM_INFINITY=-1, getrlimit=lambda what: (-1, -1), setrlimit=setrlimit
    )
    watched: list[int] = []
    monkeypatch.setitem(sys.modules, "resource", stand_in)
    monkeypatch.setattr(child_read, "_watch_memory", watched.append)
    child_read.bound_memory(100)
    support.until(lambda: watched == [100 << 20])
    assert refused or (limited[2] == (0, 0) and limited[1][0] > 100 << 20)


def test_without_limits_of_a_kernel_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    child_read.bound_memory(100)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is watched there")
def test_too_much_resident_memory_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_read.os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        child_read._watch_memory(1)
    assert ended.value.code == child_read.OUT_OF_MEMORY


def test_a_process_that_ended_is_told_where_there_is_no_sigkill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has none."""
    monkeypatch.delattr(reading.signal, "SIGKILL")
    assert str(reading.Ended(1)) == "ended with exit code 1"
    assert reading.Ended(1, "MemoryError").out_of_memory
