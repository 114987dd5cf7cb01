"""Checks against public data that this project does not ship; DPVIZ_REAL_DATA names the folder that has it."""

import os
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import dpviz
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
