"""The TOML file beside a table that holds every decision about it, for a person to read, correct and keep."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import tomli_w

from dpviz.common import toml
from dpviz.common.validate import InvalidInput
from dpviz.datasets.base import Dataset
from dpviz.datasets.table.delimiters import DELIMITERS, join_words
from dpviz.datasets.table.encoder import NUMBER
from dpviz.datasets.table.gaps import decisions, mark_all_gaps
from dpviz.datasets.table.proposals import round_range
from dpviz.datasets.table.spec import TableSpec

_HEAD = """\
# Written by `dpviz show TABLE --write-toml`. Each line is a decision about the table beside it: correct what is wrong.
#
# `proposed` names the columns whose range or categories below were proposed from the rows. They are not public knowledge and are
# not covered by epsilon. Take a column off that list when you have given it a range or categories that you know without these
# rows.

"""


def decide_spec(frame: pd.DataFrame, spec: TableSpec, dataset: Dataset) -> TableSpec:
    """The spec that says everything that was left to be found; number columns without a declared range get a round one.

    Args:
        frame: as read.
        spec: what was said.
        dataset: what was made of both.
    """
    assert dataset.encoder is not None
    assert dataset.label is not None
    marked = mark_all_gaps(frame, spec, [])
    ranges, categories = {}, {}
    for column in dataset.encoder.columns:
        if column.kind == NUMBER:
            proposed = round_range(marked[column.name].to_numpy(dtype=float))
            ranges[column.name] = spec.ranges.get(column.name) or proposed or (column.low, column.high)
        else:
            categories[column.name] = column.levels
    positive = () if spec.above is not None else spec.positive or (dataset.label.positive,)
    columns = tuple(column.name for column in dataset.encoder.columns)
    return replace(
        spec,
        positive=positive,
        columns=columns,
        drop=(),
        ranges=ranges,
        categories=categories,
        missing=None,
        missing_in=decisions(frame, spec),
        proposed=tuple(name for name in map(str, frame.columns) if name in dataset.looked_at),
    )


def declarations(dataset: Dataset) -> str:
    """The options of a command that declare all that was read from the rows: round ranges, and the categories."""
    options: list[str] = []
    for column in () if dataset.encoder is None else dataset.encoder.columns:
        name = '"' + column.name.replace('"', '""') + '"' if "=" in column.name else column.name
        if column.name in dataset.looked_at and column.kind == NUMBER:
            ends = round_range(dataset.frame[column.name].to_numpy(dtype=float)) or (column.low, column.low + 1)
            options += ["--range", f"{name}={ends[0]:.12g},{ends[1]:.12g}"]
        elif column.name in dataset.looked_at:
            options += ["--categories", f"{name}={join_words(column.levels, '|')}"]
    return shlex.join(options)


def document(spec: TableSpec, found: Mapping[str, Any]) -> str:
    """The text of the file.

    Args:
        found: how the table was read (`Table.found`).

    Raises:
        InvalidInput: it would be larger than such a file may be.
    """
    words = {"delimiter": DELIMITERS[found["delimiter"]]} if "delimiter" in found else {}
    options = tomli_w.dumps({**found, **words})
    text = _HEAD + options + spec.to_toml()
    if len(text.encode()) > toml.MOST_BYTES:
        cause = f"would be larger than {toml.MOST_BYTES // 1024} KiB"
        raise InvalidInput("write_toml", cause, "Leave out the columns with the most categories.")
    return text
