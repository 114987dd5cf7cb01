"""Jobs in their pool: order, sessions that share and cancel them, data that goes, failures; and those of sweeps."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pandas as pd
import pytest
from support import LIMIT, until
from support_jobs import SPEC, Slow, released, start

import dpviz
from dpviz.common.progress import Monitor
from dpviz.dashboard.jobs import page_priority, sweep, watching
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs.job import Job, State
from dpviz.experiments.sweeps.cells import Cell, CellStore
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep, sort_rows


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Cells that wait."""
    one = Slow(monkeypatch)
    yield one
    one.go.set()


@pytest.fixture
def pool() -> jobs.Pool:
    return jobs.Pool()


@pytest.fixture
def several(slow: Slow, pool: jobs.Pool) -> list[Job]:
    """Two more long jobs than there are threads for."""
    made = [start(pool, str(k)) for k in range(jobs.WIDTH + 2)]
    until(lambda: [job.state for job in made].count(State.RUNNING) == jobs.WIDTH)
    return made


def test_long_jobs_are_done_in_order_and_wait_for_a_thread(slow: Slow, several: list[Job], pool: jobs.Pool) -> None:
    assert [job.state for job in several[-2:]] == [State.QUEUED] * 2
    assert "waiting for earlier" in watching.text(several[-1].status(), "0 %")
    pool.cancel(several[-2], "me")
    slow.go.set()
    until(lambda: all(job.over for job in several))
    assert [job.state for job in several[-2:]] == [State.CANCELLED, State.DONE]


def test_short_work_does_not_wait_behind_long_work(several: list[Job], pool: jobs.Pool) -> None:
    short = pool.submit(Job("short", lambda monitor: iter(["result"]), short=True), "me")
    until(lambda: short.over)
    assert not any(job.over for job in several), "the control: all threads for long work are taken"


def test_what_nobody_wants_any_more_is_stopped_and_goes_on_when_it_is_asked_for(slow: Slow, pool: jobs.Pool) -> None:
    job = start(pool, who="ann")
    assert start(pool, who="bob") is job
    pool.leave(job, "ann")
    assert not job.over
    pool.leave_all("bob")
    assert job.state is State.CANCELLED
    until(job.future.done)
    assert start(pool, who="carl") is job
    slow.go.set()
    until(lambda: job.state is State.DONE)


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
    until(job.future.done)


def test_finished_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool) -> None:
    monkeypatch.setattr(jobs, "KEPT", 3)
    for key in "abcdefgh":
        job = start(pool, key, spec=SweepSpec(dataset="teaching", mechanisms=["cms-output"], epsilons=[1.0], seeds=1))
        until(lambda job=job: job.over)
    assert len(pool.jobs()) <= 4


def test_what_was_learned_from_an_upload_goes_with_it_though_a_session_holds_it(slow: Slow, pool: jobs.Pool) -> None:
    done = pool.submit(Job("done", lambda monitor: iter([1]), dataset="mine"))
    held = pool.submit(Job("held", lambda monitor: iter([1]), dataset="mine", kept=False))
    at_work = pool.submit(Job("at work", released(slow.go), dataset="mine"))
    others = pool.submit(Job("others", lambda monitor: iter([1]), short=True))
    until(lambda: done.over and others.over and at_work.state is State.RUNNING and pool.find("held") is None)
    assert held.results == [1]
    assert done._stream is None, "what the work was given is not kept"
    pool.forget("mine")
    until(at_work.future.done)
    assert [pool.find(key) for key in ("done", "at work", "others")] == [None, None, others]
    assert [(job.results, job.state) for job in (done, held, at_work)] == [([], State.FAILED)] * 3


def test_a_sweep_whose_rows_go_lets_go_of_its_tables(pool: jobs.Pool) -> None:
    job = start(pool, spec=SweepSpec("teaching", mechanisms=["cms-output"], epsilons=[1.0], seeds=1))
    until(lambda: job.over)
    assert job.tables()
    job.discard()
    assert (list(job.tables()), job.results, job.state) == ([], [], State.FAILED)


@pytest.mark.parametrize("after", [False, True])
def test_data_that_goes_while_a_job_gives_a_result_takes_it_along(after: bool, pool: jobs.Pool) -> None:
    def stream(monitor: Monitor) -> Iterator[int]:
        if not after:
            job.discard()
        yield 1
        job.discard()

    job: Job[int] = Job("a", stream, dataset="mine")
    pool.submit(job)
    until(job.future.done)
    assert (job.state, job.results) == (State.FAILED, []), "a page would read its last result"


def test_a_job_that_another_place_of_the_session_has_left_goes_on_while_it_is_watched(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, fresh_pool: None
) -> None:
    looks = []
    monkeypatch.setattr(watching.st, "fragment", lambda **how: lambda look: looks.append(look) or look)
    monkeypatch.setattr(watching, "session_name", lambda: "me")
    job = start(jobs.pool())
    watching.draw_live(job, lambda: None)
    jobs.pool().leave(job, "me")
    assert job.over
    assert not watching.is_over(job)
    assert watching.status(job).state is State.QUEUED
    looks[0]()
    until(lambda: job.state is State.RUNNING)
    jobs.pool().cancel(job, "me")
    assert watching.state(job) is State.CANCELLED


def test_all_waits_of_one_drawing_of_a_page_share_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    now, allowed = [0.0], []
    job: Job[int] = Job("a", None)

    def wait(seconds: float) -> bool:
        allowed.append(seconds)
        now[0] += min(seconds, 0.35)
        return False

    monkeypatch.setattr(page_priority, "_drawing", WeakSet())  # jobs of later tests would step aside for this thread
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    ends = {"watched.over": (True, False), "observed.kept": (True, True), "observed.on": (False, False), "else": (True, False)}
    held: dict[str, Any] = {place: SimpleNamespace(over=over, kept=kept) for place, (over, kept) in ends.items()}
    monkeypatch.setattr(watching.st, "session_state", held)
    monkeypatch.setattr(job, "wait", wait)
    for _ in range(2):
        watching.arrive("Page")
        for _ in range(3):
            watching.wait(job, 0.4)
    assert allowed == pytest.approx([0.4, watching.TOGETHER - 0.35, 0.0] * 2)
    assert ends.keys() - held.keys() == {"watched.over"}, "a new page lets go of what a cache has"
    assert page_priority._page_is_drawn()


def test_a_job_that_fails_says_why_and_what_it_gave_last_stays(pool: jobs.Pool) -> None:
    def broken(monitor: Monitor) -> Iterator[int]:
        yield from (1, 2)
        raise dpviz.InvalidInput("field", "is wrong", "Change it.")

    last = pool.submit(Job("last", broken))
    until(lambda: last.over)
    assert (last.state, last.results, last.problem) == ("failed", [2], ("field: is wrong", "Change it."))
    pool.remove(last)
    assert pool.submit(Job("last", broken)) is not last


def test_a_job_steps_aside_while_a_page_is_drawn_but_not_while_that_page_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, pool: jobs.Pool
) -> None:
    monkeypatch.setattr(page_priority, "ASIDE", LIMIT)
    monkeypatch.setattr(page_priority, "_drawing", WeakSet())  # other tests may have drawn a page with this thread
    drawn, waits = threading.Event(), threading.Event()

    def page() -> None:
        page_priority.begin()
        drawn.wait(LIMIT)
        with page_priority.pause():
            waits.wait(LIMIT)

    thread = threading.Thread(target=page, daemon=True)
    thread.start()
    steps: list[float] = []

    def stream(monitor: Monitor) -> Iterator[int]:
        steps.append(0.0)
        monitor(0.5)
        steps.append(0.5)
        yield 1

    job = pool.submit(Job("a", stream))
    until(lambda: bool(steps))
    assert not job.wait(0.1), "it waits while the page is drawn"
    assert steps == [0.0]
    drawn.set()
    assert job.wait(LIMIT), "the page waits itself"
    waits.set()
    thread.join()
    monkeypatch.setattr(page_priority, "ASIDE", 0.01)
    page_priority.begin()  # this thread lives on
    with page_priority.pause():
        assert not page_priority._page_is_drawn()
    assert pool.submit(Job("b", stream)).wait(LIMIT), "no page stops a job for ever"
    now, step = [0.0], page_priority.StepAside()
    monkeypatch.setattr(page_priority.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(page_priority.time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    step(lambda: False)
    step(lambda: False)
    assert now == pytest.approx([0.01], abs=0.006), "it steps aside once, as long as it may"
    now[0] += page_priority.WORK
    step(lambda: False)
    assert now == pytest.approx([0.02 + page_priority.WORK], abs=0.006), "and again when it has worked"


def test_a_job_gives_what_a_sweep_gives(tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: job.over)
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))
    status = job.status()
    assert (status.state, status.done, status.problems, status.notices) == (State.DONE, 1.0, (), ())
    assert start(pool) is job, "equal keys are one job"


def test_what_a_page_looks_through_changes_under_its_lock_only(pool: jobs.Pool) -> None:
    """A page that asked how long a sweep takes ended in an error when a cell was finished at that moment."""
    job, locked = sweep.SweepJob("a", SPEC.cells(), None), []

    class Watched(dict[int, pd.DataFrame]):
        def __setitem__(self, k: int, value: pd.DataFrame) -> None:
            locked.append(job._lock.locked())
            super().__setitem__(k, value)

    job._tables = Watched()
    pool.submit(job)
    until(lambda: job.over)
    assert locked
    assert all(locked)


def test_partial_tables_while_it_works(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    store = CellStore(tmp_path)
    for cell in SPEC.cells()[:2]:
        store.put(cell, cell.compute())
    job = start(pool, store=store)
    until(lambda: len(job.tables()) == 2)
    assert len(job.table()) == 2 * 2 * 10
    assert not job.over
    assert 0 < job.status().done < 1
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


def test_cancelling_in_the_middle_of_a_cell_and_going_on(slow: Slow, tmp_path: Path, pool: jobs.Pool) -> None:
    job = start(pool, store=CellStore(tmp_path))
    until(lambda: slow.steps > 3)
    pool.cancel(job, "me")
    assert job.status().state is State.CANCELLED, "said at once"
    until(job.future.done)
    assert start(pool) is job
    assert job.state is State.CANCELLED, "no session asked to go on"
    slow.go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    assert job.status().state is State.DONE


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
    pool, job = jobs.Pool(), sweep.SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.state is State.CANCELLED and job.future.done())
    finished = len(job.tables())
    assert finished >= 1
    pool.submit(sweep.SweepJob("a", SPEC.cells(), None), "me")
    until(lambda: job.over)
    assert len(computed) <= len(job.cells) + 1, "at most the cell under way is lost"
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))


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
    pool, job = jobs.Pool(), sweep.SweepJob("a", cells, None)
    pool.submit(job, "me")
    until(lambda: len(job.tables()) == len(cells) - 1)
    until(lambda: job.status().done > (len(cells) - 1) / (len(cells) + 1))
    pool.cancel(job, "me")
    until(job.future.done)
    assert sorted(job.tables()) == list(range(1, len(cells)))
    go.set()
    pool.go_on(job, "me")
    until(lambda: job.over)
    pd.testing.assert_frame_equal(sort_rows(job.table(), SPEC), run_sweep(SPEC))


def test_data_that_cannot_be_looked_at_beforehand_is_left_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(cells: object) -> int:
        raise MemoryError

    monkeypatch.setattr(sweep, "workers_for", refuse)
    pool, job = jobs.Pool(), sweep.SweepJob("a", SPEC.cells(), None)
    pool.submit(job, "me")
    until(lambda: job.over)
    assert job.state is State.DONE
    assert len(job.table()) == 2 * 2 * 12


def test_going_on_while_the_thread_still_stops(slow: Slow, pool: jobs.Pool) -> None:
    job = start(pool)
    until(lambda: slow.steps > 3)
    for _ in range(20):
        pool.cancel(job, "me")
        pool.go_on(job, "me")
    assert not job.over
    until(lambda: job.state is State.RUNNING)
    slow.go.set()
    until(lambda: job.over)
    assert len(job.table()) == 2 * 2 * 12


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
    status = job.status()
    assert status.state is State.DONE
    assert set(job.table()["mechanism"]) == {"dp-gd"}
    assert {epsilon for _, epsilon, _ in status.problems} == {0.3, 3.0}
    assert all(words in str(problem) for _, _, problem in status.problems)
