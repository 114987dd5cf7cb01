"""The process that reads a table: JSON line and file on standard input, JSON line and Parquet on standard output."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from typing import Any

#: exit code of a child process that ran out of memory; it says so, because whoever waits sees only the code
OUT_OF_MEMORY = 3
_EVERY = 0.1  # seconds between two looks at the memory in use


def bound_memory(megabytes: int) -> None:
    """Limits this process's memory, and keeps it from writing files.

    The kernel limits the address space where it can. macOS cannot: a thread watches the resident size there and ends the
    process with `OUT_OF_MEMORY`. Windows has neither.
    """
    try:
        import resource
    except ImportError:
        return

    def limit(what: int, value: int) -> bool:
        try:
            hard = resource.getrlimit(what)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):  # the kernel does not take it
            return False
        return True

    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    if not limit(resource.RLIMIT_AS, megabytes << 20) or sys.platform == "darwin":
        threading.Thread(target=_watch_memory, args=(megabytes << 20,), daemon=True).start()


def _watch_memory(most: int) -> None:
    """Ends this process once more than `most` bytes were resident."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit <= most:
        time.sleep(_EVERY)
    os._exit(OUT_OF_MEMORY)


def answer(said: dict[str, Any], payload: bytes = b"") -> None:
    """Writes the answer."""
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def main() -> int:
    options = json.loads(sys.stdin.buffer.readline())
    bound_memory(options["limits"]["memory_megabytes"])
    try:
        from dpviz.common.boundary import Boundary
        from dpviz.common.validate import InvalidInput
        from dpviz.datasets.process.limits import Limits
        from dpviz.datasets.table.formats import read_file
    except (MemoryError, ImportError):  # the parent process has loaded the same: there is no room for it here
        return OUT_OF_MEMORY

    with Boundary("reading a table") as work:  # whatever a library makes of a strange file is no lack of memory
        content = sys.stdin.buffer.read()
        how = {key: options[key] for key in ("header", "delimiter", "encoding")}
        table = read_file(content, **how, limits=Limits(**options["limits"]))
        buffer = io.BytesIO()
        table.frame.to_parquet(buffer, index=False)
        answer({"notes": table.notes}, buffer.getvalue())
    error = work.error
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, InvalidInput):
        answer({"refused": [error.field, error.cause, error.fix]})
    elif error is not None:
        answer({"refused": ["file", f"cannot be read as a table ({type(error).__name__})", "Save it again as CSV in UTF-8."]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
