"""Downloads from a server of the test: what arrives, fails, hangs, or is something else."""

import contextlib
import gzip
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from support import LIMIT, Cancelled, cancel

import dpviz
from dpviz.common.limits import Limits
from dpviz.datasets.cards import cards
from dpviz.datasets.process import fetch
from dpviz.datasets.sources import remote


def arff(rows: int) -> bytes:
    """A made-up table in the shape of OpenML 15."""
    rng = np.random.default_rng(0)
    lines = ["@relation breast-w", "@attribute Clump_Thickness real", "@attribute Bare_Nuclei real"]
    lines += ["@attribute Class {benign,malignant}", "@data"]
    for k in range(rows):
        bare = "?" if k % 50 == 0 else str(rng.integers(1, 11))
        lines.append(f"{rng.integers(1, 11)},{bare},{'benign' if rng.random() < 0.65 else 'malignant'}")
    return ("\n".join(lines) + "\n").encode()


class Server(ThreadingHTTPServer):
    """What OpenML answers, spoiled as `mode` says."""

    mode = "good"
    rows = 699
    asked: list[str]
    end: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        mode, data = self.server.mode, not self.path.startswith("/api")
        self.server.asked.append(self.path)
        if mode == "hanging" or (mode == "hanging data" and data):
            self.server.end.wait(LIMIT)
            return
        if mode == "503":
            self.send_error(503)
            return
        body = arff(self.server.rows)
        if not data:
            digest = "0" * 32 if mode == "wrong hash" else hashlib.md5(body).hexdigest()
            about = {"version": "1", "url": "https://openml.org/data/v1/download/1/b.arff", "md5_checksum": digest}
            body = b"<html>Please log in</html>" if mode == "web page" else json.dumps({"data_set_description": about}).encode()
        self.send_response(200)
        if data and mode == "endless":
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.server.end.is_set():
                    self.wfile.write(os.urandom(1 << 16))
            return
        if mode == "bomb":
            self.send_header("Content-Encoding", "gzip")
            body = gzip.compress(bytes(20_000_000), 1)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if data and mode == "truncated" else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    served = Server(("127.0.0.1", 0), Handler)
    served.asked, served.end = [], threading.Event()
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("DPVIZ_MIRROR", f"http://127.0.0.1:{served.server_port}")
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "data"))
    yield served
    served.end.set()
    served.shutdown()
    served.server_close()


def left() -> list[str]:
    folder = fetch.folder()
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_a_set_that_is_not_here_says_how_to_get_it(server: Server) -> None:
    for name in remote.REMOTE:
        with pytest.raises(dpviz.InvalidInput, match=f"dpviz show {name} --download") as caught:
            dpviz.resolve(dpviz.RunSpec(dataset=name))
        assert caught.value.field == "dataset"
        assert name not in dpviz.list_datasets()
    assert not server.asked


def test_a_download_becomes_a_dataset(server: Server) -> None:
    old, young = fetch.folder() / ".part-old", fetch.folder() / ".part-young"
    for part in (old, young):
        (part / "openml.org").mkdir(parents=True)
    os.utime(old, (time.time() - 3600 - 2 * LIMIT,) * 2)
    seen: list[int] = []
    remote.download("breast-cancer-original", seen.append)
    assert seen
    assert left() == [".part-young", "openml-15.dataset"], "what a killed download left is removed by the next"
    assert "breast-cancer-original" in dpviz.list_datasets()
    known = fetch.facts("openml-15")
    assert known["rows"] == 699
    assert len(known["sha256"]) == 64
    server.mode = "503"  # from here on the network is not needed
    ds = dpviz.load_dataset("breast-cancer-original")
    assert ds.n == dpviz.datasets.rows_of("breast-cancer-original") == 699
    assert ds.feature_names == ("Clump_Thickness", "Bare_Nuclei", "(intercept)")
    assert ds.label_names == ("benign", "malignant")
    assert any("14 gaps in Bare_Nuclei were filled with 1" in note for note in ds.notes)
    assert "127.0.0.1" in ds.source
    assert dpviz.run(dpviz.RunSpec(dataset="breast-cancer-original", seeds=1)).accuracy.shape == (1,)
    card = next(c for c in cards() if c.name == "breast-cancer-original")
    assert card.state == "here"


@pytest.mark.parametrize(
    ("mode", "cause"),
    [
        ("hanging", "the server stopped answering"),
        ("hanging data", "the server stopped answering"),
        ("truncated", "arrived damaged|ended before all"),
        ("wrong hash", "arrived damaged: its hash is not the published one"),
        ("503", "answered 503"),
        ("web page", "brought something else than data"),
        ("endless", "is larger than 3 MB"),
        ("bomb", "is larger than 3 MB"),
    ],
)
def test_a_failed_download_leaves_words_and_nothing_else(
    mode: str, cause: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.mode = mode
    monkeypatch.setattr(fetch, "_MOST_BYTES", 3_000_000)
    if "hanging" in mode:
        monkeypatch.setenv("DPVIZ_SILENCE_SECONDS", "0.3")
    with pytest.raises(dpviz.InvalidInput, match=cause) as caught:
        remote.download("breast-cancer-original")
    assert caught.value.field == "download"
    assert "bundled sets" in caught.value.fix
    assert left() == []
    assert "breast-cancer-original" not in dpviz.list_datasets()
    assert len(server.asked) <= 2, "a person waits for every one of these"


def test_a_download_has_a_time_limit_and_can_be_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.mode = "endless"
    with pytest.raises(dpviz.InvalidInput, match="was not done after 0 s"):
        fetch.fetch("openml-15", 699, limits=Limits(fetch_seconds=0))
    with pytest.raises(Cancelled):
        fetch.fetch("openml-15", 699, progress=cancel)
    assert left() == []
    monkeypatch.setenv("DPVIZ_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(dpviz.InvalidInput, match="the server cannot be reached"):
        fetch.fetch("openml-15", 699)


def test_a_file_with_another_hash_is_not_kddcup99(server: Server) -> None:
    with pytest.raises(dpviz.InvalidInput, match="its hash is not the published one"):
        remote.download("kddcup99")
    assert left() == []


def test_another_number_of_rows_is_said_of_a_mirror_and_refused_without(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.rows = 300
    remote.download("breast-cancer-original")
    ds = dpviz.load_dataset("breast-cancer-original")
    assert ds.n == dpviz.datasets.rows_of("breast-cancer-original") == 300
    assert any("This copy has 300 rows, not 699" in note for note in ds.notes)
    monkeypatch.setattr(fetch, "_download", lambda *args: (arff(300), "test"))
    monkeypatch.delenv("DPVIZ_MIRROR")
    with pytest.raises(dpviz.InvalidInput, match="has 300 rows where 699 are expected"):
        fetch.fetch("openml-15", 699)
