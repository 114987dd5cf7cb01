"""A job: work in a thread of its own that is named, watched, stopped between two pieces of work, and taken up again."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor

T = TypeVar("T")
Stream = Callable[[Monitor], Iterator[T]]

NICE = 10  # added to the number by which the system lets others go first


class State(StrEnum):
    """The state of a job."""

    QUEUED = "waiting"
    RUNNING = "running"
    PAUSED = "paused"  # no session watches it
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """True where nothing more will come, unless a session asks to go on."""
        return self in (State.DONE, State.CANCELLED, State.FAILED)

    @property
    def stopped(self) -> bool:
        """True where it is in the middle of its work, and a session may ask to go on."""
        return self in (State.PAUSED, State.CANCELLED)


class Gate(Protocol):
    """The pool as a job sees it: it decides when the job may work."""

    def gate(self, job: Job[Any], worked: float) -> None:
        """Called between two pieces of work; waits while it is not the job's turn."""

    def finished(self, job: Job[Any]) -> None:
        """Called when the job's thread ends."""


class Stopped(Exception):
    """Raised inside the work of a job that is paused or cancelled."""


@dataclass(frozen=True)
class Status:
    """A job at one moment.

    Attributes:
        state: where it is.
        done: share of the work, in [0, 1].
        left: estimated seconds of work left, None where nothing is known yet.
        position: its place among those that wait, from 1; 0 where it does not wait.
    """

    state: State
    done: float
    left: float | None
    position: int


def _give_way() -> None:
    """Lets this thread, and those that it starts, wait for a processor while a page needs one."""
    if sys.platform == "linux":  # where a thread has a priority of its own
        os.nice(NICE)


class Job(Generic[T]):
    """Work that a pool gives a thread; its results come one after the other, and the last one stands.

    Attributes:
        key: equal keys are the same job, whichever session asks.
        doing: what it computes, for people.
        dataset: what the work learns from; the job goes when the dataset goes. "" where it belongs to no session.
        series: jobs of one series are done one after the other; "" is no series.
        kept: whether the pool keeps it when it is done; where not, a cache has its result, and the page that asked for it.
        of: what the result is of, for those who draw it when something else was asked for since.
        watchers: sessions that want it; it is paused where none of them is there.
        declined: sessions that cancelled it. Where others want it, it goes on for them.
        results: what was yielded; only the last one where `keep_all` is false.
        problem: (cause, fix) where it failed.
    """

    def __init__(
        self,
        key: str,
        stream: Stream[T] | None,
        *,
        doing: str = "",
        dataset: str = "",
        series: str = "",
        keep_all: bool = False,
        kept: bool = True,
        of: Any = None,
    ) -> None:
        self.key, self.doing, self.dataset, self.series, self.kept, self.of = key, doing, dataset, series, kept, of
        self._stream, self._keep_all = stream, keep_all
        self.results: list[T] = []
        self.problem: tuple[str, str] | None = None
        self.watchers: set[str] = set()
        self.declined: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._stop = False
        self._state = State.QUEUED
        self._share = 0.0  # of the work, or of the part of it that the monitor speaks of
        self._worked = 0.0  # seconds, without those in which it was not its turn
        self._before = 0.0  # of these, those before the work was taken up again
        self._since = time.monotonic()

    def work(self, monitor: Monitor) -> State:
        """Does it, or what is left of it where it was stopped before, and says how it ended.

        A stream that was stopped starts from the beginning.

        Args:
            monitor: called between two pieces of work; raises `Stopped` where no more is wanted.
        """
        stream, first = self._stream, True
        assert stream is not None
        with Boundary(f"the job {self.key}", through=(Stopped,)) as work:
            for result in stream(monitor):
                with self._lock:  # its data may go between the two
                    self.check()
                    self.results = [*self.results, result] if self._keep_all and not first else [result]
                if not first:  # most have one result, and are over with it: they must not wait for their turn once more
                    monitor(self._share)
                first = False
        self._stream = None  # it may hold a person's data and is not needed again
        self.problem = work.problem("Choose fewer rows, draws or trainings.", "Change a setting; the others still work.")
        return State.DONE if self.problem is None else State.FAILED

    @property
    def done(self) -> float:
        """Share of the work, in [0, 1]."""
        return 1.0 if self.state is State.DONE else self._share

    def status(self, position: int = 0) -> Status:
        """Its progress."""
        left = None if self._share < 0.03 or self.over else (self._worked - self._before) * (1 - self._share) / self._share
        return Status(self.state, self.done, left, position)

    def discard(self) -> None:
        """Lets go of what it has found and of what that is made from: the data that it was learned from goes."""
        with self._lock:
            self._stop, self.results, self._stream = True, [], None
            self._set(State.FAILED)

    def finish(self, result: T) -> None:
        """Ends it before it starts, with a result that was there."""
        self.results = [result]
        self._set(State.DONE)

    @property
    def state(self) -> State:
        """Its state."""
        return self._state

    @property
    def over(self) -> bool:
        """True where nothing more will come."""
        return self._state.over

    @property
    def worked(self) -> float:
        """Seconds that it has worked."""
        return self._worked

    def wait(self, seconds: float) -> bool:
        """Waits for the end, so long at most; returns whether it has come."""
        return self._over.wait(seconds)

    def stop(self, state: State) -> None:
        """Stops the work at the next call of the monitor; what it has found stays.

        Args:
            state: PAUSED or CANCELLED; shown at once.
        """
        with self._lock:
            if not self._state.over:
                self._stop = True
                self._set(state)

    def resume(self) -> None:
        """Takes up work that was stopped; the pool then gives it a thread."""
        with self._lock:
            if self._state.stopped:
                self._stop = False
                self._set(State.QUEUED)

    def check(self) -> None:
        """
        Raises:
            Stopped: the job is not wanted now.
        """
        if self._stop:
            raise Stopped

    def run(self, pool: Gate) -> None:
        """The work; called in the job's thread."""

        def monitor(share: float) -> None:
            self._share = min(max(share, 0.0), 1.0)
            self._worked += time.monotonic() - self._since
            self.check()
            pool.gate(self, self._worked)
            self._running()
            self._since = time.monotonic()

        _give_way()
        self._share, self._before = 0.0, self._worked
        end: State | None = State.FAILED
        try:
            self.check()
            self._running()
            self._since = time.monotonic()
            end = self.work(monitor)
        except Stopped:
            end = None
        finally:
            with self._lock:
                if end is not None and self._state is not State.FAILED:  # else it was discarded
                    self._set(end)
            pool.finished(self)

    def _running(self) -> None:
        with self._lock:
            if self._state is State.QUEUED:
                self._set(State.RUNNING)

    def _set(self, state: State) -> None:
        self._state = state
        if state.over:
            self._over.set()
        else:
            self._over.clear()
