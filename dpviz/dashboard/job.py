"""A job: cells computed one after the other in a thread, with progress, cancelling and partial results."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import pandas as pd

from dpviz.cells import Cell, CellStore, problems, seconds
from dpviz.validate import InvalidInput


class Gate(Protocol):
    """Who decides when a job may work."""

    def gate(self, job: Job, worked: float) -> None:
        """Called between two pieces of work; waits while it is not the job's turn."""

    def finished(self, job: Job) -> None:
        """Called when the job's thread ends."""


class State(StrEnum):
    """Where a job is."""

    QUEUED = "waiting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (State.DONE, State.CANCELLED)


class Cancelled(Exception):
    """Raised inside the work of a job that is not wanted any more."""


@dataclass(frozen=True)
class Status:
    """A job at one moment.

    Attributes:
        state: where it is.
        done: share of the work, in [0, 1].
        left: estimated seconds of work left, None where nothing is known yet.
        ahead: heavy jobs that come first, 0 where it is at work.
        version: grows with every finished cell.
        problems: what could not be computed: (cell index, epsilon, why).
        notices: what the store has to say.
    """

    state: State
    done: float
    left: float | None
    ahead: int
    version: int
    problems: tuple[tuple[int, float, InvalidInput], ...]
    notices: tuple[str, ...]


@dataclass(eq=False)
class Job:
    """Cells that are computed one after the other in a thread of their own.

    Attributes:
        key: equal keys are the same job, whoever asks.
        cells: the work, coarse picture first.
        store: where finished cells are kept; None measures them afresh.
        wanted_by: sessions that look at it.
    """

    key: str
    cells: Sequence[Cell]
    store: CellStore | None
    wanted_by: set[str] = field(default_factory=set)
    _cancel: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tables: dict[int, pd.DataFrame] = field(default_factory=dict)
    _state: State = State.QUEUED
    _share: float = 0.0  # of the cell at work
    _worked: float = 0.0  # seconds of work that was not in the store
    _since: float | None = None

    def cancel(self) -> None:
        """Stops the work at the next call of the monitor; finished cells stay."""
        self._cancel.set()
        with self._lock:
            if not self._state.over:
                self._state = State.CANCELLED

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled it; its thread may need a moment to notice."""
        return self._cancel.is_set()

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._state.over

    def tables(self) -> dict[int, pd.DataFrame]:
        """Finished cells' tables by index into `cells`."""
        with self._lock:
            return dict(self._tables)

    def seconds(self) -> dict[int, float]:
        """How long the cells took that were computed and not in the store, by index."""
        with self._lock:
            return dict(self._times)

    def table(self) -> pd.DataFrame:
        """All finished rows, cells in order."""
        parts = [part for _, part in sorted(self.tables().items()) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def status(self, ahead: int = 0) -> Status:
        """How far it is."""
        with self._lock:
            weights = [len(cell.replicas) * len(cell.epsilons) for cell in self.cells]
            finished = sum(weights[k] for k in self._tables)
            at_work = next((k for k in range(len(weights)) if k not in self._tables), None)
            partly = weights[at_work] * self._share if at_work is not None else 0.0
            found = [(k, e, p) for k, table in sorted(self._tables.items()) for e, p in self._problems[k]]
            return Status(
                self._state, (finished + partly) / max(sum(weights), 1), self._left(at_work), ahead, len(self._tables),
                tuple(found), tuple(self.store.notices if self.store else ()),
            )  # fmt: skip

    def __post_init__(self) -> None:
        self._problems: dict[int, list[tuple[float, InvalidInput]]] = {}
        self._times: dict[int, float] = {}

    def _left(self, at_work: int | None) -> float | None:
        """Seconds left: each mechanism at the pace that its own finished cells had, others at the mean pace."""
        if at_work is None or self._state.over:
            return None
        paces: dict[str, float] = {}
        for k, took in self._times.items():
            cell = self.cells[k]
            paces[_name(cell)] = took / (len(cell.replicas) * len(cell.epsilons))
        if not paces:
            return None
        mean = sum(paces.values()) / len(paces)
        open_ones = [k for k in range(len(self.cells)) if k not in self._tables]
        total = sum(
            paces.get(_name(self.cells[k]), mean) * len(self.cells[k].replicas) * len(self.cells[k].epsilons)
            * (1 - self._share if k == at_work else 1)
            for k in open_ones
        )  # fmt: skip
        return float(total)

    def run(self, pool: Gate) -> None:
        """The work; called in the job's thread."""
        try:
            self._work(pool)
        except Cancelled:
            with self._lock:
                self._state = State.CANCELLED
        finally:
            pool.finished(self)

    def _work(self, pool: Gate) -> None:
        failed: set[str] = set()
        todo = []
        for k, cell in enumerate(self.cells):  # what is on disk comes first, all of it
            self.check()
            known = self.store.get(cell) if self.store else None
            if known is None:
                todo.append(k)
            else:
                self._finish(k, known)
        with self._lock:
            self._state = State.RUNNING
        for k in todo:
            cell = self.cells[k]
            if _name(cell) in failed:
                self._finish(k, pd.DataFrame())
                continue
            self._share, self._since = 0.0, time.monotonic()

            def monitor(done: float) -> None:
                self._share = min(max(done, 0.0), 1.0)
                now = time.monotonic()
                self._worked += now - (self._since or now)
                self.check()
                pool.gate(self, self._worked)
                self._since = time.monotonic()

            monitor(0.0)
            try:
                table = cell.attempt(monitor)
            except (Cancelled, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                logging.getLogger(__name__).exception("cell failed: %s", cell)
                why = "needs more memory than there is" if isinstance(error, MemoryError) else str(error) or type(error).__name__
                table = pd.DataFrame()
                table.attrs["problems"] = [
                    [e, cell.spec.mechanism, f"could not be computed: {why}", "Leave it out."] for e in cell.epsilons
                ]
                self._finish(k, table)
                failed.add(_name(cell))
                continue
            monitor(1.0)
            if self.store:
                self.store.put(cell, table)
            self._times[k] = seconds(table)
            self._finish(k, table)
            if not len(table):
                failed.add(_name(cell))
        with self._lock:
            self._state = State.DONE

    def _finish(self, k: int, table: pd.DataFrame) -> None:
        with self._lock:
            self._share = 0.0
            self._tables[k] = table
            self._problems[k] = problems(table)

    def check(self) -> None:
        """
        Raises:
            Cancelled: the job is not wanted any more.
        """
        if self._cancel.is_set():
            raise Cancelled


def _name(cell: Cell) -> str:
    """Cells that behave alike: the same run but for its seeds."""
    return f"{cell.spec.dataset} {cell.spec.mechanism} {sorted(cell.spec.params.items())} {cell.spec.lam}"
