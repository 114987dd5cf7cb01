"""Jobs in their pool: the queue of heavy ones, places that sessions share, pauses, and words for whatever fails."""

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import LIMIT, until
from support_jobs import Slow, released, start, state_of

import dpviz
from dpviz.common.progress import Monitor
from dpviz.dashboard.jobs import page_priority, watching
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs.job import NICE, Job, State
from dpviz.datasets.sources import uploads
from dpviz.experiments.sweeps.sweep import SweepSpec


def test_at_most_two_heavy_jobs_and_places_in_the_queue(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    monkeypatch.setattr(jobs, "SLICE", LIMIT)
    four = [start(pool, key) for key in "abcd"]
    until(lambda: sorted(state_of(pool, job).position for job in four) == [0, 0, 1, 2])
    waiting = sorted(four, key=lambda job: state_of(pool, job).position)
    pool.cancel(waiting[2], "me")
    until(lambda: state_of(pool, waiting[3]).position == 1)
    pool.cancel(waiting[0], "me")
    until(lambda: state_of(pool, waiting[3]).position == 0)
    slow.go.set()
    until(lambda: all(job.over for job in four))
    assert [job.status().state for job in waiting] == [State.CANCELLED, State.DONE, State.CANCELLED, State.DONE]


def test_small_jobs_never_wait_behind_heavy_ones(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.02)
    monkeypatch.setattr(jobs, "SLICE", LIMIT)
    heavy = [start(pool, key) for key in "abc"]
    until(lambda: sorted(state_of(pool, job).position for job in heavy) == [0, 0, 1])
    monkeypatch.setattr(jobs, "LIGHT", LIMIT)  # what comes now stays light
    small = start(pool, "small")
    until(lambda: small in pool._alive)
    assert state_of(pool, small).position == 0
    slow.go.set()
    until(lambda: small.over and all(job.over for job in heavy))


def test_a_job_with_its_only_result_does_not_wait_for_a_place(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    monkeypatch.setattr(jobs, "SLICE", LIMIT)
    heavy = [start(pool, key) for key in "ab"]
    until(lambda: len(pool._heavy) == jobs.HEAVY)
    last = pool.submit(Job("last", lambda monitor: iter(["result"])), "me")
    until(lambda: last.over)
    assert not any(job.over for job in heavy), "the control: the places are taken"
    slow.go.set()
    until(lambda: all(job.over for job in heavy))


def test_what_nobody_wants_any_more_is_paused(slow: Slow, pool: jobs.Pool) -> None:
    job = start(pool, who="ann")
    assert start(pool, who="bob") is job
    pool.leave(job, "ann")
    assert job.state is not State.PAUSED
    pool.leave(job, "bob")
    assert job.state is State.PAUSED
    until(lambda: not pool._alive)
    assert start(pool, who="carl") is job
    until(lambda: job.state is State.RUNNING)
    slow.go.set()
    until(lambda: job.over)
    assert job.state is State.DONE


def test_work_is_paused_while_everybody_who_wants_it_is_away_and_goes_on_when_somebody_is_back(
    slow: Slow, pool: jobs.Pool
) -> None:
    job = start(pool, who="ann")
    start(pool, who="bob")
    until(lambda: job.state is State.RUNNING)
    pool.set_absent({"ann"})
    assert job.state is State.RUNNING
    pool.set_absent({"ann", "bob"})
    assert job.state is State.PAUSED
    until(lambda: not pool._alive)
    pool.set_absent({"ann"})
    until(lambda: job.state is State.RUNNING)
    pool.leave_all("bob")
    pool.set_absent({"ann"})
    assert job.state is State.PAUSED
    pool.leave_all("ann")
    until(lambda: not pool._alive)
    assert pool.find("a") is job, "its cells stay"


def test_cancelling_takes_ones_own_interest_away_and_nobody_elses(slow: Slow, pool: jobs.Pool) -> None:
    job = start(pool, who="ann")
    start(pool, who="bob")
    pool.cancel(job, "ann")
    assert not job.over
    assert start(pool, who="ann") is job
    assert job.watchers == {"bob"}, "who has cancelled it does not want it again by looking"
    pool.go_on(job, "ann")
    assert job.watchers == {"ann", "bob"}
    pool.cancel(job, "ann")
    pool.cancel(job, "bob")
    assert job.state is State.CANCELLED
    until(lambda: not pool._alive)
    assert start(pool, who="carl") is job, "another session asks for it"
    slow.go.set()
    until(lambda: job.over)
    assert job.state is State.DONE


def test_places_are_shared_by_sessions_and_a_short_job_comes_before_a_long_one(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    monkeypatch.setattr(jobs, "SLICE", 0.05)
    monkeypatch.setattr(jobs, "ASIDE", 0.0)
    greedy = [start(pool, f"ann {k}", who="ann") for k in range(4)]
    until(lambda: len(pool._heavy) == 2 and len(pool._waiting) == 2)
    modest = start(pool, "bob", who="bob")
    until(lambda: modest in pool._heavy)
    before = sum(job.worked for job in greedy), modest.worked

    def share() -> float:
        """Of all seconds since then, those of the single job; one of five would be a fifth."""
        others, own = sum(job.worked for job in greedy) - before[0], modest.worked - before[1]
        return own / (others + own) if own > 0.3 else 0.0  # on a busy machine a thread in its place may wait for a second

    until(lambda: share() > 0.3, "a share that four jobs of another session do not crowd out")
    until(lambda: max(job.worked for job in greedy) < 2 * min(job.worked for job in greedy) + 0.2)
    assert min(job.worked for job in greedy) > 0
    late = start(pool, "late", who="ann")
    until(lambda: late in pool._heavy)


def test_more_jobs_than_threads_wait_for_their_start(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "AT_ONCE", 1)
    first, second, third = (start(pool, key) for key in "abc")
    assert [state_of(pool, job).position for job in (first, second, third)] == [0, 1, 2]
    assert state_of(pool, third).state is State.QUEUED
    pool.cancel(second, "me")
    slow.go.set()
    until(lambda: first.over and third.over)
    assert third.status().state is State.DONE


def test_finished_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "KEPT", 3)
    for key in "abcdefgh":
        job = start(pool, key, spec=SweepSpec(dataset="teaching", mechanisms=["cms-output"], epsilons=[1.0], seeds=1))
        until(lambda job=job: job.over and job not in pool._alive)
    assert len(pool._jobs) <= 4


class Watched(jobs.Pool):
    """Counts how often a job was notified that a session waits."""

    asked = 0

    def _page_waits(self) -> bool:
        answer = super()._page_waits()
        self.asked += answer
        return answer


def test_heavy_jobs_step_aside_for_a_page_and_do_not_starve(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    monkeypatch.setattr(jobs, "ASIDE", LIMIT)
    pool = Watched()
    job = start(pool)
    until(lambda: slow.steps > 3)
    drawn = threading.Event()

    def page() -> None:
        page_priority.drawing_a_page()
        drawn.wait(LIMIT)

    thread = threading.Thread(target=page)
    thread.start()
    until(page_priority.page_waits)
    asked = pool.asked
    until(lambda: pool.asked > asked + 2)  # it has stepped aside
    steps, asked = slow.steps, pool.asked
    until(lambda: pool.asked > asked + 10)
    assert slow.steps == steps, "it waits while the page is drawn"
    assert not job.over
    drawn.set()
    until(lambda: slow.steps > steps + 3)
    thread.join()
    monkeypatch.setattr(jobs, "ASIDE", 0.01)
    slow.go.set()
    until(lambda: job.over)


def test_jobs_of_one_line_are_done_one_after_the_other(slow: Slow, pool: jobs.Pool) -> None:
    lined = [pool.submit(Job(key, released(slow.go), series="claims")) for key in "abc"]
    other = pool.submit(Job("other", lambda monitor: iter([3])))
    until(lambda: other.over and lined[0].state is State.RUNNING)
    assert [job.state for job in lined[1:]] == [State.QUEUED, State.QUEUED]
    slow.go.set()
    until(lambda: all(job.over for job in lined))


def test_what_was_learned_from_an_upload_goes_with_it(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    there = {"mine", ""}
    monkeypatch.setattr(uploads, "there", there.__contains__)
    done = pool.submit(Job("done", lambda monitor: iter([1]), dataset="mine"))
    at_work = pool.submit(Job("at work", released(slow.go), dataset="mine"))
    others = pool.submit(Job("others", lambda monitor: iter([1])))
    until(lambda: done.over and others.over and at_work.state is State.RUNNING)
    assert done._stream is None, "what the work was given is not kept"
    there.remove("mine")
    pool.tidy()
    until(lambda: at_work.over)
    assert [pool.find(key) for key in ("done", "at work", "others")] == [None, None, others]
    assert done.results == [], "a session may hold it for longer"


def test_what_a_session_alone_still_holds_goes_with_the_upload_too(pool: jobs.Pool) -> None:
    held = pool.submit(Job("done", lambda monitor: iter([1]), dataset="mine", kept=False))
    until(lambda: held.over and held not in pool._alive)
    assert held.results == [1]
    assert pool.find("done") is None
    assert pool.submit(held) is held
    assert pool.find("done") is None, "control: what is done is not taken up again"
    pool.forget("mine")
    assert held.results == []
    assert held.state is State.FAILED


def test_data_that_goes_while_a_job_keeps_a_result_takes_it_along(monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    check, others = Job.check, list[threading.Thread]()

    def goes(job: Job[int]) -> None:
        check(job)
        if job.state is State.RUNNING and not others:
            others.append(threading.Thread(target=job.discard))
            others[0].start()
            others[0].join(0.3)

    monkeypatch.setattr(Job, "check", goes)
    kept = pool.submit(Job("a", lambda monitor: iter([1]), dataset="mine"))
    until(lambda: kept.over and not pool._alive)
    others[0].join()
    assert kept.results == []


def test_data_that_goes_while_a_job_ends_leaves_it_failed(pool: jobs.Pool) -> None:
    def stream(monitor: Monitor) -> Iterator[int]:
        yield 1
        job.discard()

    job: Job[int] = Job("a", stream, dataset="mine")
    pool.submit(job)
    until(lambda: not pool._alive)
    assert (job.state, job.results) == (State.FAILED, []), "a page would read its last result"


def test_a_job_that_another_place_of_the_session_has_left_goes_on_while_it_is_watched(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, fresh_pool: None
) -> None:
    looks = []
    monkeypatch.setattr(watching.st, "fragment", lambda **how: lambda look: looks.append(look) or look)
    monkeypatch.setattr(watching, "me", lambda: "me")
    job = start(jobs.pool())
    watching.live(job, lambda: None)
    jobs.pool().leave(job, "me")
    assert job.state is State.PAUSED
    looks[0]()
    until(lambda: job.state is State.RUNNING)
    jobs.pool().cancel(job, "me")


def test_the_time_left_of_work_that_was_taken_up_again_is_that_of_what_is_still_to_do(pool: jobs.Pool) -> None:
    go = threading.Event()
    job = Job("a", released(go))
    job._worked = 1e6  # before it was stopped
    pool.submit(job)
    until(lambda: (job.status().left or 0) > 0)
    assert job.status().left < 1e3
    go.set()


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has a priority of its own on Linux only")
def test_a_job_and_the_threads_that_it_starts_let_pages_go_first_on_the_processor() -> None:
    def nice() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def work(monitor: Monitor) -> Iterator[tuple[int, int]]:
        with ThreadPoolExecutor(1) as others:
            yield nice(), others.submit(nice).result()

    here = nice()
    task = jobs.Pool().submit(Job("nice", work))
    until(lambda: task.over)
    least = min(here + NICE, 19)  # the last of all
    assert task.results == [(least, least)]
    assert nice() == here


def test_all_waits_of_one_drawing_of_a_page_share_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    now, allowed = [0.0], []
    monkeypatch.setattr(page_priority.time, "monotonic", lambda: now[0])

    def page() -> None:
        for lasts in (0.35, 0.5, 0.1):
            with page_priority.patience(0.4) as most:
                allowed.append(most)
                now[0] += min(most, lasts)

    def drawn_twice() -> None:
        for _ in range(2):
            page_priority.drawing_a_page()
            page()

    thread = threading.Thread(target=drawn_twice)
    thread.start()
    thread.join()
    assert allowed == pytest.approx([0.4, page_priority.TOGETHER - 0.35, 0.0] * 2)


def test_a_job_that_fails_says_why_and_what_it_gave_stays_the_last_or_all_of_it(pool: jobs.Pool) -> None:
    def broken(monitor: Monitor) -> Iterator[int]:
        yield from (1, 2)
        raise dpviz.InvalidInput("field", "is wrong", "Change it.")

    last, every = pool.submit(Job("last", broken)), pool.submit(Job("all", broken, keep_all=True))
    until(lambda: last.over and every.over)
    assert [(job.state, job.results) for job in (last, every)] == [("failed", [2]), ("failed", [1, 2])]
    assert last.problem == ("field: is wrong", "Change it.")
    pool.remove(last)
    assert pool.submit(Job("last", broken)) is not last
