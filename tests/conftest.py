"""Fixtures that many tests share. What takes seconds to import is imported late: xdist's own process needs none of it."""

import functools
import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from support_shell import Shell

TESTS = Path(__file__).parent
gc.disable()  # until all tests are collected: what is made for them stays

# nothing fails because a machine is slow, and every run tries the same examples
settings.register_profile("dpviz", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# a planted mistake need only be seen, in whatever case
settings.register_profile("planted", settings.get_profile("dpviz"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("dpviz")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the processors: for what is imported from here on


def pytest_collection() -> None:
    """Before the first test is imported, in each process that runs tests."""
    from streamlit.components.v2 import manifest_scanner
    from support import LIMIT
    from support_figures import check_figures
    from threadpoolctl import threadpool_limits

    check_figures()
    threadpool_limits(int(os.environ["OMP_NUM_THREADS"]))  # for what was imported before
    for name in ("DPVIZ_MAX_SECONDS", "DPVIZ_MAX_FETCH_SECONDS", "DPVIZ_SILENCE_SECONDS"):  # a busy machine is not a silent one
        os.environ[name] = f"{LIMIT:.0f}"
    # every page opened without a browser has Streamlit read what each installed package says of itself: most of the page's time
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(params=["logistic", "svm"])
def model_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> "Shell":
    from support_shell import Shell

    return Shell(capsys)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a test, which begins empty; what is downloaded is kept beside it."""
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _calibrations_of_this_test() -> None:
    """A test may change how a method calibrates."""
    from dpviz.experiments.run.run import cached_calibration

    cached_calibration.cache_clear()


@pytest.fixture(autouse=True)
def _tables_without_a_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is read without the process that reads it: to start one costs a second, and only some tests are about it."""
    from support_tables import read_here

    from dpviz.datasets.process import reading

    if request.node.get_closest_marker("reader_process") is None:
        monkeypatch.setattr(reading, "read_apart", read_here)


@pytest.fixture(autouse=True, scope="module")
def _jobs_of_this_file() -> Iterator[None]:
    """Pages that a file's tests have left leave no work to the next file, and no thread that still ends a step of it."""
    from support import until

    yield
    if "dpviz.dashboard.jobs.pool" in sys.modules:
        sys.modules["dpviz.dashboard.jobs.pool"].pool().clear()
        until(lambda: not any(thread.name == "dpviz-job" for thread in threading.enumerate()), "the end of all jobs")


@pytest.fixture
def fresh_pool() -> Iterator[None]:
    """No background work of another test, and none left to the next."""
    from dpviz.dashboard.jobs import pool

    pool.pool().clear()
    yield
    pool.pool().clear()


def pytest_sessionfinish() -> None:
    """Python waits for threads of background work that a test has left."""
    pool = sys.modules.get("dpviz.dashboard.jobs.pool")
    if pool is not None:
        pool.pool().clear()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that all workers end together."""
    first = ("test_planted_mistakes.py", "browser", "pages", "test_contract.py", "auditing", "datasets")
    order = {name: k for k, name in enumerate(first)}
    items.sort(key=lambda item: order.get(item.path.relative_to(TESTS).parts[0], len(first)))


def pytest_collection_finish() -> None:
    """What is loaded stays: Streamlit collects garbage after every drawing of a page, most of the time among libraries."""
    gc.collect()
    gc.freeze()
    gc.enable()
