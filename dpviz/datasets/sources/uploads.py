"""Tables that belong to one session: they live as long as somebody holds the `Upload`, and no longer.

This module keeps weak references only. Rows made ready for training hang on the `Upload` itself, and the least recently
used ones are dropped when all together take too much memory; they are made again when they are needed.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.base import Dataset
from dpviz.datasets.process.limits import Limits
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.spec import Prepared, TableSpec, prepare

PREFIX = "upload-"
#: rows ready for training, of all uploads together, counted four times for what is derived from them
READY_BYTES = 1 << 30

_live: WeakValueDictionary[str, Upload] = WeakValueDictionary()
_ready: OrderedDict[tuple[str, bool], int] = OrderedDict()
_lock = threading.RLock()
_guard: Callable[[str], bool] = lambda name: True  # noqa: E731


class Upload:
    """A person's table and how it becomes a dataset. Hold on to it: with the last reference the rows are gone.

    Attributes:
        name: dataset name, "upload-" and random letters; only the session that holds the upload can use it.
        title: the file's name, for its owner to read.
        table: the rows as read.
        spec: how they become a dataset.
        rows: number of rows after gaps.
    """

    def __init__(self, table: Table, spec: TableSpec, title: str = "upload", *, limits: Limits | None = None) -> None:
        """
        Raises:
            InvalidInput: the spec does not fit the table, or all uploads together would take too much memory.
        """
        self.name = PREFIX + secrets.token_hex(8)
        self.title, self.table, self.spec = title, table, spec
        self.limits = limits or Limits.from_environment()
        self._datasets: dict[bool, Dataset] = {}
        _check_room(table, self.limits)
        self.prepared = _story(self._make(True))
        self.rows = self.dataset(True).n
        with _lock:
            _live[self.name] = self

    def _make(self, intercept: bool) -> Prepared:
        made = prepare(
            self.table.frame,
            self.spec,
            name=self.name,
            source="your own file; it is kept for this session only",
            intercept=intercept,
            limits=self.limits,
            notes=self.table.notes,
            session_only=True,
        )
        self._keep(intercept, made.dataset)
        return made

    def _keep(self, intercept: bool, dataset: Dataset) -> None:
        with _lock:
            self._datasets[intercept] = dataset
            _ready[self.name, intercept] = 4 * dataset.X.nbytes
            while sum(_ready.values()) > READY_BYTES and len(_ready) > 1:
                (name, other), _ = _ready.popitem(last=False)
                holder = _live.get(name)
                if holder is not None:
                    holder._datasets.pop(other, None)

    def dataset(self, intercept: bool) -> Dataset:
        """The rows ready for training."""
        with _lock:
            found = self._datasets.get(intercept)
            if found is not None:
                if (self.name, intercept) in _ready:
                    _ready.move_to_end((self.name, intercept))
                return found
        return self._make(intercept).dataset

    def __del__(self) -> None:
        # no lock here: this may run in the middle of anything
        for intercept in (True, False):
            _ready.pop((getattr(self, "name", ""), intercept), None)


def _story(prepared: Prepared) -> tuple[dict[str, str], int]:
    """(columns left out with the reason, rows dropped)."""
    return dict(prepared.left_out), prepared.dropped


def table_bytes(table: Table) -> int:
    """Memory that a table takes."""
    return int(table.frame.memory_usage(deep=True).sum())


def held() -> int:
    """Memory that the tables of all uploads take, in bytes."""
    with _lock:
        tables = {id(upload.table): upload.table for upload in list(_live.values())}
    return sum(map(table_bytes, tables.values()))


def _check_room(table: Table, limits: Limits) -> None:
    most = limits.uploads_megabytes * 1_000_000
    if held() + table_bytes(table) > most:
        raise InvalidInput(
            "upload",
            f"does not fit: all sessions together hold {held() / 1e6:,.0f} MB of uploads",
            f"Try again later; the limit is {limits.uploads_megabytes:,} MB (DPVIZ_MAX_UPLOADS_MEGABYTES).",
        )


def guard(may_see: Callable[[str], bool]) -> Callable[[str], bool]:
    """Sets who may use an upload: asked with its name in the thread that wants it. Everyone in this process otherwise.

    Returns:
        What was set before.
    """
    global _guard
    before, _guard = _guard, may_see
    return before


def is_upload(name: str) -> bool:
    """Whether a name is that of an upload, present or not."""
    return re.fullmatch(PREFIX + r"[0-9a-f]{16}", name) is not None


def there(name: str) -> bool:
    """Whether the rows behind a name are still held; true for every name that is not an upload's."""
    return not is_upload(name) or name in _live


def get(name: str) -> Upload:
    """The upload of that name.

    Raises:
        InvalidInput: it is gone, or belongs to another session; the two cannot be told apart from outside.
    """
    upload = _live.get(name)
    if upload is None or not _guard(name):
        raise InvalidInput(
            "dataset",
            f"{show(name)} is an upload that this session does not hold",
            "Uploads live in memory for the session that made them. Upload the file again on the page Data.",
        )
    return upload


def stamp(name: str) -> Hashable:
    """An upload never changes; another choice of columns makes another one."""
    return name
