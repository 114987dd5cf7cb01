"""Downloads by pooch, checked against the hash that is published, then kept as Parquet with size and hash on the first line."""

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pandas as pd

from dpviz.common import files
from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process.reading import read_table

#: replaces scheme and host of every download, for a mirror
MIRROR = "DPVIZ_MIRROR"
_OTHERWISE: str = "Without it, the bundled sets work, and so does a copy of the file in the data folder."
_MOST_BYTES = 1_000_000_000
_SILENCE = 10.0  # seconds without a byte
_OPENML = "https://api.openml.org/api/v1/json/data/"
#: scikit-learn's copy of kddcup.data_10_percent.gz, and its hash
_KDD = (
    "https://ndownloader.figshare.com/files/5976042",
    "sha256:8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
)


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
    if hashlib.sha256(payload).hexdigest() != header["sha256"]:
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


@dataclass
class _Arriving:
    """A progress bar for pooch that bounds size and time of a download and reports the bytes that have arrived."""

    progress: Callable[[int], None]
    seconds: float
    total: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def update(self, count: int) -> None:
        self.size += count
        if self.size > _MOST_BYTES:
            cause = f"is larger than {_MOST_BYTES / 1e6:,.0f} MB, and no set that dpviz knows is"
            raise InvalidInput("download", cause, "The server or the mirror sends something else.")
        if time.monotonic() > self.end:
            raise InvalidInput("download", f"was not done after {self.seconds:g} s (DPVIZ_MAX_FETCH_SECONDS)", "Try again later.")
        self.progress(self.size)

    def reset(self) -> None:
        self.size = 0

    def close(self) -> None:
        pass


def _retrieve(url: str, known_hash: str | None, home: str, bar: _Arriving) -> bytes:
    import pooch

    mirror = os.environ.get(MIRROR)
    if mirror:
        base, parts = urlsplit(mirror), urlsplit(url)
        url = urlunsplit((base.scheme, base.netloc, base.path.rstrip("/") + parts.path, parts.query, ""))
    silence = float(os.environ.get("DPVIZ_SILENCE_SECONDS", _SILENCE))
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=silence, chunk_size=1 << 16)
    pooch.get_logger().disabled = True
    return Path(pooch.retrieve(url, known_hash, path=home, downloader=downloader)).read_bytes()


def _download(file: str, home: str, bar: _Arriving) -> tuple[bytes, str]:
    """(a published file, where it comes from)."""
    if file == "kddcup99":
        return _retrieve(*_KDD, home, bar), "scikit-learn's kddcup.data_10_percent, SHA-256 checked"
    number = file.removeprefix("openml-")
    about = json.loads(_retrieve(_OPENML + number, None, home, bar))["data_set_description"]
    source = f"OpenML data set {number}, version {about['version']}, MD5 checked"
    return _retrieve(about["url"], f"md5:{about['md5_checksum']}", home, bar), source


def _explain(error: Exception) -> InvalidInput:
    """The error of a download, in words."""
    from requests import ConnectionError, HTTPError, Timeout
    from requests.exceptions import ChunkedEncodingError

    fix = "Try again later."
    if isinstance(error, InvalidInput):
        cause, fix = error.cause, error.fix
    elif isinstance(error, Timeout) or "timed out" in str(error):
        cause = "the server stopped answering"
    elif isinstance(error, HTTPError) and error.response is not None:
        cause = f"the server answered {error.response.status_code} ({error.response.reason})"
    elif isinstance(error, ChunkedEncodingError):
        cause = "ended before all of it had arrived"
    elif isinstance(error, ConnectionError):
        cause, fix = "the server cannot be reached", "Check the network and try again."
    elif "hash" in str(error):
        cause = "arrived damaged: its hash is not the published one"
    elif isinstance(error, KeyError | TypeError | ValueError):
        cause = "brought something else than data, as where a proxy or a login page answers"
        fix = "Open any page in a browser on this machine, then try again."
    else:
        cause, fix = f"could not be stored ({error})", "Make room, or set DPVIZ_CACHE."
    return InvalidInput("download", cause, f"{fix} {_OTHERWISE}")


def fetch(
    file: str,
    rows: int,
    names: tuple[str, ...] = (),
    progress: Callable[[int], None] = lambda size: None,
    *,
    limits: Limits | None = None,
) -> None:
    """Downloads a table and keeps it; texts are categories.

    Args:
        file: "openml-N" or "kddcup99".
        rows: rows that it must have; with a mirror another number is taken as well.
        names: of the columns of a file without names.
        progress: receives the bytes that have arrived, several times a second; may raise to give up.

    Raises:
        InvalidInput: no network, no answer in time, a damaged download, the wrong size, no room. Nothing is kept then.
    """
    limits = limits or Limits.from_environment()
    try:
        files.remove_stale_parts(folder(), 2 * limits.fetch_seconds)  # of a process that was killed
        home = str(files.part_folder(folder()))
    except OSError as error:
        raise _explain(error) from error
    try:
        content, source = _download(file, home, _Arriving(progress, limits.fetch_seconds))
        wide = replace(limits, megabytes=1000, rows=10**6, seconds=limits.fetch_seconds)
        frame = read_table(
            content, limits=wide, header=False if names else None, listen=lambda state: progress(len(content))
        ).frame
        if len(frame) != rows and not os.environ.get(MIRROR):
            cause = f"has {len(frame):,} rows where {rows:,} are expected"
            raise InvalidInput("download", cause, "The server's copy has changed.")
        frame = frame.set_axis(list(names), axis=1) if names else frame
        texts = frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]
        frame = frame.astype(dict.fromkeys(texts, object)).astype(dict.fromkeys(texts, "category"))
        mirror = os.environ.get(MIRROR)
        store(file, frame.to_parquet(index=False), len(frame), source + (f", from {mirror}" if mirror else ""))
        progress(len(content))
    except (InvalidInput, OSError, ValueError, KeyError, TypeError) as error:  # those of requests are OSErrors
        raise _explain(error) from error
    finally:
        shutil.rmtree(home, ignore_errors=True)
