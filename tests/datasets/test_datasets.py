"""Datasets: shape, unit ball, hashes, split, and the papers' preprocessing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import dpviz
from dpviz.common import norms
from dpviz.datasets import catalogue, sources
from dpviz.datasets.base import build
from dpviz.datasets.table.encoding import OneHot, add_intercept, encode, unit_rows_of

NAMES = (*dpviz.list_datasets(), "census-100", "census-25000")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_set_keeps_its_promises(name: str, intercept: bool) -> None:
    ds = dpviz.load_dataset(name, intercept=intercept)
    assert ds.X.dtype == np.float64
    assert ds.X.shape == (ds.n, ds.d) == (len(ds.frame), len(ds.feature_names))
    assert np.linalg.norm(ds.X, axis=1).max() <= 1 + 1e-12
    assert set(np.unique(ds.y)) == {-1.0, 1.0}
    assert ds.intercept is intercept
    assert ds.name == name
    assert ds.source
    assert ds.description
    assert len(ds.sha256) == 64
    assert list(ds.frame.index) == list(range(ds.n))
    words = np.where(ds.y > 0, ds.label_names[1], ds.label_names[0])
    assert (ds.frame.iloc[:, -1].astype(str).to_numpy() == words).all()
    if intercept:
        np.testing.assert_allclose(ds.X[:, -1], 1 / np.sqrt(2))


@pytest.mark.parametrize("name", NAMES)
def test_split_is_seeded_disjoint_and_four_to_one(name: str) -> None:
    ds = dpviz.load_dataset(name)
    split = ds.split(0)
    assert len(split.train) == int(0.8 * ds.n)
    assert sorted([*split.train, *split.test]) == list(range(ds.n))
    assert np.array_equal(split.train, ds.split(0).train)
    assert not np.array_equal(split.train, ds.split(1).train)
    assert dpviz.resolve(dpviz.RunSpec(dataset=name)).n_train == len(split.train)


def test_hash_notices_any_change() -> None:
    hashes = {
        dpviz.load_dataset("breast-cancer").sha256,
        dpviz.load_dataset("breast-cancer", intercept=False).sha256,
        dpviz.load_dataset("census-100").sha256,
        dpviz.load_dataset("census-101").sha256,
    }
    assert len(hashes) == 4


def test_arrays_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        dpviz.load_dataset("iris").X[0, 0] = 5


def test_breast_cancer_is_the_papers_preprocessing() -> None:
    raw, target = load_breast_cancer(return_X_y=True)
    x = (raw - raw.min(0)) / (raw.max(0) - raw.min(0))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    ds = dpviz.load_dataset("breast-cancer", intercept=False)
    np.testing.assert_allclose(ds.X, x, atol=1e-15)
    assert np.array_equal(ds.y, 2.0 * target - 1)
    assert ds.frame["mean radius"].iloc[0] == raw[0, 0]


def test_census_grows_by_adding_people_and_is_as_hard_as_it_says() -> None:
    small, large = dpviz.load_dataset("census-15000"), dpviz.load_dataset("Census 40,000")
    assert large.name == "census-40000"
    np.testing.assert_array_equal(small.X, large.X[:15_000])
    pd.testing.assert_frame_equal(small.frame, large.frame.iloc[:15_000])
    split = large.split(0)
    model = LogisticRegression(C=1e4, fit_intercept=False, max_iter=1000).fit(large.X[split.train], large.y[split.train])
    reached = model.score(large.X[split.test], large.y[split.test])
    assert abs(reached - large.facts["bayes_accuracy"]) < 0.012


def test_teaching_outliers_are_outliers() -> None:
    ds = dpviz.load_dataset("teaching", intercept=False)
    assert ds.plane == ("x1", "x2")
    outlier = (ds.frame["kind"] == "outlier").to_numpy()
    theta = dpviz.run(dpviz.RunSpec(dataset="teaching", mechanism="non-private", intercept=False)).theta[0]
    margins = ds.y * (ds.X @ theta)
    assert outlier.sum() == 8
    assert margins[outlier].max() < np.quantile(margins[~outlier], 0.01)


def test_encode_is_one_hot_and_min_max() -> None:
    frame = pd.DataFrame({"age": [20, 30, 40], "job": ["b", "a", "b"], "member": [True, False, True], "same": [7, 7, 7]})
    x, names = encode(frame)
    assert names == ["age", "job=a", "job=b", "member=False", "member=True", "same"]
    expected = [[0, 0, 1, 0, 1, 0], [0.5, 1, 0, 1, 0, 0], [1, 0, 1, 0, 1, 0]]
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    ("values", "cause"), [([1.0, None], "missing"), ([1.0, float("inf")], "infinite"), (["a", None], "missing")]
)
def test_encode_refuses_what_it_cannot_mean(values: list, cause: str) -> None:
    with pytest.raises(dpviz.InvalidInput, match=cause):
        encode(pd.DataFrame({"column": values}))


def made(x: np.ndarray, y: np.ndarray) -> dpviz.Dataset:
    names = [f"f{k}" for k in range(x.shape[1])]
    return build(
        name="made",
        x=x,
        y=y,
        feature_names=names,
        frame=pd.DataFrame({"label": y}),
        intercept=False,
        source="test",
        label_names=("no", "yes"),
        description="test",
    )


@pytest.mark.parametrize(
    ("x", "y", "cause"),
    [
        (np.zeros((20, 2)), np.ones(20), "one class"),
        (np.zeros((20, 2)), np.arange(20) % 3, "labels other"),
        (np.full((20, 2), np.nan), np.arange(20) % 2 * 2.0 - 1, "finite"),
        (np.full((20, 2), 0.9), np.arange(20) % 2 * 2.0 - 1, "longer than 1"),
        (np.zeros((4, 2)), np.array([1.0, -1, 1, -1]), "At least 10"),
    ],
)
def test_a_dataset_that_would_void_the_proofs_cannot_be_made(x: np.ndarray, y: np.ndarray, cause: str) -> None:
    with pytest.raises(dpviz.InvalidInput, match=cause):
        made(x, y)


def test_a_training_part_of_one_class_is_refused() -> None:
    y = -np.ones(50)
    y[0] = 1.0
    ds = made(np.zeros((50, 2)), y)
    test_parts = [seed for seed in range(40) if 0 in np.random.default_rng(seed).permutation(50)[40:]]
    assert test_parts
    for seed in test_parts:
        with pytest.raises(dpviz.InvalidInput, match="one class"):
            ds.split(seed)
    ds.split(next(seed for seed in range(40) if seed not in test_parts))


def test_a_source_is_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_more.py").write_text(
        "from dpviz.datasets.sources.base import Source\n"
        "from dpviz.datasets.sources.synthetic import teaching\n"
        "SOURCE = Source(place=9, owns=lambda name: name == 'one-more', load=teaching, names=lambda: ('one-more',))\n"
    )
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    found = catalogue._found()
    assert [source.names() for source in found[:-1]] == [source.names() for source in catalogue.SOURCES]
    monkeypatch.setattr(catalogue, "SOURCES", found)
    assert dpviz.list_datasets()[-1] == "one-more"
    assert dpviz.run(dpviz.RunSpec(dataset="one-more", seeds=1)).accuracy.shape == (1,)
    with pytest.raises(dpviz.InvalidInput, match="fixed number of rows"):
        dpviz.load_dataset("one-more", n=500)


@pytest.mark.parametrize("intercept", [True, False])
def test_narrow_blocks_become_the_same_rows(intercept: bool) -> None:
    rng = np.random.default_rng(0)
    codes, values = rng.integers(-1, 4, 9000).astype(np.int32), rng.random((9000, 2))
    values[0], codes[0] = 0.0, -1  # a row of zeros stays
    wide = np.hstack([values, codes[:, None] == np.arange(4)])
    expected = add_intercept(norms.unit(wide)) if intercept else norms.unit(wide)
    rows, norms_before = unit_rows_of([values, OneHot(codes, 4)], intercept)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(norms_before, np.linalg.norm(wide, axis=1))
