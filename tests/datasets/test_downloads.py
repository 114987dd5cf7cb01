"""Published files in the data folder stand in for their downloads.

Downloads from a server of the test: what arrives, fails, hangs or is something else; copies that are not trusted.
"""

import contextlib
import gzip
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import LIMIT, Cancelled, assert_refused, cancel
from support_pages import addressed
from support_shell import Shell

import dpviz
from dpviz.common.limits import Limits
from dpviz.datasets.cards import cards
from dpviz.datasets.process import fetch
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources import originals, remote
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.prepare import prepare
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps.folds import splits
from dpviz.experiments.sweeps.sweep import SweepSpec


def person(k: int, end: str = "") -> str:
    work = ["Private", "?", "State-gov"][k % 3]
    return f"{20 + k}, {work}, {k * 7919}, HS-grad, 9, Divorced, Sales, Wife, White, Female, {k % 4}, 0, 40, United-States, " + (
        f"{'>50K' if k % 4 == 0 else '<=50K'}{end}"
    )


@pytest.mark.long
@pytest.mark.parametrize("header", [True, False])
def test_adult_is_both_files_joined(data_folder: Path, header: bool) -> None:
    names = ", ".join(originals.ORIGINALS["openml-1590"].columns) + "\n"
    assert_refused(dpviz.load_dataset, "adult", match=r"or put adult\.data and adult\.test into the data folder")
    (data_folder / "adult.data").write_text(names * header + "\n".join(person(k) for k in range(40)) + "\n")
    assert "adult" not in dpviz.list_datasets(), "both files are needed"
    remark = "" if header else "|1x3 Cross validator\n"
    (data_folder / "adult.test").write_text(names * header + remark + "\n".join(person(k, ".") for k in range(20)) + "\n")
    dataset = dpviz.load_dataset("adult")
    assert (dataset.n, int((dataset.y > 0).sum())) == (60, 15)
    assert "from adult.data and adult.test in the data folder" in dataset.source
    assert dataset.label_names == ("at most 50K", "above 50K")
    assert "workclass=?" in dataset.feature_names
    assert dpviz.load_dataset("adult-complete").n == 40
    assert {"adult", "adult-complete"} <= set(dpviz.list_datasets())
    (data_folder / "adult.test").write_text("\n".join(person(k) for k in range(30)) + "\n")
    assert dpviz.load_dataset("adult").n == 70, "a file that changes is read again"
    (data_folder / "adult.test").write_text("a,b\n1,2\n3,4\n")
    assert_refused(dpviz.load_dataset, "adult", match=r"adult\.test: has no column 'age'")


def adult(data_folder: Path, n: int, tested: int) -> None:
    (data_folder / "adult.data").write_text("\n".join(person(k) for k in range(n)) + "\n")
    remark = "|1x3 Cross validator\n"
    (data_folder / "adult.test").write_text(remark + "\n".join(person(k, ".") for k in range(tested)) + "\n")


def test_the_published_test_file_can_be_the_test_part(data_folder: Path, shell: Shell) -> None:
    adult(data_folder, 40, 20)
    spec = dpviz.RunSpec("adult", mechanism="output-gaussian", seeds=2, published_split=True)
    back = dpviz.RunSpec.from_query(spec.to_query())
    assert spec.to_query()["published_split"] == "true"
    assert back.published_split
    setup = setup_for(spec)
    assert (dpviz.resolve(spec).n_train, setup.problem.n, len(setup.test.y)) == (40, 40, 20)
    assert setup.dataset.frame["fnlwgt"].iloc[setup.split.test].tolist() == [7919.0 * k for k in range(20)]
    complete = dpviz.load_dataset("adult-complete")
    parts = complete.split(published=True)
    assert complete.train_size(published=True) == len(parts.train) != complete.train_size()
    assert [len(parts.train), len(parts.test)] == [sum(k % 3 != 1 for k in range(n)) for n in (40, 20)], "rows with gaps go"
    assert complete.frame["age"].iloc[parts.test].tolist() == [20.0 + k for k in range(20) if k % 3 != 1]
    assert dpviz.resolve(spec).key() != dpviz.resolve(replace(spec, published_split=False)).key()
    assert len(dpviz.run(spec).accuracy) == 2
    table = dpviz.sweep("adult", mechanisms=["output-gaussian"], epsilons=[1.0], seeds=2, published_split=True)
    assert np.allclose(table["accuracy"], dpviz.run(spec).accuracy)
    asked = ["--dataset", "adult", "--mechanism", "output-gaussian", "--seeds", "2", "--published-split", "true", "--json"]
    assert "published_split" in shell(["run", *asked])
    for wrong, words in (
        (replace(spec, dataset="iris"), "published_split: 'iris' comes without a test part of its own"),
        (replace(spec, folds=5), "published_split: cannot go with folds"),
    ):
        assert_refused(dpviz.resolve, wrong, match=words)
        problems: list[dpviz.InvalidInput] = []
        assert not dpviz.resolve(wrong, problems).spec.published_split
        assert len(problems) == 1
    assert_refused(splits, SweepSpec("adult", published_split=True), 3, match="the published split is one split")


def test_the_sidebar_offers_the_published_split_of_the_set_that_has_one(data_folder: Path) -> None:
    adult(data_folder, 400, 200)
    page = addressed("", dataset="adult", mechanism="output-gaussian", published_split="true").run()
    assert page.toggle(key="published_split").value
    assert [name for name in page.selectbox(key="dataset").options if "dult" in name] == ["Adult"], "one Adult, not its files"
    assert [card.name for card in cards() if card.name and "adult" in card.name] == ["adult", "adult-complete"]
    assert page.query_params["published_split"] in ("true", ["true"])
    assert "(400 training rows)" in page.text_input(key="delta").help
    page.selectbox(key="dataset").set_value("iris").run()
    assert "published_split" not in page.query_params
    assert not page.session_state["dpviz.problems"]
    assert "published_split" not in {toggle.key for toggle in page.toggle}


def test_columns_beside_the_features_stay_with_their_rows_where_gaps_drop_some() -> None:
    rows = np.arange(60.0)
    frame = pd.DataFrame({"a": rows, "b": np.where(rows < 5, np.nan, rows % 7), "who": rows, "y": rows % 2})
    made = prepare(frame, TableSpec("y", drop=("who",)), name="x", source="x")
    assert made.beside["who"].tolist() == made.frame["a"].tolist() == list(range(5, 60))


def test_kdd_is_read_whatever_the_limits_on_tables(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_MAX_ROWS", "50")
    limits: list[Limits] = []

    def read(content: bytes, **how: Any) -> Table:
        limits.append(how["limits"])
        return read_table(content, **how)

    monkeypatch.setattr(originals, "read_table", read)
    kinds = ["normal.", "smurf.", "neptune."]
    rows = "".join(f"{k},{['tcp', 'udp'][k % 2]},http,SF," + "0," * 36 + f"0.5,{kinds[k % 3]}\n" for k in range(90))
    (data_folder / "kddcup.data_10_percent.gz").write_bytes(gzip.compress(rows.encode()))
    dataset = dpviz.load_dataset("kddcup99")
    assert (dataset.n, int((dataset.y < 0).sum())) == (90, 30)
    assert limits[0].seconds > Limits().seconds, "the whole file takes longer than a minute on a busy machine"
    assert "duration" in dataset.feature_names
    assert dpviz.load_dataset("kddcup99-70000").n == 90
    assert_refused(
        dpviz.load_dataset,
        "data/kddcup.data_10_percent.gz",
        match="this file is the dataset kddcup99 or kddcup99-70000: choose that one",
    )


def test_an_own_file_gives_the_rows_of_the_download(data_folder: Path) -> None:
    names = [*originals.BANK_NAMES, "y"]
    some = ["single", "tertiary", "no", "yes", "no", "cellular"]
    values = [[30 + k, "admin.", *some[:3], 100 * k, *some[3:], k % 28 + 1, "may", k, 1, -1, 0, "other"] for k in range(40)]
    frame = [[*row, "yes" if k % 5 == 0 else "no"] for k, row in enumerate(values)]
    lines = [";".join(f'"{n}"' for n in ["ID", *names]), *(";".join(map(str, [k, *row])) for k, row in enumerate(frame))]
    (data_folder / "bank-full.csv").write_text("\n".join(lines))
    mine = dpviz.load_dataset("bank")
    (data_folder / "bank-full.csv").unlink()
    table = pd.DataFrame(values, columns=[f"V{k + 1}" for k in range(16)])
    table = table.apply(lambda c: c.astype(float) if pd.api.types.is_numeric_dtype(c) else c.astype("category"))
    table = table.assign(Class=pd.Categorical(["2" if k % 5 == 0 else "1" for k in range(40)]))
    fetch.store("openml-1461", table.to_parquet(index=False), len(table), "test")
    there = dpviz.load_dataset("bank")
    assert np.array_equal(mine.X, there.X)
    assert np.array_equal(mine.y, there.y)
    assert mine.feature_names == there.feature_names
    assert remote.source_of("bank").startswith("test, ")


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

    log_message = staticmethod(lambda *said: None)


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
        assert_refused(dpviz.resolve, dpviz.RunSpec(dataset=name), match=f"dpviz show {name} --download", field="dataset")
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
    assert "bundled sets" in assert_refused(remote.download, "breast-cancer-original", match=cause, field="download").fix
    assert left() == []
    assert "breast-cancer-original" not in dpviz.list_datasets()
    assert len(server.asked) <= 2, "a person waits for every one of these"


def test_a_download_has_a_time_limit_and_can_be_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.mode = "endless"
    assert_refused(fetch.fetch, "openml-15", 699, limits=Limits(fetch_seconds=0), match="was not done after 0 s")
    with pytest.raises(Cancelled):
        fetch.fetch("openml-15", 699, progress=cancel)
    assert left() == []
    monkeypatch.setenv("DPVIZ_MIRROR", "http://127.0.0.1:9")
    assert_refused(fetch.fetch, "openml-15", 699, match="the server cannot be reached")


def test_a_file_with_another_hash_is_not_kddcup99(server: Server) -> None:
    assert_refused(remote.download, "kddcup99", match="its hash is not the published one")
    assert left() == []


def test_another_number_of_rows_is_said_of_a_mirror_and_refused_without(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.rows = 300
    remote.download("breast-cancer-original")
    ds = dpviz.load_dataset("breast-cancer-original")
    assert ds.n == dpviz.datasets.rows_of("breast-cancer-original") == 300
    assert any("This copy has 300 rows, not 699" in note for note in ds.notes)
    monkeypatch.setattr(fetch, "_download", lambda *args: (arff(300), "test"))
    monkeypatch.delenv("DPVIZ_MIRROR")
    assert_refused(fetch.fetch, "openml-15", 699, match="has 300 rows where 699 are expected")


@pytest.mark.skipif(os.name != "posix", reason="no such files there")
@pytest.mark.parametrize("kind", ["others may write", "of another user", "link", "pipe"])
def test_a_copy_that_others_can_write_is_not_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder itself may be anybody's (mode 0777): what lies in it is read only where its reader alone could write it."""
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    before = os.umask(0)
    try:
        fetch.store("openml-15", pd.DataFrame({"a": [1.0]}).to_parquet(index=False), 1, "here")
        fetch.folder().chmod(0o777)
    finally:
        os.umask(before)
    path = fetch.path_of("openml-15")
    assert path.stat().st_mode & 0o777 == 0o644
    assert fetch.read("openml-15")[1]["rows"] == 1
    if kind == "others may write":
        path.chmod(0o666)
    elif kind == "of another user" and os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    elif kind == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    else:
        path.rename(tmp_path / "away")
        path.symlink_to(tmp_path / "away") if kind == "link" else os.mkfifo(path)
    assert fetch.facts("openml-15") is None
    assert_refused(fetch.read, "openml-15", match=r"others can write the copy .* Remove it and download it again")


def test_variants_come_from_one_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    classes = pd.Categorical(np.where(np.arange(2000) % 3 == 0, "1", "0"))
    cards_table = pd.DataFrame({"Amount": rng.random(2000), "Class": classes})
    fetch.store("openml-1597", cards_table.to_parquet(index=False), len(cards_table), "a prepared cache")
    assert dpviz.load_dataset("credit-card").n == 2000
    balanced = dpviz.load_dataset("credit-card-balanced")
    assert (balanced.n, balanced.y.sum(), balanced.frame.duplicated().sum()) == (2 * 667, 0, 0)
    kinds = rng.choice(["normal.", "smurf.", "neptune."], 70_100)
    connections = pd.DataFrame({"count": rng.random(70_100), "labels": pd.Categorical(kinds)})
    fetch.store("kddcup99", connections.to_parquet(index=False), len(connections), "a prepared cache")
    kdd = dpviz.load_dataset("kddcup99-70000")
    assert (kdd.n, kdd.label_names) == (70_000, ("normal", "attack"))
    assert np.array_equal(kdd.y < 0, kdd.frame["count"].isin(connections["count"][kinds == "normal."]))
