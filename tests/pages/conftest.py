"""Pages without a browser: pages wait for their runs, and nothing waits for a browser to draw."""

from collections.abc import Iterator

import pytest
from support import LIMIT

from dpviz.dashboard.frame import current_run, page
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.jobs.pool import pool


@pytest.fixture(autouse=True)
def _nobody_looks_and_failures_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "PATIENCE", LIMIT)
    monkeypatch.setattr(current_run, "PATIENCE", LIMIT)
    monkeypatch.setattr(watching, "TOGETHER", LIMIT)
    monkeypatch.setattr(page, "TOP", 0.0)
    yield
    for job in pool().jobs():
        if job.state is State.FAILED:  # stays so until it is started again
            pool().remove(job)
