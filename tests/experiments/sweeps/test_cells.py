"""Cells of a sweep: the same bits by one thread or many; kept for their owner only, and never read where changed."""

import contextlib
import dataclasses
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from joblib import parallel_config
from support import ONE_OF_EACH_FAMILY, assert_refused

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps import cells
from dpviz.experiments.sweeps import cells as store_module
from dpviz.experiments.sweeps.cells import Cell, CellStore, attempts, problems, run_cells, workers_for
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import get_mechanism

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3)
CELL = Cell(SPEC, (0.1, 1.0), range(3))  # quick to compute


@pytest.fixture
def picky(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism refuses budgets below 0.5."""
    cls = get_mechanism("dp-gd")
    true = cls.calibrate

    def calibrate(self: object, setting: object, budget: dpviz.Budget) -> dpviz.Calibration:
        if budget.epsilon < 0.5:
            raise InvalidInput("epsilon", "cannot be met", "Give more.")
        return true(self, setting, budget)  # type: ignore[arg-type]

    monkeypatch.setattr(cls, "calibrate", calibrate)


def test_refused_budgets_are_named_and_the_others_computed(picky: None, tmp_path: Path) -> None:
    table = CELL.attempt()
    assert set(table["epsilon"]) == {1.0}
    ((epsilon, why),) = problems(table)
    assert (epsilon, why.field, why.cause, why.fix) == (0.1, "epsilon", "cannot be met", "Give more.")
    store = CellStore(tmp_path)
    store.put(CELL, table)
    known = store.get(CELL)
    pd.testing.assert_frame_equal(known, table)
    assert [(e, str(p)) for e, p in problems(known)] == [(epsilon, str(why))]
    assert known.attrs["seconds"] > 0
    assert_refused(list, run_cells([CELL]), match="cannot be met")
    assert len(list(attempts([CELL]))) == 1


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_numbers_are_the_same_to_the_last_bit_whatever_runs_beside(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By two worker processes, by threads beside others, and each cell alone, which is what a page does."""
    spec = SweepSpec("census-1500", mechanisms=[*ONE_OF_EACH_FAMILY, "dp-sgd", "dp-agd"], epsilons=[0.3, 4.0], seeds=5)
    one_by_one, processes = list(attempts(spec.cells())), list(attempts(spec.cells(), n_jobs=jobs))
    monkeypatch.setattr(cells, "workers_for", lambda _: 3)
    threads, alone = list(attempts(spec.cells())), [one.attempt() for one in reversed(spec.cells())][::-1]
    for tables in (processes, threads, alone):
        for first, other in zip(one_by_one, tables, strict=True):
            pd.testing.assert_frame_equal(first, other, check_exact=True)


def test_cells_are_computed_side_by_side_where_tables_are_neither_small_nor_large(monkeypatch: pytest.MonkeyPatch) -> None:
    made = setup_for(SPEC).problem
    monkeypatch.setattr(cells, "processors", lambda: 4)
    assert workers_for([CELL]) == 1
    monkeypatch.setattr(cells, "THREADS_FROM", made.n * made.m)
    assert workers_for([CELL, CELL]) == 4
    monkeypatch.setattr(cells, "_ENTRIES", 3 * made.rows.X.size)
    assert workers_for([CELL]) == 3
    monkeypatch.setattr(cells, "_ENTRIES", made.rows.X.size - 1)
    assert workers_for([CELL]) == 1
    assert workers_for([]) == 1


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_workers_that_are_killed_again_and_again_end_the_work_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_attempt", lambda cell: os.kill(os.getpid(), signal.SIGKILL))
    spec = SweepSpec("teaching", mechanisms={"output-gaussian": {}}, epsilons=(0.5,), seeds=12)
    assert_refused(
        list,
        attempts(spec.cells(), n_jobs=2),
        match=r"workers: were killed 3 times in a row, perhaps for lack of memory; \d+ parts",
    )


def test_many_cells_at_once_are_each_computed_once() -> None:
    """More cells than joblib takes up at the start: those that wait must not move while finished ones leave the list."""
    spec = SweepSpec(dataset="teaching", mechanisms={"output-gaussian": {}}, epsilons=[1.0], seeds=100)
    parts = spec.cells()
    assert len(parts) > 8
    with parallel_config(backend="threading"):
        tables = list(run_cells(parts, n_jobs=2))
    for part, table in zip(parts, tables, strict=True):
        pd.testing.assert_frame_equal(table, part.compute())


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals")
def test_workers_do_not_hear_ctrl_c_which_their_parent_handles() -> None:
    ask = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    said = []
    for around in (cells._without_interrupts(), contextlib.nullcontext()):
        with around:
            said.append(subprocess.run([sys.executable, "-S", "-c", ask], capture_output=True, text=True, check=True).stdout)
    assert said == ["True\n", "False\n"]


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


def test_nothing_of_an_upload_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, table = CellStore(tmp_path), CELL.attempt()
    monkeypatch.setattr(store_module, "is_upload", lambda name: name == CELL.spec.dataset)
    store.put(CELL, table)
    assert not list(tmp_path.rglob("*.*")), "not even a part of it"
    assert store.get(CELL) is None
    monkeypatch.undo()
    store.put(CELL, table)
    assert store.get(CELL) is not None


def test_what_was_stored_is_read_back(tmp_path: Path) -> None:
    store, _, table = stored(tmp_path)
    known = store.get(CELL)
    pd.testing.assert_frame_equal(known, table)
    assert known.attrs == table.attrs
    assert not store.notices


def changed(path: Path) -> None:
    """Its first number of the column "objective" has another first digit."""
    before = path.read_bytes()
    at = before.index(b'"objective": [') + 14
    path.write_bytes(before[:at] + (b"8" if before[at : at + 1] != b"8" else b"7") + before[at + 1 :])


def another(path: Path) -> None:
    """The cell of another noise seed, of which nothing in its table tells."""
    other = dataclasses.replace(CELL, spec=dataclasses.replace(CELL.spec, seed=CELL.spec.seed + 1))
    CellStore(path.parent).put(other, other.attempt())
    os.replace(path.parent / f"{other.key()}.cell", path)


def moved(path: Path) -> Path:
    return path.rename(path.parent.parent / "away")


NOT_OURS: dict[str, Callable[[Path], object]] = {
    **{f"bytes {text!r}": partial(Path.write_bytes, data=text) for text in (b"", b"7", b"a,b\n1,2\n")},
    **{
        f"whole and no table: {text[:20]!r}": lambda path, text=text: CellStore(path.parent).write(CELL.key(), text)
        for text in (b"{", b"[]", b'{"columns": 3}', b'{"columns": {"a": [1]}}', b"[" * 100_000, b"\xff")
    },
    "a number that changed": changed,
    "another cell": another,
    "others may write": lambda path: path.chmod(0o622),
    "link to a device": lambda path: (moved(path), path.symlink_to("/dev/zero")),
    "link to a cell": lambda path: path.symlink_to(moved(path)),
    "pipe": lambda path: (moved(path), os.mkfifo(path)),
    "folder": lambda path: (moved(path), path.mkdir()),
    "too large": lambda path: os.truncate(path, CellStore.most + 1),
}


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
@pytest.mark.parametrize("what", NOT_OURS)
def test_what_is_no_cell_of_the_owner_is_set_aside_with_one_notice(what: str, tmp_path: Path) -> None:
    store, path, table = stored(tmp_path / "cells")
    NOT_OURS[what](path)
    assert store.get(CELL) is None
    assert os.path.lexists(path.with_suffix(".damaged"))
    assert not os.path.lexists(path)
    (again,) = attempts([CELL], store=store)
    pd.testing.assert_frame_equal(again, table)
    assert store.get(CELL) is not None
    assert len(store.notices) == 1


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
