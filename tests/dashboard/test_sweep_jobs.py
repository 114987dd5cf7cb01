"""Jobs of sweeps: streaming, cancelling and going on, failed cells, and cells that are kept."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support import until
from support_jobs import SPEC, Slow, start

import dpviz
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs import sweep
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.jobs.sweep import SweepJob
from dpviz.experiments.sweeps.cells import Cell, CellStore
from dpviz.experiments.sweeps.sweep import run_sweep, sort_rows


def test_a_job_gives_what_a_sweep_gives(tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: job.over)
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))
    status = job.status()
    assert (status.state, status.done, status.problems, status.notices) == (State.DONE, 1.0, (), ())
    assert start(pool) is job, "equal keys are one job"


def test_what_a_page_looks_through_changes_under_its_lock_only(pool: jobs.Pool) -> None:
    """A page that asked how long a sweep takes ended in an error when a cell was finished at that moment."""
    job, locked = SweepJob("a", SPEC.cells(), None), []

    class Watched(dict[int, pd.DataFrame]):
        def __setitem__(self, k: int, value: pd.DataFrame) -> None:
            locked.append(job._lock.locked())
            super().__setitem__(k, value)

    job._tables = Watched()
    pool.submit(job)
    until(lambda: job.over)
    assert locked
    assert all(locked)


def test_partial_tables_while_it_works(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    store = CellStore(tmp_path)
    for cell in SPEC.cells()[:2]:
        store.put(cell, cell.compute())
    job = start(pool, store=store)
    until(lambda: len(job.tables()) == 2)
    assert len(job.table()) == 2 * 2 * 10
    assert not job.over
    assert 0 < job.status().done < 1
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


def test_cancelling_in_the_middle_of_a_cell_and_going_on(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: slow.steps > 3)
    pool.cancel(job, "me")
    assert job.status().state is State.CANCELLED, "said at once"
    until(job.future.done)
    assert start(pool) is job
    assert job.state is State.CANCELLED, "no session asked to go on"
    slow.go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    assert job.status().state is State.DONE


def test_what_was_finished_is_not_computed_again_and_needs_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    true = Cell.attempt

    def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        monitor(0.0)
        made = true(cell, monitor)
        computed.append(cell.key())
        if len(computed) == 2:
            pool.leave(job, "me")
        return made

    monkeypatch.setattr(Cell, "attempt", attempt)
    pool, job = jobs.Pool(), SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.state is State.CANCELLED and job.future.done())
    finished = len(job.tables())
    assert finished >= 1
    pool.submit(SweepJob("a", SPEC.cells(), None), "me")
    until(lambda: job.over)
    assert len(computed) <= len(job.cells) + 1, "at most the cell under way is lost"
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))


def test_cells_side_by_side_are_shown_as_they_are_finished_and_kept_when_the_job_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    true, cells = Cell.attempt, SPEC.cells()
    go = threading.Event()

    def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        while cell == cells[0] and not go.is_set():
            monitor(0.5)
            time.sleep(0.002)
        return true(cell, monitor)

    monkeypatch.setattr(Cell, "attempt", attempt)
    monkeypatch.setattr(sweep, "workers_for", lambda _: 2)
    pool, job = jobs.Pool(), SweepJob("a", cells, None)
    pool.submit(job, "me")
    until(lambda: len(job.tables()) == len(cells) - 1)
    until(lambda: job.status().done > (len(cells) - 1) / (len(cells) + 1))
    pool.cancel(job, "me")
    until(job.future.done)
    assert sorted(job.tables()) == list(range(1, len(cells)))
    go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))


def test_data_that_cannot_be_looked_at_beforehand_is_left_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(cells: object) -> int:
        raise MemoryError

    monkeypatch.setattr(sweep, "workers_for", refuse)
    pool, job = jobs.Pool(), SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.over)
    assert job.state is State.DONE
    assert len(job.table()) == 2 * 2 * 12


def test_going_on_while_the_thread_still_stops(slow: Slow, pool: jobs.Pool) -> None:
    job = start(pool)
    until(lambda: slow.steps > 3)
    for _ in range(20):
        pool.cancel(job, "me")
        pool.go_on(job, "me")
    assert not job.over
    until(lambda: job.state is State.RUNNING)
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (dpviz.InvalidInput("epsilon", "cannot be met", "Give more."), "cannot be met"),
        (MemoryError(), "more memory"),
        (KeyError(), "KeyError"),
        (FloatingPointError("overflow in step 3"), "overflow in step 3"),
    ],
)
def test_failures_become_words_and_the_others_go_on(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    true = Cell.compute

    def compute(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        if cell.spec.mechanism == "cms-output":
            raise error
        return true(cell, monitor)

    monkeypatch.setattr(Cell, "compute", compute)
    job = start(pool)
    until(lambda: job.over)
    status = job.status()
    assert status.state is State.DONE
    assert set(job.table()["mechanism"]) == {"dp-gd"}
    assert {epsilon for _, epsilon, _ in status.problems} == {0.3, 3.0}
    assert all(words in str(problem) for _, _, problem in status.problems)
