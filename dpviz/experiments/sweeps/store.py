"""Finished cells as files.

They are written at once or not at all and checked when read, so that whatever stops the work, what was finished stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.common import files
from dpviz.datasets.catalogue import only_here
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.run.metrics import METRICS, get_metric
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.sweeps.cell import Cell
from dpviz.privacy.budget import Neighbouring, Status

STORE_BYTES = 1 << 30
_CELL_BYTES = 1 << 26  # of one file

Check = Callable[[object], bool]


def _number(low: float, high: float, *, missing: bool = False) -> Check:
    """Checks a finite number in a range; `missing` takes NaN, which stands for no value."""
    return lambda v: isinstance(v, float) and (low <= v <= high or (missing and math.isnan(v)))


def _one_of(*values: object) -> Check:
    """Checks one of a few values, of the same type."""
    return lambda v: any(type(v) is type(value) and v == value for value in values)


_MOST = 1.7e308  # any finite number
_SLACK = 1e-9  # rounding of a mean of shares
_SHARE, _SHARE_OR_NONE = _number(-_SLACK, 1 + _SLACK), _number(-_SLACK, 1 + _SLACK, missing=True)
_POSITIVE_OR_NONE = _number(0.0, _MOST, missing=True)


def columns(cell: Cell) -> dict[str, Check]:
    """Columns of a cell's table, those of `run.tidy`, and what each value may be."""
    resolved = resolve(cell.spec)
    spec = resolved.spec  # tables have the dataset's canonical name
    measured = [metric for metric in (*METRICS.values(), *map(get_metric, cell.metrics)) if metric.id != "accuracy"]
    return {
        "dataset": _one_of(spec.dataset),
        "model": _one_of(spec.model),
        "mechanism": _one_of(spec.mechanism),
        "epsilon": _one_of(*cell.epsilons),
        "delta": _one_of(resolved.budget.delta),
        "lam": _one_of(*(resolved.at(epsilon).lam for epsilon in cell.epsilons)),
        "seed": _one_of(*cell.replicas),
        "accuracy": _SHARE,
        "train_accuracy": _SHARE,
        "objective": _number(-_MOST, _MOST),
        "optimality_gap": _number(-_MOST, _MOST),
        "expected_accuracy": _SHARE_OR_NONE,
        "sensitivity": _POSITIVE_OR_NONE,
        "noise_scale": _POSITIVE_OR_NONE,
        "claimed_epsilon": _POSITIVE_OR_NONE,
        "proved_epsilon": _POSITIVE_OR_NONE,
        "status": _one_of(*(status.value for status in Status)),
        "neighbouring": _one_of(*(relation.value for relation in Neighbouring)),
        "non_private_accuracy": _SHARE,
        "majority_accuracy": _SHARE,
        "expected_balanced_accuracy": _SHARE_OR_NONE,
    } | {
        f"{model}{metric.column}": _SHARE_OR_NONE if metric.shares else _POSITIVE_OR_NONE
        for model in ("", "non_private_", "majority_")
        for metric in measured
    }


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
        key = cell.key()
        path, table = self._path(key), None
        try:
            table = _decoded(files.read_own(path, _CELL_BYTES), cell, key)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._cannot(error)
            return None
        except files.Untrusted:
            pass
        if table is None:
            aside = path.with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(path, aside)
            self.notices.append(
                f"A stored result was damaged, or others can write it. It is set aside as {aside.suffix} and computed again."
            )
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload; where that is impossible the work goes on, with a notice."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        if len(table) and list(table.columns) != list(columns(cell)):
            raise ValueError(f"a cell's table has other columns than it should: {list(table.columns)}")
        key = cell.key()
        try:
            files.write(self._path(key), _encoded(table, key), mode=0o600)
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


def _encoded(table: pd.DataFrame, key: str) -> bytes:
    """A cell's file: the SHA-256 of the cell's key and the rest in hexadecimal, a line break, the table as JSON."""
    content = json.dumps({"columns": table.to_dict("list"), "attributes": table.attrs}).encode()
    return _digest(key, content) + b"\n" + content


def _decoded(content: bytes, cell: Cell, key: str) -> pd.DataFrame | None:
    """The table in a cell's file; None where the file is damaged or holds anything else than this cell."""
    digest, _, content = content.partition(b"\n")
    if _digest(key, content) != digest:
        return None
    try:
        values = json.loads(content)
    except (RecursionError, ValueError):
        return None
    found, attributes = (values.get("columns"), values.get("attributes")) if isinstance(values, dict) else (None, None)
    if only_here(cell.spec.dataset) and isinstance(found, dict) and isinstance(found.get("dataset"), list):
        found["dataset"] = [cell.spec.dataset] * len(found["dataset"])  # their random name in this process
    if not _is_table_of(found, attributes, cell):
        return None
    table = pd.DataFrame(found)
    table.attrs = attributes
    return table


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).hexdigest().encode()


def _is_table_of(found: Any, attributes: Any, cell: Cell) -> bool:
    """Checks that columns and attributes are such as `cell.attempt()` gives: names, types, ranges, rows and this very run."""
    if not isinstance(found, dict) or not isinstance(attributes, dict):
        return False
    refused = attributes.get("problems", [])
    if not isinstance(refused, list) or not all(_is_problem(one, cell) for one in refused):
        return False
    if not _number(0.0, _MOST)(attributes.get("seconds", 0.0)):
        return False
    open_ones = sorted((e, s) for e in cell.epsilons for s in cell.replicas if e not in {p[0] for p in refused})
    if not found:
        return not open_ones
    checks = columns(cell)
    return (
        list(found) == list(checks)
        and all(isinstance(v, list) and len(v) == len(open_ones) and all(map(checks[name], v)) for name, v in found.items())
        and sorted(zip(found["epsilon"], found["seed"], strict=True)) == open_ones
    )


def _is_problem(value: object, cell: Cell) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 4
        and _one_of(*cell.epsilons)(value[0])
        and all(isinstance(text, str) for text in value[1:])
    )
