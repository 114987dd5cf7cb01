"""Reading a table in a process of its own, with bounds on memory and time, at most two at once."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process.child_read import OUT_OF_MEMORY, tells_of_memory
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.formats import READING
from dpviz.datasets.table.layout import Header

AT_ONCE = 2
_places = threading.BoundedSemaphore(AT_ONCE)
_TICK = 0.2
_LAST = 8192  # bytes that are kept of what a process wrote about its end
#: runs a module of this package without the packages' __init__, which loads the engine: half of the time to start
_START = """
import importlib, os, sys, types
root, module = sys.argv[1:]
for name in ("dpviz", "dpviz.datasets"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(root, *name.split("."))]
raise SystemExit(importlib.import_module(module).main())
"""


class Ended(Exception):
    """A child process ended without an answer; the text says how.

    Attributes:
        code: its exit code; negative where a signal ended it.
        out_of_memory: it ended because it was refused memory.
    """

    def __init__(self, code: int, message: str = "") -> None:
        named = -code in {number.value for number in signal.Signals}
        how = f"was killed ({signal.Signals(-code).name}, exit code {code})" if named else f"ended with exit code {code}"
        super().__init__(how)
        self.code = code
        self.out_of_memory = code == OUT_OF_MEMORY or (code != -getattr(signal, "SIGKILL", 9) and tells_of_memory(message))


class Passing(InvalidInput):
    """A problem of this moment and not of the file, not to be cached."""


_children: set[subprocess.Popen[bytes]] = set()
_ending = threading.Event()  # this process ends


def kill_children() -> None:
    """Ends the processes that are reading or fetching; for a process that ends at once."""
    _ending.set()
    for child in list(_children):
        with suppress(OSError):
            child.kill()


def ignore(state: str) -> None:
    """A listener that does not listen."""


def read_table(
    content: bytes,
    *,
    header: Header = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    verbatim: Sequence[str] | None = None,
    limits: Limits | None = None,
    listen: Callable[[str], None] = ignore,
) -> Table:
    """`dpviz.datasets.table.formats.read_file` in a process of its own; its arguments, and one more.

    Args:
        listen: called with "waiting" or "reading" several times a second; may raise to give up.

    Raises:
        InvalidInput: as `read_file`, or the limits on memory or time were met.
    """
    limits = limits or Limits.from_environment()
    limits.check_bytes(len(content))  # what is too large need not be handed over
    how = {"header": header, "delimiter": delimiter, "encoding": encoding, "sheet": sheet}
    while not _places.acquire(timeout=_TICK):
        listen("waiting")
    try:
        options = json.dumps(how | {"verbatim": verbatim, "limits": vars(limits)}).encode()
        answer = _read(options + b"\n" + content, limits, listen)
    except subprocess.TimeoutExpired:
        raise InvalidInput(
            "file",
            f"took longer than {limits.seconds} s to read",
            "Take a sample of the rows, or fewer columns; the operator can raise DPVIZ_MAX_SECONDS.",
        ) from None
    except Ended as ended:
        raise _unread(ended, limits) from None
    finally:
        _places.release()
    line, _, payload = answer.partition(b"\n")
    facts = json.loads(line)
    read = {name: how[name] for name in READING if how[name] is not None}
    # without threads of Arrow: a command that ends at once, by a refusal, would be aborted by those that just start
    rows = pq.ParquetFile(pa.BufferReader(payload)).read(use_threads=False).to_pandas(use_threads=False)
    return Table(rows, tuple(facts["notes"]), read, facts["found"])


def _read(content: bytes, limits: Limits, listen: Callable[[str], None]) -> bytes:
    """The answer of a process that reads; one that is killed has one successor."""
    module = "dpviz.datasets.process.child_read"
    try:
        return run_child(module, content, limits.seconds, lambda: listen("reading"))
    except Ended as ended:
        if ended.code >= 0 or ended.out_of_memory or _ending.is_set():
            raise
    return run_child(module, content, limits.seconds, lambda: listen("reading"))


def _unread(ended: Ended, limits: Limits) -> InvalidInput:
    if ended.out_of_memory:
        return InvalidInput(
            "file",
            f"could not be read within {limits.memory_megabytes:,} MB of memory",
            "Take a sample of the rows, or fewer columns; the operator can raise DPVIZ_MAX_MEMORY_MEGABYTES.",
        )
    return Passing(
        "file",
        f"was not read: the process that reads it {ended}",
        "Choose it again. If that happens again, the machine may be short of memory: take a sample of the rows.",
    )


def run_child(module: str, content: bytes, seconds: float, tick: Callable[[], None]) -> bytes:
    """Runs a module of this package with `content` on its standard input, and returns its standard output.

    Returns:
        The answer, whose first line is JSON.

    Raises:
        InvalidInput: the process says so.
        Ended: it ended without an answer.
        subprocess.TimeoutExpired: it was stopped after `seconds`.
    """
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    # more threads would take address space, and the machine belongs to the sessions
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, package, module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | threads | {"PYTHONPATH": path},
    )
    _children.add(child)
    # a thread writes: `communicate` forgets what is left of its input when it is called again after a timeout
    writer = threading.Thread(target=_write, args=(child.stdin, content), daemon=True)
    errors = bytearray()
    listener = threading.Thread(target=_read_end, args=(child.stderr, errors), daemon=True)
    child.stdin = child.stderr = None
    writer.start()
    listener.start()
    end = time.monotonic() + seconds
    try:
        while True:
            try:
                answer, _ = child.communicate(timeout=_TICK)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > end:
                    raise
                tick()
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
        _children.discard(child)
    if child.returncode != 0:
        listener.join()
        raise Ended(child.returncode, errors.decode(errors="replace"))
    writer.join()
    first, _, _ = answer.partition(b"\n")
    refused = json.loads(first).get("refused")
    if refused is not None:
        raise InvalidInput(*refused)
    return answer


def _write(pipe: IO[bytes] | None, content: bytes) -> None:
    assert pipe is not None
    with suppress(BrokenPipeError), pipe:  # the process may end before it has read everything
        pipe.write(content)


def _read_end(pipe: IO[bytes] | None, end: bytearray) -> None:
    """Reads until the pipe is closed; its last `_LAST` bytes are in `end` then."""
    assert pipe is not None
    with pipe:
        while some := os.read(pipe.fileno(), _LAST):
            end += some
            del end[:-_LAST]
