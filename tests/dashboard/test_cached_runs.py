"""Runs that are kept: the time of a run is that of its work."""

import time
from collections.abc import Iterator

import pytest

from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.spec import RunSpec

SPEC = RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.3, seeds=2)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    cached_runs.clear()
    yield
    cached_runs.clear()


def test_the_time_of_a_run_counts_no_waiting() -> None:
    pauses = iter([0.4])
    start = time.perf_counter()
    cached_runs.outcome(SPEC, lambda share: time.sleep(next(pauses, 0.0)))
    taken, kept = time.perf_counter() - start, cached_runs.stored(SPEC)
    assert 0 < kept.seconds <= taken - 0.4
