"""Long work in the background: it streams, can be cancelled, and survives other clicks and page switches.

Every job starts at once. One that is still at work after `LIGHT` seconds is heavy and needs one of `HEAVY` places; the
others wait in the order in which they became heavy, in the middle of what they were doing. Heavy jobs step aside while
anybody waits for something small or for a page.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TypeVar

import streamlit as st

from dpviz.common import memory
from dpviz.dashboard.work import cached_runs
from dpviz.dashboard.work.job import Job
from dpviz.datasets.sources import uploads

J = TypeVar("J", bound=Job)

HEAVY = 2
LIGHT = 2.0  # seconds of work
AT_ONCE = 8  # jobs at work; more of them wait for their start, and heavy ones in the middle of what they do
KEPT = 64  # finished jobs in memory
ASIDE = 0.5  # longest step aside, in seconds, so that nothing starves

_ME = "dpviz.session"


class Pool:
    """All jobs of one server."""

    def __init__(self) -> None:
        self._turn = threading.Condition(threading.RLock())
        self._jobs: dict[str, Job] = {}
        self._alive: list[Job] = []  # have a thread
        self._starting: list[Job] = []  # wait for one
        self._heavy: list[Job] = []
        self._line: list[Job] = []
        memory.register(self)

    def find(self, key: str) -> Job | None:
        """The job with this key, if it was asked for before."""
        with self._turn:
            return self._jobs.get(key)

    def submit(self, job: Job, who: str = "") -> Job:
        """The job with this one's key: the one that is there, or this one, which starts.

        Args:
            who: the session that wants it; a job that nobody wants any more is stopped.
        """
        with self._turn:
            known = self._jobs.setdefault(job.key, job)
            known.wanted_by.add(who)
            if known is job:
                self._starting.append(job)
                self.tidy()
                self._start()
            return known

    def leave(self, job: Job, who: str) -> None:
        """A session wants something else; where it was the last one, the job is stopped and can be taken up later."""
        with self._turn:
            job.wanted_by.discard(who)
            unwanted = not job.wanted_by and not job.over
        if unwanted:
            self.again(job)

    def again(self, job: Job) -> None:
        """Forgets a job, so that it can be submitted anew; a sweep's finished cells come from the store."""
        job.cancel()
        with self._turn:
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]
            if job in self._starting:
                self._starting.remove(job)
            self._turn.notify_all()

    def ahead(self, job: Job) -> int:
        """How many come before a job, itself included; 0 where it is at work or over."""
        with self._turn:
            for queue in (self._line, self._starting):
                if job in queue:
                    return queue.index(job) + 1
        return 0

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
                self._start()
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
        return light > 0 or cached_runs.somebody_waits()

    def finished(self, job: Job) -> None:
        """Called by a job when its thread ends."""
        with self._turn:
            for group in (self._alive, self._heavy):
                if job in group:
                    group.remove(job)
            self._start()
            self._turn.notify_all()

    def clear(self) -> None:
        """Stops everything and forgets it."""
        with self._turn:
            for job in list(self._jobs.values()):
                self.again(job)

    def forget(self, owner: str) -> None:
        """Stops and forgets the jobs about a dataset that goes."""
        with self._turn:
            for job in [job for job in self._jobs.values() if job.dataset == owner]:
                self.again(job)

    def tidy(self) -> None:
        """Stops and forgets jobs about uploads that are gone, and forgets the oldest that are over."""
        with self._turn:
            for job in list(self._jobs.values()):
                if not uploads.there(job.dataset):
                    self.again(job)
            over = [job for job in self._jobs.values() if job not in self._alive and job not in self._starting]
            for job in over[: max(0, len(over) - KEPT)]:
                del self._jobs[job.key]

    def _start(self) -> None:
        self._starting = [job for job in self._starting if not job.cancelled]
        for job in list(self._starting):
            if len(self._alive) - len(self._line) >= AT_ONCE:
                return
            if job.line and any(other.line == job.line for other in self._alive):
                continue
            self._starting.remove(job)
            self._alive.append(job)
            # a daemon: the server can be stopped in the middle of the work
            threading.Thread(target=job.run, args=(self,), name="dpviz-job", daemon=True).start()


_pool = Pool()


def pool() -> Pool:
    """The server's jobs."""
    return _pool


def watch(job: J, place: str) -> J:
    """The job with this one's key, as the one that this session watches; what it watched before may stop.

    Args:
        place: session state key of what the session watches in this part of the app.
    """
    who = _me()
    known = _pool.submit(job, who)
    assert isinstance(known, type(job))
    before = st.session_state.get(place)
    if before is not None and before is not known:
        _pool.leave(before, who)
    st.session_state[place] = known
    return known


def _me() -> str:
    """This session's name among those that want jobs."""
    name: str = st.session_state.setdefault(_ME, uuid.uuid4().hex)
    return name
