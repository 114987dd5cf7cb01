"""The process that reads a table: JSON line and file on standard input, JSON line and Parquet on standard output."""

import io
import json
import os
import re
import sys
import threading
import time
from contextlib import suppress
from typing import Any

#: exit code of a child process that ran out of memory, as the parent sees only the code
OUT_OF_MEMORY = 3
_EVERY = 0.02  # seconds between two looks at the memory in use
#: address space beyond the limit, in megabytes: libraries reserve what they never use, and at the end of their address space
#: they abort, crash, or blame something else; so the watch ends the process before it comes there
_RESERVE = 2_000
#: what libraries write or raise when memory or room for a thread is refused: C++, glibc, Arrow, jemalloc, OpenBLAS, Python
_MEMORY_WORDS = re.compile(
    r"bad_alloc|MemoryError|out of memory|not enough memory|(cannot|can't|unable to|failed to|could not) allocate|"
    r"memory allocation|malloc(\(\)| of size|:)|Resource temporarily unavailable|can't start new thread",
    re.IGNORECASE,
)


def tells_of_memory(message: str) -> bool:
    """True where a library's message is about memory that it was refused."""
    return _MEMORY_WORDS.search(message) is not None


def bound_memory(megabytes: int, *, files: bool = False) -> None:
    """Limits this process's memory, and keeps it from writing files unless `files`.

    A thread watches the resident size and ends the process with `OUT_OF_MEMORY`. The kernel limits the address space beside it,
    `_RESERVE` higher, where it can: macOS cannot. Windows has neither.
    """
    try:
        import resource
    except ImportError:
        return

    def limit(what: int, value: int) -> None:
        with suppress(ValueError, OSError):  # the kernel does not take it
            hard = resource.getrlimit(what)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(what, (most, most))

    if not files:
        limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_AS, megabytes + _RESERVE << 20)
    threading.Thread(target=_watch_memory, args=(megabytes << 20,), daemon=True).start()


def _resident() -> int:
    """Resident bytes of this process: now where the kernel tells, otherwise the most there ever were."""
    try:
        with open("/proc/self/statm", "rb") as now:
            return int(now.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _watch_memory(most: int) -> None:
    """Ends this process once more than `most` bytes are resident."""
    while _resident() <= most:
        time.sleep(_EVERY)
    os._exit(OUT_OF_MEMORY)


def answer(facts: dict[str, Any], payload: bytes = b"") -> None:
    """Writes the answer."""
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def main() -> int:
    options = json.loads(sys.stdin.buffer.readline())
    bound_memory(options["limits"]["memory_megabytes"])
    from dpviz.common.boundary import Boundary
    from dpviz.common.limits import Limits
    from dpviz.common.validate import InvalidInput
    from dpviz.datasets.table.formats import read_file

    with Boundary("reading a table") as work:  # whatever a library makes of a strange file is no lack of memory
        content = sys.stdin.buffer.read()
        table = read_file(content, limits=Limits(**options.pop("limits")), **options)
        buffer = io.BytesIO()
        table.frame.to_parquet(buffer, index=False)
        answer({"notes": table.notes, "found": dict(table.found)}, buffer.getvalue())
    error = work.error
    if isinstance(error, InvalidInput):
        answer({"refused": [error.field, error.cause, error.fix]})
    elif isinstance(error, MemoryError) or (error is not None and tells_of_memory(str(error))):
        return OUT_OF_MEMORY
    elif error is not None:
        answer({"refused": ["file", f"cannot be read as a table ({type(error).__name__})", "Save it again as CSV in UTF-8."]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
