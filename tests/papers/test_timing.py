"""The figure of times: which set it is measured on, and what its clock counts."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpviz.datasets import load_dataset
from dpviz.mechanisms import get_mechanism
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.papers import timing
from dpviz.papers.figures import base
from dpviz.papers.timing import TURNS, Measured
from dpviz.papers.verdict import Outcome
from dpviz.privacy.budget import Budget

TABLE = "age,label\n" + "\n".join(f"{k % 50},{'yes' if k % 3 else 'no'}" for k in range(200))
METHODS = {"rsgd-ar": base.Method("", {"epochs": 1, "batch_size": 40}), "kst-objective": base.Method("")}
SMALL = replace(base.times(), instead="teaching", rows=(50, 100, 400), delta=1e-6, methods=METHODS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DPVIZ_DATA", "DPVIZ_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def measured() -> Measured:
    *_, last = timing.measure(SMALL)
    return last


def test_times_are_measured_on_the_papers_set_where_it_is_here(folder: Path) -> None:
    without = measured()
    assert without.dataset == "teaching"
    assert "The paper's set ('kddcup99') is not on this machine. Measured on 'teaching'" in without.notes[0]
    (folder / "kddcup99.csv").write_text(TABLE)
    own = measured()
    reading = next(iter(timing.measure(SMALL)))
    assert reading.notes[0].startswith("Reading data/kddcup99.csv.")
    assert len(reading.table) == 0
    assert own.dataset == "data/kddcup99.csv"
    assert own.notes[0] == "Measured on data/kddcup99.csv: 200 rows, 2 features."
    assert own.sizes == (50, 100), "sizes that the table has rows for"
    assert "the largest here is 100" in own.notes[1]
    assert len(own.table) == 2 * 2 * TURNS
    assert set(own.table["rows"]) == {50, 100}
    for statement, verdict in base.judge(SMALL, own.table):
        assert verdict.outcome in (Outcome.HOLDS, Outcome.FAILS, Outcome.CANNOT_TELL), statement.text


def test_the_clock_stands_while_the_monitor_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing, "time", SimpleNamespace(process_time=lambda: clock[0]))
    rows = load_dataset("teaching")
    problem = Problem(Rows(rows.X, rows.y), get_model("logistic"), 1e-3)
    calls = []

    def waits(share: float) -> None:
        calls.append(share)
        clock[0] += 5.0  # others work meanwhile

    racers = [("dp-gd", get_mechanism("dp-gd").from_params({"steps": 20}))]
    (turn,) = list(timing.in_turns(problem, racers, Budget(1.0, 1e-6), turns=0, monitor=waits))
    assert calls
    assert min(calls) >= 0
    assert max(calls) <= 1
    assert np.isclose(turn["seconds"].iloc[0], 0.0)
