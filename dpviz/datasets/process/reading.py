"""Reading a table in a process of its own, with bounds on memory and time, one at a time."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.formats import READING, read_file

_place = threading.Lock()
_TICK = 0.2  # seconds
#: one thread, and no pool of memory that reserves a gigabyte beforehand
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


class Passing(InvalidInput):
    """A problem of this moment and not of the file, not to be cached."""


def bound_memory(megabytes: int) -> None:
    """Limits this process's address space, and keeps it from writing files, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, most in ((resource.RLIMIT_AS, megabytes << 20), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def read_table(
    content: bytes,
    *,
    name: str = "",
    limits: Limits | None = None,
    listen: Callable[[str], None] = lambda state: None,
    **how: Any,
) -> Table:
    """`dpviz.datasets.table.formats.read_file` in a process of its own; its arguments, and two more.

    Args:
        name: of the file, where it has one.
        listen: called with "waiting" or "reading" several times a second; may raise to give up.

    Raises:
        InvalidInput: as `read_file`, or the limits on memory or time were met.
    """
    limits = limits or Limits.from_environment()
    limits.check_bytes(len(content))  # what is too large need not be handed over
    while not _place.acquire(timeout=_TICK):
        listen("waiting")
    try:
        table = read_apart(content, limits, lambda: listen("reading"), how)
    finally:
        _place.release()
    notes = table.notes
    if name.lower().endswith(".arff") and "delimiter" in table.found:
        notes = (f"{name} is no ARFF file: it has no @relation. It was read as a CSV with names on its first line.", *notes)
    return replace(table, notes=notes, reading={name: how[name] for name in READING if how.get(name) is not None})


def read_apart(content: bytes, limits: Limits, tick: Callable[[], None], how: dict[str, Any]) -> Table:
    """The table that a new process reads; it ends with this call."""
    from joblib.externals.loky import ProcessPoolExecutor  # the standard library's runs the caller's script again

    worker = ProcessPoolExecutor(1, initializer=bound_memory, initargs=(limits.memory_megabytes,), env=_ENVIRONMENT)
    end = time.monotonic() + limits.seconds
    try:
        job = worker.submit(read_file, content, limits=limits, **how)
        while not wait([job], _TICK).done:
            if time.monotonic() > end:
                cause = f"took longer than {limits.seconds} s to read"
                fix: str = "Take a sample of the rows, or fewer columns; the operator can raise DPVIZ_MAX_SECONDS."
                raise InvalidInput("file", cause, fix)
            tick()
        error = job.exception()
    finally:
        worker.shutdown(kill_workers=True)
    if isinstance(error, BrokenProcessPool | MemoryError):
        cause = f"was not read: its process ended, most likely for want of memory ({limits.memory_megabytes:,} MB are allowed)"
        fix = "Take a sample of the rows, or fewer columns; the operator can raise DPVIZ_MAX_MEMORY_MEGABYTES."
        raise Passing("file", cause, fix)
    if isinstance(error, InvalidInput):
        raise error.bare()
    if error is not None:  # whatever a library makes of a strange file
        raise InvalidInput("file", f"cannot be read as a table ({type(error).__name__})", "Save it again as CSV in UTF-8.")
    return job.result()
