"""A job: work that streams results in a thread of a pool, says how far it is, is cancelled, and is taken up again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor
from dpviz.dashboard.jobs.page_priority import StepAside

T = TypeVar("T")
Stream = Callable[[Monitor], Iterator[T]]


class State(StrEnum):
    """The state of a job."""

    QUEUED = "waiting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"  # what it has found stays, and a session may ask to go on
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """True where nothing more will come, unless a session asks to go on."""
        return self in (State.DONE, State.CANCELLED, State.FAILED)


class Stopped(Exception):
    """Raised inside the work of a job that is cancelled."""


@dataclass(frozen=True)
class Status:
    """A job at one moment.

    Attributes:
        state: where it is.
        done: share of the work, in [0, 1].
        left: estimated seconds of work left, None where nothing is known yet.
    """

    state: State
    done: float
    left: float | None


class Job(Generic[T]):
    """Work for a pool; its results come one after the other, and the last one stands.

    Attributes:
        key: equal keys are the same job, whichever session asks.
        doing: what it computes, for people.
        dataset: what the work learns from; the job goes when the dataset goes. "" where it belongs to no session.
        short: whether a page waits for it: it does not stand in line behind long work.
        kept: whether the pool keeps it when it is done; where not, a cache has its result, and the page that asked for it.
        of: what the result is of, for those who draw it when something else was asked for since.
        watchers: sessions that want it; it is cancelled when none is left.
        declined: sessions that cancelled it. Where others want it, it goes on for them.
        results: what was yielded last; none before.
        problem: (cause, fix) where it failed.
    """

    def __init__(
        self,
        key: str,
        stream: Stream[T] | None,
        *,
        doing: str = "",
        dataset: str = "",
        short: bool = False,
        kept: bool = True,
        of: Any = None,
    ) -> None:
        self.key, self.doing, self.dataset, self.short, self.kept, self.of = key, doing, dataset, short, kept, of
        self._stream = stream
        self.results: list[T] = []
        self.problem: tuple[str, str] | None = None
        self.watchers: set[str] = set()
        self.declined: set[str] = set()
        self.future: Future[None] | None = None  # of its thread
        self._lock = threading.Lock()
        self._over, self._stop = threading.Event(), threading.Event()
        self._state = State.QUEUED
        self._share, self._since = 0.0, 0.0  # done of the work, and when it began

    def work(self, monitor: Monitor, stop: threading.Event) -> None:
        """Does the work, or what is left of it where it was cancelled before; a stream starts from the beginning.

        Args:
            monitor: receives progress; raises `Stopped` where no more is wanted.
            stop: set where no more is wanted.
        """
        stream = self._stream
        assert stream is not None
        for result in stream(monitor):
            with self._lock:  # its data may go between the two
                if stop.is_set():
                    raise Stopped
                self.results = [result]

    def run(self, stop: threading.Event) -> None:
        """Works in a pool's thread until the work ends or `stop` is set."""

        step_aside = StepAside()

        def monitor(share: float) -> None:
            step_aside(stop.is_set)
            if stop.is_set():
                raise Stopped
            self._share = min(max(share, 0.0), 1.0)

        with self._lock:
            if stop.is_set():
                return
            self._set(State.RUNNING)
            self._share, self._since = 0.0, time.monotonic()
        try:
            with Boundary(f"the job {self.key}", through=(Stopped,)) as work:
                self.work(monitor, stop)
        except Stopped:
            return
        with self._lock:
            if not stop.is_set():
                self.problem = work.problem("Choose fewer rows, draws or trainings.", "Change a setting; the others still work.")
                self._stream = None  # it may hold a person's data and is not needed again
                self._set(State.DONE if self.problem is None else State.FAILED)

    def status(self) -> Status:
        """Its progress."""
        known = self._state is State.RUNNING and self._share >= 0.03
        left = (time.monotonic() - self._since) * (1 - self._share) / self._share if known else None
        return Status(self.state, self.done, left)

    @property
    def done(self) -> float:
        """Share of the work, in [0, 1]."""
        return 1.0 if self.state is State.DONE else self._share

    @property
    def state(self) -> State:
        """Its state."""
        return self._state

    @property
    def over(self) -> bool:
        """True where nothing more will come."""
        return self.state.over

    def wait(self, seconds: float) -> bool:
        """Waits for the end, so long at most; returns whether it has come."""
        return self._over.wait(seconds)

    def begin(self) -> threading.Event:
        """Queues it, for the first time or again; returns the event that will stop this attempt."""
        with self._lock:
            self._stop = threading.Event()
            self._set(State.QUEUED)
            return self._stop

    def cancel(self) -> None:
        """Stops the work at the next call of the monitor; shown at once. What it has found stays."""
        with self._lock:
            if not self._state.over:
                self._end(State.CANCELLED)

    def discard(self) -> None:
        """Lets go of what it has found and of what that is made from: the data that it was learned from goes."""
        with self._lock:
            self.results, self._stream = [], None
            self._end(State.FAILED)

    def finish(self, result: T) -> None:
        """Ends it before it starts, with a result that was there."""
        self.results = [result]
        self._set(State.DONE)

    def _end(self, state: State) -> None:
        self._stop.set()
        if self.future is not None:
            self.future.cancel()
        self._set(state)

    def _set(self, state: State) -> None:
        self._state = state
        if state.over:
            self._over.set()
        else:
            self._over.clear()
