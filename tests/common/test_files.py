"""Folders and files written whole or not at all, the engine's version, and the boundary at which unforeseen errors stop."""

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpviz
from dpviz.common import files, version
from dpviz.common.boundary import Boundary
from dpviz.common.validate import InvalidInput
from dpviz.common.version import ROOMS, content_hash, engine_version, foreign_code


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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small checkout with one file a room."""
    for room in (*ROOMS, "papers", "figures"):
        (tmp_path / "dpviz" / room).mkdir(parents=True)
        (tmp_path / "dpviz" / room / "a.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(version, "_PACKAGE", tmp_path / "dpviz")
    engine_version.cache_clear()
    yield tmp_path
    engine_version.cache_clear()


@pytest.mark.parametrize("name", ["a.py", "a.toml"])
@pytest.mark.parametrize("room", ROOMS)
def test_a_change_in_any_computing_room_changes_it(checkout: Path, room: str, name: str) -> None:
    before = engine_version()
    (checkout / "dpviz" / room / name).write_text("x = 2\n")
    engine_version.cache_clear()
    assert engine_version() != before


def test_other_rooms_count_where_they_are_asked_for(checkout: Path) -> None:
    before, with_papers = engine_version(), engine_version("papers")
    (checkout / "dpviz" / "papers" / "a.py").write_text("x = 2\n")
    (checkout / "dpviz" / "figures" / "a.py").write_text("x = 2\n")
    engine_version.cache_clear()
    assert engine_version() == before
    assert engine_version("papers") != with_papers


def test_line_ends_do_not_count_and_moved_files_do(checkout: Path) -> None:
    before = engine_version()
    (checkout / "dpviz" / "models" / "a.py").write_bytes(b"x = 1\r\n")
    engine_version.cache_clear()
    assert engine_version() == before
    shutil.move(checkout / "dpviz" / "models" / "a.py", checkout / "dpviz" / "models" / "b.py")
    engine_version.cache_clear()
    assert engine_version() != before
    assert content_hash({"a.py": b"x = 1", "b.py": b""}) != content_hash({"a.py": b"", "b.py": b"x = 1"})


def test_an_installed_release_is_known_by_its_number(checkout: Path) -> None:
    (checkout / "pyproject.toml").unlink()
    assert engine_version() == engine_version("papers") == dpviz.__version__


def test_code_from_outside_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "another_package.py").write_text("class Method: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from another_package import Method  # type: ignore[import-not-found]

    before = foreign_code(Method)
    assert len(before) == 13
    (tmp_path / "another_package.py").write_text("class Method: steps = 2\n")
    assert foreign_code(Method) != before
    assert foreign_code(dpviz.RunSpec) == ""
    typed = type("Typed", (), {"__module__": "__main__"})
    assert foreign_code(typed) == foreign_code(typed) != ""


def stopped_by(error: BaseException, **through: tuple[type[Exception], ...]) -> Boundary:
    with Boundary("the test", **through) as work:
        raise error
    return work


def test_what_nobody_foresaw_is_logged_with_its_traceback_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        work = stopped_by(KeyError("row"))
    assert work.problem("less", "Try another.") == ("'row'", "Try another.")
    (record,) = caplog.records
    assert "the test failed" in record.message
    assert record.exc_info[0] is KeyError
    assert stopped_by(ValueError()).problem("less", "Try another.") == ("ValueError", "Try another.")


def test_what_a_person_can_mend_is_told_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert stopped_by(InvalidInput("steps", "is 0", "Take one.")).problem("less", "") == ("steps: is 0", "Take one.")
        assert stopped_by(MemoryError()).problem("Fewer rows.", "") == ("this needs more memory than there is", "Fewer rows.")
        with Boundary("the test") as work:
            pass
        assert work.problem("", "") is None
    assert not caplog.records


def test_signals_and_what_is_let_through_are_raised() -> None:
    for error in (KeyboardInterrupt(), SystemExit(1)):
        with pytest.raises(type(error)):
            stopped_by(error)
    with pytest.raises(LookupError):
        stopped_by(KeyError(), through=(LookupError,))


def test_no_hash_of_rows_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A run's key holds one; an attacker who knows all rows but one could try values for the last against it."""
    run = dpviz.resolve(dpviz.RunSpec("census-100"))
    key, digest = run.key(), dpviz.setup_for(run.spec).dataset.sha256
    assert digest in key
    with caplog.at_level(logging.ERROR), Boundary(f"the run {key}"):
        raise KeyError("row")
    assert "census-100" in caplog.records[0].message
    assert digest not in caplog.records[0].message
