"""A sweep as a job: cells computed one after the other or side by side, with partial results."""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, TypeVar

import pandas as pd

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor
from dpviz.common.threads import Cancelled, parallel_map
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.jobs.job import Job, Status, Stopped
from dpviz.experiments.sweeps.cells import Cell, CellStore, problems, workers_for

T = TypeVar("T")

_MOST_MADE = 200  # tables, summaries and intervals of one sweep that are kept


@dataclass(frozen=True)
class SweepStatus(Status):
    """A sweep at one moment.

    Attributes:
        version: grows with every finished cell.
        problems: what could not be computed: (cell index, epsilon, why).
        notices: what the store has to say.
    """

    version: int
    problems: tuple[tuple[int, float, InvalidInput], ...]
    notices: tuple[str, ...]


class SweepJob(Job[pd.DataFrame]):
    """Cells that are computed one after the other, or side by side (`workers_for`).

    Attributes:
        cells: the work, coarse picture first.
        store: where finished cells are kept; None measures them afresh.
    """

    def __init__(self, key: str, cells: Sequence[Cell], store: CellStore | None) -> None:
        super().__init__(key, None, dataset=cells[0].spec.dataset if cells else "")
        self.cells, self.store = cells, store
        self._tables: dict[int, pd.DataFrame] = {}
        self._shares: dict[int, float] = {}  # of cells at work, and of finished ones
        self._made: dict[Hashable, Any] = {}

    def compute_once(self, name: Hashable, make: Callable[[], T]) -> T:
        """The result of `make` on the finished rows, made again only when there are more; all who look at the job share it.

        Args:
            name: of what is made and of all that it depends on beside the rows.
        """
        with self._lock:
            made = self._made
        try:
            value: T = made[name]
        except KeyError:
            if len(made) >= _MOST_MADE:
                made.clear()
            value = made[name] = make()
        return value

    def tables(self) -> dict[int, pd.DataFrame]:
        """Finished cells' tables by index into `cells`."""
        with self._lock:
            return dict(self._tables)

    def table(self) -> pd.DataFrame:
        """All finished rows, cells in order."""
        parts = [part for _, part in sorted(self.tables().items()) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def status(self) -> SweepStatus:
        """Its progress."""
        now, tables = super().status(), self.tables()
        shares = self._shares | dict.fromkeys(tables, 1.0)
        done = sum(_weight(self.cells[k]) * share for k, share in shares.items())
        refusals = tuple((k, e, p) for k, table in sorted(tables.items()) for e, p in problems(table))
        notices = tuple(self.store.notices if self.store else ())
        return SweepStatus(now.state, done / max(sum(map(_weight, self.cells)), 1), now.left, len(tables), refusals, notices)

    def work(self, monitor: Monitor, stop: threading.Event) -> None:
        """Computes what the store does not have, and what was not finished before it was cancelled."""
        todo = []
        for k, cell in enumerate(self.cells):  # what is on disk comes first, all of it
            monitor(0.0)
            rows = self.store.get(cell) if self.store and k not in self._tables else None
            if rows is not None:
                self._finish(k, rows, stop)
            elif k not in self._tables:
                todo.append(k)
        failed = {_name(self.cells[k]) for k, table in self._tables.items() if not len(table)}

        def compute(i: int, tick: Monitor) -> None:
            """One cell; none that behaves as one that could not be computed."""
            k = todo[i]
            table = pd.DataFrame() if _name(self.cells[k]) in failed else self._attempt(self.cells[k], tick)
            if not len(table):
                failed.add(_name(self.cells[k]))
            self._finish(k, table, stop)  # as soon as it is there: of those before it one may take long

        weights = [_weight(self.cells[k]) for k in todo]

        def listen(shares: Sequence[float]) -> None:
            self._shares = dict(zip(todo, shares, strict=True))
            monitor(sum(map(mul, weights, shares)) / sum(weights))

        workers = 1
        with Boundary("counting threads"):  # a cell whose data cannot be read says so itself
            workers = workers_for([self.cells[k] for k in todo])
        for _ in parallel_map(compute, len(todo), listen, workers=workers):
            pass

    def _attempt(self, cell: Cell, monitor: Monitor) -> pd.DataFrame:
        """A cell's table, which the store keeps; an empty one that says why where it cannot be computed."""
        with Boundary(f"the cell {cell}", through=(Stopped, Cancelled)) as work:
            table = cell.attempt(monitor)
        problem = work.problem("", "")
        if problem is not None:
            table = pd.DataFrame()
            cause = f"could not be computed: {problem[0]}"
            table.attrs["problems"] = [[e, cell.spec.mechanism, cause, "Leave it out."] for e in cell.epsilons]
        elif self.store:
            self.store.put(cell, table)
        return table

    def discard(self) -> None:
        """Lets go of the tables."""
        super().discard()
        with self._lock:
            self._tables, self._shares, self._made = {}, {}, {}

    def _finish(self, k: int, table: pd.DataFrame, stop: threading.Event) -> None:
        with self._lock:
            if stop.is_set():
                raise Stopped
            self._tables[k], self._made = table, {}


def _weight(cell: Cell) -> int:
    return len(cell.replicas) * len(cell.epsilons)


def _name(cell: Cell) -> str:
    """Cells that behave alike: the same run but for its seeds."""
    return repr((cell.spec, cell.epsilons))
