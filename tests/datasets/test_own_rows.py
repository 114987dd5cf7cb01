"""`dpviz.dataset`: a person's own rows in Python, and persons, of whom at most k rows are kept.

Rows read back in the data's own units, people found by their values, and round ranges that a person may confirm.
"""

import dataclasses
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import mostly_long

import dpviz
from dpviz.common.persons import bound_rows, choose_rows_by
from dpviz.datasets import list_datasets, load_dataset
from dpviz.datasets.sources import own
from dpviz.datasets.table.proposals import count_outside, round_range
from dpviz.datasets.table.units import Units
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.sweeps.cells import Cell, CellStore


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)) * [1, 10, 100]
    return x, (x[:, 0] > 0).astype(int)


def frame() -> pd.DataFrame:
    x, y = rows()
    kind = np.where(x[:, 1] > 0, "a", "b")
    return pd.DataFrame({"age": x[:, 0], "kind": kind, "flag": x[:, 2] > 0, "income": np.where(y > 0, ">50K", "<=50K")})


def test_the_name_is_random_and_the_same_for_the_same_content_of_one_process() -> None:
    x, y = rows()
    first = dpviz.dataset(x, y)
    assert first.name == dpviz.dataset(x.copy(), list(y)).name
    assert own.is_own(first.name)
    moved = x.copy()
    moved[0, 0] += 1e-9
    others = [
        dpviz.dataset(moved, y),
        dpviz.dataset(x, 1 - y),
        dpviz.dataset(x, y, ranges=(-300, 300)),
        dpviz.dataset(x, y, positive=0),
    ]
    assert len({first.name, *(d.name for d in others)}) == 5


def test_the_name_tells_nothing_about_the_rows() -> None:
    """An attacker who knows all rows but one could try values for it against a name in a report. Each process has its own."""
    x, y = rows()
    code = "import numpy as np, dpviz; print(dpviz.dataset(*np.load('r.npz').values()).name)"
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "r.npz", x, y)
        call = [sys.executable, "-c", code]
        other = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    assert own.is_own(other)
    assert other != dpviz.dataset(x, y).name


def test_what_is_stored_is_found_again_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call of a sweep in another process goes on where the first stopped, although the rows have a new random name."""
    x, y = rows()
    names = []
    for _ in range(2):
        own._names.clear()
        cell = Cell(dpviz.RunSpec(dpviz.dataset(x, y), mechanism="output-gaussian"), (1.0,), range(2))
        store = CellStore(tmp_path)
        kept = store.get(cell)
        if kept is None:
            store.put(cell, cell.attempt())
        else:
            assert set(kept["dataset"]) == {cell.spec.dataset}
        names.append(cell.spec.dataset)
    assert kept is not None
    assert names[0] != names[1]
    moved = dpviz.dataset(x + 1e-9, y)
    assert store.get(Cell(dpviz.RunSpec(moved, mechanism="output-gaussian"), (1.0,), range(2))) is None, "the control"


def test_it_is_used_like_a_named_one() -> None:
    x, y = rows()
    data = dpviz.dataset(x, y)
    spec = dpviz.RunSpec(data, mechanism="output-gaussian", seeds=2)
    assert spec.dataset == data.name
    assert dpviz.run(dataclasses.replace(spec, row_scaling="unit")).setup.dataset is data
    assert dpviz.run(spec).setup.dataset is dpviz.load_dataset(data.name, scaling="automatic")
    table = dpviz.sweep(data, mechanisms=["output-gaussian"], epsilons=[1.0, 2.0], seeds=2, n_jobs=2)  # in threads
    assert set(table["dataset"]) == {data.name}
    assert dpviz.influence_of(dpviz.setup_for(spec).problem).residual < 1e-8
    assert dpviz.run(dataclasses.replace(spec, intercept=False)).theta.shape == (2, 3)


ENDS = [1.5e308, -1.7e308, 5e-324, 1e-320, 3.4e38, 1.4e-45, 1e160, 1e-160, 0.0]


def test_data_norm_reads_nothing_from_the_rows() -> None:
    x, y = rows()
    data = dpviz.dataset(x, y, data_norm=100.0)
    assert data.declared
    np.testing.assert_allclose(data.X[:, :3] * np.sqrt(2), x / np.maximum(100, np.linalg.norm(x, axis=1))[:, None])
    assert "clipped" in data.notes[0]


@pytest.mark.parametrize("scaling", mostly_long(["unit", "clip", "bound"], "clip"))
@pytest.mark.parametrize("how", [{"data_norm": 0.5}, {"data_norm": 1e-300}, {"ranges": (0, 1)}, {"ranges": (0, 1e160)}])
def test_a_row_at_the_ends_of_double_precision_becomes_a_row_of_the_ball(how: dict[str, object], scaling: str) -> None:
    """The others stay as they are to the last bit, and the minimiser moves by no more than a row may move it."""
    x, y = np.abs(rows()[0][:, :2]) / 100, rows()[1]
    spec = dpviz.RunSpec(dpviz.dataset(x, y, **how), mechanism="output-gaussian", lam=0.1, row_scaling=scaling)  # type: ignore[arg-type]
    before = dpviz.setup_for(spec)
    sensitivity = calibration_of(spec).sensitivity
    place = int(before.split.train[0])
    for value in [*zip(ENDS, ENDS, strict=True), *zip(ENDS, ENDS[1:] + ENDS[:1], strict=True)]:
        moved = x.copy()
        moved[place] = value
        after = dpviz.setup_for(dataclasses.replace(spec, dataset=dpviz.dataset(moved, y, **how)))  # type: ignore[arg-type]
        others = np.arange(len(x)) != place
        np.testing.assert_array_equal(after.dataset.X[others], before.dataset.X[others])
        assert np.isfinite(after.dataset.X).all()
        assert np.linalg.norm(after.dataset.X[place]) <= 1 + 1e-9
        assert np.linalg.norm(after.problem.optimum - before.problem.optimum) <= sensitivity


def persons_frame(n: int = 300, people: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return pd.DataFrame(
        {"who": rng.integers(people, size=n).astype(str), "x": x, "y": np.where(x + rng.normal(0, 0.3, n) > 0.5, "b", "a")}
    )


def made(k: int = 2, **more: object) -> dpviz.Dataset:
    return dpviz.dataset(persons_frame(), target="y", ranges={"x": (0, 1)}, person="who", person_rows=k, **more)


def test_at_most_k_rows_of_a_person_are_kept_and_the_column_is_no_feature() -> None:
    for k in (1, 3):
        rows = made(k)
        counts = persons_frame()["who"].value_counts()
        assert rows.person_rows == k
        assert sorted(np.bincount(rows.persons)) == sorted(counts.clip(upper=k))
        assert not [name for name in rows.feature_names if "who" in name]
        assert rows.looked_at == ()
        assert "kept" in " ".join(rows.taken_as_public)
        assert any("left out at random" in one.sentence for one in rows.lost)


@pytest.mark.parametrize("folds", [0, 5])
def test_no_person_is_trained_on_and_tested_on(folds: int) -> None:
    rows = made(4)
    for seed in range(10):
        split = rows.split(seed, folds)
        assert len(split.train) == rows.train_size(folds)  # public, whichever person has many rows
        assert not set(rows.persons[split.train]) & set(rows.persons[split.test])
        assert len(split.test) > 0


DRAWS = 600


def test_which_rows_are_kept_is_uniform_and_positions_tell_nothing() -> None:
    """One person has 10 rows, first in the file, 20 others have one: each is as likely, and stands anywhere as often."""
    names = pd.Series(["many"] * 10 + [f"p{i}" for i in range(20)])
    found = [bound_rows(names, 1, np.random.SeedSequence(s))[0] for s in range(DRAWS)]
    chosen = np.array([kept[kept < 10][0] for kept in found])
    places = np.array([int(np.flatnonzero(kept < 10)[0]) for kept in found])
    # a mean of uniform draws is within four standard errors
    assert abs(chosen.mean() - 4.5) < 4 * 2.88 / DRAWS**0.5
    assert abs(places.mean() - 10) < 4 * 6.06 / DRAWS**0.5


def test_others_keep_their_rows_and_places_whatever_one_person_has() -> None:
    """The coupling of the proof, counted: the order of all others does not depend on the rows of one person."""

    def orders(rows: int) -> np.ndarray:
        names = pd.Series(["p"] * rows + ["q", "q", "r"])
        seen = np.zeros(4)
        for s in range(DRAWS):
            kept, _ = bound_rows(names, 1, np.random.SeedSequence(s))
            others = kept[kept >= rows] - rows  # 0 and 1 are rows of q, 2 is the row of r
            seen[int(others[0] == 2) + 2 * int(1 in others)] += 1
        return seen / DRAWS

    error = 4 * (0.25 * 0.75 / DRAWS) ** 0.5
    assert np.abs(orders(1) - 0.25).max() < error > np.abs(orders(6) - 0.25).max()


def test_the_choice_is_the_same_at_each_reading_and_another_one_for_another_seed() -> None:
    rows = made(2)
    again = dpviz.load_dataset(rows.name, intercept=False)
    assert np.array_equal(rows.frame, again.frame)
    with choose_rows_by(1):
        other = dpviz.load_dataset(rows.name)
        with choose_rows_by(1):
            inner = dpviz.load_dataset(rows.name)
    assert len({one.sha256 for one in (rows, other, inner)}) == 3
    assert rows.n == other.n
    assert dpviz.load_dataset(rows.name) is rows


def test_a_repeated_identifier_is_said_with_the_option() -> None:
    table = persons_frame().rename(columns={"who": "student_id"})
    without = dpviz.dataset(table, target="y", ranges={"x": (0, 1)}, drop=["student_id"])
    assert any("different values in 300 rows" in one and "this column names them" in one for one in without.remarks)
    named = dpviz.dataset(table, target="y", ranges={"x": (0, 1)}, person="student_id")
    assert not any("student_id" in one for one in named.remarks)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", list_datasets())
def test_rows_read_as_they_were_collected(name: str, intercept: bool) -> None:
    dataset = load_dataset(name, intercept=intercept)
    units = Units(dataset)
    for row in (0, 7, dataset.n - 1):
        texts = units.read(row, dataset.X[row])
        for j, column in units.numbers.items():
            assert float(texts[j]) == pytest.approx(float(dataset.frame[column].iloc[row]), rel=1e-3, abs=1e-3)
        for j, (column, level) in units.levels.items():
            assert texts[j] == ("1" if str(dataset.frame[column].iloc[row]) == level else "0")


def test_noise_is_converted_by_the_columns_own_scale() -> None:
    dataset = load_dataset("census-300")
    units, row = Units(dataset), 11
    age = dataset.feature_names.index("age")
    factor = dataset.X[row, dataset.feature_names.index(f"region={dataset.frame['region'].iloc[row]}")]
    moved = dataset.X[row].copy()
    moved[age] += 10 / (90 - 17) * factor  # ten years on a declared range from 17 to 90
    assert float(units.read(row, moved)[age]) == pytest.approx(dataset.frame["age"].iloc[row] + 10, rel=1e-3)


@pytest.mark.parametrize("scaling", ["unit", "centred"])
def test_values_outside_a_declared_range_read_as_its_ends(scaling: str) -> None:
    rows = dpviz.dataset(np.arange(40.0)[:, None], np.arange(40) % 2, ranges=(10, 20)).rescale(scaling)
    assert [Units(rows).read(row, rows.X[row])[0] for row in (5, 15, 39)] == ["10", "15", "20"]


def test_a_zero_that_was_scaled_reads_as_zero() -> None:
    rows = load_dataset("digits").rescale("centred")
    texts = np.array(Units(rows).read(0, rows.X[0])[:64])
    assert set(texts[rows.frame.iloc[0, :64].to_numpy(float) == 0]) == {"0"}


def test_values_that_a_huge_range_made_alike_are_not_read_back() -> None:
    rows = dpviz.dataset(np.linspace(0.0, 9.0, 40)[:, None], np.arange(40) % 2, ranges=(-1e12, 1e12)).rescale("centred")
    assert Units(rows).read(3, rows.X[3])[0] == "0 on the model's scale"
    texts = pd.DataFrame({"a": ["1", "2", "?"] * 20, "b": [True, False, True] * 20, "y": [0, 1, 1] * 20})
    own = dpviz.dataset(texts, target="y")
    assert not any("model's scale" in text for text in Units(own).read(0, own.X[0])[:-1]), "words and switches are read, too"
    small = dpviz.dataset(np.linspace(0.0, 9.0, 40)[:, None], np.arange(40) % 2, ranges=(-1e6, 1e6)).rescale("centred")
    assert float(Units(small).read(3, small.X[3])[0]) == pytest.approx(27 / 39, rel=1e-3)


def test_pictures_are_known_by_their_names() -> None:
    assert Units(load_dataset("digits")).image == (8, 8)
    assert Units(load_dataset("iris")).image is None


def test_outliers_are_clipped_and_ends_are_round() -> None:
    rng = np.random.default_rng(0)
    income = rng.lognormal(10, 0.5, 5000)
    income[:3] = 1e9
    low, high = round_range(income) or (0, 0)
    assert low == 0
    assert 70_000 <= high <= 90_000
    assert count_outside(income, low, high) < 0.02 * len(income)
    assert count_outside(income, low, high) >= 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(1, 11.0), (1.0, 10.0)),
        (np.r_[np.arange(1, 11.0), np.nan], (1.0, 10.0)),
        (np.arange(17, 91.0), (0.0, 90.0)),
        (np.linspace(-480, 520, 1000), (-500.0, 600.0)),
        (np.linspace(1990, 2021, 1000), (1990.0, 2030.0)),
        (np.linspace(-3, -2, 1000), (-3.0, -2.0)),
        (np.linspace(0, 0.0123, 1000), (0.0, 0.013)),
        (np.full(10, 3.0), None),
        (np.full(10, np.nan), None),
    ],
)
def test_ranges(values: np.ndarray, expected: tuple[float, float] | None) -> None:
    assert round_range(values) == expected
    if expected is not None:
        assert count_outside(values, *expected) <= 0.03 * len(values)
