"""The engine's version changes with every file that computes results."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpviz
from dpviz.common import version
from dpviz.common.version import ROOMS, content_hash, engine_version, foreign_code


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
