"""Downloads into a cache: one file per download, written at once or not at all, with its size and hash on its first line."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.common import files
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process.reading import Ended, run_child

#: replaces scheme and host of every download, for a mirror
MIRROR = "DPVIZ_MIRROR"
_OTHERWISE: str = "Without it, the bundled sets work, and so does a copy of the file in the data folder."
_MOST_BYTES = 1_000_000_000
_running: set[str] = set()
_lock = threading.Lock()


def folder() -> Path:
    """The folder of downloads."""
    return files.cache_folder() / "datasets"


def path_of(file: str) -> Path:
    """The path of a download. `file` is an id from this package, never text from a person."""
    return folder() / f"{file}.dataset"


def stamp(file: str) -> Hashable:
    """A value that changes with the cached file; None where there is none."""
    try:
        info = path_of(file).stat()
    except OSError:
        return None
    return (str(path_of(file)), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def facts(file: str) -> dict[str, Any] | None:
    """Facts about a download that need no reading of it: rows, size, sha256, source, fetched; None where there is none."""
    try:
        with files.open_own(path_of(file), _MOST_BYTES) as stream:
            header = json.loads(stream.readline(10_000))
        return header if isinstance(header, dict) and "sha256" in header else None
    except (OSError, ValueError, files.Untrusted):
        return None


def read(file: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """(table, facts) of a download.

    Raises:
        InvalidInput: it is not there, others can write it, or size or hash differ from what was written.
    """
    try:
        payload = files.read_own(path_of(file), _MOST_BYTES).partition(b"\n")[2]
    except files.Untrusted:
        cause = f"others can write the copy of {file} in {folder()}, or it is no plain file of its reader or of root"
        raise InvalidInput(
            "dataset", cause, "Remove it and download it again, or set DPVIZ_CACHE to a folder of your own."
        ) from None
    except OSError:
        payload = b""
    header = facts(file)
    if header is None:
        raise InvalidInput("dataset", f"{file} is not on this machine", "Download it on the page Data.")
    if len(payload) != header["size"] or hashlib.sha256(payload).hexdigest() != header["sha256"]:
        raise InvalidInput(
            "dataset", f"the copy of {file} on this machine was damaged after its download", "Download it again on the page Data."
        )
    return pd.read_parquet(io.BytesIO(payload)), header


def store(file: str, payload: bytes, rows: int, source: str) -> None:
    """Puts a download into the cache, whole or not at all."""
    header = {
        "rows": rows,
        "size": len(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
        "source": source,
        "fetched": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    files.write(path_of(file), json.dumps(header).encode() + b"\n" + payload, mode=0o644)  # others may read it only


def fetch(file: str, rows: int, progress: Callable[[int], None] = lambda size: None, *, limits: Limits | None = None) -> None:
    """Downloads a table through scikit-learn's loader, in a process of its own.

    Args:
        file: "openml-N" or "kddcup99".
        rows: rows that it must have; with a mirror another number is taken as well.
        progress: receives the bytes that have arrived, several times a second; may raise to give up.

    Raises:
        InvalidInput: no network, no answer in time, a damaged download, the wrong size, no room. Nothing is kept then.
    """
    limits = limits or Limits.from_environment()
    with _lock:
        if file in _running:
            raise InvalidInput("download", f"{file} is being downloaded already", "Wait until that is done.")
        _running.add(file)
    try:
        _fetch(file, rows, progress, limits)
    except OSError as error:
        raise InvalidInput("download", f"cannot be kept in {folder()} ({error.strerror})", "Set DPVIZ_CACHE.") from error
    finally:
        with _lock:
            _running.discard(file)


def _fetch(file: str, rows: int, progress: Callable[[int], None], limits: Limits) -> None:
    # what another download left whose process was killed, and that none can be writing any more
    files.remove_stale_parts(folder(), 2 * limits.fetch_seconds)
    home = files.part_folder(folder())
    request = {"file": file, "home": str(home), "megabytes": limits.memory_megabytes}

    def tick() -> None:
        size = _size(home)
        if size > _MOST_BYTES:
            cause = f"is larger than {_MOST_BYTES / 1e6:,.0f} MB, and no set that dpviz knows is"
            raise InvalidInput("download", cause, "The server or the mirror sends something else.")
        progress(size)

    try:
        answer = run_child("dpviz.datasets.process.child_fetch", json.dumps(request).encode(), limits.fetch_seconds, tick)
        message, _, payload = answer.partition(b"\n")
        facts_of_file = json.loads(message)
    except subprocess.TimeoutExpired:
        raise InvalidInput(
            "download", f"was not done after {limits.fetch_seconds} s (DPVIZ_MAX_FETCH_SECONDS)", f"Try again later. {_OTHERWISE}"
        ) from None
    except Ended as ended:
        cause = "needs more memory than there is" if ended.out_of_memory else f"stopped: its process {ended}"
        raise InvalidInput("download", cause, f"Try again. {_OTHERWISE}") from None
    except InvalidInput as error:
        raise InvalidInput(error.field, error.cause, f"{error.fix} {_OTHERWISE}") from error
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if facts_of_file["rows"] != rows and not os.environ.get(MIRROR):
        raise InvalidInput(
            "download",
            f"has {facts_of_file['rows']:,} rows where {rows:,} are expected",
            f"The server's copy has changed. {_OTHERWISE}",
        )
    store(file, payload, facts_of_file["rows"], facts_of_file["source"])
    progress(len(payload))


def _size(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(where, name)).st_size
    return total
