"""The process that downloads: JSON on standard input, JSON line and Parquet on standard output."""

import http.client
import io
import json
import os
import socket
import sys
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit

import pandas as pd

from dpviz.common.boundary import Boundary
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process.child_read import OUT_OF_MEMORY, answer, bound_memory
from dpviz.datasets.process.fetch import MIRROR

_SILENCE = 10.0  # seconds without a byte
_RETRY = {"n_retries": 1, "delay": 0.2}


def mirrored(url: str, mirror: str) -> str:
    """A URL with scheme and host of the mirror."""
    base, parts = urlsplit(mirror), urlsplit(url)
    return urlunsplit((base.scheme, base.netloc, base.path.rstrip("/") + parts.path, parts.query, ""))


def _prepare_loaders(mirror: str | None) -> None:
    """Sends scikit-learn's loaders to a mirror, where there is one, and makes them ask a silent server twice and no more.

    `fetch_openml` asks for the description four times whatever `n_retries` says, and all that again when the answer
    was a timeout and not a `URLError`: over a minute until a person has the message.
    """
    from sklearn.datasets import _base, _openml

    opened, describe, retrieved = _openml.urlopen, _openml._get_data_description_by_id, urllib.request.urlretrieve

    def urlopen(request: urllib.request.Request, *args: Any, **kw: Any) -> Any:
        if mirror:
            request.full_url = mirrored(request.full_url, mirror)
        try:
            return opened(request, *args, **kw)
        except TimeoutError as error:
            raise URLError(error) from error

    _openml.urlopen = urlopen
    _openml._get_data_description_by_id = lambda number, home: describe(number, home, **_RETRY)
    if mirror:
        _base.urlretrieve = lambda url, *args, **kw: retrieved(mirrored(url, mirror), *args, **kw)


def load(file: str, home: str) -> tuple[pd.DataFrame, str]:
    """(table, source) by scikit-learn's loader; gaps are missing values, texts are categories."""
    from sklearn.datasets import fetch_kddcup99, fetch_openml

    if file == "kddcup99":
        bunch = fetch_kddcup99(data_home=home, percent10=True, **_RETRY)
        frame = pd.DataFrame(bunch.data, columns=bunch.feature_names).assign(labels=bunch.target)
        for column in frame:
            if isinstance(frame[column].iloc[0], bytes):
                frame[column] = frame[column].str.decode("ascii").astype("category")
            else:
                frame[column] = frame[column].astype(float)
        return frame, "sklearn.datasets.fetch_kddcup99(percent10=True), SHA-256 checked by scikit-learn"
    number = int(file.removeprefix("openml-"))
    bunch = fetch_openml(data_id=number, data_home=home, as_frame=True, parser="auto", **_RETRY)
    frame = bunch.frame.copy()
    for column in frame:
        if isinstance(frame[column].dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(object).where(frame[column].notna(), None).astype("category")
        else:
            frame[column] = frame[column].astype(float)
    version = bunch.details.get("version", "?")
    return frame, f"OpenML data set {number}, version {version}, MD5 checked by scikit-learn"


def explain(error: Exception) -> InvalidInput:
    """The error of a download, in words."""
    again = "Try again later."
    reason = error.reason if isinstance(error, URLError) else None
    if isinstance(error, TimeoutError) or isinstance(reason, TimeoutError):
        return InvalidInput("download", f"the server stopped answering for {_silence():g} s", again)
    if isinstance(error, HTTPError):
        return InvalidInput("download", f"the server answered {error.code} ({error.reason})", again)
    if isinstance(error, http.client.IncompleteRead | EOFError | ConnectionError):
        return InvalidInput("download", "ended before all of it had arrived", again)
    if type(error).__name__ == "ContentTooShortError":
        return InvalidInput("download", "ended before all of it had arrived", again)
    if isinstance(error, URLError):
        return InvalidInput("download", f"the server cannot be reached ({reason})", "Check the network and try again.")
    if "checksum" in str(error):
        return InvalidInput("download", "arrived damaged: its hash is not the published one", again)
    if isinstance(error, json.JSONDecodeError):
        return InvalidInput(
            "download",
            "brought something else than data, as where a proxy or a login page answers",
            "Open any page in a browser on this machine, then try again.",
        )
    if isinstance(error, OSError) and error.errno is not None:
        return InvalidInput("download", f"could not be stored ({error.strerror})", "Make room, or set DPVIZ_CACHE.")
    return InvalidInput("download", f"is not the table it should be ({type(error).__name__}: {str(error)[:200]})", again)


def _silence() -> float:
    return float(os.environ.get("DPVIZ_SILENCE_SECONDS", _SILENCE))


def main(read: Callable[[], bytes] = sys.stdin.buffer.read) -> int:
    request = json.loads(read())
    bound_memory(request["megabytes"], files=True)  # a few bytes of gzip can stand for any number
    socket.setdefaulttimeout(_silence())
    warnings.simplefilter("ignore")
    mirror = os.environ.get(MIRROR)
    with Boundary("a download") as work:  # a broken server may make a library raise anything
        _prepare_loaders(mirror)
        frame, source = load(request["file"], request["home"])
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
    if isinstance(work.error, MemoryError):
        return OUT_OF_MEMORY
    if work.error is not None:
        explained = explain(work.error)
        answer({"refused": [explained.field, explained.cause, explained.fix]})
        return 0
    answer({"rows": len(frame), "source": source + (f", from {mirror}" if mirror else "")}, buffer.getvalue())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
