"""Work beside the pages: one pool of jobs for all sessions, free of streamlit.

Long work is done in order. Short work, for which a page waits, has threads of its own: behind two sweeps every page would stand
still. Jobs side by side have one processor each, and step aside while a page is drawn: more threads at once would only wait for
the interpreter, and pages with them (benchmarks/sessions.py). A job that no session watches any more is cancelled; it goes on, or
starts again, when a session asks for it.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakSet

from dpviz.common import memory, threads
from dpviz.dashboard.jobs.job import Job, State

KEPT = 64  # jobs in memory that are over
WIDTH = max(1, threads.processors() // 2)  # threads for short work, and as many for long work
THREADS = "dpviz-job"  # the beginning of their names


class Pool:
    """All jobs of one server."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._jobs: dict[str, Job[Any]] = {}
        self._known: WeakSet[Job[Any]] = WeakSet()  # also those that are forgotten here and held by a session
        self._long, self._short = (ThreadPoolExecutor(WIDTH, THREADS) for _ in range(2))
        memory.register(self)

    def find(self, key: str) -> Job[Any] | None:
        """The job with this key, if it was asked for before."""
        with self._lock:
            return self._jobs.get(key)

    def submit(self, job: Job[Any], who: str = "") -> Job[Any]:
        """The job with this one's key: the one that is there, or this one, which starts.

        Args:
            who: the session that wants it. A job that it has cancelled stays so; one that was stopped for lack of
                others who want it goes on.
        """
        with self._lock:
            self._known.add(job)
            if job.state is State.DONE:
                return job
            entry = self._jobs.setdefault(job.key, job)
            if who not in entry.declined:
                entry.watchers.add(who)
                if entry.future is None or entry.state is State.CANCELLED:
                    executor = self._short if entry.short else self._long
                    entry.future = executor.submit(self._run, entry, entry.begin())
            idle = [one for one in self._jobs.values() if one.over]
            for one in idle[: max(0, len(idle) - KEPT)]:
                del self._jobs[one.key]
            return entry

    def cancel(self, job: Job[Any], who: str = "") -> None:
        """A session wants a job no more; where it was the last one, the job is stopped. What was found stays."""
        with self._lock:
            job.declined.add(who)
            self.leave(job, who)

    def go_on(self, job: Job[Any], who: str = "") -> None:
        """A session that has cancelled a job wants it after all."""
        with self._lock:
            job.declined.discard(who)
            self.submit(job, who)

    def leave(self, job: Job[Any], who: str) -> None:
        """A session wants something else; where it was the last one, the job is stopped."""
        with self._lock:
            job.watchers.discard(who)
            if not job.watchers:
                job.cancel()

    def leave_all(self, who: str) -> None:
        """A session has ended."""
        with self._lock:
            for job in self.jobs():
                job.declined.discard(who)
                self.leave(job, who)

    def remove(self, job: Job[Any]) -> None:
        """Stops and forgets a job, so that it can be submitted anew; a sweep's finished cells come from the store."""
        with self._lock:
            job.cancel()
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]

    def jobs(self) -> list[Job[Any]]:
        """All jobs that are known."""
        with self._lock:
            return list(self._jobs.values())

    @property
    def busy(self) -> int:
        """Number of jobs at work or waiting."""
        with self._lock:
            return sum(not job.over for job in self._jobs.values())

    def clear(self) -> None:
        """Stops everything and forgets it."""
        for job in self.jobs():
            self.remove(job)

    def forget(self, owner: str) -> None:
        """Stops and forgets the jobs about a dataset that goes, and what they have found."""
        with self._lock:
            for job in [job for job in self._known if job.dataset == owner]:
                self.remove(job)
                job.discard()  # sessions may hold it for longer

    def _run(self, job: Job[Any], stop: threading.Event) -> None:
        with threads.one_thread(when=self.busy > 1):
            job.run(stop)
        with self._lock:
            if job.state is State.DONE and not job.kept and self._jobs.get(job.key) is job:
                del self._jobs[job.key]


_pool = Pool()


def pool() -> Pool:
    """The server's jobs."""
    return _pool
