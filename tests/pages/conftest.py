"""Pages without a browser: pages wait for their runs, and nothing waits for a browser to draw."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from support import LIMIT

from dpviz.dashboard.frame import page
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.jobs.pool import pool
from dpviz.dashboard.story import scenes


@pytest.fixture(autouse=True, scope="module")
def _libraries_are_no_garbage() -> None:
    """As in `frame/server.py`: what the pages before have loaded is left out of the collections after every drawing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nobody_looks_and_failures_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "PATIENCE", LIMIT)
    monkeypatch.setattr(watching, "TOGETHER", LIMIT)
    monkeypatch.setattr(page, "TOP", 0.0)
    yield
    for job in pool().jobs():
        if job.state is State.FAILED:  # stays so until it is started again
            pool().remove(job)


@pytest.fixture(autouse=True)
def _the_key_of_a_job_holds_what_its_work_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and numbers that were chosen: otherwise another choice would be shown the result of the first."""
    make = tasks._job

    def job(what: str, work: Any, *, given: object = "", **more: Any) -> Any:
        for value in (*getattr(work, "args", ()), *(cell.cell_contents for cell in getattr(work, "__closure__", None) or ())):
            plain = isinstance(value, tuple) and all(isinstance(one, str | int | float) for one in value)
            chosen = (plain or isinstance(value, str | int)) and not isinstance(value, bool) and value is not scenes.GRID
            assert not chosen or repr(value) in repr((what, given)), f"{what}: {value!r} is not in the key"
        return make(what, work, given=given, **more)

    monkeypatch.setattr(tasks, "_job", job)
