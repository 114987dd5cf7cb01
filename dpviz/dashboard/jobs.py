"""Long work in the background: it streams, can be cancelled, survives page switches, and resumes from finished cells.

Every job starts at once. One that is still at work after `LIGHT` seconds is heavy and needs one of `HEAVY` places; the
others wait in the order in which they became heavy, in the middle of what they were doing. Heavy jobs step aside while
anybody waits for something small or for a page.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import streamlit as st

from dpviz.cells import Cell, CellStore
from dpviz.dashboard import cached
from dpviz.dashboard.job import Job, State, Status

HEAVY = 2
LIGHT = 2.0  # seconds of work
AT_ONCE = 8  # jobs at work or waiting in the middle of it; more of them wait for their start
KEPT = 24  # finished jobs in memory
ASIDE = 0.5  # longest step aside, in seconds, so that nothing starves

__all__ = ["Job", "Pool", "State", "Status", "pool"]


class Pool:
    """All jobs of one server."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._alive: list[Job] = []  # have a thread
        self._starting: list[Job] = []  # wait for one
        self._heavy: list[Job] = []
        self._line: list[Job] = []

    def knows(self, key: str) -> bool:
        """Whether there is a job with this key."""
        with self._turn:
            return key in self._jobs

    def submit(self, key: str, cells: Sequence[Cell], store: CellStore | None, who: str = "") -> Job:
        """The job with this key: the one that is there, or a new one.

        Args:
            who: the session that wants it; a job that nobody wants any more is stopped.
        """
        with self._turn:
            known = self._jobs.get(key)
            if known is not None:
                known.wanted_by.add(who)
                return known
            job = Job(key, cells, store, {who})
            self._jobs[key] = job
            self._starting.append(job)
            over = [k for k, other in self._jobs.items() if other not in self._alive and other not in self._starting]
            for k in over[: max(0, len(over) - KEPT)]:
                del self._jobs[k]
            self._start()
            return job

    def leave(self, job: Job, who: str) -> None:
        """A session wants something else; where it was the last one, the job is stopped and can be taken up later."""
        with self._turn:
            job.wanted_by.discard(who)
            unwanted = not job.wanted_by and not job.over
        if unwanted:
            self.again(job)

    def again(self, job: Job) -> None:
        """Forgets a job, so that it can be submitted anew; finished cells come from the store."""
        job.cancel()
        with self._turn:
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]
            if job in self._starting:
                self._starting.remove(job)
            self._turn.notify_all()

    def status(self, job: Job) -> Status:
        """How far a job is, and how many come before it."""
        with self._turn:
            if job in self._starting:
                ahead = len(self._line) + self._starting.index(job) + 1
            else:
                ahead = self._line.index(job) + 1 if job in self._line else 0
        return job.status(ahead)

    def gate(self, job: Job, worked: float) -> None:
        """Called by a job between two pieces of work: waits while it is not its turn.

        Args:
            worked: seconds that it has worked so far.
        """
        if worked < LIGHT:
            return
        with self._turn:
            if job not in self._heavy:
                self._line.append(job)
                try:
                    while not (self._line[0] is job and len(self._heavy) < HEAVY):
                        self._turn.wait(0.2)
                        job.check()
                    self._heavy.append(job)
                finally:
                    self._line.remove(job)
                    self._turn.notify_all()
        end = time.monotonic() + ASIDE
        while self._somebody_waits() and time.monotonic() < end:
            time.sleep(0.01)  # whoever waits does not know of the pool
            job.check()

    def _somebody_waits(self) -> bool:
        with self._turn:
            light = len(self._alive) - len(self._heavy) - len(self._line)
        return light > 0 or cached.somebody_waits()

    def finished(self, job: Job) -> None:
        """Called by a job when its thread ends."""
        with self._turn:
            for group in (self._alive, self._heavy):
                if job in group:
                    group.remove(job)
            self._start()
            self._turn.notify_all()

    def _start(self) -> None:
        self._starting = [job for job in self._starting if not job.cancelled]
        while self._starting and len(self._alive) < AT_ONCE:
            job = self._starting.pop(0)
            self._alive.append(job)
            # a daemon: the server can be stopped in the middle of the work
            threading.Thread(target=job.run, args=(self,), name="dpviz-job", daemon=True).start()


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """The server's jobs."""
    return Pool()
