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
    said = "score alone predicts the label in 100.0 % of the rows, by one threshold"
    return frame.assign(score=frame["y"] * 10 + np.linspace(0, 9, N)), said


def total() -> tuple[pd.DataFrame, str]:
    """A sum of few answers, of which some are rare."""
    score = np.random.default_rng(4).binomial(10, 0.4, N)
    return plain().assign(score=score, y=(score > 4).astype(int)), "by one threshold: values up to 4 against larger ones"


def code() -> tuple[pd.DataFrame, str]:
    frame = plain()
    return frame.assign(age=frame["age"].where(np.arange(N) % 10 > 0, 8888)), "40 of 400 values of age are 8888, unlike"


def code_among_bands() -> tuple[pd.DataFrame, str]:
    bands = np.array(["<25", "25-44", ">74", "8888"])[np.arange(N) % 4]
    return plain().assign(band=bands), "values of band are 8888, unlike"


def typing_error() -> tuple[pd.DataFrame, str]:
    frame = plain()
    frame.loc[7, "age"] = 383
    return frame, "1 row sets the range of age, 20 to 383"


def repeated() -> tuple[pd.DataFrame, str]:
    frame = plain()
    person = np.random.default_rng(1).integers(0, 150, N)
    kept = int(np.minimum(np.bincount(person), 3).sum())
    return frame.assign(patient_id=person), f"at most 3 keep {kept})"


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


@pytest.mark.parametrize("case", [leak, cut, total, repeated, wide, loses, one_class, code, code_among_bands, typing_error])
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
        account_balance=rng.integers(0, 99, N) * 100,
        **{name: rng.integers(0, 60, N) for name in ("citric acid", "amount_paid", "is_valid", "covid", "thyroid", "grid")},
    )
    assert made(frame).remarks == ()
    assert set(made(frame).beside) == {"row_id"}


@pytest.mark.parametrize("name", ["customerID", "patient_id", "ID", "person", "Account No", "uuid"])
def test_an_identifier_is_never_a_feature_but_kept_beside(name: str) -> None:
    rng = np.random.default_rng(5)
    for values in (rng.integers(0, 150, N), rng.permutation(N), [f"a{k}" for k in rng.integers(0, 90, N)]):
        dataset = made(plain().assign(**{name: values}))
        assert not any(feature.startswith(name) for feature in dataset.feature_names)
        assert list(dataset.beside) == [name]
        assert dataset.looked_at == ("age", "dose")
        assert name in made(plain().assign(**{name: values}), columns=["age", name]).frame


def test_what_is_lost_is_said_in_few_lines_and_rows_first() -> None:
    frame = plain().assign(**{f"zero{k}": 0 for k in range(9)}, row_id=np.arange(N), age=lambda t: t["age"].astype(float))
    frame.loc[frame.index[frame["y"] == 1][:8], "age"] = np.nan
    rows, *others = (one.sentence for one in made(frame).lost if one.kind != "lengths")
    assert rows == "8 of 400 rows were dropped because of gaps in: age (8). All of them have y = 1."
    assert others[0] == (
        "9 columns have the same value in every row and are not used: zero0, zero1, zero2, zero3, zero4, zero5 and 3 more."
    )
    assert len(others) == 2


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
