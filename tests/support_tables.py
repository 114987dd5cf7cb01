"""Small tables that tests spoil, and the way from bytes to a dataset."""

import io
import json
from collections.abc import Callable

from dpviz.common.limits import Limits
from dpviz.datasets.table.formats import read_file
from dpviz.datasets.table.prepare import Prepared, prepare
from dpviz.datasets.table.spec import TableSpec, last_column

SMALL = Limits(megabytes=1, rows=300, columns=50, features=40)


def table(rows: int = 20, header: str = "age,job,label", row: Callable[[int], str] | None = None) -> bytes:
    """A sound table of which a case spoils one thing."""
    make = row or (lambda k: f"{20 + k},{'abc'[k % 3]},{'yes' if k % 4 else 'no'}")
    return ("\n".join([header, *(make(k) for k in range(rows))]) + "\n").encode()


def made(content: bytes, spec: TableSpec | None = None, limits: Limits = SMALL, **reading: object) -> Prepared:
    read = read_file(content, limits=limits, **reading)  # type: ignore[arg-type]
    spec = spec or TableSpec(last_column(read.frame))
    return prepare(read.frame, spec, name="t", source="test", limits=limits, notes=read.notes)


def read_here(module: str, content: bytes, seconds: float, tick: Callable[[], None]) -> bytes:
    """What `reading.run_child` answers where a table is read, given by this process: no bounds on memory or time."""
    assert module == "dpviz.datasets.process.child_read"
    asked, _, text = content.partition(b"\n")
    options = json.loads(asked)
    tick()
    read = read_file(text, limits=Limits(**options.pop("limits")), **options)
    payload = io.BytesIO()
    read.frame.to_parquet(payload, index=False)
    return json.dumps({"notes": read.notes, "found": dict(read.found)}).encode() + b"\n" + payload.getvalue()


GOOD = table()
