"""Fixtures that many tests share."""

import functools
import gc
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, settings
from streamlit.components.v2 import manifest_scanner
from support import LIMIT, until
from support_shell import Shell
from support_tables import read_here
from threadpoolctl import threadpool_limits

from dpviz.datasets.process import reading
from dpviz.experiments.run.run import cached_calibration
from dpviz.figures import style

TESTS = Path(__file__).parent
gc.disable()  # until all tests are collected: what is made for them stays
style.CHECKED = True  # on every figure of every test
build = style.build


def build_with_marks_inside(parts: dict[str, Any]) -> Any:
    """A figure, in every test: its marks lie inside the axes, but for the few rows that a plane leaves out on purpose."""
    for trace, letter in itertools.product(parts["data"], "xy"):
        axis = parts["layout"].get(letter + "axis" + trace.get(letter + "axis", letter)[1:], {})
        if "markers" in trace.get("mode", "") and axis.get("range") is not None:
            ends = np.sort(axis["range"])
            low, high = (10.0 ** np.clip(ends, -300, 300) if axis.get("type") == "log" else ends) + 1e-9 * np.array(
                [-1, 1]
            ) * np.abs(ends).max()
            places = pd.to_numeric(pd.Series(trace[letter]), errors="coerce")
            assert not ((places < low) | (places > high)).mean() > 0.04, f"{trace.get('name')}: {places} beyond {axis['range']}"
    return build(parts)


style.build = build_with_marks_inside

# nothing fails because a machine is slow, and every run tries the same examples
settings.register_profile("dpviz", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# a planted mistake need only be seen, in whatever case
settings.register_profile("planted", settings.get_profile("dpviz"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("dpviz")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the processors: for what is imported from here on,
threadpool_limits(int(os.environ["OMP_NUM_THREADS"]))  # and for what was imported before
for name in ("DPVIZ_MAX_SECONDS", "DPVIZ_MAX_FETCH_SECONDS", "DPVIZ_SILENCE_SECONDS"):  # a busy machine is not a silent one
    os.environ[name] = f"{LIMIT:.0f}"
# every page opened without a browser has Streamlit read what each installed package says of itself: most of the page's time
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(params=["logistic", "svm"])
def model_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
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
    cached_calibration.cache_clear()


@pytest.fixture(autouse=True)
def _tables_without_a_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is read without the process that reads it: to start one costs a second, and only some tests are about it."""
    if request.node.get_closest_marker("reader_process") is None:
        monkeypatch.setattr(reading, "read_apart", read_here)


@pytest.fixture(autouse=True, scope="module")
def _jobs_of_this_file() -> Iterator[None]:
    """Pages that a file's tests have left leave no work to the next file, and no thread that still ends a step of it."""
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
