"""Cells on a Dask cluster: workers and schedulers that die end in a retry or in one error, never in a wait without end."""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from support import LIMIT, assert_refused, until

import dpviz
from dpviz.cli.main import main
from dpviz.cli.progress import Bar
from dpviz.common.progress import ignore
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps import cluster
from dpviz.experiments.sweeps.cells import Cell, CellStore, attempts, problems
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dpviz[dask]'")
CELLS = [Cell(dpviz.RunSpec("teaching", mechanism="majority", seeds=4), (1.0,), range(k, k + 2)) for k in (0, 2)]


@dataclasses.dataclass(eq=False)
class Future:
    status: str
    value: Any = None

    def result(self, timeout: float) -> Any:
        return self.value

    exception = result

    def release(self) -> None:
        self.status = "released"


class Client:
    """A stand-in: its futures are what it was given, and its scheduler has some workers, or says nothing."""

    def __init__(self, futures: list[Future], workers: dict[str, int] | None = None) -> None:
        self._futures, self._workers, self.scheduler = iter(futures), workers, self

    identity = None

    def submit(self, *arguments: Any, **named: Any) -> Future:
        return next(self._futures)

    def nthreads(self) -> dict[str, int]:
        if self._workers is None:
            raise OSError("closed")
        return self._workers

    def sync(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        if self._workers is None:
            raise OSError("closed")
        return {"workers": self._workers}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Waiting for futures that are pending takes no time; counts the times."""
    count = [0]

    def wait(futures: list[Future], **named: Any) -> None:
        if all(future.status == "pending" for future in futures):
            count[0] += 1
            assert count[0] < 99, "it waits for ever"
            raise TimeoutError

    monkeypatch.setattr(distributed, "wait", wait)
    return count


def computed(client: Any) -> list[tuple[Cell, pd.DataFrame, bool]]:
    return list(cluster.compute(CELLS, client, ignore))


def test_what_is_finished_comes_first_and_a_part_whose_workers_died_is_named(patient: list[int]) -> None:
    table = pd.DataFrame({"a": [1]})
    died = distributed.KilledWorker("task", None, 3)
    (_, first, good), (cell, second, bad) = computed(Client([Future("finished", table), Future("error", died)]))
    assert first is table
    assert (good, bad) == (True, False)
    assert cell is CELLS[1]
    assert "every worker that had it died" in str(problems(second)[0][1])


def test_a_cluster_may_be_without_workers_for_a_minute(patient: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds pass at each look: its workers are gone from the first look to the third, and again from the fifth."""
    client = Client([Future("pending"), Future("pending")])
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: 10.0 * patient[0]))
    monkeypatch.setattr(client, "sync", lambda *given, **named: {"workers": {"w": 1} if patient == [4] else {}})
    with pytest.raises(cluster.ClusterLost, match="no worker for 60 s"):
        computed(client)
    assert patient == [12], "at 110 s it was without for 60 s, and not for more"
    client.scheduler = None  # type: ignore[assignment]
    with pytest.raises(cluster.ClusterLost, match="cluster: its scheduler stopped answering"):
        cluster._look(client, None)  # type: ignore[arg-type]


def test_a_scheduler_that_dies(patient: list[int]) -> None:
    with pytest.raises(cluster.ClusterLost, match="cluster: its scheduler stopped answering"):
        computed(Client([Future("cancelled"), Future("pending")]))


@pytest.mark.parametrize(
    ("future", "cause"),
    [
        (Future("finished", "another"), "its worker w has another version of dpviz"),
        (Future("pending"), "its worker w does not answer"),
        (Future("error", ModuleNotFoundError("No module named 'dpviz'")), "its worker w cannot load dpviz: No module"),
        (Future("error", RuntimeError("no")), "its worker w failed: RuntimeError: no"),
        (Future("cancelled"), "cluster: its scheduler stopped answering"),
    ],
)
def test_a_worker_that_cannot_be_used_is_named(patient: list[int], future: Future, cause: str) -> None:
    cluster.check_workers(Client([Future("finished", engine_version())], {"w": 1}), "tcp://x:1")  # type: ignore[arg-type]
    assert_refused(cluster.check_workers, Client([future], {"w": 1}), "tcp://x:1", match=cause)


class Gone(Future):
    """Its worker dies when its result is asked for; another worker has it at the next question."""

    def result(self, timeout: float) -> Any:
        self.result = super().result  # type: ignore[method-assign]
        raise TimeoutError


def test_a_result_that_is_lost_with_its_worker_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask calls it lost until another worker has computed it."""
    table, lost = pd.DataFrame({"a": [1]}), Future("lost")
    lost.value = table

    def wait(futures: list[Future], **named: Any) -> None:
        if futures == [lost] and lost.status == "lost":
            lost.status = "finished"
            raise TimeoutError

    monkeypatch.setattr(distributed, "wait", wait)
    results = computed(Client([lost, Gone("finished", table)], {"a worker": 1}))
    assert [(found is table, good) for _, found, good in results] == [(True, True)] * 2


def test_a_failed_part_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dpviz.experiments.sweeps.cells._compute",
        lambda cells, *rest: ((cell, cluster.failed_cell(cell, "x"), False) for cell in cells),
    )
    store = CellStore(tmp_path)
    assert all(problems(table) for table in attempts(CELLS, store=store))
    assert not list(tmp_path.iterdir())


class Cluster:
    """A scheduler and workers in processes of their own."""

    def __init__(self, folder: Path) -> None:
        file = folder / "scheduler.json"
        self._folder = folder
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler's start")
        self.address = str(pd.read_json(file, typ="series")["address"])
        self.workers = [self._start("dask_worker", self.address, "--no-nanny", "--nthreads", "1") for _ in range(2)]

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(Path(dpviz.__file__).parents[1])},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(LIMIT)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        with distributed.Client(made.address) as client:
            client.wait_for_workers(2, timeout=LIMIT)
        yield made
    finally:
        made.stop()


FLAGS = ["--dataset", "teaching", "--mechanisms", "dp-gd,cms-output", "--epsilons", "0.3,3"]


@pytest.mark.long
def test_a_worker_that_dies_in_the_middle_of_a_sweep(
    machines: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def kill(bar: object, done: float) -> None:
        if 0 < done < 1:
            machines.workers[0].send_signal(signal.SIGKILL)

    spec = SweepSpec(dataset="teaching", mechanisms={"dp-gd": {}, "cms-output": {}}, epsilons=[0.3, 3.0], seeds=40)
    expected = run_sweep(spec)
    monkeypatch.setattr(Bar, "__call__", kill)
    monkeypatch.setattr("dpviz.experiments.sweeps.cell.run_epsilons", None)  # here nothing can be computed, there it can
    arguments = ["sweep", *FLAGS, "--seeds", "40", "--out", str(tmp_path / "a.csv"), "--no-cache"]
    assert main([*arguments, "--scheduler", machines.address]) == 0
    assert capsys.readouterr().err == ""
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), expected, check_dtype=False)
