"""Small tables that tests spoil, and the way from bytes to a dataset."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dpviz.common.limits import Limits
from dpviz.datasets.base import Dataset
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.formats import read_file
from dpviz.datasets.table.prepare import prepare
from dpviz.datasets.table.spec import TableSpec, last_column

SMALL = Limits(megabytes=1, rows=300, columns=50, features=40)


def table(rows: int = 20, header: str = "age,job,label", row: Callable[[int], str] | None = None) -> bytes:
    """A sound table of which a case spoils one thing."""
    make = row or (lambda k: f"{20 + k},{'abc'[k % 3]},{'yes' if k % 4 else 'no'}")
    return ("\n".join([header, *(make(k) for k in range(rows))]) + "\n").encode()


class Made(NamedTuple):
    """A dataset with what its table lost: columns with the reason, and rows."""

    dataset: Dataset
    left_out: dict[str, str]
    dropped: int


def made(content: bytes, spec: TableSpec | None = None, limits: Limits = SMALL, **reading: object) -> Made:
    read = read_file(content, limits=limits, **reading)  # type: ignore[arg-type]
    spec = spec or TableSpec(last_column(read.frame))
    dataset = prepare(read.frame, spec, name="t", source="test", limits=limits, notes=read.notes)
    columns = {one.what: one.sentence for one in dataset.lost if one.kind == "column"}
    reasons = {name: said.removeprefix(f"{name} is not used: ").removesuffix(".") for name, said in columns.items()}
    return Made(dataset, reasons, sum(one.count for one in dataset.lost if one.kind == "rows"))


def read_here(content: bytes, limits: Limits, tick: Callable[[], None], how: dict[str, Any]) -> Table:
    """`reading.read_apart` in this process: no bounds on memory or time."""
    tick()
    return read_file(content, limits=limits, **how)


GOOD = table()
