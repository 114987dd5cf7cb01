"""Cells, the units of long work: computed one by one or side by side, kept on disk, and resumed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any

import pandas as pd

from dpviz.common.progress import Monitor, silent
from dpviz.common.validate import InvalidInput
from dpviz.datasets.catalogue import only_here
from dpviz.experiments import cluster
from dpviz.experiments.cell import Cell, problems, seconds
from dpviz.experiments.store import CellStore

#: times in a row that worker processes may be killed before anything is finished
DEATHS = 3

__all__ = ["Cell", "CellStore", "attempts", "problems", "run_cells", "seconds"]


def run_cells(
    cells: Sequence[Cell],
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
) -> Iterator[pd.DataFrame]:
    """Yields each cell's table as it is finished, stored ones first.

    Args:
        store: where finished cells are kept and looked for.
        n_jobs: cells computed at once; above 1, or under an active `joblib.parallel_config`, through joblib.
        monitor: told the share of all cells that is done; raises to cancel.

    Raises:
        InvalidInput: a cell cannot be computed, worker processes were killed again and again, or a cluster was lost
            (`cluster.ClusterLost`).
    """
    for table in attempts(cells, store=store, n_jobs=n_jobs, monitor=monitor):
        for _, problem in problems(table):
            raise problem
        yield table


def attempts(
    cells: Sequence[Cell],
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
) -> Iterator[pd.DataFrame]:
    """`run_cells` that goes on where a cell cannot be computed: its table lacks those rows, and `problems` says why."""
    todo = []
    finished = 0.0
    for cell in cells:
        stored = store.get(cell) if store else None
        if stored is None:
            todo.append(cell)
        else:
            finished += 1
            yield stored
    monitor(finished / max(len(cells), 1))
    for cell, table, computed in _compute(todo, n_jobs, lambda share: monitor((finished + share) / max(len(cells), 1))):
        if store and computed:
            store.put(cell, table)
        yield table


def _attempt(cell: Cell) -> pd.DataFrame:
    """`Cell.attempt` in a worker: a process whose parent was killed ends with it."""
    parent = multiprocessing.parent_process()

    def monitor(share: float) -> None:
        if parent is not None and os.getppid() != parent.pid:
            os._exit(1)

    return cell.attempt(monitor)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started here do not listen to Ctrl-C, which reaches them too: their parent ends them.

    While they are being loaded they would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # whoever starts it listens to Ctrl-C again afterwards
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a Ctrl-C in the meantime comes now


def _compute(cells: Sequence[Cell], n_jobs: int, monitor: Monitor) -> Iterator[tuple[Cell, pd.DataFrame, bool]]:
    """(cell, its table, whether it was computed: a cluster may fail to)."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend = get_active_backend()[0]
    name = type(backend).__name__
    held = any(only_here(cell.spec.dataset) for cell in cells)
    if name == "DaskDistributedBackend" and not held:
        yield from cluster.compute(cells, backend.client, monitor)
        return
    if n_jobs == 1 and name != "RayBackend":
        for k, cell in enumerate(cells):
            yield cell, cell.attempt(lambda share, k=k: monitor(k + share)), True
            monitor(k + 1)
        return
    threads = {"require": "sharedmem"} if held else {}  # threads, whatever backend is set
    left, deaths = list(cells), 0
    while left:
        with _without_interrupts():
            tables: Any = Parallel(n_jobs=n_jobs, return_as="generator", **threads)([delayed(_attempt)(cell) for cell in left])
        try:
            for table in tables:
                cell = left.pop(0)
                deaths = 0
                monitor(len(cells) - len(left))
                yield cell, table, True
        except BrokenProcessPool as broken:  # the next call gets new workers
            deaths += 1
            if deaths == DEATHS:
                raise InvalidInput(
                    "workers",
                    f"were killed {deaths} times in a row, perhaps for lack of memory; {len(left)} parts are missing",
                    "Finished parts are kept where there is a cache. Call it again with fewer jobs.",
                ) from broken
