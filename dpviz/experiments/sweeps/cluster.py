"""Cells on the workers of a Dask cluster: a worker that dies costs a retry, a scheduler that dies ends the work in words.

Dask notices a worker that dies at once by its closed connection, and one that hangs by its missing heartbeats, after
`distributed.scheduler.worker-ttl` (300 s). It then gives the cell to another worker, `distributed.scheduler.allowed-failures`
times (3); a cell whose workers all died counts as one that cannot be computed. Joblib's own Dask backend waits for ever there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps.cell import Cell

if TYPE_CHECKING:
    from distributed import Client

LOOK = 2.0  # seconds between two looks at the scheduler
SILENCE = 30.0  # seconds that the scheduler may take to answer
_UNDER_WAY = "pending", "lost"  # what is lost with its worker is computed again by another one
NO_WORKERS = 60.0  # seconds without any worker after which the work ends


class ClusterLost(InvalidInput):
    """The scheduler stopped, or no worker is left."""


def check_workers(client: Client, address: str) -> None:
    """Checks that there are workers, and that each answers within `SILENCE` seconds and has this very engine.

    Args:
        address: of the scheduler.

    Raises:
        ClusterLost: the scheduler stopped answering.
        InvalidInput: there is no worker, or one that cannot be used.
    """
    from distributed import CancelledError, wait

    def refused(cause: str, fix: str) -> InvalidInput:
        return InvalidInput("scheduler", cause, fix)

    try:
        asked = {worker: client.submit(engine_version, workers=[worker], pure=False) for worker in client.nthreads()}
        if not asked:
            raise refused("it has no workers", f"Start some: dask worker {address}.")
        with suppress(TimeoutError):
            wait(list(asked.values()), timeout=SILENCE)
        for worker, future in asked.items():
            if future.status == "cancelled":
                raise _stopped()
            if future.status not in ("finished", "error"):
                raise refused(f"its worker {worker} does not answer", "Stop that worker, or start it again, then call it again.")
            error = future.exception(timeout=SILENCE) if future.status == "error" else None
            if isinstance(error, ImportError | AttributeError):
                raise refused(f"its worker {worker} cannot load dpviz: {error}", "Install dpviz there too.")
            if error is not None:
                raise refused(f"its worker {worker} failed: {type(error).__name__}: {error}", "Look into that worker's log.")
            if future.result(timeout=SILENCE) != engine_version():
                raise refused(f"its worker {worker} has another version of dpviz", "Install the same version there.")
    except TimeoutError as error:  # an answer is lost with the worker that had it
        raise refused("a worker died while it was asked for its version", "Start it again, then call it again.") from error
    except (OSError, CancelledError) as lost:
        raise _stopped() from lost


def failed_cell(cell: Cell, cause: str) -> pd.DataFrame:
    """The table of a cell that could not be computed: no rows, and `problems` that say why."""
    table = pd.DataFrame()
    table.attrs["problems"] = [
        [e, cell.spec.mechanism, f"could not be computed: {cause}", "Leave it out."] for e in cell.epsilons
    ]
    return table


def compute(cells: Sequence[Cell], client: Client, monitor: Monitor) -> Iterator[tuple[Cell, pd.DataFrame, bool]]:
    """Yields (cell, its table, whether it was computed) in the order in which they are finished.

    Args:
        monitor: receives the number of finished cells; raises to cancel.

    Raises:
        ClusterLost: the scheduler stopped answering, or there was no worker for `NO_WORKERS` seconds.
    """
    from distributed import CancelledError, wait

    futures: dict[Any, Cell] = {client.submit(Cell.attempt, cell, pure=False): cell for cell in cells}
    alone: float | None = None  # since when there is no worker
    try:
        while futures:
            try:
                wait(list(futures), timeout=LOOK, return_when="FIRST_COMPLETED")
            except TimeoutError:
                alone = _look(client, alone)
                continue
            except CancelledError as lost:  # all are cancelled when the connection breaks
                raise _stopped() from lost
            for future in [f for f in futures if f.status not in _UNDER_WAY]:
                table = _result(future, futures[future])
                if table is None:
                    alone = _look(client, alone)
                    continue
                cell = futures.pop(future)
                monitor(len(cells) - len(futures))
                yield cell, *table
    finally:
        for future in futures:
            future.release()  # what is not held is not computed


def _result(future: Any, cell: Cell) -> tuple[pd.DataFrame, bool] | None:
    """The table, and whether it was computed; None where it is lost with the worker that had it, and computed again."""
    from distributed import CancelledError, KilledWorker

    if future.status == "cancelled":
        raise _stopped()
    try:
        error = future.exception(timeout=SILENCE) if future.status == "error" else None
        if error is None:
            return future.result(timeout=SILENCE), True
    except TimeoutError:  # its worker died after it had reported that it is finished
        return None
    except (OSError, CancelledError) as lost:  # the table was on its way
        raise _stopped() from lost
    if isinstance(error, KilledWorker):
        return failed_cell(cell, "every worker that had it died, perhaps for lack of memory"), False
    return failed_cell(cell, f"{type(error).__name__}: {error}"), False


def _look(client: Client, alone: float | None) -> float | None:
    """Since when there is no worker; None where there is one."""
    if client.scheduler is None:  # the client has given up
        raise _stopped()
    try:
        workers = client.sync(client.scheduler.identity, callback_timeout=SILENCE)["workers"]
    except OSError as error:  # with time-outs and closed connections
        raise _stopped() from error
    if workers:
        return None
    alone = time.monotonic() if alone is None else alone
    if time.monotonic() - alone > NO_WORKERS:
        raise ClusterLost("cluster", f"it has had no worker for {NO_WORKERS:g} s", "Start workers, then call it again:")
    return alone


def _stopped() -> ClusterLost:
    return ClusterLost("cluster", "its scheduler stopped answering", "Start it and its workers, then call it again:")
