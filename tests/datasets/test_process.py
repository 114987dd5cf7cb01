"""The process that reads a table: its bounds on memory and time, and what is said when it dies."""

import os
import sys
import threading
from multiprocessing import active_children
from pathlib import Path

import pytest
from support import Cancelled, cancel

import dpviz
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process import reading
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.table.formats import read_file

pytestmark = pytest.mark.reader_process

TABLE = b"a,b,y\n" + b"1, u,0\n2,v,1\n" * 20


def test_the_process_reads_what_the_function_reads_and_ends() -> None:
    apart, here = read_table(TABLE, header=True), read_file(TABLE)
    assert apart.notes == here.notes
    assert apart.frame.equals(here.frame)
    assert apart.reading == {"header": True}
    with pytest.raises(InvalidInput, match="line 42 has 1 value where") as caught:
        read_table(TABLE + b"1\n")
    assert caught.value.fix
    for _ in range(2):
        with pytest.raises(Cancelled):
            read_table(TABLE, listen=cancel)
    assert not active_children()


def test_a_reader_that_is_killed_is_said_and_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    (tmp_path / "own.csv").write_bytes(TABLE)
    monkeypatch.setattr(reading, "read_file", lambda content, **how: os.abort())
    with pytest.raises(InvalidInput, match="its process ended"):
        dpviz.load_dataset("data/own.csv")
    monkeypatch.undo()
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    assert dpviz.load_dataset("data/own.csv").n == 40


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not limit address space")
def test_memory_and_time_are_bounded() -> None:
    for megabytes in (60, 420):
        with pytest.raises(InvalidInput, match=rf"want of memory \({megabytes} MB are allowed\)"):
            read_table(b"a,b,y\n" + b"1,2,3\n" * 150_000, limits=Limits(memory_megabytes=megabytes))
    with pytest.raises(InvalidInput, match="longer than 0 s"):
        read_table(TABLE, limits=Limits(seconds=0))


def test_without_limits_of_a_kernel_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    reading.bound_memory(100)


def test_one_at_once_and_the_others_wait_and_see_it() -> None:
    states: list[str] = []
    threads = [threading.Thread(target=read_table, args=(TABLE,), kwargs={"listen": states.append}) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"waiting", "reading"} <= set(states)
