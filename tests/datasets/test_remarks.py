"""Remarks on a table that a careful colleague would make, and those that would be wrong."""

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.datasets import Dataset

N = 400


def plain() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return pd.DataFrame({"age": rng.integers(20, 70, N) + 5 * y, "dose": rng.integers(0, 9, N), "y": y})


def made(frame: pd.DataFrame, **how: object) -> Dataset:
    return dpviz.dataset(frame, target="y", positive=1, **how)  # type: ignore[arg-type]


def leak() -> tuple[pd.DataFrame, str]:
    frame = plain()
    before = frame["y"].where(np.arange(N) % 40 > 0, 1 - frame["y"])
    return frame.assign(before=before), "before alone predicts the label in 97.5 %"


def cut() -> tuple[pd.DataFrame, str]:
    frame = plain()
    return frame.assign(score=frame["y"] * 10 + np.linspace(0, 9, N)), "score alone predicts the label in 100.0 %"


def repeated() -> tuple[pd.DataFrame, str]:
    frame = plain()
    person = np.random.default_rng(1).integers(0, 150, N)
    return frame.assign(person=person), f"up to {np.bincount(person).max()} each. ε holds for one row"


def wide() -> tuple[pd.DataFrame, str]:
    pressure = np.random.default_rng(2).normal(130, 15, N).round()
    pressure[[3, 4, 5]] = -150, 16_020, 16_020
    return plain().assign(pressure=pressure), "3 rows set the range of pressure, -150 to 16020"


def loses() -> tuple[pd.DataFrame, str]:
    frame = plain()
    frame["y"] = (np.arange(N) % 5 == 0).astype(int)
    frame["dose"] = frame["dose"].astype(float)
    frame.loc[(frame["y"] == 1) & (np.arange(N) % 15 == 0), "dose"] = np.nan
    return frame, "Gaps take 34 % of the rows of 1, the rarer class, and 0 % of the others"


def one_class() -> tuple[pd.DataFrame, str]:
    frame = plain()
    frame["y"] = (np.arange(N) % 25 == 0).astype(int)
    return frame, "Accuracy is no measure here: 1 has 4.0 % of the rows"


@pytest.mark.parametrize("case", [leak, cut, repeated, wide, loses, one_class])
def test_it_is_remarked(case) -> None:  # type: ignore[no-untyped-def]
    frame, said = case()
    assert [said in remark for remark in made(frame).remarks] == [True], made(frame).remarks


@pytest.mark.parametrize("name", ["breast-cancer", "wine", "iris", "teaching"])
def test_nothing_is_remarked_of_bundled_sets(name: str) -> None:
    assert dpviz.load_dataset(name).remarks == ()


def test_nothing_is_remarked_where_nothing_is_odd() -> None:
    rng = np.random.default_rng(3)
    frame = plain().assign(
        name_of_place=rng.choice(["a", "b", "c"], N),
        client_age=rng.integers(18, 90, N),
        row_id=np.arange(N),  # every row is another one
        income=np.exp(rng.normal(10, 0.6, N)),
    )
    assert made(frame).remarks == ()


def test_a_proposed_range_answers_the_remark_and_stays_in_what_was_looked_at() -> None:
    frame, _ = wide()
    proposed = made(frame, proposed=["pressure"])
    assert proposed.remarks == ()
    assert "pressure" in proposed.looked_at
    assert any("values of pressure outside [90, 170] were clipped" in one.sentence for one in proposed.lost)
    ranges = {"age": (20, 75), "dose": (0, 8), "pressure": (90, 170)}
    stated = made(frame, ranges=ranges)
    assert stated.looked_at == ()
    assert made(frame, ranges=ranges, proposed=["pressure"]).looked_at == ("pressure",)
    np.testing.assert_array_equal(stated.frame["pressure"], frame["pressure"])
