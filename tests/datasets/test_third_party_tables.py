"""Tables in the form of files published by third parties, through the data folder and through the form of an upload."""

from pathlib import Path

import pytest
from support_third_party import bank_full_with_id, breast_cancer_wisconsin, numbers_with_labels

import dpviz
from dpviz.dashboard.data.form import describe, spec_of
from dpviz.datasets import Dataset
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.columns import classes
from dpviz.datasets.table.spec import TableSpec

#: file name, content, rows and labels that are trained on, how many features, and what is lost
FORMS = {
    "my-bank.csv": (bank_full_with_id(600, 120), 600, ("no", "yes"), 49, "ID is not used"),
    "BANK.dat": (numbers_with_labels(200, 33), 200, ("-1", "1"), 34, ""),
    "IPUMS-BR.dat": (numbers_with_labels(200, 53, gap="   "), 200, ("-1", "1"), 54, ""),
    "breast-cancer-wisconsin.data": (breast_cancer_wisconsin(), 683, ("2", "4"), 10, "column 1 is not used"),
}


def as_brought(dataset: Dataset, name: str) -> None:
    _, rows, labels, features, lost = FORMS[name]
    assert (dataset.n, dataset.d) == (rows, features)
    assert dataset.label_names == labels
    assert len(set(dataset.y)) == 2
    said = " ".join(str(one.sentence) for one in dataset.lost)
    assert lost in said
    assert bool(said) == bool(lost)


@pytest.mark.parametrize("name", FORMS)
def test_the_data_folder_takes_it_without_a_word(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    (tmp_path / name).write_bytes(FORMS[name][0])
    as_brought(dpviz.load_dataset(f"data/{name}"), name)


@pytest.mark.parametrize("name", FORMS)
def test_an_upload_needs_one_click(name: str) -> None:
    """What the form shows before anything is changed, made a dataset as the button does it."""
    table = read_table(FORMS[name][0])
    target = str(table.frame.columns[-1])
    form = describe(table.frame.drop(columns=target))
    positive = tuple(sorted(classes(table.frame[target]))[1:2])
    made = Upload(table, spec_of(form, TableSpec(target), positive, None), name)
    as_brought(made.dataset(True), name)


def test_declared_round_ranges_say_what_they_clip() -> None:
    table = read_table(FORMS["my-bank.csv"][0])
    form = describe(table.frame.drop(columns="y"))
    form["round"] = form["round low"].notna().to_numpy()
    made = Upload(table, spec_of(form, TableSpec("y"), ("yes",), None), "bank").dataset(True)
    clipped = {one.what: one.count for one in made.lost if one.kind == "values"}
    shown = dict(zip(form["column"], form["it clips"], strict=True))
    assert clipped["balance"] == shown["balance"] > 0
    assert "balance" in made.looked_at, "a range that was proposed from the rows is not public knowledge"
    form[["low", "high"]] = form[["round low", "round high"]]
    typed = Upload(table, spec_of(form, TableSpec("y"), ("yes",), None), "bank").dataset(True)
    assert "balance" not in typed.looked_at, "a person stated it"


@pytest.mark.long
def test_the_whole_bank_table_keeps_every_row() -> None:
    table = read_table(bank_full_with_id())
    form = describe(table.frame.drop(columns="y"))
    made = Upload(table, spec_of(form, TableSpec("y"), ("yes",), None), "bank-full.csv").dataset(True)
    assert made.n == 45_211
