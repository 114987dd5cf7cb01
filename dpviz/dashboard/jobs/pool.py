"""Long work in the background: one pool of jobs, free of streamlit.

Every job starts at once. One that is still at work after `LIGHT` seconds is heavy and needs one of `HEAVY` places; the
others wait in the middle of what they were doing. A place is given up after `SLICE` seconds of work where others wait. The
next one comes from the session that holds the fewest places and has waited longest; among the jobs of one session it is the
one that has worked least, so short ones come before long ones. Heavy jobs step aside while a session waits for something small
or for a page.

A job that none of its sessions watches any more is paused: its thread ends, what it has found stays, and it goes on when
a session asks for it.
"""

import threading
import time
from collections.abc import Collection
from typing import Any
from weakref import WeakSet

from dpviz.common import memory
from dpviz.dashboard.jobs import page_priority
from dpviz.dashboard.jobs.job import Job, State
from dpviz.datasets.sources import uploads

HEAVY = 2
LIGHT = 2.0  # seconds of work
SLICE = 3.0  # seconds of work after which a place is given up where others wait
AT_ONCE = 8  # jobs at work; more of them wait for their start, and heavy ones in the middle of what they do
KEPT = 64  # jobs in memory that are over or paused
ASIDE = 0.5  # longest step aside, in seconds, so that nothing starves
STEP = 0.04  # seconds between two looks whether a session still waits


class Pool:
    """All jobs of one server."""

    def __init__(self) -> None:
        self._turn = threading.Condition(threading.RLock())
        self._jobs: dict[str, Job[Any]] = {}
        self._known: WeakSet[Job[Any]] = WeakSet()  # also those that are forgotten here and held by a session
        self._alive: list[Job[Any]] = []  # have a thread
        self._starting: list[Job[Any]] = []  # wait for one
        self._heavy: dict[Job[Any], float] = {}  # hold a place, with the seconds that they had worked when they got it
        self._waiting: list[Job[Any]] = []  # wait for a place
        self._served: dict[str, float] = {}  # when a session last had a place
        memory.register(self)

    def find(self, key: str) -> Job[Any] | None:
        """The job with this key, if it was asked for before."""
        with self._turn:
            return self._jobs.get(key)

    def submit(self, job: Job[Any], who: str = "") -> Job[Any]:
        """The job with this one's key: the one that is there, or this one, which starts.

        Args:
            who: the session that wants it. A job that it has cancelled stays so; one that was stopped for lack of
                others who want it goes on.
        """
        with self._turn:
            self._known.add(job)
            if job.state is State.DONE:
                return job
            entry = self._jobs.setdefault(job.key, job)
            if who not in entry.declined:
                entry.watchers.add(who)
                entry.resume()
            self._queue(entry)
            self._tidy()
            self._start()
            return entry

    def cancel(self, job: Job[Any], who: str = "") -> None:
        """A session wants a job no more; where it was the last one, the job is stopped. What was found stays."""
        with self._turn:
            job.watchers.discard(who)
            job.declined.add(who)
            if not job.watchers:
                self._stop(job, State.CANCELLED)

    def go_on(self, job: Job[Any], who: str = "") -> None:
        """A session that has cancelled a job wants it after all."""
        with self._turn:
            job.declined.discard(who)
            self.submit(job, who)

    def leave(self, job: Job[Any], who: str) -> None:
        """A session wants something else; where it was the last one, the job is paused."""
        with self._turn:
            job.watchers.discard(who)
            if not job.watchers:
                self._stop(job, State.PAUSED)

    def leave_all(self, who: str) -> None:
        """A session has ended."""
        with self._turn:
            self._served.pop(who, None)
            for job in list(self._jobs.values()):
                job.declined.discard(who)
                if who in job.watchers:
                    self.leave(job, who)

    def set_absent(self, sessions: Collection[str]) -> None:
        """Says which sessions are disconnected: jobs that only they watch are paused, others go on."""
        absent = frozenset(sessions)
        with self._turn:
            for job in list(self._jobs.values()):
                if not job.watchers - absent:
                    self._stop(job, State.PAUSED)
                elif job.state is State.PAUSED:
                    job.resume()
                    self._queue(job)
            self._start()

    def remove(self, job: Job[Any]) -> None:
        """Stops and forgets a job, so that it can be submitted anew; a sweep's finished cells come from the store."""
        with self._turn:
            job.stop(State.CANCELLED)
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]
            self._stop(job, State.CANCELLED)

    def jobs(self) -> list[Job[Any]]:
        """All jobs that are known."""
        with self._turn:
            return list(self._jobs.values())

    @property
    def busy(self) -> int:
        """Number of jobs at work."""
        with self._turn:
            return len(self._alive)

    def position(self, job: Job[Any]) -> int:
        """Place of a job among those that wait for a start or for one of the heavy places, from 1; 0 where it does not."""
        with self._turn:
            if job in self._waiting:
                return sorted(self._waiting, key=self._rank).index(job) + 1
            return sorted(self._starting, key=self._order).index(job) + 1 if job in self._starting else 0

    def gate(self, job: Job[Any], worked: float) -> None:
        """Called by a job between two pieces of work: waits while it is not its turn.

        Args:
            worked: seconds that it has worked so far.
        """
        if worked < LIGHT:
            return
        with self._turn:
            if job not in self._heavy:
                self._take_place(job, worked)
            elif self._waiting and worked - self._heavy[job] >= SLICE:
                self._give_back(job)
                self._take_place(job, worked)
        end = time.monotonic() + ASIDE
        while self._page_waits() and time.monotonic() < end:
            time.sleep(STEP)  # what a page waits for does not know of the pool
            job.check()

    def finished(self, job: Job[Any]) -> None:
        """Called by a job when its thread ends."""
        with self._turn:
            if job in self._alive:
                self._alive.remove(job)
            self._give_back(job)
            if self._jobs.get(job.key) is job:
                self._queue(job)  # it was taken up again while it was stopping
                if job.state is State.DONE and not job.kept:
                    del self._jobs[job.key]
            self._start()
            self._turn.notify_all()

    def clear(self) -> None:
        """Stops everything and forgets it."""
        with self._turn:
            for job in list(self._jobs.values()):
                self.remove(job)

    def forget(self, owner: str) -> None:
        """Stops and forgets the jobs about a dataset that goes, and what they have found."""
        with self._turn:
            gone = [job for job in self._known if job.dataset == owner]
            for job in gone:
                self.remove(job)
        for job in gone:
            job.discard()  # sessions may hold it for longer

    def tidy(self) -> None:
        """Stops and forgets jobs about uploads that are gone, and forgets the oldest that are over or paused."""
        with self._turn:
            self._tidy()

    def _tidy(self) -> None:
        for owner in {job.dataset for job in self._known if not uploads.there(job.dataset)}:
            self.forget(owner)
        idle = [job for job in self._jobs.values() if job not in self._alive and job not in self._starting]
        for job in idle[: max(0, len(idle) - KEPT)]:
            del self._jobs[job.key]

    def _stop(self, job: Job[Any], state: State) -> None:
        job.stop(state)
        if job in self._starting:
            self._starting.remove(job)
        self._turn.notify_all()

    def _queue(self, job: Job[Any]) -> None:
        if job.state is State.QUEUED and job not in self._alive and job not in self._starting:
            self._starting.append(job)

    def _start(self) -> None:
        """Gives threads to jobs that wait for one."""
        while len(self._alive) - len(self._waiting) < AT_ONCE:
            busy = {job.series for job in self._alive if job.series}
            ready = [job for job in self._starting if job.series not in busy]
            if not ready:
                return
            job = min(ready, key=self._order)
            self._starting.remove(job)
            self._alive.append(job)
            # a daemon: the server can be stopped in the middle of the work
            threading.Thread(target=job.run, args=(self,), name="dpviz-job", daemon=True).start()

    def _take_place(self, job: Job[Any], worked: float) -> None:
        self._waiting.append(job)
        self._start()
        try:
            while not (len(self._heavy) < HEAVY and min(self._waiting, key=self._rank) is job):
                self._turn.wait(0.5)
                job.check()
            self._heavy[job] = worked
            self._mark(job)
        finally:
            self._waiting.remove(job)
            self._turn.notify_all()

    def _give_back(self, job: Job[Any]) -> None:
        if self._heavy.pop(job, None) is not None:
            self._mark(job)
            self._turn.notify_all()

    def _mark(self, job: Job[Any]) -> None:
        for who in job.watchers:
            self._served[who] = time.monotonic()

    def _order(self, job: Job[Any]) -> int:
        """Smaller starts first: sessions with the fewest jobs at work."""
        return self._fewest(job, self._alive)

    def _rank(self, job: Job[Any]) -> tuple[int, float, float]:
        """Smaller comes first: places of its session, when that last had one, and how long the job has worked."""
        last_served = min((self._served.get(who, 0.0) for who in job.watchers), default=0.0)
        return self._fewest(job, self._heavy), last_served, job.worked

    def _fewest(self, job: Job[Any], jobs: Collection[Job[Any]]) -> int:
        """Number of these jobs that a session watches, for that one of the job's sessions that watches fewest."""
        return min((sum(who in other.watchers for other in jobs) for who in job.watchers), default=0)

    def _page_waits(self) -> bool:
        with self._turn:
            light = [job for job in self._alive if job not in self._heavy and job not in self._waiting]
        return bool(light) or page_priority.page_waits()


_pool = Pool()


def pool() -> Pool:
    """The server's jobs."""
    return _pool
