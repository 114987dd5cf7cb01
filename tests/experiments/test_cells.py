"""Cells that cannot be computed in full, and the folder they are kept in."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pandas as pd
import pytest

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.experiments import cells
from dpviz.experiments.cells import Cell, CellStore, attempts, cache_folder, problems, run_cells, seconds
from dpviz.mechanisms import get_mechanism

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3)
CELL = Cell(SPEC, (0.1, 1.0), range(3))


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
    assert (epsilon, why.field) == (0.1, "epsilon")
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


def test_nothing_at_all_is_an_empty_table(picky: None) -> None:
    table = Cell(SPEC, (0.1, 0.2), range(3)).attempt()
    assert table.empty
    assert [e for e, _ in problems(table)] == [0.1, 0.2]
    assert Cell(SPEC, (0.1,), range(3)).attempt().empty


def test_training_that_fails_for_some_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    true = cells.run_epsilons

    def diverges(spec: dpviz.RunSpec, epsilons: tuple[float, ...], **rest: object) -> list[dpviz.Result]:
        if min(epsilons) < 0.5:
            raise InvalidInput("mechanism", "diverged", "Use a smaller step size.")
        return true(spec, epsilons, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "run_epsilons", diverges)
    table = CELL.attempt()
    assert set(table["epsilon"]) == {1.0}
    assert [(e, p.cause) for e, p in problems(table)] == [(0.1, "diverged")]


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DPVIZ_CACHE", raising=False)
    assert cache_folder() == tmp_path / "dpviz"
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "mine"))
    assert CellStore.personal().folder == tmp_path / "mine" / "cells"


def test_the_store_is_bounded_and_clears_what_was_half_written(tmp_path: Path) -> None:
    now = time.time()
    for k in range(5):
        path = tmp_path / f"{k}.cell"
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - 100 + k, now - 100 + k))
    (tmp_path / "old.part").write_bytes(b"x")
    os.utime(tmp_path / "old.part", (now - 200_000, now - 200_000))
    (tmp_path / "new.part").write_bytes(b"x")
    CellStore(tmp_path).prune(250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["3.cell", "4.cell", "new.part"]


def test_a_store_that_cannot_be_written_is_one_notice(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    store = CellStore(blocked / "cells")
    tables = list(attempts([CELL, Cell(SPEC, (3.0,), range(3))], store=store))
    assert len(tables) == 2
    assert len({n.split(" (")[0] for n in store.notices}) == len(store.notices) <= 2
    assert any("cannot be kept" in n for n in store.notices)
