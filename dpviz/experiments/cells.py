"""Cells, the units of long work: computed one by one or side by side, kept on disk, and resumed.

A cell is one run at several epsilons for some of its seeds. Finished cells are files that are written at once or not at
all and checked when read, so that whatever stops the work, what was finished stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.common.progress import Monitor, silent
from dpviz.common.validate import InvalidInput
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.run import run_epsilons, tidy
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec

STORE_BYTES = 1 << 30


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
                mechanism.calibrate(setting, replace(self.spec, epsilon=epsilon).budget)
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


def cache_folder() -> Path:
    """The person's own cache folder: DPVIZ_CACHE, or dpviz in XDG_CACHE_HOME, or ~/.cache/dpviz."""
    given = os.environ.get("DPVIZ_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dpviz"


class CellStore:
    """Finished cells as files: written at once or not at all, checked when read.

    Attributes:
        folder: where the files are; made when first written to.
        notices: what a person should know, one line for each damaged file that was set aside, and one where nothing
            can be kept.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.notices: list[str] = []

    @classmethod
    def personal(cls) -> CellStore:
        """The store in `cache_folder()`, which the app and the shell share; the oldest cells beyond 1 GiB are deleted."""
        store = cls(cache_folder() / "cells")
        store.prune()
        return store

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.cell"

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A damaged file is renamed, noted, and counts as not there."""
        if is_upload(cell.spec.dataset):
            return None
        path = self._path(cell.key())
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note(f"Stored results in {self.folder} cannot be read ({error.strerror}); they are computed again.")
            return None
        digest, _, payload = content.partition(b"\n")
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            aside = path.with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(path, aside)
            self._note(f"A stored result was damaged; it was set aside as {aside.name} and is computed again.")
            return None
        return pd.read_parquet(io.BytesIO(payload))

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload; where that is impossible the work goes on, with a notice."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        payload = buffer.getvalue()
        try:
            self._write(self._path(cell.key()), hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        except OSError as error:
            self._note(f"Results cannot be kept in {self.folder} ({error.strerror}); after a restart they are computed again.")

    def _write(self, path: Path, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _note(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def prune(self, most: int = STORE_BYTES, *, stale: float = 86_400.0) -> None:
        """Deletes the oldest files until at most `most` bytes are left, and half-written ones older than `stale` seconds."""
        files: list[tuple[float, int, Path]] = []
        for path in self.folder.glob("*.*"):
            try:
                status = path.stat()
            except OSError:
                continue
            if path.suffix == ".part" and time.time() - status.st_mtime > stale:
                path.unlink(missing_ok=True)
            elif path.suffix in (".cell", ".damaged"):
                files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= most:
                break
            path.unlink(missing_ok=True)
            total -= size


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
    tables: Any = Parallel(n_jobs=n_jobs, return_as="generator", **threads)(delayed(Cell.attempt)(cell) for cell in cells)
    for k, (cell, table) in enumerate(zip(cells, tables, strict=True)):
        monitor(k + 1)
        yield cell, table
