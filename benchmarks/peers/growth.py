"""Time and memory against the number of rows: one process per size for time, one per mechanism for memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.measure import Row, slope, three

#: one mechanism or two of every class
CLASSES = {
    "reference": ("non-private",),
    "output": ("output-gaussian", "rsgd-ar"),
    "objective": ("cms-objective",),
    "gradient": ("dp-gd", "dp-sgd", "dp-svrg", "dp-agd", "renyi-filter"),
    "input": ("input-perturbation", "fukuchi-input"),
    "local": ("ldp-gaussian",),
}
EPSILONS = tuple(float(e) for e in np.geomspace(0.1, 10.0, 10))
SEEDS = 2


def growth(sizes: list[int], repeats: int) -> list[Row]:
    """Slope of log time over log rows, and the peak memory at the largest size, by mechanism."""
    names = [name for group in CLASSES.values() for name in group]
    with tempfile.TemporaryDirectory() as folder:
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for size in sizes:
            rows = _rows(Path(folder), size)
            taken = _child({"rows": str(rows), "mechanisms": names, "repeats": repeats})
            for name in names:
                seconds[name].append(min(taken[name]["cpu"]))
            if size != sizes[-1]:
                rows.unlink()
        memory = {name: _child({"rows": str(rows), "mechanisms": [name], "repeats": 1})[name]["memory"] for name in names}
    slopes = {name: slope(sizes, seconds[name]) for name in names}
    pieces = {name: slope(sizes[-2:], seconds[name][-2:]) for name in names}
    steepest, hungriest = max(slopes, key=lambda n: slopes[n]), max(memory, key=lambda n: memory[n])
    where = f"{sizes[0]:,} to {sizes[-1]:,} people of the synthetic census"
    return [
        Row(
            f"Time against n, {where}: steepest log-log slope",
            f"{slopes[steepest]:.3f} ({steepest})",
            "",
            "at most 1.05",
            slopes[steepest] <= 1.05,
            (
                f"CPU time of training ({len(EPSILONS)} budgets x {SEEDS} seeds), best of {repeats}; slope over {len(sizes)} "
                "sizes (and over the last two): "
                + ", ".join(f"{name} {slopes[name]:.2f} ({pieces[name]:.2f})" for name in names)
                + ".",
            ),
            {"sizes": sizes, "seconds": seconds, "slopes": slopes},
        ),
        Row(
            f"Peak memory of training on {sizes[-1]:,} people over the data",
            f"{memory[hungriest]:.2f} ({hungriest})",
            "",
            "at most 4",
            memory[hungriest] <= 4,
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
    from dpviz.datasets import load_dataset

    dataset = load_dataset(f"census-{size}")
    path = folder / f"{size}.npy"
    train = dataset.split(0).train
    np.save(path, np.column_stack([dataset.X[train], dataset.y[train]]))
    return path


def _child(request: dict[str, Any]) -> dict[str, Any]:
    """Trains in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.growth", json.dumps(request)]
    root = Path(__file__).resolve().parents[2]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _train(rows: str, mechanisms: list[str], repeats: int) -> dict[str, Any]:
    from benchmarks.peers.serving import clock
    from dpviz.common.random import spawn
    from dpviz.mechanisms import Training, get_mechanism
    from dpviz.models import Rows, get_model
    from dpviz.models.problem import Problem
    from dpviz.privacy.budget import Budget, default_delta

    table = np.load(rows)
    x, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()
    del table
    _warm(x, y)
    problem = Problem(Rows(x, y), get_model("logistic"), 1e-3)
    out: dict[str, Any] = {}
    for name in mechanisms:
        mechanism = get_mechanism(name)()
        calibrations = [mechanism.calibrate(problem.setting, Budget(e, default_delta(problem.n))) for e in EPSILONS]
        before = _reset_peak()
        taken: dict[str, list[float]] = {"wall": [], "cpu": []}
        for _ in range(repeats):
            begun = clock()
            mechanism.fit(Training(problem, calibrations, spawn(0, SEEDS), record=False))
            wall, cpu = clock() - begun
            taken["wall"].append(wall), taken["cpu"].append(cpu)
        out[name] = taken | {"memory": (_status("VmHWM") - before) / (x.nbytes + y.nbytes)}
    return out


def _warm(x: np.ndarray, y: np.ndarray) -> None:
    """Imports and BLAS buffers, which do not grow with the data, so that they count for none."""
    from dpviz.common.random import spawn
    from dpviz.mechanisms import Training, get_mechanism
    from dpviz.models import Rows, get_model
    from dpviz.models.problem import Problem
    from dpviz.privacy.budget import Budget

    small = Problem(Rows(x[:2000].copy(), y[:2000].copy()), get_model("logistic"), 1e-3)
    for name in (name for group in CLASSES.values() for name in group):
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
