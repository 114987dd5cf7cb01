"""A job: work in a thread of its own that is named, watched, and stopped at its next sign of life."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dpviz.common.progress import Monitor


class State(StrEnum):
    """Where a job is."""

    QUEUED = "waiting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self in (State.DONE, State.CANCELLED, State.FAILED)


class Gate(Protocol):
    """Who decides when a job may work."""

    def gate(self, job: Job, worked: float) -> None:
        """Called between two pieces of work; waits while it is not the job's turn."""

    def finished(self, job: Job) -> None:
        """Called when the job's thread ends."""


class Cancelled(Exception):
    """Raised inside the work of a job that is not wanted any more."""


@dataclass(frozen=True)
class Status:
    """A job at one moment.

    Attributes:
        state: where it is.
        done: share of the work, in [0, 1].
        left: estimated seconds of work left, None where nothing is known yet.
        ahead: jobs that come first, 0 where it is at work.
    """

    state: State
    done: float
    left: float | None
    ahead: int


class Job(ABC):
    """Work that a pool gives a thread.

    Attributes:
        key: equal keys are the same job, whoever asks.
        dataset: what the work learns from; a finished job goes when the dataset goes. "" where it is nobody's.
        line: jobs of one line are done one after the other; "" is no line.
        wanted_by: sessions that look at it.
    """

    def __init__(self, key: str, *, dataset: str = "", line: str = "") -> None:
        self.key, self.dataset, self.line = key, dataset, line
        self.wanted_by: set[str] = set()
        self._lock = threading.Lock()
        self._cancel, self._over = threading.Event(), threading.Event()
        self._state = State.QUEUED
        self._share = 0.0  # of the work, or of the part of it that the monitor speaks of
        self._worked = 0.0  # seconds, without those in which it was not its turn
        self._since = time.monotonic()

    @abstractmethod
    def work(self, monitor: Monitor) -> State:
        """Does it, and says how it ended.

        Args:
            monitor: called between two pieces of work; raises `Cancelled` where no more is wanted.
        """

    @abstractmethod
    def status(self, ahead: int = 0) -> Status:
        """How far it is."""

    @property
    def state(self) -> State:
        """Where it is."""
        return self._state

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._state.over

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled it; its thread may need a moment to notice."""
        return self._cancel.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits for the end, so long at most; returns whether it has come."""
        return self._over.wait(seconds)

    def cancel(self) -> None:
        """Stops the work at the next call of the monitor; what it has found stays."""
        self._cancel.set()
        self._become(State.CANCELLED)

    def check(self) -> None:
        """
        Raises:
            Cancelled: the job is not wanted any more.
        """
        if self._cancel.is_set():
            raise Cancelled

    def run(self, pool: Gate) -> None:
        """The work; called in the job's thread."""

        def monitor(done: float) -> None:
            self._share = min(max(done, 0.0), 1.0)
            self._worked += time.monotonic() - self._since
            self.check()
            pool.gate(self, self._worked)
            self._since = time.monotonic()

        end = State.CANCELLED
        try:
            self.check()
            self._become(State.RUNNING)
            self._since = time.monotonic()
            end = self.work(monitor)
        except Cancelled:
            pass
        finally:
            self._become(end)
            pool.finished(self)

    def _become(self, state: State) -> None:
        with self._lock:
            if not self._state.over:
                self._state = state
            if self._state.over:
                self._over.set()
