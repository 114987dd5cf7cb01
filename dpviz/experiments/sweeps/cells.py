"""Cells, the units of long work: computed one by one or side by side, kept on disk, and resumed.

Each cell is trained by itself, whatever else is at work: sums over many replicas round differently beside other replicas, and a
stored number must not depend on the way in which it was computed.

Finished cells as files, checked when read, so that whatever stops the work, what was finished stays.
"""

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpviz.common.files import FileStore
from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import THREADS_FROM, parallel_map, processors
from dpviz.common.validate import InvalidInput
from dpviz.datasets.catalogue import is_in_memory
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps import cluster
from dpviz.experiments.sweeps.cell import Cell, problems


class CellStore(FileStore):
    """Finished cells as files; `notices` has a line for each damaged file that was set aside."""

    room, suffix, what, then = "cells", ".cell", "Results", "after a restart they are computed again"
    most, most_of_all = 1 << 26, 1 << 30

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A file that is damaged, or another's, is renamed, noted, and counts as not there."""
        if is_upload(cell.spec.dataset):
            return None
        key = cell.key()
        content = self.read(key)
        if content is None:
            return None
        table = _table(content)
        if table is None:
            aside = self.path(key).with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(self.path(key), aside)
            self.notices.append(
                f"A stored result was damaged, or others can write it. It is set aside as {aside.suffix} and computed again."
            )
            return None
        if is_in_memory(cell.spec.dataset) and len(table):
            table["dataset"] = cell.spec.dataset  # their random name in this process
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        self.write(cell.key(), json.dumps({"columns": table.to_dict("list"), "attributes": table.attrs}).encode())


def _table(content: bytes) -> pd.DataFrame | None:
    """The table that a file holds; None where it holds none."""
    try:
        values = json.loads(content)
        table = pd.DataFrame(values["columns"])
        table.attrs = values["attributes"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return table


SEED_BLOCK = 10  # seeds of a cell at most
#: times in a row that worker processes may be killed before anything is finished
DEATHS = 3

_ENTRIES = 1 << 27  # of all tables that cells are computed on side by side: a GiB in double precision

__all__ = ["Cell", "CellStore", "attempts", "problems", "run_cells", "workers_for"]


def run_cells(
    cells: Sequence[Cell], *, store: CellStore | None = None, n_jobs: int = 1, monitor: Monitor = ignore
) -> Iterator[pd.DataFrame]:
    """Yields each cell's table as it is finished, stored ones first.

    Args:
        store: where finished cells are kept and looked for.
        n_jobs: cells computed at once; above 1, or under an active `joblib.parallel_config`, through joblib.
        monitor: receives the share of all cells that is done; raises to cancel.

    Raises:
        InvalidInput: a cell cannot be computed, worker processes were killed again and again, or a cluster was lost
            (`cluster.ClusterLost`).
    """
    for table in attempts(cells, store=store, n_jobs=n_jobs, monitor=monitor):
        for _, problem in problems(table):
            raise problem
        yield table


def attempts(
    cells: Sequence[Cell], *, store: CellStore | None = None, n_jobs: int = 1, monitor: Monitor = ignore
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
    for cell, table, keep in _compute(todo, store, n_jobs, lambda share: monitor((finished + share) / max(len(cells), 1))):
        if store and keep:
            store.put(cell, table)
        yield table


def workers_for(cells: Sequence[Cell]) -> int:
    """Threads that compute cells side by side, each cell on one of them as long as there are others.

    Threads that share the rows of one step wait for each other at its end, and for what is not shared; threads with cells of
    their own do not. Of small tables they would wait for the interpreter, and of large ones fill the memory.
    """
    try:
        trained_on = [setup_for(cell.spec).problem for cell in cells]
    except InvalidInput:  # which the cell itself will say
        return 1
    if min((problem.n * problem.m for problem in trained_on), default=0) < THREADS_FROM:
        return 1
    return max(1, min(processors(), _ENTRIES // max(problem.rows.X.size for problem in trained_on)))


def _in_threads(cells: Sequence[Cell], store: CellStore | None, monitor: Monitor) -> Iterator[pd.DataFrame]:
    """Tables of cells in order, kept in the store as soon as they are finished: it may be long until those before them are."""

    def attempt(k: int, tick: Monitor) -> pd.DataFrame:
        table = cells[k].attempt(tick)
        if store:
            store.put(cells[k], table)
        return table

    return parallel_map(attempt, len(cells), lambda shares: monitor(sum(shares)), workers=workers_for(cells))


def _attempt(cell: Cell) -> pd.DataFrame:
    """`Cell.attempt` in a worker: a process whose parent was killed ends with it."""
    from multiprocessing import parent_process

    parent = parent_process()

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
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a Ctrl-C in the meantime comes now


def _compute(
    cells: Sequence[Cell], store: CellStore | None, n_jobs: int, monitor: Monitor
) -> Iterator[tuple[Cell, pd.DataFrame, bool]]:
    """(cell, its table, whether the store is to keep it: not where it does already, or a cluster failed to compute it)."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend = get_active_backend()[0]
    name = type(backend).__name__
    held = any(is_in_memory(cell.spec.dataset) for cell in cells)
    if name == "DaskDistributedBackend" and not held:
        yield from cluster.compute(cells, backend.client, monitor)
        return
    if n_jobs == 1 and name != "RayBackend":
        for cell, table in zip(cells, _in_threads(cells, store, monitor), strict=True):
            yield cell, table, False
        return
    from concurrent.futures.process import BrokenProcessPool

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
