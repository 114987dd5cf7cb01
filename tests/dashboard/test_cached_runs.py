"""Runs that are kept: the time of a run is that of its work."""

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
