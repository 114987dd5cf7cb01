"""Datasets: shape, hashes, split, the papers' preprocessing, and ways into the unit ball."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from support import assert_refused, assert_words
from support_tables import GOOD, made

import dpviz
from dpviz.datasets import catalogue, sources
from dpviz.datasets.base import LARGEST, Dataset, build
from dpviz.datasets.table.encoder import CATEGORIES, NUMBER, Column, Encoder
from dpviz.datasets.table.encoding import SCALINGS
from dpviz.datasets.table.lost import MOST, Lost
from dpviz.datasets.table.spec import TableSpec
from dpviz.datasets.table.units import Units
from dpviz.experiments.run.setup import setup_for

NAMES = (*dpviz.list_datasets(), "census-100", "census-25000")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_set_keeps_its_promises(name: str, intercept: bool) -> None:
    ds = dpviz.load_dataset(name, intercept=intercept)
    assert ds.X.dtype == np.float64
    assert ds.X.shape == (ds.n, ds.d) == (len(ds.frame), len(ds.feature_names))
    assert np.linalg.norm(ds.X, axis=1).max() <= 1 + 1e-12
    assert set(np.unique(ds.y)) == {-1.0, 1.0}
    assert (ds.intercept, ds.name, len(ds.sha256)) == (intercept, name, 64)
    assert all((ds.source, ds.description))
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
    plain = dpviz.load_dataset("iris")
    names = {"feature_names": plain.feature_names[::-1]}, {"label_names": plain.label_names[::-1]}
    changes = {}, *names, {"person_rows": 1}, {"person_rows": 2}, {"X": plain.X / 2}, {"y": -plain.y}
    assert len({replace(plain, **change).sha256 for change in changes}) == len(changes)


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


def test_rows_are_one_hot_and_in_units_of_their_ranges() -> None:
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0], "job": ["b", "c", "b"], "same": [7.0, 7.0, 7.0]})
    columns = Column("age", NUMBER, 20.0, 40.0), Column("job", CATEGORIES, levels=("a", "b")), Column("same", NUMBER, 7.0, 7.0)
    rows, norms_before = Encoder(columns).before_scaling(frame)
    np.testing.assert_allclose(rows * norms_before[:, None], [[0, 0, 1, 0], [0.5, 0, 0, 0], [1, 0, 1, 0]])
    np.testing.assert_allclose(norms_before, [1.0, 0.5, 2**0.5])


def dataset_of(x: np.ndarray, y: np.ndarray) -> dpviz.Dataset:
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
    assert_refused(dataset_of, x, y, match=cause)


def test_a_training_part_of_one_class_is_refused() -> None:
    y = -np.ones(50)
    y[0] = 1.0
    ds = dataset_of(np.zeros((50, 2)), y)
    test_parts = [seed for seed in range(40) if 0 in np.random.default_rng(seed).permutation(50)[40:]]
    assert test_parts
    for seed in test_parts:
        assert_refused(ds.split, seed, match="one class")
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
    assert_refused(dpviz.load_dataset, "one-more", n=500, match="fixed number of rows")


def raw(dataset: Dataset) -> np.ndarray:
    """(n, d) rows before they were brought into the ball, from those of unit length."""
    return dataset.X * dataset.norms[:, None]


@pytest.mark.parametrize("name", ["breast-cancer", "census-300", "iris"])
def test_every_scaling_is_what_it_says(name: str) -> None:
    unit = dpviz.load_dataset(name, intercept=False)
    x = raw(unit)
    norms = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(np.linalg.norm(unit.X, axis=1)[norms > 0], 1.0)
    clipped = dpviz.load_dataset(name, intercept=False, scaling="clip")
    np.testing.assert_allclose(clipped.X, x / np.maximum(1, norms)[:, None], atol=1e-14)
    largest = dpviz.load_dataset(name, intercept=False, scaling="largest")
    np.testing.assert_allclose(largest.X, x / norms.max(), atol=1e-14)
    bound = dpviz.load_dataset(name, intercept=False, scaling="bound")
    np.testing.assert_allclose(bound.X, x / np.sqrt(unit.frame.shape[1] - 1), atol=1e-14)
    centred = dpviz.load_dataset(name, intercept=False, scaling="centred")
    numbers = np.array([feature in unit.frame for feature in unit.feature_names])
    assert numbers.sum() >= 3
    z = np.where(numbers, 2 * x - 1, x) * 2 / np.sqrt(unit.frame.shape[1] - 1)
    np.testing.assert_allclose(centred.X, z / np.maximum(1, np.linalg.norm(z, axis=1))[:, None], atol=1e-14)
    np.testing.assert_allclose(centred.encoder.rows(unit.frame), centred.X, atol=1e-12)
    for other in ("unit", "clip", "bound", "largest"):
        back = centred.rescale(other)
        np.testing.assert_allclose(back.X, dpviz.load_dataset(name, intercept=False, scaling=other).X, atol=1e-12)
    hashes = {d.sha256 for d in (unit, clipped, largest, bound)}
    assert len(hashes) == 4 - (name == "census-300"), "one-hot columns make every row longer than 1: clipping gives unit length"
    for dataset in (unit, clipped, largest, bound, centred):
        assert np.linalg.norm(dataset.X, axis=1).max() <= 1 + 1e-12
    assert LARGEST in largest.looked_at
    assert LARGEST not in (*unit.looked_at, *clipped.looked_at, *bound.looked_at, *centred.looked_at)
    assert any("largest norm" in note for note in largest.notes)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_constant_feature_stays_and_units_are_found_again(scaling: str) -> None:
    dataset = dpviz.load_dataset("breast-cancer", scaling=scaling)
    np.testing.assert_allclose(dataset.X[:, -1], np.sqrt(0.2 if scaling == "centred" else 0.5))
    assert np.linalg.norm(dataset.X, axis=1).max() <= 1 + 1e-12
    back = Units(dataset).read(7, dataset.X[7])
    assert back[0] == f"{dataset.frame.iloc[7, 0]:.4g}"


def test_one_row_changes_other_rows_with_the_largest_norm_only() -> None:
    spec = TableSpec("label", ranges={"age": (0.0, 50.0)}, categories={"job": ("a", "b", "c")})
    before = made(GOOD, spec)
    after = made(GOOD.replace(b"39,", b"0,"), spec)
    for scaling, same in (("unit", True), ("clip", True), ("bound", True), ("centred", True), ("largest", False)):
        others = [d.dataset.rescale(scaling).X[:-1] for d in (before, after)]
        assert np.array_equal(*others) is same


def test_a_set_inside_the_ball_stays_as_it_is() -> None:
    plain = dpviz.load_dataset("teaching")
    assert dpviz.load_dataset("teaching", scaling="clip").sha256 == plain.sha256
    assert_refused(dpviz.load_dataset, "iris", scaling="none", match="scaling: unknown value 'none'")


def test_automatic_scaling_is_centred_where_ranges_are_known() -> None:
    assert setup_for(dpviz.RunSpec("census-300", lam=0.1)).dataset.scaling == "centred"
    assert setup_for(dpviz.RunSpec("teaching", lam=0.1)).dataset is dpviz.load_dataset("teaching"), "inside the ball already"
    automatic = dpviz.load_dataset("census-300", scaling="automatic")
    assert automatic.sha256 == dpviz.load_dataset("census-300", scaling="centred").sha256


def lost_by_scaling(dataset: Dataset) -> list[Lost]:
    return [one for one in dataset.lost if one.kind == "lengths"]


@pytest.mark.parametrize("intercept", [True, False])
def test_one_number_becomes_a_constant_and_that_is_said(intercept: bool) -> None:
    x = np.linspace(3, 7, 200)
    rows = dpviz.dataset(x[:, None], x > 5)
    unit = dpviz.load_dataset(rows.name, intercept=intercept)
    assert_words(lost_by_scaling(unit)[0].sentence, "the only feature becomes a constant", "Row scaling “bound” keeps all")
    assert lost_by_scaling(unit)[0].sentence in unit.cautions, "on every page"
    for scaling in ("clip", "bound", "largest"):
        kept = dpviz.load_dataset(rows.name, intercept=intercept, scaling=scaling)
        assert not lost_by_scaling(kept)
        assert not kept.cautions
        assert kept.rescale("unit").lost == unit.lost


def test_the_share_of_lost_lengths_follows_what_a_linear_model_can_see() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for columns in (2, 5, 40):
        x = rng.uniform(size=(400, columns))
        unit = dpviz.dataset(x, x[:, 0] > 0.5, ranges=(0, 1))
        shares.append(sum(one.share for one in lost_by_scaling(unit)))
        assert shares[-1] < MOST or unit.cautions
        assert not lost_by_scaling(unit.rescale("bound"))
    assert shares == sorted(shares, reverse=True)
    assert 0.3 < shares[0] < 0.6
    assert shares[-1] == 0.0, "with many columns all rows are about as long"
    same = np.repeat(rng.uniform(0.2, 1, 400)[:, None], 3, axis=1)
    assert lost_by_scaling(dpviz.dataset(same, same[:, 0] > 0.5, ranges=(0, 1)))[0].share > 0.99, "three copies of one number"
    assert not lost_by_scaling(dpviz.load_dataset("census-300")), "categories keep what unit length takes from numbers"
