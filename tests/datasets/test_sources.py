"""Where datasets come from: the data folder, uploads that end with their session, and reading in a bounded process."""

import gc
import os
import sys
import threading
import weakref
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Cancelled, assert_refused, cancel

import dpviz
from dpviz.common import memory
from dpviz.common.limits import Limits
from dpviz.datasets import catalogue
from dpviz.datasets.base import Dataset
from dpviz.datasets.process import reading
from dpviz.datasets.sources import folder, uploads
from dpviz.datasets.table.csv import read_csv
from dpviz.datasets.table.formats import read_file
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps.sweep import CellStore, sweep


def csv(rows: int = 60, seed: int = 0, label: str = "label") -> bytes:
    rng = np.random.default_rng(seed)
    lines = [f"age,job,{label}"]
    lines += [
        f"{a},{j},{y}"
        for a, j, y in zip(rng.integers(18, 90, rows), rng.choice(list("abc"), rows), rng.choice(list("ny"), rows), strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    return tmp_path


def test_a_csv_in_the_folder_is_a_dataset(data: Path) -> None:
    (data / "people.csv").write_bytes(csv())
    assert "data/people.csv" in dpviz.list_datasets()
    ds = dpviz.load_dataset("data/people.csv")
    assert (ds.n, ds.feature_names) == (60, ("age", "job=a", "job=b", "job=c", "(intercept)"))
    assert (ds.looked_at, ds.label.guessed) == (("age", "job"), ("column", "class"))
    assert "no file people.toml says more" in ds.label.sentence
    assert dpviz.run(dpviz.RunSpec(dataset="data/people.csv", seeds=2)).accuracy.shape == (2,)


def test_a_changed_file_is_noticed_whatever_its_time_stamp_says(data: Path) -> None:
    path = data / "people.csv"
    path.write_bytes(csv(seed=1))
    os.utime(path, (1e9, 1e9))
    spec = dpviz.RunSpec(dataset="data/people.csv", row_scaling="unit")
    first, key = dpviz.load_dataset("data/people.csv"), dpviz.resolve(spec).key()
    assert dpviz.load_dataset("data/people.csv") is first
    other = csv(seed=2)
    assert len(other) == len(csv(seed=1))
    path.write_bytes(other)
    os.utime(path, (1e9, 1e9))  # same size, same time
    second = dpviz.load_dataset("data/people.csv")
    assert second.sha256 != first.sha256
    assert dpviz.resolve(spec).key() != key
    assert setup_for(spec).dataset is second


NAMES = (
    "data/../people.csv|data//people.csv|../data/people.csv|/etc/passwd|data/people.csv\0.txt|data/people.csv |DATA/people.csv|"
    "data\\people.csv|data/.hidden.csv|file:///etc/passwd|data/%2e%2e/people.csv|upload-../../x|upload-0123456789abcdef|"
    "census-٣٣٣|data/pipe.csv|data/folder.csv|data/gone.csv|data/people.csv/.."
).split("|")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_looked_up_and_never_joined_to_a_path(name: str, data: Path) -> None:
    (data / "people.csv").write_bytes(csv())
    (data / ".hidden.csv").write_bytes(csv())
    (data / "folder.csv").mkdir()
    os.mkfifo(data / "pipe.csv")
    (data / "gone.csv").symlink_to(data / "nowhere.csv")
    assert_refused(dpviz.load_dataset, name)
    assert_refused(dpviz.resolve, dpviz.RunSpec(dataset=name))


def test_what_is_no_file_is_not_listed_and_a_vast_one_is_not_read(data: Path) -> None:
    (data / "zero.csv").symlink_to("/dev/zero")
    (data / "loop.csv").symlink_to(data / "loop.csv")
    (data / "two\nlines.csv").write_bytes(csv())
    (data / "\u202evsc.csv").write_bytes(csv())
    Path(os.fsdecode(os.fsencode(data) + b"/\xff.csv")).write_bytes(csv())
    assert folder.names() == ()
    with (data / "vast.csv").open("wb") as file:
        file.truncate(10**12)
    assert_refused(dpviz.load_dataset, "data/vast.csv", match=r"is 1,000,000\.0 MB large")


def test_a_file_that_says_it_is_empty_is_not_opened(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "kernel.csv").touch()  # a link to /proc/kmsg is such a file, and reading it never ends
    real = Path.open
    opened: list[str] = []

    def noted(path: Path, *args: Any, **kw: Any) -> Any:
        opened.append(path.name)
        return real(path, *args, **kw)

    monkeypatch.setattr(Path, "open", noted)
    assert_refused(dpviz.load_dataset, "data/kernel.csv", match="empty")
    assert "kernel.csv" not in opened


def test_a_file_that_must_not_be_read_is_said_so(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data / "people.csv"
    path.write_bytes(csv())
    os.utime(path, (1e9, 1e9))
    monkeypatch.setattr(Path, "open", lambda *args, **kw: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    assert_refused(dpviz.load_dataset, "data/people.csv", match=r"people\.csv: cannot be read \(Permission denied\)")


def test_a_file_that_is_gone_or_broken_is_said_so(data: Path) -> None:
    path = data / "people.csv"
    path.write_bytes(csv())
    spec = dpviz.RunSpec(dataset="data/people.csv")
    path.unlink()
    assert_refused(dpviz.run, spec, match="dataset")
    path.write_bytes(b"a,b\n1\n")
    for _ in range(2):
        assert_refused(dpviz.resolve, dpviz.RunSpec(dataset="data/people.csv"), match="line 2 has 1 value where line 1 has 2")
    path.write_bytes(csv())
    assert dpviz.resolve(dpviz.RunSpec(dataset="data/people.csv")).n_train == 48


def test_no_folder_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "nowhere"))
    assert folder.names() == ()
    assert "iris" in dpviz.list_datasets()


def upload(seed: int = 0, rows: int = 60) -> uploads.Upload:
    return uploads.Upload(read_csv(csv(rows, seed)), TableSpec("label"), "people.csv")


def test_an_upload_is_a_dataset_and_ends_with_its_holder() -> None:
    mine = upload()
    spec = dpviz.RunSpec(dataset=mine.name, seeds=2)
    assert dpviz.resolve(spec).n_train == 48
    assert mine.name not in dpviz.list_datasets()
    result = dpviz.run(spec)
    dpviz.run(dpviz.RunSpec(dataset=mine.name, seeds=2, intercept=False, model="svm"))
    rows = [weakref.ref(mine.dataset(i)) for i in (True, False)] + [weakref.ref(result.setup), weakref.ref(mine)]
    name = mine.name
    mine.forget()
    del mine, result
    gc.collect()
    assert [ref() for ref in rows] == [None] * 4
    assert_refused(dpviz.run, spec, match="does not hold")
    assert not uploads.is_held(name)


def test_only_the_holder_may_see_an_upload() -> None:
    mine = upload()
    before = uploads.guard(lambda name: False)
    try:
        for use in (dpviz.load_dataset, lambda name: dpviz.resolve(dpviz.RunSpec(dataset=name)), dpviz.datasets.rows_of):
            assert_refused(use, mine.name, match="does not hold")
    finally:
        uploads.guard(before)
    assert dpviz.load_dataset(mine.name).n == 60


def test_nothing_of_an_upload_goes_to_the_disk(tmp_path: Path) -> None:
    mine = upload()
    table = sweep(mine.name, mechanisms=["non-private", "majority"], epsilons=[1.0], seeds=2, store=CellStore(tmp_path / "cells"))
    assert len(table) == 4
    assert not (tmp_path / "cells").exists()
    again = sweep(mine.name, mechanisms=["non-private", "majority"], epsilons=[1.0], seeds=2, n_jobs=2)
    np.testing.assert_allclose(again["accuracy"], table["accuracy"])


def test_ready_rows_are_bounded_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ready: memory.Cache[Dataset] = memory.Cache("ready", 4 * 60 * 5 * 8 * 2, lambda d: 4 * d.X.nbytes)
    monkeypatch.setattr(uploads, "_ready", ready)
    held = [upload(seed) for seed in range(4)]
    hashes = [u.dataset(True).sha256 for u in held]
    assert len(ready.values()) == 2
    assert [dpviz.load_dataset(u.name).sha256 for u in held] == hashes


@pytest.fixture
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uploads that other tests of this process have left, and that may go at any moment, do not count."""
    monkeypatch.setattr(uploads, "_live", weakref.WeakValueDictionary())
    monkeypatch.setattr(uploads, "_read", weakref.WeakValueDictionary())


@pytest.mark.usefixtures("no_others")
def test_all_uploads_together_are_bounded() -> None:
    held = [upload(seed, 200) for seed in range(3)]
    assert uploads.held_bytes() >= sum(map(uploads.table_bytes, (u.table for u in held)))
    limits = Limits(uploads_megabytes=4)
    first = uploads.Upload(read_csv(csv(12_000)), TableSpec("label"), limits=limits)
    assert uploads.held_bytes() >= uploads.cost_of(first.rows, first.dataset(True).d) > 4 * first.dataset(True).X.nbytes - 1
    assert_refused(
        uploads.Upload,
        read_csv(csv(12_000, 1)),
        TableSpec("label"),
        limits=limits,
        match=r"needs about 2 MB \(12,000 rows of 5 features\), and all sessions together hold",
    )
    del first
    gc.collect()
    assert uploads.Upload(read_csv(csv(12_000, 1)), TableSpec("label"), limits=limits).rows == 12_000


@pytest.mark.usefixtures("no_others")
def test_a_table_is_refused_before_its_rows_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    before = uploads.held_bytes()
    monkeypatch.setattr("dpviz.datasets.table.encoder.Encoder.before_scaling", None)  # calling it would fail in another way
    table = read_csv(csv(12_000))
    assert_refused(uploads.Upload, table, TableSpec("label"), limits=Limits(uploads_megabytes=1), match="needs about 2 MB")
    assert uploads.held_bytes() - before == uploads.table_bytes(table), "the table that was read counts as long as it is there"
    del table
    gc.collect()
    assert uploads.held_bytes() <= before


def test_a_rare_class_and_rows_that_went_are_said(data: Path) -> None:
    lines = [f"{k},{'' if k < 4 else k % 7},{'yes' if k == 20 else 'no'}" for k in range(44)]
    (data / "rare.csv").write_text("\n".join(["a,b,label", *lines]))
    (data / "rare.toml").write_text('target = "label"\npositive = ["yes"]')
    rare, dropped = catalogue.cautions("data/rare.csv")
    assert rare.startswith("Only 1 of 40 rows belongs to the class 'yes'.")
    assert dropped.startswith("4 rows were left out.")
    assert dpviz.resolve(dpviz.RunSpec("data/rare.csv", delta=1 / 33)).n_train == 32, "not the 35 before gaps were found"
    assert_refused(dpviz.resolve, dpviz.RunSpec("data/rare.csv", delta=1 / 32), match="is not below 1/n")
    assert catalogue.cautions("breast-cancer") == catalogue.cautions("census-1000000") == ()


TABLE = b"a,b,y\n" + b"1, u,0\n2,v,1\n" * 20


@pytest.mark.reader_process
def test_the_process_reads_what_the_function_reads_and_ends() -> None:
    apart, here = reading.read_table(TABLE, header=True), read_file(TABLE)
    assert apart.notes == here.notes
    assert apart.frame.equals(here.frame)
    assert apart.reading == {"header": True}
    assert_refused(reading.read_table, TABLE + b"1\n", match="line 42 has 1 value where")
    with pytest.raises(Cancelled):
        reading.read_table(TABLE, listen=cancel)
    assert not active_children()


@pytest.mark.long
@pytest.mark.reader_process
def test_a_reader_that_is_killed_is_said_and_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    (tmp_path / "own.csv").write_bytes(TABLE)
    monkeypatch.setattr(reading, "read_file", lambda content, **how: os.abort())
    assert_refused(dpviz.load_dataset, "data/own.csv", match="its process ended")
    monkeypatch.undo()
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    assert dpviz.load_dataset("data/own.csv").n == 40


@pytest.mark.long
@pytest.mark.reader_process
@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not limit address space")
def test_memory_and_time_are_bounded() -> None:
    for megabytes in (60, 420):
        assert_refused(
            reading.read_table,
            b"a,b,y\n" + b"1,2,3\n" * 150_000,
            limits=Limits(memory_megabytes=megabytes),
            match=rf"want of memory \({megabytes} MB are allowed\)",
        )
    assert_refused(reading.read_table, TABLE, limits=Limits(seconds=0), match="longer than 0 s")


@pytest.mark.reader_process
def test_without_limits_of_a_kernel_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    reading.bound_memory(100)


@pytest.mark.long
@pytest.mark.reader_process
def test_one_at_once_and_the_others_wait_and_see_it() -> None:
    states: list[str] = []
    threads = [threading.Thread(target=reading.read_table, args=(TABLE,), kwargs={"listen": states.append}) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"waiting", "reading"} <= set(states)
