"""Time and memory of every mechanism against the number of rows: a process of its own for each mechanism and size."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.measure import Row, child, three
from benchmarks.peers.rows import those_that_fit
from benchmarks.peers.serving import clock
from dpviz.common.random import spawn
from dpviz.datasets import load_dataset
from dpviz.mechanisms import Training, get_mechanism
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.models.products import compiled
from dpviz.privacy.budget import Budget, default_delta

EPSILONS = (0.5, 5.0)
SEEDS = 1


def growth(sizes: list[int], repeats: int) -> list[Row]:
    """CPU time and peak memory of every mechanism at each size, and how far time is from growing as the rows do."""
    names = those_that_fit("census-5000")
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            rows = _rows(Path(folder), size)
            for name in names:
                taken[name].append(child(__name__, {"rows": str(rows), "mechanisms": [name], "repeats": repeats})[name])
            rows.unlink()
    seconds = {name: [min(run["cpu"]) for run in runs] for name, runs in taken.items()}
    memory = {name: max(run["memory"] for run in runs) for name, runs in taken.items()}
    more = sizes[-1] / sizes[0]
    excess = {name: times[-1] / times[0] / more for name, times in seconds.items()}
    steepest, hungriest = max(excess, key=lambda n: excess[n]), max(memory, key=lambda n: memory[n])
    where = f"{sizes[0]:,} to {sizes[-1]:,} people of the synthetic census"
    return [
        Row(
            f"Time against rows, {where}: largest growth of time over growth of rows",
            f"{excess[steepest]:.2f} ({steepest})",
            "",
            "at most 1.1",
            excess[steepest] <= 1.1,
            (
                f"CPU seconds of training {len(EPSILONS)} budgets x {SEEDS} seed(s), best of {repeats}, at "
                f"{', '.join(f'{size:,}' for size in sizes)} rows: "
                + "; ".join(f"{name} {', '.join(map(three, seconds[name]))} ({excess[name]:.2f})" for name in names)
                + ".",
            ),
            {"sizes": sizes, "seconds": seconds, "excess": excess},
        ),
        Row(
            f"Peak memory of training on up to {sizes[-1]:,} people over the data",
            f"{memory[hungriest]:.2f} ({hungriest})",
            "",
            "at most 3",
            memory[hungriest] <= 3,
            (
                "Largest resident size while training minus the size before, the data itself already there: "
                + ", ".join(f"{name} {three(memory[name])}" for name in names)
                + ".",
            ),
            {"memory": memory},
        ),
    ]


def _rows(folder: Path, size: int) -> Path:
    """Training rows of the census as a file that loads without a detour through more memory."""
    dataset = load_dataset(f"census-{size}")
    path = folder / f"{size}.npy"
    train = dataset.split(0).train
    np.save(path, np.column_stack([dataset.X[train], dataset.y[train]]))
    return path


def _train(rows: str, mechanisms: list[str], repeats: int) -> dict[str, Any]:
    table = np.load(rows)
    x, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()
    del table
    _warm(x, y, mechanisms)
    out: dict[str, Any] = {}
    for name in mechanisms:
        mechanism = get_mechanism(name)()
        setting = get_model("logistic").setting(len(y), x.shape[1], 1e-3)
        calibrations = [mechanism.calibrate(setting, Budget(e, default_delta(len(y)))) for e in EPSILONS]
        before = _reset_peak()
        taken: dict[str, list[float]] = {"wall": [], "cpu": []}
        for _ in range(repeats):
            # nothing derived from the rows is kept from one round to the next
            problem = Problem(Rows(x, y), get_model("logistic"), 1e-3)
            begun = clock()
            mechanism.fit(Training(problem, calibrations, spawn(0, SEEDS), record=False))
            wall, cpu = clock() - begun
            taken["wall"].append(wall), taken["cpu"].append(cpu)
        out[name] = taken | {"memory": (_status("VmHWM") - before) / (x.nbytes + y.nbytes)}
    return out


def _warm(x: np.ndarray, y: np.ndarray, mechanisms: list[str]) -> None:
    """Imports and BLAS buffers, which do not grow with the data, so that they count for none."""
    compiled()  # loaded for large tables only
    small = Problem(Rows(x[:2000].copy(), y[:2000].copy()), get_model("logistic"), 1e-3)
    for name in mechanisms:
        mechanism = get_mechanism(name)()
        mechanism.fit(Training(small, [mechanism.calibrate(small.setting, Budget(1.0, 1e-6))], spawn(0, 1), record=False))


def _status(field: str) -> int:
    """A line of /proc/self/status, in bytes. (ru_maxrss will not do: a child starts with its parent's.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def _reset_peak() -> int:
    """Makes the peak the present size, which is returned."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


if __name__ == "__main__":
    print(json.dumps(_train(**json.loads(sys.argv[1]))))
