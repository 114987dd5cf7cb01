"""Jobs whose cells wait until the test lets them go on."""

import threading
import time
from collections.abc import Callable

import pandas as pd
import pytest

from dpviz.dashboard.work import pool as jobs
from dpviz.dashboard.work.sweep import SweepJob, SweepStatus
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


def start(pool: jobs.Pool, key: str = "a", store: CellStore | None = None, spec: SweepSpec = SPEC, who: str = "me") -> SweepJob:
    return pool.submit(SweepJob(key, spec.cells(), store), who)


def state_of(pool: jobs.Pool, job: SweepJob) -> SweepStatus:
    return job.status(pool.position(job))
