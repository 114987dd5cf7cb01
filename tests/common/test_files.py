"""Folders, and writing whole or not at all."""

import os
from pathlib import Path

import pytest

from dpviz.common import files


def test_folders_follow_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"
    monkeypatch.setenv("DPVIZ_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / "dpviz"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert files.cache_folder() == Path.home() / ".cache" / "dpviz"
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "tables"))
    assert files.data_folder() == tmp_path / "tables"
    monkeypatch.delenv("DPVIZ_DATA")
    assert files.data_folder() == Path(files.__file__).parents[2] / "data"


def test_a_file_is_written_with_its_folder_and_the_usual_rights(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    files.write(path, b"one")
    files.write(path, b"two")
    assert path.read_bytes() == b"two"
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_what_fails_leaves_the_old_file_and_nothing_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write(path, b"old")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_stale_parts_go_and_young_ones_stay(tmp_path: Path) -> None:
    old, young, other = tmp_path / ".part-old", files.part_folder(tmp_path), tmp_path / "kept"
    old.mkdir()
    (old / "inside").touch()
    other.touch()
    for path in (old, other):
        os.utime(path, (0, 0))
    files.remove_stale_parts(tmp_path, 1000)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([young.name, "kept"])
    files.remove_stale_parts(tmp_path / "nowhere", 0)


def test_what_is_half_written_is_removed_at_the_end_of_a_process(tmp_path: Path) -> None:
    mine, other = tmp_path / f"{files.PART}mine", tmp_path / f"{files.PART}other"
    for part in (mine, other):
        part.write_bytes(b"half")
    files._writing.update({mine, tmp_path / "gone already"})
    try:
        files.remove_own_parts()
    finally:
        files._writing.clear()
    assert (mine.exists(), other.exists()) == (False, True)
