"""Finished cells as files.

They are written at once or not at all and checked when read, so that whatever stops the work, what was finished stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype, is_string_dtype
from pyarrow import ArrowException

from dpviz.common import files
from dpviz.datasets.catalogue import only_here
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.run.metrics import METRICS, get_metric
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.sweeps.cell import Cell

STORE_BYTES = 1 << 30
#: columns of a cell's table before those of metrics beside accuracy
_FIRST = (
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
    "expected_balanced_accuracy",
)
_TEXTS = ("dataset", "model", "mechanism", "status", "neighbouring")


def columns(cell: Cell) -> tuple[str, ...]:
    """Columns of a cell's table, those of `run.tidy`."""
    measured = [metric.column for metric in (*METRICS.values(), *map(get_metric, cell.metrics)) if metric.id != "accuracy"]
    return (*_FIRST, *(f"{model}{name}" for model in ("", "non_private_", "majority_") for name in measured))


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
            self.notices.append(f"A stored result was damaged; it was set aside as a {aside.suffix} file and is computed again.")
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload; where that is impossible the work goes on, with a notice."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        try:
            files.write(self._path(cell.key()), _encoded(table, cell))
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


def _encoded(table: pd.DataFrame, cell: Cell) -> bytes:
    """A cell's file: the SHA-256 of the rest in hexadecimal, a line break, the table as Parquet."""
    if len(table) and tuple(table.columns) != columns(cell):
        raise ValueError(f"a cell's table has other columns than it should: {list(table.columns)}")
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
    if only_here(cell.spec.dataset) and "dataset" in table:
        table["dataset"] = cell.spec.dataset  # their random name in this process
    return table if _is_table_of(table, cell) else None


def _is_table_of(table: pd.DataFrame, cell: Cell) -> bool:
    """Whether a table has the columns, kinds, rows and attributes that `cell.attempt()` gives."""
    refused, took = table.attrs.get("problems", []), table.attrs.get("seconds", 0.0)
    if not isinstance(took, float) or not isinstance(refused, list) or not all(map(_is_problem, refused)):
        return False
    open_ones = sorted((e, s) for e in cell.epsilons for s in cell.replicas if e not in {p[0] for p in refused})
    if not len(table):
        return not open_ones
    spec = resolve(cell.spec).spec  # tables have the dataset's canonical name
    names = columns(cell)
    return (
        tuple(table.columns) == names
        and all(is_string_dtype(table[c]) if c in _TEXTS else is_numeric_dtype(table[c]) for c in names)
        and sorted(zip(table["epsilon"], table["seed"], strict=True)) == open_ones
        and (table[["dataset", "model", "mechanism"]] == [spec.dataset, spec.model, spec.mechanism]).all(axis=None)
    )


def _is_problem(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) == 4 and isinstance(value[0], float) and all(isinstance(t, str) for t in value[1:])
    )
