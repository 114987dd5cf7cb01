"""Jobs: streaming, cancelling, the queue of heavy ones, and words for whatever fails."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from support import LIMIT, until

import dpviz
from dpviz.common.progress import Monitor
from dpviz.dashboard.work import front, sweep
from dpviz.dashboard.work import pool as jobs
from dpviz.dashboard.work.job import NICE, Job, State
from dpviz.dashboard.work.sweep import SweepJob, SweepStatus
from dpviz.datasets.sources import uploads
from dpviz.experiments.sweeps.cells import Cell, CellStore
from dpviz.experiments.sweeps.sweep import SweepSpec, in_order, run_sweep

SPEC = SweepSpec(dataset="teaching", mechanisms=["cms-output", "dp-gd"], epsilons=[0.3, 3.0], seeds=12)


class Slow:
    """Makes cells take as many steps as wanted, each of them released by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.steps = 0
        true = Cell.attempt

        def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
            while not self.go.is_set():
                self.steps += 1
                time.sleep(0.002)
                monitor(0.5)
            return true(cell, monitor)

        monkeypatch.setattr(Cell, "attempt", attempt)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    one = Slow(monkeypatch)
    yield one
    one.go.set()


def start(pool: jobs.Pool, key: str = "a", store: CellStore | None = None, spec: SweepSpec = SPEC, who: str = "me") -> SweepJob:
    return pool.submit(SweepJob(key, spec.cells(), store), who)


@pytest.fixture
def pool() -> jobs.Pool:
    return jobs.Pool()


def state_of(pool: jobs.Pool, job: SweepJob) -> SweepStatus:
    return job.status(pool.position(job))


def test_a_job_gives_what_a_sweep_gives(tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: job.over)
    pd.testing.assert_frame_equal(in_order(job.table(), SPEC), run_sweep(SPEC))
    status = state_of(pool, job)
    assert (status.state, status.done, status.problems, status.notices) == (State.DONE, 1.0, (), ())
    assert start(pool) is job, "equal keys are one job"


def test_what_a_page_looks_through_changes_under_its_lock_only(pool: jobs.Pool) -> None:
    """A page that asked how long a sweep takes ended in an error when a cell was finished at that moment."""
    job, locked = SweepJob("a", SPEC.cells(), None), []

    class Watched(dict[int, float]):
        def __setitem__(self, k: int, value: float) -> None:
            locked.append(job._lock.locked())
            super().__setitem__(k, value)

    job._times = Watched()
    pool.submit(job)
    until(lambda: job.over)
    assert locked
    assert all(locked)


def test_what_is_made_of_finished_rows_is_made_again_only_when_there_are_more() -> None:
    job = SweepJob("a", SPEC.cells(), None)
    made: list[int] = []

    def make() -> int:
        made.append(len(job.tables()))
        return made[-1]

    assert [job.once("rows", make) for _ in range(3)] == [0, 0, 0]
    job._finish(0, pd.DataFrame({"seed": [1]}))
    assert [job.once("rows", make) for _ in range(3)] == [1, 1, 1]
    assert made == [0, 1]
    assert job.once("other", lambda: "another name") == "another name"
    for k in range(sweep._MOST_MADE + 5):
        job.once(k, lambda: 0)
    assert len(job._made) == sweep._MOST_MADE, "what was not used lately goes"
    job.discard()
    assert not job._made


def test_partial_tables_while_it_works(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    store = CellStore(tmp_path)
    for cell in SPEC.cells()[:2]:
        store.put(cell, cell.compute())
    job = start(pool, store=store)
    until(lambda: len(job.tables()) == 2)
    assert len(job.table()) == 2 * 2 * 2
    assert not job.over
    assert 0 < state_of(pool, job).done < 1
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


def test_cancelling_in_the_middle_of_a_cell_and_going_on(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: slow.steps > 3)
    pool.cancel(job, "me")
    assert state_of(pool, job).state is State.CANCELLED, "said at once"
    until(lambda: not pool._alive)
    assert start(pool) is job
    assert job.state is State.CANCELLED, "nobody asked to go on"
    slow.go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    assert state_of(pool, job).state is State.DONE


def test_what_was_finished_is_not_computed_again_and_needs_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    true = Cell.attempt

    def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        monitor(0.0)
        made = true(cell, monitor)
        computed.append(cell.key())
        if len(computed) == 2:
            pool.leave(job, "me")
        return made

    monkeypatch.setattr(Cell, "attempt", attempt)
    pool, job = jobs.Pool(), SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.state is State.PAUSED and not pool._alive)
    finished = len(job.tables())
    assert finished >= 1
    pool.submit(SweepJob("a", SPEC.cells(), None), "me")
    until(lambda: job.over)
    assert len(computed) <= len(job.cells) + 1, "at most the cell under way is lost"
    pd.testing.assert_frame_equal(in_order(job.table(), SPEC), run_sweep(SPEC))


def test_cells_side_by_side_are_shown_as_they_are_finished_and_kept_when_the_job_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    true, cells = Cell.attempt, SPEC.cells()
    go = threading.Event()

    def attempt(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        while cell == cells[0] and not go.is_set():
            monitor(0.5)
            time.sleep(0.002)
        return true(cell, monitor)

    monkeypatch.setattr(Cell, "attempt", attempt)
    monkeypatch.setattr(sweep, "workers_for", lambda _: 2)
    pool, job = jobs.Pool(), SweepJob("a", cells, None)
    pool.submit(job, "me")
    until(lambda: len(job.tables()) == len(cells) - 1)
    until(lambda: state_of(pool, job).done > (len(cells) - 1) / (len(cells) + 1))
    pool.cancel(job, "me")
    until(lambda: not pool._alive)
    assert sorted(job.tables()) == list(range(1, len(cells)))
    go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    pd.testing.assert_frame_equal(in_order(job.table(), SPEC), run_sweep(SPEC))


def test_data_that_cannot_be_looked_at_beforehand_is_left_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(cells: object) -> int:
        raise MemoryError

    monkeypatch.setattr(sweep, "workers_for", refuse)
    pool, job = jobs.Pool(), SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.over)
    assert job.state is State.DONE
    assert len(job.table()) == 2 * 2 * 12


def test_going_on_while_the_thread_still_stops(slow: Slow, pool: jobs.Pool) -> None:
    others = set(threading.enumerate())  # of other tests
    job = start(pool)
    until(lambda: slow.steps > 3)
    for _ in range(20):
        pool.cancel(job, "me")
        pool.go_on(job, "me")
    assert not job.over
    until(lambda: job.state is State.RUNNING)
    until(lambda: [thread.name for thread in {*threading.enumerate()} - others].count("dpviz-job") == 1)  # the others end
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


def test_a_restart_takes_up_finished_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    first = start(jobs.Pool(), store=CellStore(tmp_path))
    until(lambda: first.over)
    victim = sorted(tmp_path.glob("*.cell"))[0]
    victim.write_bytes(b"damaged")
    computed: list[str] = []
    true = Cell.attempt
    monkeypatch.setattr(Cell, "attempt", lambda self, monitor: computed.append(self.key()) or true(self, monitor))
    second = start(pool, store=CellStore(tmp_path))
    until(lambda: second.over)
    assert computed == [victim.stem], "only the damaged one is computed again"
    pd.testing.assert_frame_equal(first.table(), second.table())
    assert len(state_of(pool, second).notices) == 1


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
    assert start(pool, who="carl") is job, "somebody else asks for it"
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


def test_low_priority_works_only_while_nothing_else_does(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    steps: list[float] = []

    def stream(monitor: Monitor) -> Iterator[int]:
        while not slow.go.is_set():
            monitor(0.5)
            steps.append(time.monotonic())
            time.sleep(0.002)
        yield 1

    low = pool.submit(Job("low", stream, low=True), "ann")
    until(lambda: len(steps) > 3)
    other = start(pool)
    until(lambda: slow.steps > 3)
    time.sleep(0.05)  # the step under way ends
    before = len(steps)
    until(lambda: slow.steps > 50)
    assert len(steps) <= before + 1
    monkeypatch.setattr(jobs, "AT_ONCE", 2)
    more = start(pool, "b")
    until(lambda: more in pool._alive)
    slow.go.set()
    until(lambda: low.over and other.over and more.over)


def test_more_jobs_than_threads_wait_for_their_start(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "AT_ONCE", 1)
    first, second, third = (start(pool, key) for key in "abc")
    assert [state_of(pool, job).position for job in (first, second, third)] == [0, 1, 2]
    assert state_of(pool, third).state is State.QUEUED
    pool.cancel(second, "me")
    slow.go.set()
    until(lambda: first.over and third.over)
    assert third.status().state is State.DONE


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (dpviz.InvalidInput("epsilon", "cannot be met", "Give more."), "cannot be met"),
        (MemoryError(), "more memory"),
        (KeyError(), "KeyError"),
        (FloatingPointError("overflow in step 3"), "overflow in step 3"),
    ],
)
def test_failures_become_words_and_the_others_go_on(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    true = Cell.compute

    def compute(cell: Cell, monitor: Callable[[float], None]) -> pd.DataFrame:
        if cell.spec.mechanism == "cms-output":
            raise error
        return true(cell, monitor)

    monkeypatch.setattr(Cell, "compute", compute)
    job = start(pool)
    until(lambda: job.over)
    status = state_of(pool, job)
    assert status.state is State.DONE
    assert set(job.table()["mechanism"]) == {"dp-gd"}
    assert {epsilon for _, epsilon, _ in status.problems} == {0.3, 3.0}
    assert all(words in str(problem) for _, _, problem in status.problems)


def test_finished_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "KEPT", 3)
    for key in "abcdefgh":
        job = start(pool, key, spec=SweepSpec(dataset="teaching", mechanisms=["cms-output"], epsilons=[1.0], seeds=1))
        until(lambda job=job: job.over and job not in pool._alive)
    assert len(pool._jobs) <= 4


class Watched(jobs.Pool):
    """Counts how often a job was told that somebody waits."""

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
        front.drawing_a_page()
        drawn.wait(LIMIT)

    thread = threading.Thread(target=page)
    thread.start()
    until(front.page_waits)
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


def released(go: threading.Event) -> Callable[[Monitor], Iterator[int]]:
    """Work that goes on until the test lets it end."""

    def stream(monitor: Monitor) -> Iterator[int]:
        while not go.is_set():
            time.sleep(0.002)
            monitor(0.5)
        yield 1

    return stream


def test_attacks_claims_and_sweeps_share_the_two_places(slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    first, second = start(pool, "a"), pool.submit(Job("attack", released(slow.go)))
    until(lambda: {first, second} == set(pool._heavy))
    third = pool.submit(Job("claim", released(slow.go)))
    until(lambda: pool.position(third) == 1)
    assert len(pool._heavy) == jobs.HEAVY
    slow.go.set()
    until(lambda: all(job.over for job in (first, second, third)))
    assert third.results == [1]


def test_jobs_that_wait_for_a_place_do_not_keep_others_from_starting(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    monkeypatch.setattr(jobs, "LIGHT", 0.0)
    monkeypatch.setattr(jobs, "AT_ONCE", 3)
    heavy = [pool.submit(Job(key, released(slow.go))) for key in "abcd"]
    until(lambda: len(pool._waiting) == 2)
    monkeypatch.setattr(jobs, "LIGHT", LIMIT)  # what comes now stays light
    small = pool.submit(Job("small", lambda monitor: iter([2])))
    until(lambda: small.over)
    assert not any(job.over for job in heavy)
    slow.go.set()
    until(lambda: all(job.over for job in heavy))


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
    monkeypatch.setattr(front.time, "monotonic", lambda: now[0])

    def page() -> None:
        for lasts in (0.35, 0.5, 0.1):
            with front.patience(0.4) as most:
                allowed.append(most)
                now[0] += min(most, lasts)

    def drawn_twice() -> None:
        for _ in range(2):
            front.drawing_a_page()
            page()

    thread = threading.Thread(target=drawn_twice)
    thread.start()
    thread.join()
    assert allowed == pytest.approx([0.4, front.TOGETHER - 0.35, 0.0] * 2)


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
