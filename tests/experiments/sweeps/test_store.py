"""Cells that are kept: bounded, for their owner only, and never read where they were changed."""

import dataclasses
import errno
import os
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from support_cells import CELL, SPEC

from dpviz.experiments.sweeps import cells as store_module
from dpviz.experiments.sweeps.cells import Cell, CellStore, attempts


def test_the_store_is_bounded_and_clears_what_was_half_written(tmp_path: Path) -> None:
    now = time.time()
    for k in range(5):
        path = tmp_path / f"{k}.cell"
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - 100 + k, now - 100 + k))
    (tmp_path / ".part-old").write_bytes(b"x")
    os.utime(tmp_path / ".part-old", (now - 200_000, now - 200_000))
    (tmp_path / ".part-new").write_bytes(b"x")
    CellStore(tmp_path).prune(250)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".part-new", "3.cell", "4.cell"]


def test_a_store_that_cannot_be_written_is_one_notice(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    store = CellStore(blocked / "cells")
    tables = list(attempts([CELL, Cell(SPEC, (3.0,), range(3))], store=store))
    assert len(tables) == 2
    assert len(store.notices) == 1
    assert "cannot be kept" in store.notices[0]


@pytest.mark.parametrize(
    ("where", "name"), [(os, "open"), (os, "lstat"), (Path, "unlink"), (Path, "stat"), (Path, "mkdir"), (Path, "glob")]
)
@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EIO])
def test_whatever_the_folder_refuses_the_numbers_are_there(
    where: object, name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / f"{CELL.key()}.cell").write_bytes(b"x")
    (tmp_path / "cells" / ".part-left").write_bytes(b"x")
    os.utime(tmp_path / "cells" / ".part-left", (0, 0))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(where, name, refuse)
    store = CellStore.personal()
    store.prune(most=0)
    assert [len(t) for t in attempts([CELL], store=store)] == [6]
    assert len([n for n in store.notices if "cannot be kept" in n]) <= 1


def stored(tmp_path: Path) -> tuple[CellStore, Path, pd.DataFrame]:
    store = CellStore(tmp_path)
    table = CELL.attempt()
    store.put(CELL, table)
    (path,) = tmp_path.glob("*.cell")
    return store, path, table


@pytest.mark.parametrize("content", [b"", b"7", b"a,b\n1,2\n"])
def test_what_is_no_cell_is_set_aside(content: bytes, tmp_path: Path) -> None:
    store, path, table = stored(tmp_path)
    path.write_bytes(content)
    set_aside(store, path, table)


def test_nothing_of_an_upload_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, table = CellStore(tmp_path), CELL.attempt()
    monkeypatch.setattr(store_module, "is_upload", lambda name: name == CELL.spec.dataset)
    store.put(CELL, table)
    assert not list(tmp_path.rglob("*.*")), "not even a part of it"
    assert store.get(CELL) is None
    monkeypatch.undo()
    store.put(CELL, table)
    assert store.get(CELL) is not None


def set_aside(store: CellStore, path: Path, table: pd.DataFrame) -> None:
    """What lies under the cell's name is not read, is set aside with one notice, and is computed again."""
    assert store.get(CELL) is None
    assert len(store.notices) == 1
    assert os.path.lexists(path.with_suffix(".damaged"))
    assert not os.path.lexists(path)
    (again,) = attempts([CELL], store=store)
    pd.testing.assert_frame_equal(again, table)
    assert store.get(CELL) is not None
    assert len(store.notices) == 1


def test_what_was_stored_is_read_back(tmp_path: Path) -> None:
    store, _, table = stored(tmp_path)
    known = store.get(CELL)
    pd.testing.assert_frame_equal(known, table)
    assert known.attrs == table.attrs
    assert not store.notices


def test_a_number_that_changed_on_the_disk_is_noticed(tmp_path: Path) -> None:
    store, path, table = stored(tmp_path)
    before = f'"objective": [{float(table["objective"][0])!r}'.encode()
    assert path.read_bytes().count(before) == 1
    path.write_bytes(path.read_bytes().replace(before, f'"objective": [{float(table["objective"][0]) + 0.001!r}'.encode()))
    set_aside(store, path, table)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"columns": 3}', b'{"columns": {"a": [1]}}', b"[" * 100_000, b"\xff"])
def test_a_file_that_is_whole_and_holds_no_table_is_noticed(tmp_path: Path, content: bytes) -> None:
    store, path, table = stored(tmp_path)
    store.write(CELL.key(), content)
    set_aside(store, path, table)


def test_a_cell_under_the_name_of_another_one_is_noticed(tmp_path: Path) -> None:
    """Nothing in its table tells of the other noise seed."""
    store, path, table = stored(tmp_path)
    other = dataclasses.replace(CELL, spec=dataclasses.replace(CELL.spec, seed=CELL.spec.seed + 1))
    store.put(other, other.attempt())
    os.replace(store.folder / f"{other.key()}.cell", path)
    set_aside(store, path, table)


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
@pytest.mark.parametrize("kind", ["link to a device", "link to a cell", "pipe", "folder", "others may write", "too large"])
def test_only_plain_files_of_the_owner_are_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path, table = stored(tmp_path / "cells")
    if kind == "others may write":
        path.chmod(0o622)
    elif kind == "too large":
        monkeypatch.setattr(CellStore, "most", path.stat().st_size - 1)
    else:
        path.rename(tmp_path / "away")
        {
            "link to a device": lambda: path.symlink_to("/dev/zero"),
            "link to a cell": lambda: path.symlink_to(tmp_path / "away"),
            "pipe": lambda: os.mkfifo(path),
            "folder": path.mkdir,
        }[kind]()
    assert store.get(CELL) is None
    assert len(store.notices) == 1
    assert os.path.lexists(path.with_suffix(".damaged"))
    monkeypatch.undo()
    (again,) = attempts([CELL], store=store)
    pd.testing.assert_frame_equal(again, table)
    assert store.get(CELL) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a person's folder for that person")
def test_cells_are_written_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        _, path, _ = stored(tmp_path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners there")
def test_a_cell_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path, _ = stored(tmp_path)
    if os.geteuid() == 0:  # whose own files everybody may read
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert store.get(CELL) is None
    assert len(store.notices) == 1
