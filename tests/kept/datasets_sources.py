"""Examples of `dpviz.datasets.sources` and `dpviz.datasets.process`."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import requests
from support_kept import refusal

from dpviz.common.limits import Limits
from dpviz.common.validate import InvalidInput
from dpviz.datasets.process import fetch
from dpviz.datasets.sources import folder, originals, own, remote, uploads
from dpviz.datasets.table.formats import read_file
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.spec import RunSpec

# many short examples on a line
# fmt: off


def own_rows_examples() -> Iterator[Any]:
    f = pd.DataFrame(
        {"a": [1.0, 2.5, 4.0, 7.5] * 5, "b": list("xyxz") * 5, "n": range(20), "on": [True, False] * 10, "y": [0, 1, 1, 0, 1] * 4}
    )
    gaps = f.assign(a=[None, *f["a"][1:]])
    x = np.outer([2, 2 + 3e-9, 2 + 1e-9, *np.linspace(0.1, 4.0, 17)], [0.6, 0.8])
    one = own.from_values(f, target="y", ranges={"a": (2, 7)}, notes=("read",))
    yield from [
        [
            own.from_values(f.copy(), target="y", ranges={"a": (2, 7)}).digest == one.digest,
            *(
                other.digest == one.digest
                for other in (
                    own.from_values(f.assign(a=f["a"] + 1), target="y", ranges={"a": (2, 7)}),
                    own.from_values(f, target="y", ranges={"a": (2, 8)}),
                    replace(one, data_norm=2.0),
                    replace(one, frame=one.frame.assign(b=f["b"].astype("category"))),
                )
            ),
        ],
        "\n".join(
            f"{made.n} {made.person_rows} {made.X[[0, 1, 7]].round(6).tolist()} {made.y[:5]} {made.feature_names} "
            f"{made.label_names} {made.source} {made.notes} {made.taken_as_public} {made.looked_at} {made.encoder} "
            f"{made.description} {made.label} {made.intercept} "
            f"{made.frame.iloc[3, -1]}"
            for content in (
                replace(one, guessed_label="it is last"),
                own.from_values(x, f["y"], data_norm=2.0, notes=("read",), source="a test"),
                own.from_values(x, np.array(["no", "yes"])[f["y"]], data_norm=9.0, positive=["no"]),
                own.from_values(x, f["y"], ranges=(0, 3), person=np.arange(20) // 2 + 7),
            )
            for intercept in (True, False)
            for made in [content.dataset("name", intercept)]
        ),
        [own._size(own.from_values(f.assign(**{c: [c * 9_999, ""] * 10 for c in "bc"}), target="y")) // 9_999],
        [
            own.is_own("rows-" + digits)
            for digits in ("0123456789abcdef", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaag", "aaaaaaaaaaaaaaa", "")
        ]
        + [own.is_own("aaaaaaaaaaaaaaaa")],
        [
            own.rows(own.hold(content))
            for content in (
                one, own.from_values(gaps, target="y"), own.from_values(f, target="y", person=np.arange(20) // 2),
                own.from_values(f, target="y", missing=["z"]),
            )
        ],
        [own.get(own.hold(replace(one, notes=notes))).notes for notes in (("first",), ("second",), ("second",))],
        f"{own.from_values(x, f['y'], ranges=(1, 3), person=np.arange(20) // 3, person_rows=2).spec}",
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: own.from_values(f),
                lambda: own.from_values(f, f["y"], target="y"),
                lambda: own.from_values(x, f["y"][1:]),
                lambda: own.from_values(x, np.c_[f["y"], f["y"]]),
                lambda: own.from_values(x, f["y"], person=[1, 2]),
                lambda: own.from_values(x, f["y"], data_norm=0),
                lambda: own.from_values(x, f["y"], data_norm=1, ranges=(0, 1)),
                lambda: own.from_values(x, f["y"], data_norm=1.0, defaults={"x0": 1.0}),
                lambda: own.from_values(x, f["y"], data_norm=1.0, person=np.arange(20)),
                lambda: own.from_values(f[["a", "y"]], target="z", data_norm=1.0),
                lambda: own.from_values(f, target="y", data_norm=1.0),
                lambda: own.from_values(gaps[["a", "y"]], target="y", data_norm=1.0),
                *(
                    lambda how=how: own.hold(own.from_values(f, target="y", **how))
                    for how in (
                        {"person": "y"}, {"person": "who"}, {"person": "b", "columns": ["b", "a"]},
                        {"person": "b", "person_rows": 0}, {"person_rows": 2}, {"ranges": {"z": (1, 2)}},
                    )
                ),
                lambda: own.hold(own.from_values(f.assign(y=3), target="y")),
                lambda: own.get("rows-0123456789abcdef"),
                lambda: own.SOURCE.canonical("rows-0123456789abcdef", None),
                lambda: own.from_file(None),
                lambda: own.pairs("ranges", "ab", ["a"]),
                lambda: own.pairs("ranges", 3, ["a"]),  # type: ignore[arg-type]
                lambda: own.pairs("ranges", (1, 2, 3), ["a"]),
                lambda: own.pairs("ranges", (1, "x"), ["a"]),  # type: ignore[arg-type]
                lambda: own.table(np.arange(3)),
                lambda: own.table(pd.DataFrame({"a": []})),
                lambda: own.table(pd.DataFrame({"a": [1j]})),
                lambda: own.table(pd.DataFrame({"a": [1.0, 2.0, np.inf, -np.inf]})),
                lambda: own.table(pd.DataFrame({"a": [10**400]})),
            )
        ),
        refusal(lambda: RunSpec(replace(own.load(own.hold(one), True), X=np.zeros((20, 8))))).partition("' ")[2],
        own.pairs("ranges", (1, 3.5), ["a", "b"]) | own.pairs("ranges", {7: (1, 2)}, []) | own.pairs("ranges", None, ["a"]),
        "\n".join(
            f"{column.tolist()} {column.dtype} {own.cell_text.is_declared(column)}"
            for values in (
                [1, None, 2.5], [True, False], [True, None], [None, None], [1, "x"], [2**53, 1], [2**60, 2**60 + 1],
                [2**53 - 1, -3], [-(2**53), 1],
                pd.array([1, None], "Int64"), [np.float32(0.5), own.Decimal("0.25")], [1.0, "1"], [True, 2],
            )
            for column in [own.table(pd.DataFrame({"a": pd.Series(values)}))["a"]]
        ),
    ]


def own_files_examples() -> Iterator[Any]:
    text = b"a;b;k;y\n" + b"1;2;u;no\n3;4;v;yes\n5;6;u;yes\n" * 4
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), mock.patch.dict(os.environ, DPVIZ_DATA="."):
        home = Path()
        (home / "t.x.csv").write_bytes(text)
        (home / "t.toml").write_text(
            'target = "y"\npositive = ["yes"]\ndrop = ["k"]\nproposed = ["a", "b"]\nmissing = ["?"]\n'
            "[ranges]\na = [0, 9]\nb = [0, 8]\n"
        )
        (home / "plain.csv").write_bytes(text)
        (home / "plain.toml").write_text("delimiter = ';'\n")
        (home / "no.arff").write_bytes(text)
        (home / "numbers.csv").write_bytes(b"a,b\n" + b"01,3\n2,5\n4,3\n5,9\n" * 3)
        yield from [
            "\n".join(
                f"{ {name: value for name, value in vars(made.spec).items() if value} } {made.source} {made.notes} "
                f"{made.file and Path(made.file).name} {dict(made.reading)} {made.guessed_label} {dict(made.found)}"
                for name, how in (
                    ("t.x.csv", {}), ("t.x.csv", {"ranges": {"b": (1, 5)}, "person_rows": None, "categories": {}}),
                    ("t.x.csv", {"above": 2.0, "target": "a", "categories": {"k": ["u"]}}),
                    ("t.x.csv", {"columns": ["k"], "proposed": ["k"]}), ("t.x.csv", {"drop": ["b"], "missing": {"a": ["3"]}}),
                    ("plain.csv", {}), ("plain.csv", {"reading": {"header": False}, "target": "column 1"}), ("no.arff", {}),
                    ("numbers.csv", {"above": 4.0}),
                    ("numbers.csv", {"by_frame": lambda frame: {"drop": [*frame][:1], "target": [*frame][1], "positive": [3]}}),
                    ("numbers.csv", {"target": "b", "above": 4.0, "positive": [3]}),
                )
                for made in [own.from_file(home / name, **how)]
            ),
            "\n".join(
                f"{made.file} {made.source} {made.guessed_label} {made.spec}"
                for made in [own.from_file(None, text, columns=["a"])]
            ),
            "\n".join(
                own.rows_in(*given, **how)[:3].to_csv(index=False)
                for given, how in (
                    ((home / "numbers.csv",), {}), ((home / "numbers.csv",), {"verbatim": ["a"]}),
                    ((None, text), {"reading": {"delimiter": ";"}}), ((home / "gone.csv", b"a,b\n1,2\n"), {}),
                )
            ),
            "\n".join(
                refusal(compute)
                for compute in (
                    lambda: own.from_file(home / "numbers.csv"),
                    lambda: own.from_file(home / "gone.csv"),
                    lambda: own.from_file(home),
                    lambda: own.from_file(home / "t.x.csv", positive=["yes", "no"]).dataset("n", True),
                    lambda: folder.file_bytes(Path("/dev/null"), Limits()),
                    lambda: folder.file_bytes(home / "a\0", Limits()),
                    lambda: folder.file_bytes(home / "no.arff" / "a", Limits()),
                    lambda: folder.file_bytes(home / ("a" * 300), Limits()),
                    lambda: folder.file_stamp(home / "gone.csv"),
                    lambda: folder.reading({"header": "third"}),
                    lambda: folder.reading({"sheet": 3}),
                    lambda: folder.reading({"delimiter": "dot"}),
                    lambda: folder.reading({"encoding": "klingon"}),
                    lambda: folder.reading({"header": 1}),
                )
            ),
            folder.reading({"header": 2, "sheet": "s", "delimiter": "tab"}),
            folder.reading({"delimiter": "|", "encoding": "utf-8"}),
            "\n".join(
                f"{made.X[[0, 1, 7]].round(6).tolist()} {made.feature_names} {made.label} {made.source} {made.notes} "
                f"{made.looked_at}"
                for name in folder.names()
                if name > "data/o"
                for made in [folder.load(name, "n" in name)]
            ),
            "\n".join(
                refusal(lambda text=text: Path("t.toml").write_text(text) and folder.load("data/t.x.csv", True)).split("TOML:")[0]
                for text in (
                    "target = 'k'\npositve = 'u'", "target = [", "delimiter = ['a']", "delimiter = {a = 1}", "target = 'k'",
                    "target = 'k'\nsheet = 'one'", "positive = ['yes']\nheader = false",
                )
            ),
            refusal(lambda: folder.load("data/gone.csv", True)),
            " ".join(folder.sides("a.b.csv.gz")),
        ]


def uploads_examples() -> Iterator[Any]:
    read = read_file(b"a,k,y\n" + b"".join(b"%d,%c,%d\n" % (i * i, b"uvw"[i % 3], i % 2) for i in range(21)))
    mine = uploads.Upload(read, TableSpec("y"), "mine.csv", limits=Limits(uploads_megabytes=1, features=4))
    cost = mine.cost
    with mock.patch.multiple(uploads, held_bytes=lambda: cost + 10_000, table_bytes=lambda table: 1_990_000 - cost):
        refused = "\n".join(
            refusal(compute)
            for compute in (
                lambda: uploads.Upload(read, TableSpec("y"), limits=Limits(features=3)), lambda: mine._take_room(24_751, 1),
                lambda: mine._take_room(24_750, 1), lambda: uploads.count(read, Limits(uploads_megabytes=1)),
                lambda: uploads.count(read, Limits(uploads_megabytes=2)), lambda: uploads.count(read),
            )
        )
    yield from [
        [mine.rows, cost, mine.title, mine.dataset(True).X, mine.dataset(False).X, uploads.cost_of(7, 3)],
        mine.dataset(False).source,
        [uploads.get(mine.name) is mine, *map(uploads.is_held, (mine.name, "iris", "upload-0123456789abcdef"))],
        [uploads.is_upload("upload-" + end) for end in ("0123456789abcdef", "0123456789abcde", "0123456789abcdef0", 16 * "g")],
        refused,
        [mine.forget(), uploads.is_held(mine.name), mine.table.frame.shape],
        (refusal(lambda: mine.dataset(True)) + refusal(lambda: uploads.get(mine.name))).replace(mine.name, "NAME"),
    ]


def downloads_examples() -> Iterator[Any]:
    texts = pd.DataFrame({"a": [1.5, 2.5, 4.0] * 4, "Class": ["0", "1", "0"] * 4, "labels": ["normal.", "smurf.", "normal"] * 4})
    arrived = list[float]()
    bar = fetch._Arriving(arrived.append, 1e9)
    tumours = "".join(f"{k},5,1,1,1,2,{'?' if k == 3 else k % 7},3,1,1,{2 + k % 2 * 2}\n" for k in range(14))
    folders = mock.patch.dict(os.environ, DPVIZ_CACHE="c", DPVIZ_DATA=".")
    arrive = mock.patch(
        "pooch.retrieve",
        lambda url, known, path, downloader: (
            Path("got").write_text(f"{url} {known} {path} {downloader.kwargs} {downloader.chunk_size}") and "got"
        ),
    )
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), folders, arrive:
        fetch.store("openml-15", texts.to_parquet(index=False), 12, "a test")
        yield from [
            [{k: v for k, v in (fetch.facts("openml-15") or {}).items() if k in ("rows", "source")}, fetch.read("openml-15")[0]],
            [fetch.facts("openml-1"), fetch.stamp("openml-1"), (fetch.stamp("openml-15") or [])[0]],
            [bar.update(7), bar.update(10**9 - 7), bar.reset(), bar.update(3), arrived, bar.close()],
            "\n".join(
                refusal(compute)
                for compute in (
                    lambda: fetch.read("openml-1"),
                    lambda: bar.update(10**9 - 2),
                    lambda: fetch._Arriving(arrived.append, -1.5).update(1),
                    *(
                        lambda content=content: [fetch.path_of("openml-2").write_bytes(content), fetch.read("openml-2")]
                        for first, _, rest in [fetch.path_of("openml-15").read_bytes().partition(b"\n")]
                        for content in (b'{"a": 1}\n', first + b"\n" + rest[:-1] + b"?", first + b"\n" + rest[:-9], b"", b"[1]\n")
                    ),
                    lambda: remote.require("breast-cancer-original"),
                    lambda: remote.require("credit-card"),
                    lambda: remote.require("adult"),
                )
            ),
            "\n".join(
                str(fetch._explain(error))
                for error in (
                    InvalidInput("x", "is odd", "Do."), requests.Timeout(), OSError("it timed out"),
                    requests.HTTPError(response=mock.Mock(status_code=503, reason="Busy")), requests.HTTPError("odd"),
                    requests.exceptions.ChunkedEncodingError(), requests.ConnectionError(), ValueError("another hash"),
                    KeyError("url"), TypeError(), ValueError("odd"), OSError("no room"),
                )
            ),
            "\n".join(
                fetch._retrieve("https://api.x.org/a/b?c=1", "md5:1", "home", bar).decode()
                for mirror in ("", "http://m:8/p/")
                for _ in [os.environ.update(DPVIZ_MIRROR=mirror, DPVIZ_SILENCE_SECONDS="7")]
            ),
            [remote._attack(texts), remote._attack_sample(texts), remote._balanced(texts)],
            "\n".join(remote.REMOTE[name].source for name in ("adult-complete", "kddcup99")),
            [remote.rows("breast-cancer-original"), *map(remote.is_downloaded, ("breast-cancer-original", "adult"))],
            Path("breast-cancer-wisconsin.data").write_text(tumours),
            [originals.stamp("openml-15") is None, originals.stamp("x")],
            [*originals.read("openml-15"), remote.rows("breast-cancer-original")],
            " ".join(remote.read_from("data/breast-cancer-wisconsin.data")),
            *(
                one
                for made in [remote.load("breast-cancer-original", True)]
                for one in (
                    [made.X, made.y, made.frame.shape, made.published_test],
                    f"{made.source} {made.notes} {made.taken_as_public} {made.label_names} {made.description} "
                    f"{made.feature_names} {[one.sentence for one in made.lost]} {remote.source_of('breast-cancer-original')}",
                )
            ),
        ]
