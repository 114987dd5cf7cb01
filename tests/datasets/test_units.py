"""Rows read back in the data's own units, people found by their values, and round ranges that a person may confirm."""

import numpy as np
import pandas as pd
import pytest
from support import assert_refused

import dpviz
from dpviz.dashboard.rows.selection import Condition, matching_rows
from dpviz.datasets import list_datasets, load_dataset
from dpviz.datasets.table.proposals import count_outside, round_range
from dpviz.datasets.table.units import Units


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


FRAME = pd.DataFrame({"age": [20, 61, 75, 61], "status": ["never married", "married", "Never married", "=1+1"]})


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        ([Condition("age", ">", "60")], [1, 2, 3]),
        ([Condition("age", "≥", "61"), Condition("age", "<", "75")], [1, 3]),
        ([Condition("age", "=", "20")], [0]),
        ([Condition("age", "≤", "20")], [0]),
        ([Condition("age", ">", "60"), Condition("status", "contains", "NEVER")], [2]),
        ([Condition("status", "is", "=1+1")], [3]),
        ([Condition("status", "is not", "married")], [0, 2, 3]),
        ([Condition("status", "contains", ".*")], []),
        ([], [0, 1, 2, 3]),
    ],
)
def test_people_who_meet_all_conditions(conditions: list[Condition], want: list[int]) -> None:
    assert np.flatnonzero(matching_rows(FRAME, conditions)).tolist() == want


@pytest.mark.parametrize(
    "condition",
    [
        Condition("nobody", ">", "1"),
        Condition("age", "contains", "1"),
        Condition("status", ">", "1"),
        Condition("age", ">", "__import__('os').system('true')"),
    ],
)
def test_bad_conditions_are_named(condition: Condition) -> None:
    assert_refused(matching_rows, FRAME, [condition])


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
