"""Cells, the units of long work: computed one by one or side by side, kept on disk, and resumed.

A cell is one run at several epsilons for some of its seeds. Finished cells are files that are written at once or not at
all and checked when read, so that whatever stops the work, what was finished stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype, is_string_dtype
from pyarrow import ArrowException

from dpviz.common import files
from dpviz.common.progress import Monitor, silent
from dpviz.common.validate import InvalidInput
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.resolve import resolve
from dpviz.experiments.run import run_epsilons, tidy
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec

STORE_BYTES = 1 << 30
#: columns of a cell's table, those of `run.tidy`
COLUMNS = (
    "dataset",
    "model",
    "mechanism",
    "epsilon",
    "delta",
    "lam",
    "seed",
    "accuracy",
    "train_accuracy",
    "objective",
    "optimality_gap",
    "expected_accuracy",
    "sensitivity",
    "noise_scale",
    "claimed_epsilon",
    "proved_epsilon",
    "status",
    "neighbouring",
    "non_private_accuracy",
    "majority_accuracy",
)
_TEXTS = ("dataset", "model", "mechanism", "status", "neighbouring")


@dataclass(frozen=True)
class Cell:
    """One unit of work: a run at several epsilons, for some of its replicas."""

    spec: RunSpec
    epsilons: tuple[float, ...]
    replicas: range

    def key(self) -> str:
        """SHA-256 of all that decides the numbers; the name of the cell's file."""
        values = json.loads(resolve(self.spec).key())
        del values["epsilon"], values["seeds"]
        values |= {"epsilons": self.epsilons, "replicas": [self.replicas.start, self.replicas.stop]}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def compute(self, monitor: Monitor = silent) -> pd.DataFrame:
        """The cell's tidy table.

        Raises:
            InvalidInput: the mechanism refuses one of the budgets, or diverges.
        """
        results = run_epsilons(self.spec, self.epsilons, instances=False, replicas=self.replicas, monitor=monitor)
        return pd.concat([tidy(result) for result in results], ignore_index=True)

    def attempt(self, monitor: Monitor = silent) -> pd.DataFrame:
        """The cell's tidy table without the budgets that cannot be computed, which `problems` gives with the reason.

        How long it took is in `seconds`.
        """
        _ = setup_for(self.spec).non_private  # shared by all cells, so it counts for none
        start = time.perf_counter()
        refused: list[tuple[float | None, InvalidInput]] = []
        try:
            table = self.compute(monitor)
        except InvalidInput as problem:
            table = pd.DataFrame()
            if len(self.epsilons) == 1:
                refused.append((self.epsilons[0], problem))
            else:
                table = self._one_by_one(refused, monitor)
        table.attrs = {
            "seconds": time.perf_counter() - start,
            "problems": [[epsilon, p.field, p.cause, p.fix] for epsilon, p in refused],
        }
        return table

    def _one_by_one(self, refused: list[tuple[float | None, InvalidInput]], monitor: Monitor) -> pd.DataFrame:
        parts = []
        setting, mechanism = setup_for(self.spec).problem.setting, self.spec.build()
        able: list[float] = []
        for epsilon in self.epsilons:
            try:
                mechanism.calibrate(setting, resolve(replace(self.spec, epsilon=epsilon)).budget)
                able.append(epsilon)
            except InvalidInput as problem:
                refused.append((epsilon, problem))
        # where every budget can be met, training itself failed, perhaps for some budgets only
        groups = [(e,) for e in able] if len(able) == len(self.epsilons) else [tuple(able)]
        share = 1 / len(groups)
        for k, group in enumerate(groups):
            if not group:
                continue
            try:
                parts.append(replace(self, epsilons=group).compute(lambda done, k=k: monitor((k + done) * share)))
            except InvalidInput as problem:
                refused.extend((epsilon, problem) for epsilon in group)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def problems(table: pd.DataFrame) -> list[tuple[float, InvalidInput]]:
    """What `Cell.attempt` could not compute: (epsilon, why)."""
    return [(epsilon, InvalidInput(field, cause, fix)) for epsilon, field, cause, fix in table.attrs.get("problems", [])]


def seconds(table: pd.DataFrame) -> float:
    """How long `Cell.attempt` took, NaN where that is not known."""
    return float(table.attrs.get("seconds", float("nan")))


class CellStore:
    """Finished cells as files: written at once or not at all, checked when read.

    A folder that cannot be read or written is no error: everything is computed, and one notice says so.

    Attributes:
        folder: where the files are; made when first written to.
        notices: what a person should know, one line for each damaged file that was set aside, and one where nothing
            can be kept.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.notices: list[str] = []
        self._refused = False

    @classmethod
    def personal(cls) -> CellStore:
        """The store in `cache_folder()`, which the app and the shell share; the oldest cells beyond 1 GiB are deleted."""
        store = cls(files.cache_folder() / "cells")
        store.prune()
        return store

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.cell"

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A file that is damaged or is no cell is renamed, noted, and counts as not there."""
        if is_upload(cell.spec.dataset):
            return None
        path = self._path(cell.key())
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._cannot(error)
            return None
        table = _decoded(content, cell)
        if table is None:
            aside = path.with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(path, aside)
            self.notices.append(f"A stored result was damaged; it was set aside as {aside.name} and is computed again.")
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload; where that is impossible the work goes on, with a notice."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        try:
            files.write(self._path(cell.key()), _encoded(table))
        except OSError as error:
            self._cannot(error)

    def _cannot(self, error: OSError) -> None:
        if not self._refused:
            self._refused = True
            self.notices.append(
                f"Results cannot be kept in {self.folder} ({error.strerror}); after a restart they are computed again."
            )

    def prune(self, most: int = STORE_BYTES, *, stale: float = 86_400.0) -> None:
        """Deletes the oldest files until at most `most` bytes are left, and half-written ones older than `stale` seconds."""
        files.remove_stale_parts(self.folder, stale)
        kept: list[tuple[float, int, Path]] = []
        for path in [*files.found(self.folder, "*.cell"), *files.found(self.folder, "*.damaged")]:
            with contextlib.suppress(OSError):
                status = path.stat()
                kept.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= most:
                break
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size


def _encoded(table: pd.DataFrame) -> bytes:
    """A cell's file: the SHA-256 of the rest in hexadecimal, a line break, the table as Parquet."""
    if len(table) and tuple(table.columns) != COLUMNS:
        raise ValueError(f"a cell's table has other columns than COLUMNS: {list(table.columns)}")
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    payload = buffer.getvalue()
    return hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


def _decoded(content: bytes, cell: Cell) -> pd.DataFrame | None:
    """The table in a cell's file; None where the file is damaged or holds anything else than this cell."""
    digest, _, payload = content.partition(b"\n")
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        return None
    try:
        table = pd.read_parquet(io.BytesIO(payload))
    except (
        ArrowException,
        ArithmeticError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ):  # what a reader of wrong bytes may raise
        return None
    return table if _is_table_of(table, cell) else None


def _is_table_of(table: pd.DataFrame, cell: Cell) -> bool:
    """Whether a table has the columns, kinds, rows and attributes that `cell.attempt()` gives."""
    refused, took = table.attrs.get("problems", []), table.attrs.get("seconds", 0.0)
    if not isinstance(took, float) or not isinstance(refused, list) or not all(map(_is_problem, refused)):
        return False
    open_ones = sorted((e, s) for e in cell.epsilons for s in cell.replicas if e not in {p[0] for p in refused})
    if not len(table):
        return not open_ones
    return (
        tuple(table.columns) == COLUMNS
        and all(is_string_dtype(table[c]) if c in _TEXTS else is_numeric_dtype(table[c]) for c in COLUMNS)
        and sorted(zip(table["epsilon"], table["seed"], strict=True)) == open_ones
        and (table[["dataset", "model", "mechanism"]] == [cell.spec.dataset, cell.spec.model, cell.spec.mechanism]).all(axis=None)
    )


def _is_problem(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) == 4 and isinstance(value[0], float) and all(isinstance(t, str) for t in value[1:])
    )


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

    Raises:
        InvalidInput: a cell cannot be computed.
    """
    for table in attempts(cells, store=store, n_jobs=n_jobs, monitor=monitor):
        for _, problem in problems(table):
            raise problem
        yield table


def attempts(
    cells: Sequence[Cell],
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = silent,
) -> Iterator[pd.DataFrame]:
    """`run_cells` that goes on where a cell cannot be computed: its table lacks those rows, and `problems` says why."""
    todo = []
    finished = 0.0
    for cell in cells:
        known = store.get(cell) if store else None
        if known is None:
            todo.append(cell)
        else:
            finished += 1
            yield known
    monitor(finished / max(len(cells), 1))
    for cell, table in _compute(todo, n_jobs, lambda done: monitor((finished + done) / max(len(cells), 1))):
        if store:
            store.put(cell, table)
        yield table


def _attempt(cell: Cell) -> pd.DataFrame:
    """`Cell.attempt` in a worker: a process whose parent was killed ends with it."""
    parent = multiprocessing.parent_process()

    def monitor(done: float) -> None:
        if parent is not None and os.getppid() != parent.pid:
            os._exit(1)

    return cell.attempt(monitor)


def _compute(cells: Sequence[Cell], n_jobs: int, monitor: Monitor) -> Iterator[tuple[Cell, pd.DataFrame]]:
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    if n_jobs == 1 and type(get_active_backend()[0]).__name__ not in ("DaskDistributedBackend", "RayBackend"):
        for k, cell in enumerate(cells):
            yield cell, cell.attempt(lambda done, k=k: monitor(k + done))
            monitor(k + 1)
        return
    # an upload lives in this process only
    threads = {"prefer": "threads"} if any(is_upload(cell.spec.dataset) for cell in cells) else {}
    tables: Any = Parallel(n_jobs=n_jobs, return_as="generator", **threads)(delayed(_attempt)(cell) for cell in cells)
    for k, (cell, table) in enumerate(zip(cells, tables, strict=True)):
        monitor(k + 1)
        yield cell, table
