"""Downloads from a server of the test: what arrives, fails, hangs, or is something else."""

import contextlib
import gzip
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import LIMIT, Cancelled, cancel, mostly_long

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
    table = arff(699)
    kdd = b"not the file"
    asked: list[str]
    end: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        mode, path = self.server.mode, self.path
        self.server.asked.append(path)
        if mode == "hanging" or (mode == "hanging data" and "download" in path):
            self.server.end.wait(LIMIT)
            return
        if mode in ("503", "500"):
            self.send_error(int(mode))
            return
        body = self.server.kdd if path.startswith("/files/") else self.answer(path)
        if mode == "web page":
            body = b"<html>Please log in</html>"
        self.send_response(200)
        if "download" in path and mode == "endless":
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.server.end.is_set():
                    self.wfile.write(os.urandom(1 << 16))
            return
        if mode == "bomb":
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(gzip.compress(bytes(20_000_000), 1) * 150)
            return
        if path.startswith("/files/") or "download" in path:
            short = mode == "truncated"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if short else body)
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, path: str) -> bytes:
        table = self.server.table
        if "download" in path:
            return table
        if "features" in path:
            kinds = {"Clump_Thickness": "numeric", "Bare_Nuclei": "numeric", "Class": "nominal"}
            features = [
                {
                    "index": str(k),
                    "name": name,
                    "data_type": kind,
                    "is_target": str(name == "Class").lower(),
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": "0",
                    **({"nominal_value": ["benign", "malignant"]} if kind == "nominal" else {}),
                }
                for k, (name, kind) in enumerate(kinds.items())
            ]
            return json.dumps({"data_features": {"feature": features}}).encode()
        if "qualities" in path:
            return json.dumps({"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "699.0"}]}}).encode()
        wrong = self.server.mode == "wrong hash"
        return json.dumps(
            {
                "data_set_description": {
                    "id": "15",
                    "description": "made up",
                    "name": "breast-w",
                    "version": "1",
                    "format": "ARFF",
                    "status": "active",
                    "file_id": "52350",
                    "url": "https://www.openml.org/data/v1/download/52350/breast-w.arff",
                    "default_target_attribute": "Class",
                    "md5_checksum": "0" * 32 if wrong else hashlib.md5(table).hexdigest(),
                    "licence": "Public",
                }
            }
        ).encode()

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


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has a download answer with a table of so many rows, without the process that downloads."""

    def answer(rows: int) -> None:
        numbers = np.arange(float(rows)) % 10
        labels = pd.Categorical(np.where(numbers < 6, "benign", "malignant"))
        frame = pd.DataFrame({"Clump_Thickness": numbers, "Bare_Nuclei": numbers, "Class": labels})
        said = json.dumps({"rows": rows, "source": "test"}).encode()
        monkeypatch.setattr(fetch, "run_child", lambda *args: said + b"\n" + frame.to_parquet(index=False))

    return answer


def left(name: str) -> list[str]:
    folder = fetch.folder()
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_a_body_without_an_end_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_MOST_BYTES", 3_000_000)
    server.mode = "endless"
    with pytest.raises(dpviz.InvalidInput, match="is larger than 3 MB"):
        remote.download("breast-cancer-original")
    assert left("") == []


@pytest.mark.long
def test_a_few_bytes_that_unpack_to_many_are_given_up(server: Server) -> None:
    server.mode = "bomb"
    with pytest.raises(dpviz.InvalidInput, match="needs more memory"):
        fetch.fetch("openml-15", 699, limits=Limits(memory_megabytes=700))
    assert left("") == []


def test_a_set_that_is_not_here_says_how_to_get_it(server: Server) -> None:
    for name in remote.REMOTE:
        with pytest.raises(dpviz.InvalidInput, match=f"dpviz fetch {name}") as caught:
            dpviz.resolve(dpviz.RunSpec(dataset=name))
        assert caught.value.field == "dataset"
        assert name not in dpviz.list_datasets()
    assert not server.asked


def test_a_download_becomes_a_dataset(server: Server) -> None:
    seen: list[int] = []
    remote.download("breast-cancer-original", seen.append)
    assert seen
    assert left("") == ["openml-15.dataset"]
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
    mostly_long(
        [
            ("hanging", "stopped answering for 0.3 s"),
            ("hanging data", "stopped answering for 0.3 s"),
            ("truncated", "arrived damaged|ended before all"),
            ("wrong hash", "arrived damaged: its hash is not the published one"),
            ("503", "answered 503"),
            ("500", "answered 500"),
            ("web page", "brought something else than data"),
        ],
        ("wrong hash", "arrived damaged: its hash is not the published one"),
    ),
)
def test_a_failed_download_leaves_words_and_nothing_else(
    mode: str, cause: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.mode = mode
    if "hanging" in mode:
        monkeypatch.setenv("DPVIZ_SILENCE_SECONDS", "0.3")
    with pytest.raises(dpviz.InvalidInput, match=cause) as caught:
        remote.download("breast-cancer-original")
    assert caught.value.field == "download"
    assert "bundled sets" in caught.value.fix
    assert left("") == []
    assert "breast-cancer-original" not in dpviz.list_datasets()
    asked = [path for path in server.asked if path == server.asked[-1]]
    assert len(asked) <= 2, "a person waits for every one of these"


def test_what_a_killed_download_left_is_removed_by_the_next(server: Server, no_process: Callable[[int], None]) -> None:
    no_process(699)
    old, young = fetch.folder() / ".part-old", fetch.folder() / ".part-young"
    for part in (old, young):
        (part / "openml.org").mkdir(parents=True)
    os.utime(old, (time.time() - 3600,) * 2)
    remote.download("breast-cancer-original")
    assert left("") == [".part-young", "openml-15.dataset"]


@pytest.mark.long
def test_a_download_has_a_time_limit_and_can_be_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.mode = "hanging"
    with pytest.raises(dpviz.InvalidInput, match="was not done after 1 s"):
        fetch.fetch("openml-15", 699, limits=Limits(fetch_seconds=1))

    with pytest.raises(Cancelled):
        fetch.fetch("openml-15", 699, cancel)
    server.mode = "good"
    fetch.fetch("openml-15", 699)
    monkeypatch.setenv("DPVIZ_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(dpviz.InvalidInput, match="the server cannot be reached"):
        fetch.fetch("openml-15", 699)


@pytest.mark.long
def test_a_file_with_another_hash_is_not_kddcup99(server: Server) -> None:
    for content in (b"not the file", gzip.compress(b"0,tcp,http,SF\n")):
        server.kdd = content
        with pytest.raises(dpviz.InvalidInput, match="its hash is not the published one"):
            remote.download("kddcup99")
    server.mode = "truncated"
    with pytest.raises(dpviz.InvalidInput, match="ended before all of it had arrived"):
        remote.download("kddcup99")
    assert left("") == []


def test_another_number_of_rows_is_said_so(server: Server, no_process: Callable[[int], None]) -> None:
    no_process(300)
    remote.download("breast-cancer-original")
    ds = dpviz.load_dataset("breast-cancer-original")
    assert ds.n == dpviz.datasets.rows_of("breast-cancer-original") == 300
    assert any("This copy has 300 rows, not 699" in note for note in ds.notes)


def test_without_a_mirror_another_number_of_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    monkeypatch.delenv("DPVIZ_MIRROR", raising=False)
    monkeypatch.setattr(fetch, "run_child", lambda *args: b'{"rows": 5, "source": "test"}\n...')
    with pytest.raises(dpviz.InvalidInput, match="has 5 rows where 699 are expected"):
        fetch.fetch("openml-15", 699)
    assert left("") == []
