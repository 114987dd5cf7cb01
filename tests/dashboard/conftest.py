"""Pools of jobs and cells that wait."""

from collections.abc import Iterator

import pytest
from support_jobs import Slow

from dpviz.dashboard.jobs import pool as jobs


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    one = Slow(monkeypatch)
    yield one
    one.go.set()


@pytest.fixture
def pool() -> jobs.Pool:
    return jobs.Pool()
