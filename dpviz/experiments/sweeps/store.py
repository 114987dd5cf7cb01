"""Finished cells as files, checked when read, so that whatever stops the work, what was finished stays."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from typing import Any

import pandas as pd

from dpviz.common.kept import Kept
from dpviz.datasets.catalogue import only_here
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.run.metrics import METRICS, get_metric
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.sweeps.cell import Cell
from dpviz.privacy.budget import Neighbouring, Status

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


class CellStore(Kept):
    """Finished cells as files; `notices` has a line for each damaged file that was set aside."""

    room, suffix, what, then = "cells", ".cell", "Results", "after a restart they are computed again"
    most, most_of_all = 1 << 26, 1 << 30

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A file that is damaged or is no cell is renamed, noted, and counts as not there."""
        if is_upload(cell.spec.dataset):
            return None
        key = cell.key()
        content = self.read(key)
        if content is None:
            return None
        table = _decoded(content, cell)
        if table is None:
            aside = self.path(key).with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(self.path(key), aside)
            self.notices.append(
                f"A stored result was damaged, or others can write it. It is set aside as {aside.suffix} and computed again."
            )
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        if len(table) and list(table.columns) != list(columns(cell)):
            raise ValueError(f"a cell's table has other columns than it should: {list(table.columns)}")
        self.write(cell.key(), json.dumps({"columns": table.to_dict("list"), "attributes": table.attrs}).encode())


def _decoded(content: bytes, cell: Cell) -> pd.DataFrame | None:
    """The table in a cell's file; None where it holds anything else than this cell."""
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
