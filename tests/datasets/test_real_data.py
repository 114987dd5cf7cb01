"""Checks against public data that this project does not ship; DPVIZ_REAL_DATA names the folder that has it."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dpviz
from dpviz.common.limits import Limits
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.spec import TableSpec

FOLDER = Path(os.environ.get("DPVIZ_REAL_DATA", "."))


pytestmark = pytest.mark.reader_process


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (FOLDER / name).is_file(), reason=f"DPVIZ_REAL_DATA does not name a folder with {name}")


GAPS = dict.fromkeys(("workclass", "occupation", "native-country"), "?")


def same_as_scikit_learn(name: str) -> None:
    lam = 1e-3
    spec = dpviz.RunSpec(dataset=name, mechanism="non-private", lam=lam, seeds=1)
    ds, split = dpviz.load_dataset(name), dpviz.load_dataset(name).split(0)
    model = LogisticRegression(C=1 / (lam * len(split.train)), fit_intercept=False, tol=1e-8, max_iter=2000)
    model.fit(ds.X[split.train], ds.y[split.train])
    ours = dpviz.run(spec).non_private.accuracy
    assert abs(ours - model.score(ds.X[split.test], ds.y[split.test])) < 0.005
    assert ours > 0.80


@needs("adult.data")
def test_adult_through_upload_and_through_the_folder_is_what_scikit_learn_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_table((FOLDER / "adult.data").read_bytes())
    mine = Upload(table, TableSpec("income", (">50K",), defaults=GAPS))
    assert (mine.rows, mine.dataset(False).d) == (32_561, 108)
    assert set(mine.dataset(False).label_names) == {"<=50K", ">50K"}
    same_as_scikit_learn(mine.name)
    monkeypatch.setenv("DPVIZ_DATA", str(FOLDER))
    assert dpviz.load_dataset("data/adult.data").n == 30_162  # rows without gaps
    same_as_scikit_learn("data/adult.data")


@needs("creditcard_balanced.csv")
def test_fraud_through_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(FOLDER))
    ds = dpviz.load_dataset("data/creditcard_balanced.csv")
    assert (ds.n, ds.d, abs(ds.y.sum())) == (946, 31, 0)


@needs("kddcup.data_10_percent.gz")
def test_kdd_meets_the_limits_and_passes_wider_ones() -> None:
    content = (FOLDER / "kddcup.data_10_percent.gz").read_bytes()
    with pytest.raises(dpviz.InvalidInput, match="unpacks to more than 50 MB"):
        read_table(content)
    with pytest.raises(dpviz.InvalidInput, match="more than 200,000 rows"):
        read_table(content, header=False, limits=Limits(megabytes=100))
    with pytest.raises(dpviz.InvalidInput, match="the first line looks like data: '0'"):
        read_table(content, limits=Limits(megabytes=100, rows=500_000))
    table = read_table(content, header=False, limits=Limits(megabytes=100, rows=500_000))
    assert table.frame.shape == (494_021, 42)
    mine = Upload(table, TableSpec("column 42", ("normal.",)))
    assert mine.rows == 494_021
    assert np.isclose((mine.dataset(True).y > 0).mean(), 97_278 / 494_021)
