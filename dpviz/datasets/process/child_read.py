"""The process that reads a table: JSON line and file on standard input, JSON line and Parquet on standard output."""

from __future__ import annotations

import io
import json
import sys
from typing import Any


def bound_memory(megabytes: int) -> None:
    """Limits this process's address space and keeps it from writing files; without effect outside Unix."""
    try:
        import resource
    except ImportError:
        return
    most = megabytes << 20
    for what, value in ((resource.RLIMIT_AS, most), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (limit, limit))


def answer(said: dict[str, Any], payload: bytes = b"") -> None:
    """Writes the answer."""
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def main() -> int:
    options = json.loads(sys.stdin.buffer.readline())
    bound_memory(options["limits"]["memory_megabytes"])
    from dpviz.common.boundary import Boundary
    from dpviz.common.validate import InvalidInput
    from dpviz.datasets.process.limits import Limits
    from dpviz.datasets.table.formats import read_file

    with Boundary("reading a table") as work:  # whatever a library makes of a strange file is no lack of memory
        content = sys.stdin.buffer.read()
        how = {key: options[key] for key in ("header", "delimiter", "encoding")}
        table = read_file(content, **how, limits=Limits(**options["limits"]))
        buffer = io.BytesIO()
        table.frame.to_parquet(buffer, index=False)
        answer({"notes": table.notes}, buffer.getvalue())
    error = work.error
    if isinstance(error, MemoryError):
        return 1
    if isinstance(error, InvalidInput):
        answer({"refused": [error.field, error.cause, error.fix]})
    elif error is not None:
        answer({"refused": ["file", f"cannot be read as a table ({type(error).__name__})", "Save it again as CSV in UTF-8."]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
