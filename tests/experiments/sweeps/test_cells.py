"""Cells of a sweep: each computed once, by one thread or many, with the same bits."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from joblib import parallel_config
from support import ONE_OF_EACH_FAMILY
from support_cells import CELL, SPEC

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps import cells
from dpviz.experiments.sweeps.cells import CellStore, attempts, problems, run_cells, seconds, workers_for
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import get_mechanism


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
    assert known is not None
    pd.testing.assert_frame_equal(known, table)
    assert [(e, str(p)) for e, p in problems(known)] == [(epsilon, str(why))]
    assert seconds(known) > 0
    with pytest.raises(InvalidInput, match="cannot be met"):
        list(run_cells([CELL]))
    assert len(list(attempts([CELL]))) == 1


def test_numbers_are_the_same_to_the_last_bit_whatever_runs_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """By worker processes, by threads beside others, and each cell alone, which is what a page does."""
    spec = SweepSpec("census-1500", mechanisms=[*ONE_OF_EACH_FAMILY, "dp-sgd", "dp-agd"], epsilons=[0.3, 4.0], seeds=5)
    one_by_one, processes = list(attempts(spec.cells())), list(attempts(spec.cells(), n_jobs=2))
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
    with pytest.raises(InvalidInput, match=r"workers: were killed 3 times in a row, perhaps for lack of memory; \d+ parts"):
        list(attempts(spec.cells(), n_jobs=2))


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
