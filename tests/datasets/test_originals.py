"""Published files in the data folder stand in for their downloads."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.datasets.process import fetch
from dpviz.datasets.sources import originals, remote


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def person(k: int, end: str = "") -> str:
    work = ["Private", "?", "State-gov"][k % 3]
    return f"{20 + k}, {work}, {k * 7919}, HS-grad, 9, Divorced, Sales, Wife, White, Female, {k % 4}, 0, 40, United-States, " + (
        f"{'>50K' if k % 4 == 0 else '<=50K'}{end}"
    )


@pytest.mark.long
@pytest.mark.parametrize("header", [True, False])
def test_adult_is_both_files_joined(data: Path, header: bool) -> None:
    names = ", ".join(originals.ORIGINALS["openml-1590"].columns) + "\n"
    with pytest.raises(dpviz.InvalidInput, match=r"or put adult\.data and adult\.test into the data folder"):
        dpviz.load_dataset("adult")
    (data / "adult.data").write_text(names * header + "\n".join(person(k) for k in range(40)) + "\n")
    assert "adult" not in dpviz.list_datasets(), "both files are needed"
    remark = "" if header else "|1x3 Cross validator\n"
    (data / "adult.test").write_text(names * header + remark + "\n".join(person(k, ".") for k in range(20)) + "\n")
    dataset = dpviz.load_dataset("adult")
    assert (dataset.n, int((dataset.y > 0).sum())) == (60, 15)
    assert "from adult.data and adult.test in the data folder" in dataset.source
    assert dataset.label_names == ("at most 50K", "above 50K")
    assert "workclass=?" in dataset.feature_names
    assert dpviz.load_dataset("adult-complete").n == 40
    assert {"adult", "adult-complete"} <= set(dpviz.list_datasets())
    (data / "adult.test").write_text("\n".join(person(k) for k in range(30)) + "\n")
    assert dpviz.load_dataset("adult").n == 70, "a file that changes is read again"
    (data / "adult.test").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(dpviz.InvalidInput, match=r"adult\.test: has no column 'age'"):
        dpviz.load_dataset("adult")


def test_kdd_is_read_whatever_the_limits_on_tables(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_MAX_ROWS", "50")
    kinds = ["normal.", "smurf.", "neptune."]
    rows = "".join(f"{k},{['tcp', 'udp'][k % 2]},http,SF," + "0," * 36 + f"0.5,{kinds[k % 3]}\n" for k in range(90))
    (data / "kddcup.data_10_percent.gz").write_bytes(gzip.compress(rows.encode()))
    dataset = dpviz.load_dataset("kddcup99")
    assert (dataset.n, int((dataset.y < 0).sum())) == (90, 30)
    assert "duration" in dataset.feature_names
    assert dpviz.load_dataset("kddcup99-70000").n == 90


def test_an_own_file_gives_the_rows_of_the_download(data: Path) -> None:
    names = [*originals.BANK_NAMES, "y"]
    some = ["single", "tertiary", "no", "yes", "no", "cellular"]
    values = [[30 + k, "admin.", *some[:3], 100 * k, *some[3:], k % 28 + 1, "may", k, 1, -1, 0, "other"] for k in range(40)]
    frame = [[*row, "yes" if k % 5 == 0 else "no"] for k, row in enumerate(values)]
    lines = [";".join(f'"{n}"' for n in ["ID", *names]), *(";".join(map(str, [k, *row])) for k, row in enumerate(frame))]
    (data / "bank-full.csv").write_text("\n".join(lines))
    mine = dpviz.load_dataset("bank")
    (data / "bank-full.csv").unlink()
    table = pd.DataFrame(values, columns=[f"V{k + 1}" for k in range(16)])
    table = table.apply(lambda c: c.astype(float) if pd.api.types.is_numeric_dtype(c) else c.astype("category"))
    fetch.write("openml-1461", table.assign(Class=pd.Categorical(["2" if k % 5 == 0 else "1" for k in range(40)])), "test")
    there = dpviz.load_dataset("bank")
    assert np.array_equal(mine.X, there.X)
    assert np.array_equal(mine.y, there.y)
    assert mine.feature_names == there.feature_names
    assert remote.source_of("bank").startswith("test, ")
