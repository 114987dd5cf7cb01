"""What is computed ahead for several people: each of them gets a run in turn, and nothing is lost where one leaves."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support import until

from dpviz.dashboard.one_run import views
from dpviz.dashboard.shell import session
from dpviz.dashboard.work import cached_runs, look_ahead, watching
from dpviz.dashboard.work import pool as jobs
from dpviz.dashboard.work.job import State
from dpviz.dashboard.work.look_ahead import LookAhead
from dpviz.experiments.run.spec import RunSpec

SPEC = RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.0, seeds=2)
EPSILONS = [2.0, 3.0, 4.0, 5.0]


class Computed:
    """Runs in the order in which they are computed; each waits until it is let go."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, float]] = []
        self.go = threading.Semaphore(0)

    def __call__(self, spec: RunSpec, monitor: Callable[[float], None]) -> None:
        while not self.go.acquire(timeout=0.005):
            monitor(0.0)
        self.runs.append((spec.seed, spec.epsilon))

    def next(self) -> None:
        """Lets one run go, and waits until it is there."""
        count = len(self.runs)
        self.go.release()
        until(lambda: len(self.runs) > count)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Computed]:
    one = Computed()
    monkeypatch.setattr(cached_runs, "compute_ahead", one)
    yield one
    for _ in range(100):
        one.go.release()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> jobs.Pool:
    one = jobs.Pool()
    monkeypatch.setattr(look_ahead, "pool", lambda: one)
    return one


def ahead(pool: jobs.Pool, seed: int, who: str) -> LookAhead:
    return pool.submit(LookAhead([replace(SPEC, seed=seed, epsilon=e) for e in EPSILONS]), who)


def test_two_people_get_a_run_each_in_turn(computed: Computed, pool: jobs.Pool) -> None:
    first, second = ahead(pool, 1, "ann"), ahead(pool, 2, "bob")
    for _ in range(8):
        computed.next()
    assert computed.runs == [(seed, epsilon) for epsilon in EPSILONS for seed in (1, 2)]
    until(lambda: first.state is State.DONE and second.state is State.DONE)


def test_one_alone_goes_on_without_giving_way(computed: Computed, pool: jobs.Pool) -> None:
    job = ahead(pool, 1, "ann")
    for _ in range(4):
        computed.next()
    assert computed.runs == [(1, epsilon) for epsilon in EPSILONS]
    until(lambda: job.state is State.DONE)


def test_one_that_is_left_while_others_go_first_stays_paused_and_goes_on_when_wanted(computed: Computed, pool: jobs.Pool) -> None:
    first, second = ahead(pool, 1, "ann"), ahead(pool, 2, "bob")
    computed.next()
    until(lambda: second.state is State.RUNNING)
    pool.leave(first, "ann")
    for _ in range(4):
        computed.next()
    until(lambda: second.state is State.DONE)
    assert first.state is State.PAUSED
    assert computed.runs[1:] == [(2, epsilon) for epsilon in EPSILONS]
    assert ahead(pool, 1, "ann") is first
    for _ in range(3):
        computed.next()
    until(lambda: first.state is State.DONE)
    assert computed.runs[5:] == [(1, epsilon) for epsilon in EPSILONS[1:]]


def test_one_that_is_left_at_the_moment_when_it_gives_way_is_not_queued_again(
    computed: Computed, pool: jobs.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ahead(pool, 1, "ann")
    ahead(pool, 2, "bob")
    true = pool.low_ones_wait

    def leave() -> bool:
        if not computed.runs[1:]:
            pool.leave(first, "ann")
        return true()

    monkeypatch.setattr(pool, "low_ones_wait", leave)
    for _ in range(5):
        computed.next()
    assert computed.runs == [(1, EPSILONS[0]), *((2, epsilon) for epsilon in EPSILONS)]
    assert first.state is State.PAUSED
    assert first not in pool._starting


def test_whose_turn_is_longest_ago_comes_first_whoever_asked_first(computed: Computed, pool: jobs.Pool) -> None:
    first = ahead(pool, 1, "ann")
    computed.next()
    pool.leave(first, "ann")
    until(lambda: not pool._alive)
    third = ahead(pool, 3, "carl")
    ahead(pool, 1, "ann")
    second = ahead(pool, 2, "bob")
    pool.leave(third, "carl")
    until(lambda: pool._alive == [second])


@pytest.mark.parametrize(("people", "steps"), [(views.FEW, [*range(-6, 0), *range(1, 7)]), (views.FEW + 1, [])])
def test_the_nearest_budgets_are_computed_ahead_for_few_people_and_none_for_a_class(
    monkeypatch: pytest.MonkeyPatch, people: int, steps: list[int]
) -> None:
    made: list[LookAhead] = []
    monkeypatch.setattr(cached_runs, "stored", lambda spec: SimpleNamespace(seconds=1.0))
    monkeypatch.setattr(cached_runs, "missing", lambda spec, epsilons: epsilons)
    monkeypatch.setattr(watching, "watch", lambda job, place: made.append(job) or job)
    monkeypatch.setattr(views.sidebar, "EPSILONS", [2.0**step for step in range(-9, 10)])
    monkeypatch.setattr(session, "_visits", {str(k): session._Visit("", left=None if k < people else 0.0) for k in range(9)})
    views.look_further(SPEC)
    assert sorted(spec.epsilon for job in made for spec in job.wanted) == [2.0**step for step in steps]
