"""Published files in the data folder stand in for their downloads."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import assert_refused
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
