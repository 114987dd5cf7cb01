"""Persons with several rows: at most k are kept, none of them decides anything about others, and splits are by person."""

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.common.persons import bound_rows, choose_rows_by
from dpviz.common.validate import InvalidInput


def frame(n: int = 300, people: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return pd.DataFrame(
        {"who": rng.integers(people, size=n).astype(str), "x": x, "y": np.where(x + rng.normal(0, 0.3, n) > 0.5, "b", "a")}
    )


def made(k: int = 2, **more: object) -> dpviz.Dataset:
    return dpviz.dataset(frame(), target="y", ranges={"x": (0, 1)}, person="who", person_rows=k, **more)


def test_at_most_k_rows_of_a_person_are_kept_and_the_column_is_no_feature() -> None:
    for k in (1, 3):
        rows = made(k)
        counts = frame()["who"].value_counts()
        assert rows.persons is not None
        assert rows.person_rows == k
        assert sorted(np.bincount(rows.persons)) == sorted(counts.clip(upper=k))
        assert not [name for name in rows.feature_names if "who" in name]
        assert rows.looked_at == ()
        assert "kept" in " ".join(rows.taken_as_public)
        assert any("left out at random" in one.sentence for one in rows.lost)


@pytest.mark.parametrize("folds", [0, 5])
def test_no_person_is_trained_on_and_tested_on(folds: int) -> None:
    rows = made(4)
    assert rows.persons is not None
    for seed in range(10):
        split = rows.split(seed, folds)
        assert len(split.train) == rows.train_size(folds)  # public, whichever person has many rows
        assert not set(rows.persons[split.train]) & set(rows.persons[split.test])
        assert len(split.test) > 0


def test_which_rows_are_kept_is_uniform_and_positions_tell_nothing() -> None:
    """One person has 10 rows, first in the file, 20 others have one: each is as likely, and stands anywhere as often."""
    names = pd.Series(["many"] * 10 + [f"p{i}" for i in range(20)])
    found = [bound_rows(names, 1, np.random.SeedSequence(s))[0] for s in range(2000)]
    chosen = np.array([kept[kept < 10][0] for kept in found])
    places = np.array([int(np.flatnonzero(kept < 10)[0]) for kept in found])
    # a mean of 2,000 uniform draws is within four standard errors
    assert abs(chosen.mean() - 4.5) < 4 * 2.88 / 2000**0.5
    assert abs(places.mean() - 10) < 4 * 6.06 / 2000**0.5


def test_others_keep_their_rows_and_places_whatever_one_person_has() -> None:
    """The coupling of the proof, counted: the order of all others does not depend on the rows of one person."""

    def orders(rows: int) -> np.ndarray:
        names = pd.Series(["p"] * rows + ["q", "q", "r"])
        seen = np.zeros(4)
        for s in range(3000):
            kept, _ = bound_rows(names, 1, np.random.SeedSequence(s))
            others = kept[kept >= rows] - rows  # 0 and 1 are rows of q, 2 is the row of r
            seen[int(others[0] == 2) + 2 * int(1 in others)] += 1
        return seen / 3000

    assert np.abs(orders(1) - 0.25).max() < 0.04 > np.abs(orders(6) - 0.25).max()


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


def test_rows_without_a_person_are_dropped_and_said() -> None:
    table = frame()
    table.loc[:9, "who"] = None
    rows = dpviz.dataset(table, target="y", ranges={"x": (0, 1)}, person="who", person_rows=100)
    assert rows.n == 290
    assert any("10 rows were dropped because who" in one.sentence for one in rows.lost)


def test_names_may_be_given_beside_the_rows() -> None:
    table = frame()
    rows = dpviz.dataset(table[["x"]], (table["y"] == "b").to_numpy(), ranges=(0, 1), person=table["who"].to_numpy())
    assert rows.persons is not None
    assert rows.person_rows == 1
    assert rows.n == table["who"].nunique()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"person": "y"}, "label"),
        ({"person": "nobody"}, "nobody"),
        ({"person": "who", "columns": ["who", "x"]}, "feature"),
        ({"person": "who", "person_rows": 0}, "person_rows"),
        ({"person_rows": 2}, "person"),
    ],
)
def test_what_cannot_be_is_one_error(more: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        dpviz.dataset(frame(), target="y", **more)


def test_a_repeated_identifier_is_said_with_the_option() -> None:
    table = frame().rename(columns={"who": "student_id"})
    without = dpviz.dataset(table, target="y", ranges={"x": (0, 1)}, drop=["student_id"])
    assert any("different values in 300 rows" in one and "this column names them" in one for one in without.remarks)
    named = dpviz.dataset(table, target="y", ranges={"x": (0, 1)}, person="student_id")
    assert not any("student_id" in one for one in named.remarks)
