"""Jobs that wait until the test lets them go on."""

import threading
import time
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from dpviz.common.progress import Monitor
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs.sweep import SweepJob
from dpviz.experiments.sweeps.cells import Cell, CellStore
from dpviz.experiments.sweeps.sweep import SweepSpec

SPEC = SweepSpec(dataset="teaching", mechanisms=["cms-output", "dp-gd"], epsilons=[0.3, 3.0], seeds=12)


class Slow:
    """Makes cells take as many steps as wanted, each of them released by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.steps = 0
        true = Cell.attempt

        def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
            while not self.go.is_set():
                self.steps += 1
                time.sleep(0.002)
                monitor(0.5)
            return true(cell, monitor)

        monkeypatch.setattr(Cell, "attempt", attempt)


def released(go: threading.Event) -> Callable[[Monitor], Iterator[int]]:
    """Work of a job that goes on until the test lets it end."""

    def stream(monitor: Monitor) -> Iterator[int]:
        while not go.wait(0.002):
            monitor(0.5)
        yield 1

    return stream


def start(pool: jobs.Pool, key: str = "a", store: CellStore | None = None, spec: SweepSpec = SPEC, who: str = "me") -> SweepJob:
    return pool.submit(SweepJob(key, spec.cells(), store), who)
