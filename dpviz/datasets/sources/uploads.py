"""Tables that belong to one session: they live as long as the `Upload` is referenced, and what is made of them until `forget`.

This module keeps weak references only. What is made from the rows is in caches that know the upload's name
(`dpviz.common.memory`) and goes with the upload. Rows made ready for training are dropped when all together take too much
memory; they are made again when they are needed.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakValueDictionary

import pandas as pd

from dpviz.common import memory
from dpviz.common.limits import Limits
from dpviz.common.persons import choice
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.base import Dataset
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.prepare import prepare
from dpviz.datasets.table.spec import TableSpec

PREFIX = "upload-"
READY_BYTES = 1 << 30

_live: WeakValueDictionary[str, Upload] = WeakValueDictionary()
# rows of all uploads together, counted five times for what is derived from them; the last ones stay however large they are
_ready: memory.Cache[Dataset] = memory.Cache("rows of uploads", READY_BYTES, lambda d: min(COPIES * d.X.nbytes, READY_BYTES))
_lock = threading.RLock()
_read: WeakValueDictionary[int, Table] = WeakValueDictionary()  # by id: tables cannot be hashed
#: copies of the encoded rows at the peak: the set, the same scaled, its two parts, and training rows times labels, twice
COPIES = 5
_guard: Callable[[str], bool] = lambda name: True  # noqa: E731


class Upload:
    """A person's table and how it becomes a dataset. After `forget` all rows are gone.

    Attributes:
        name: dataset name, "upload-" and random letters; only the session that holds the upload can use it.
        title: the file's name, for its owner to read.
        table: the rows as read.
        spec: how they become a dataset.
        rows: number of rows after gaps.
        cost: estimated bytes of its rows in training.
    """

    def __init__(self, table: Table, spec: TableSpec, title: str = "upload", *, limits: Limits | None = None) -> None:
        """
        Raises:
            InvalidInput: the spec does not fit the table, or all uploads together would take too much memory.
        """
        self.name = PREFIX + secrets.token_hex(8)
        self.title, self.table, self.spec = title, table, spec
        self.limits, self.cost = limits or Limits.from_environment(), 0
        count(table)
        _live[self.name] = self
        made = self._prepare(True)
        self.rows = made.n
        _ready.put((self.name, True, choice()), made, owner=self.name)

    def _prepare(self, intercept: bool) -> Dataset:
        return prepare(
            self.table.frame,
            self.spec,
            name=self.name,
            source="your own file; it is kept for this session only",
            intercept=intercept,
            limits=self.limits,
            notes=self.table.notes,
            room=self._take_room,
        )

    def _take_room(self, rows: int, features: int) -> None:
        """Counts what the rows will cost, before they are made.

        Raises:
            InvalidInput: it does not fit beside all other uploads.
        """
        cost, most = cost_of(rows, features), self.limits.uploads_megabytes * 1_000_000
        with _lock:
            others = held_bytes() - self.cost
            if others + cost > most:
                raise InvalidInput(
                    "upload",
                    f"needs about {cost / 1e6:,.0f} MB ({rows:,} rows of {features:,} features), and all sessions together "
                    f"hold {others / 1e6:,.0f} of {limits_text(self.limits)}",
                    "Choose fewer columns, fewer categories or a sample of the rows, or try again later.",
                )
            self.cost = cost

    def dataset(self, intercept: bool) -> Dataset:
        """The rows ready for training.

        Raises:
            InvalidInput: the upload was forgotten.
        """
        if memory.is_forgotten(self.name):
            raise _missing(self.name)
        return _ready.compute((self.name, intercept, choice()), lambda _: self._prepare(intercept), owner=self.name)

    def forget(self) -> None:
        """Lets go of the rows and of all that was made from them now, even if this object is still referenced."""
        forget(self.name)


def table_bytes(table: Table) -> int:
    """Memory that a table takes."""
    return int(table.frame.memory_usage(deep=True).sum())


def cost_of(rows: int, features: int) -> int:
    """Estimated memory of rows in training, in bytes: encoded, split, times their labels, in single precision."""
    return COPIES * 8 * rows * features


def count(table: Table, limits: Limits | None = None) -> None:
    """Counts a table that was read among the uploads for as long as it is referenced.

    Args:
        limits: where given, the table is only counted if it fits beside all uploads.

    Raises:
        InvalidInput: it does not fit.
    """
    with _lock:
        if limits is not None and held_bytes() + table_bytes(table) > limits.uploads_megabytes * 1_000_000:
            held_now: str = f"all sessions together hold {held_bytes() / 1e6:,.0f} of {limits_text(limits)}"
            cause = f"takes {table_bytes(table) / 1e6:,.0f} MB, and {held_now}"
            raise InvalidInput("upload", cause, "Take a sample of the rows, or try again later.")
        _read[id(table)] = table


def held_bytes() -> int:
    """Memory that all uploads take, in bytes: tables that were read, and what was or can be made of them."""
    with _lock:
        return sum(map(table_bytes, list(_read.values()))) + sum(upload.cost for upload in list(_live.values()))


def limits_text(limits: Limits) -> str:
    """The limit on all uploads, for people."""
    return f"{limits.uploads_megabytes:,} MB (DPVIZ_MAX_UPLOADS_MEGABYTES)"


def guard(may_see: Callable[[str], bool]) -> Callable[[str], bool]:
    """Sets who may use an upload: asked with its name in the thread that wants it. Everyone in this process otherwise.

    Returns:
        What was set before.
    """
    global _guard
    before, _guard = _guard, may_see
    return before


def is_upload(name: str) -> bool:
    """True where a name is that of an upload, present or not."""
    return re.fullmatch(PREFIX + r"[0-9a-f]{16}", name) is not None


def is_held(name: str) -> bool:
    """True where the rows behind a name are still held; true for every name that is not an upload's."""
    return not is_upload(name) or name in _live


def get(name: str) -> Upload:
    """The upload of that name.

    Raises:
        InvalidInput: it is gone, or belongs to another session; the two cannot be distinguished from outside.
    """
    # a session that may not see it must not hold it either: the error, with its traceback, is kept for its session to read
    upload = _live.get(name) if _guard(name) else None
    if upload is None:
        raise _missing(name)
    return upload


def forget(name: str) -> None:
    """Lets go of an upload's rows and of all that was made from them, whether it is still referenced or not."""
    upload = _live.pop(name, None)
    if upload is not None:
        upload.table = replace(upload.table, frame=pd.DataFrame())
    memory.forget(name)


def _missing(name: str) -> InvalidInput:
    return InvalidInput(
        "dataset",
        f"{show(name)} is an upload that this session does not hold",
        "Uploads live in memory for the session that made them. Upload the file again on the page Data.",
    )


SOURCE = Source(
    place=5,
    owns=is_upload,
    load=lambda name, intercept: get(name).dataset(intercept),
    canonical=lambda name, n: get(name).name,
    rows=lambda name: get(name).rows,
    only_here=True,
    cached=False,
)
