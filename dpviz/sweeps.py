"""Many runs as one job: cells that are computed one by one or side by side, kept on disk, and resumed.

A cell is one mechanism at all epsilons for a block of seeds. Cells come in an order that fills the whole picture
coarsely first: the first block of every mechanism, then the second.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.datasets.uploads import is_upload
from dpviz.engine import run_epsilons, tidy
from dpviz.mechanisms import Monitor
from dpviz.mechanisms.base import silent
from dpviz.spec import RunSpec
from dpviz.validate import InvalidInput, show

DEFAULT_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SEED_BLOCK = 10


@dataclass(frozen=True)
class Cell:
    """One unit of work: a run at several epsilons, for some of its replicas."""

    spec: RunSpec
    epsilons: tuple[float, ...]
    replicas: range

    def key(self) -> str:
        """SHA-256 of all that decides the numbers; the name of the cell's file."""
        values = json.loads(self.spec.key())
        del values["epsilon"], values["seeds"]
        values |= {"epsilons": self.epsilons, "replicas": [self.replicas.start, self.replicas.stop]}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def compute(self, monitor: Monitor = silent) -> pd.DataFrame:
        """The cell's tidy table."""
        results = run_epsilons(self.spec, self.epsilons, instances=False, replicas=self.replicas, monitor=monitor)
        return pd.concat([tidy(result) for result in results], ignore_index=True)


@dataclass(frozen=True)
class SweepSpec:
    """A whole figure as a value: mechanisms x epsilons x seeds on one dataset and model.

    Attributes:
        mechanisms: ids, or a mapping from id to knobs.
        epsilons: budgets, each > 0, no duplicates; kept in ascending order.
        (others as in `RunSpec`)

    Raises:
        InvalidInput: at construction, for the first bad value in any cell.
    """

    dataset: str = "breast-cancer"
    model: str = "logistic"
    mechanisms: Mapping[str, Mapping[str, Any]] | Iterable[str] = ("output-gaussian", "dp-gd")
    epsilons: Sequence[float] = DEFAULT_EPSILONS
    seeds: int = 10
    delta: float | None = None
    lam: float = 1e-3
    split_seed: int = 0
    seed: int = 0
    intercept: bool = True

    def __post_init__(self) -> None:
        chosen = self.mechanisms
        if isinstance(chosen, str):
            chosen = (chosen,)
        named = dict(chosen) if isinstance(chosen, Mapping) else {name: {} for name in chosen}
        if not named:
            raise InvalidInput("mechanisms", "none was given", "Choose at least one mechanism.")
        if isinstance(self.epsilons, str) or len(tuple(self.epsilons)) == 0:
            raise InvalidInput("epsilons", f"must be a list of budgets, got {show(self.epsilons)}", "Give at least one above 0.")
        # every epsilon is validated with the first mechanism, every mechanism with the first epsilon
        values = [self._run(next(iter(named)), {}, e).epsilon for e in self.epsilons]
        if len(set(values)) < len(values):
            raise InvalidInput("epsilons", "a budget is given twice", "Give each budget once.")
        specs = {name: self._run(name, params, values[0]) for name, params in named.items()}
        object.__setattr__(self, "mechanisms", {name: dict(spec.params) for name, spec in specs.items()})
        object.__setattr__(self, "epsilons", tuple(sorted(values)))
        object.__setattr__(self, "delta", next(iter(specs.values())).delta)

    def _run(self, mechanism: str, params: Mapping[str, Any], epsilon: float) -> RunSpec:
        return RunSpec(
            dataset=self.dataset, model=self.model, mechanism=mechanism, epsilon=epsilon, delta=self.delta, lam=self.lam,
            seeds=self.seeds, split_seed=self.split_seed, seed=self.seed, params=params, intercept=self.intercept,
        )  # fmt: skip

    def runs(self) -> list[RunSpec]:
        """One run per mechanism, at the smallest epsilon."""
        assert isinstance(self.mechanisms, Mapping)
        return [self._run(name, params, self.epsilons[0]) for name, params in self.mechanisms.items()]

    def cells(self) -> list[Cell]:
        """All cells, coarse picture first."""
        blocks = [range(start, min(start + SEED_BLOCK, self.seeds)) for start in range(0, self.seeds, SEED_BLOCK)]
        return [Cell(run, tuple(self.epsilons), block) for block in blocks for run in self.runs()]

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> SweepSpec:
        """A spec from a TOML file with the fields as keys; knobs go into [mechanisms."id"] tables.

        Raises:
            InvalidInput: the file cannot be read, is not TOML, or has an unknown key or a bad value.
        """
        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInput(
                "spec file", f"cannot be read: {error.strerror}", f"Check the path {os.fspath(path)!r}."
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput("spec file", f"is not TOML: {error}", "Correct the file.") from error
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise InvalidInput("spec file", f"has an unknown key {name!r}", f"Use: {', '.join(sorted(known))}.")
        return cls(**values)

    def to_toml(self) -> str:
        """The spec as a TOML document that `from_toml` reads back."""
        assert isinstance(self.mechanisms, Mapping)
        lines = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "mechanisms":
                lines.append(f"{f.name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}")
        for name, params in self.mechanisms.items():
            lines += ["", f"[mechanisms.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in params.items())]
        return "\n".join(lines) + "\n"


class CellStore:
    """Finished cells as files: written at once or not at all, checked when read.

    Attributes:
        folder: where the files are; made when first written to.
        notices: what a person should know, one line for each damaged file that was set aside.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.notices: list[str] = []

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.cell"

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A damaged file is renamed, noted, and counts as not there."""
        path = self._path(cell.key())
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        digest, _, payload = content.partition(b"\n")
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            aside = path.with_suffix(".damaged")
            os.replace(path, aside)
            self.notices.append(f"A stored result was damaged; it was set aside as {aside.name} and is computed again.")
            return None
        return pd.read_parquet(io.BytesIO(payload))

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell."""
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        payload = buffer.getvalue()
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path(cell.key()))
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def run_cells(
    cells: Sequence[Cell],
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
) -> Iterator[pd.DataFrame]:
    """Yields each cell's table as it is finished, stored ones first.

    Args:
        store: where finished cells are kept and looked for.
        n_jobs: cells computed at once; above 1, or under an active `joblib.parallel_config`, through joblib.
        monitor: told the share of all cells that is done; raises to cancel.
    """
    todo = []
    finished = 0.0
    for cell in cells:
        known = store.get(cell) if store and not is_upload(cell.spec.dataset) else None
        if known is None:
            todo.append(cell)
        else:
            finished += 1
            yield known
    for cell, table in _compute(todo, n_jobs, lambda done: monitor((finished + done) / max(len(cells), 1))):
        if store and not is_upload(cell.spec.dataset):  # nothing of an upload goes to the disk
            store.put(cell, table)
        yield table


def _compute(cells: Sequence[Cell], n_jobs: int, monitor: Monitor) -> Iterator[tuple[Cell, pd.DataFrame]]:
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    if n_jobs == 1 and type(get_active_backend()[0]).__name__ not in ("DaskDistributedBackend", "RayBackend"):
        for k, cell in enumerate(cells):
            yield cell, cell.compute(lambda done, k=k: monitor(k + done))
            monitor(k + 1)
        return
    # an upload lives in this process only
    threads = {"prefer": "threads"} if any(is_upload(cell.spec.dataset) for cell in cells) else {}
    tables = Parallel(n_jobs=n_jobs, return_as="generator", **threads)(delayed(Cell.compute)(cell) for cell in cells)
    for k, (cell, table) in enumerate(zip(cells, tables, strict=True)):
        monitor(k + 1)
        yield cell, table


def run_sweep(
    spec: SweepSpec,
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
    on_cell: Callable[[pd.DataFrame], None] | None = None,
) -> pd.DataFrame:
    """All cells of a sweep as one tidy table, rows ordered by mechanism, epsilon and seed.

    Returns:
        Columns: dataset, model, mechanism, epsilon, delta, lam, seed (0 .. seeds-1), accuracy, train_accuracy,
        objective, optimality_gap, expected_accuracy (NaN without closed form), sensitivity, noise_scale,
        claimed_epsilon, proved_epsilon (NaN where there is none), status, neighbouring, non_private_accuracy,
        majority_accuracy.
    """
    parts = []
    for table in run_cells(spec.cells(), store=store, n_jobs=n_jobs, monitor=monitor):
        parts.append(table)
        if on_cell:
            on_cell(table)
    monitor(1.0)
    return in_order(pd.concat(parts, ignore_index=True), spec)


def in_order(table: pd.DataFrame, spec: SweepSpec) -> pd.DataFrame:
    """Rows by mechanism (as in the spec), epsilon and seed; closed forms averaged over the blocks of seeds."""
    rank = {name: k for k, name in enumerate(spec.mechanisms)}
    table = table.assign(_rank=table["mechanism"].map(rank)).sort_values(["_rank", "epsilon", "seed"], kind="stable")
    table["expected_accuracy"] = table.groupby(["mechanism", "epsilon"])["expected_accuracy"].transform("mean")
    return table.drop(columns="_rank").reset_index(drop=True)


def sweep(
    dataset: str = "breast-cancer",
    model: str = "logistic",
    mechanisms: Mapping[str, Mapping[str, Any]] | Iterable[str] = ("output-gaussian", "dp-gd"),
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    seeds: int = 10,
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
    **fixed: Any,
) -> pd.DataFrame:
    """`run_sweep` of `SweepSpec(dataset, model, mechanisms, epsilons, seeds, **fixed)`; see there for columns and errors."""
    spec = SweepSpec(dataset=dataset, model=model, mechanisms=mechanisms, epsilons=epsilons, seeds=seeds, **fixed)
    return run_sweep(spec, store=store, n_jobs=n_jobs, monitor=monitor)
