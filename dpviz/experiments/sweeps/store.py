"""Finished cells as files, checked when read, so that whatever stops the work, what was finished stays."""

from __future__ import annotations

import contextlib
import json
import os

import pandas as pd

from dpviz.common.file_store import FileStore
from dpviz.datasets.catalogue import is_in_memory
from dpviz.datasets.sources.uploads import is_upload
from dpviz.experiments.sweeps.cell import Cell


class CellStore(FileStore):
    """Finished cells as files; `notices` has a line for each damaged file that was set aside."""

    room, suffix, what, then = "cells", ".cell", "Results", "after a restart they are computed again"
    most, most_of_all = 1 << 26, 1 << 30

    def get(self, cell: Cell) -> pd.DataFrame | None:
        """A finished cell, or None. A file that is damaged, or another's, is renamed, noted, and counts as not there."""
        if is_upload(cell.spec.dataset):
            return None
        key = cell.key()
        content = self.read(key)
        if content is None:
            return None
        table = _table(content)
        if table is None:
            aside = self.path(key).with_suffix(".damaged")
            with contextlib.suppress(OSError):  # in a folder that cannot be written it is overlooked in place
                os.replace(self.path(key), aside)
            self.notices.append(
                f"A stored result was damaged, or others can write it. It is set aside as {aside.suffix} and computed again."
            )
            return None
        if is_in_memory(cell.spec.dataset) and len(table):
            table["dataset"] = cell.spec.dataset  # their random name in this process
        return table

    def put(self, cell: Cell, table: pd.DataFrame) -> None:
        """Keeps a finished cell, unless it is of an upload."""
        if is_upload(cell.spec.dataset):
            return  # nothing of an upload goes to the disk
        self.write(cell.key(), json.dumps({"columns": table.to_dict("list"), "attributes": table.attrs}).encode())


def _table(content: bytes) -> pd.DataFrame | None:
    """The table that a file holds; None where it holds none."""
    try:
        values = json.loads(content)
        table = pd.DataFrame(values["columns"])
        table.attrs = values["attributes"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return table
