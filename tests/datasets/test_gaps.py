"""Words that stand for gaps, found by rule and named by a person; remarks on a table, and those that would be wrong."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support import assert_refused
from support_tables import made, table

import dpviz
from dpviz.datasets import Dataset
from dpviz.datasets.table.gaps import decisions, doubtful_words
from dpviz.datasets.table.spec import TableSpec


def rows(count: int, word: str, *, of: int = 60) -> bytes:
    """A table whose column `job` holds a word in its first rows."""
    return table(of, row=lambda k: f"{20 + k % 7},{word if k < count else 'abc'[k % 3]},{'yes' if k % 4 else 'no'}")


@pytest.mark.parametrize("word", ["?", "NA", "None"])
def test_a_word_that_may_be_a_value_is_one_where_it_fills_more_than_a_tenth(word: str) -> None:
    few, many = made(rows(6, word)), made(rows(7, word))
    assert few.dropped == 6
    assert any(f"{word!r} was read as a gap in job (6)" in note for note in few.dataset.notes)
    assert many.dropped == 0
    assert f"job={word}" in many.dataset.feature_names
    (note,) = [note for note in many.dataset.notes if f"{word!r} fills more than a tenth of job (7)" in note]
    assert "unless the column has a value for gaps" in note.partition("If it is a gap, say so: ")[0]
    assert "say so" in note


def test_other_words_are_gaps_however_many_there_are() -> None:
    assert "has gaps in 20 of 60 rows" in made(rows(20, "n/a")).left_out["job"]


def test_no_word_is_a_gap_in_the_label() -> None:
    content = table(60, row=lambda k: f"{20 + k % 7},{'abc'[k % 3]},{['yes', 'no', 'None'][k % 3]}")
    assert_refused(made, content, TableSpec("label"), match=r"takes 3 values.*If 'None' \(20 rows\) is a gap in label, say so")
    assert made(content, TableSpec("label", ("None",))).dataset.label_names == ("other", "None")
    gaps = made(content, TableSpec("label", ("yes",), missing_in={"label": ("None",)}))
    assert (gaps.dataset.n, gaps.dropped) == (40, 20)
    assert doubtful_words(pd.DataFrame({"label": pd.Categorical(["None", "a"])}), "label") == {"None": {"label": 1}}


def test_words_and_numbers_can_be_named_for_all_columns_or_one() -> None:
    content = table(60, row=lambda k: f"{-9 if k < 3 else k % 7},{'?' if k < 5 else 'abc'[k % 3]},{k % 2}")
    everywhere = made(content, TableSpec("label", missing=("?", "-9")))
    assert everywhere.dropped == 5
    one = made(content, TableSpec("label", missing_in={"age": ("-9",)}, defaults={"age": 3.0}))
    assert (one.dropped, one.dataset.n) == (5, 55), "the rule goes on in other columns, and the filled gaps cost no row"
    none = made(content, TableSpec("label", missing=()))
    assert none.dropped == 0
    assert "job=?" in none.dataset.feature_names


def test_a_value_for_gaps_leaves_other_gaps_to_be_dropped() -> None:
    content = table(60, row=lambda k: f"{'' if k < 3 else k % 7},{'' if k in (5, 6) else 'abc'[k % 3]},{k % 2}")
    filled = made(content, TableSpec("label", defaults={"age": 3.0}))
    assert filled.dropped == 2
    assert any("3 gaps in age were filled with 3" in note for note in filled.dataset.notes)


def test_a_word_among_numbers_is_a_gap_and_said() -> None:
    content = table(60, row=lambda k: f"{'Exempt' if k == 8 else 100 + k},{'abc'[k % 3]},{k % 2}")
    prepared = made(content)
    assert (prepared.dataset.frame["age"].dtype, prepared.dropped) == (np.float64, 1)
    assert any("'Exempt' was read as a gap in age (1)" in note for note in prepared.dataset.notes)


def test_one_line_says_that_a_word_is_a_gap_in_many_columns() -> None:
    names = [f"c{k}" for k in range(20)]
    rows = ["?," * 20 + "1" if k == 3 else f"{k % 7}," * 20 + str(k % 2) for k in range(60)]
    (note,) = made("\n".join([",".join([*names, "y"]), *rows]).encode()).dataset.notes[:1]
    assert note == ("'?' was read as a gap in 20 columns, c0 (1), c1 (1), c2 (1), c3 (1), c4 (1), c5 (1) and 14 more columns.")


def test_bands_beside_numbers_are_categories() -> None:
    bands = [">60%", "20%-<30%", "10+", "25 to 34"]
    content = table(120, row=lambda k: f"{bands[k % 4] if k % 2 else 30 + k % 40},{'abc'[k % 3]},{k % 3 // 2}")
    names = made(content).dataset.feature_names
    assert {"age=20%-<30%", "age=25 to 34", "age=32"} <= set(names)


def test_new_rows_take_the_same_words_for_gaps() -> None:
    content = table(60, row=lambda k: f"{-9 if k < 3 else k % 7},{'?' if k < 5 else 'abc'[k % 3]},{k % 2}")
    spec = TableSpec("label", missing_in={"age": ("-9",)}, defaults={"age": 3.0, "job": "none of them"})
    encoder = made(content, spec).dataset.encoder
    new = dpviz.datasets.sources.own.table(pd.DataFrame({"age": [-9, 3], "job": ["?", "none of them"]}))
    first, second = encoder.rows(new)
    np.testing.assert_array_equal(first, second)
    assert type(encoder).from_dict(encoder.to_dict()) == encoder


def test_a_files_decisions_are_those_that_were_taken() -> None:
    content = rows(7, "NA")
    frame = dpviz.datasets.table.formats.read_file(content).frame
    assert decisions(frame, TableSpec("label")) == {"job": ()}
    again = made(content, TableSpec("label", missing_in=decisions(frame, TableSpec("label")))).dataset
    assert again.sha256 == made(content).dataset.sha256


def frames() -> dict[str, object]:
    values = {"age": [20.5, None, *range(30)], "job": ["a", "b", "NA", *["c"] * 29], "y": [k % 2 for k in range(32)]}
    frame = pd.DataFrame(values)
    found: dict[str, object] = {"pandas": frame, "objects": frame.astype(object), "pyarrow": pa.table(values)}
    try:
        import polars
    except ImportError:
        return found
    return found | {"polars": polars.DataFrame(values), "lazy": polars.DataFrame(values).lazy()}


@pytest.mark.parametrize("kind", frames())
def test_frames_of_all_libraries_are_alike(kind: str) -> None:
    made_of = dpviz.dataset(frames()[kind], target="y", defaults={"age": 3})
    assert made_of.n == 32, "a word in a frame is a value, for the library has gaps of its own"
    assert made_of.sha256 == dpviz.dataset(frames()["pandas"], target="y", defaults={"age": 3}).sha256
    assert dpviz.dataset(frames()[kind], target="y", missing=["NA"], defaults={"age": 3}).n == 31


def test_a_column_of_numbers_in_objects_is_no_identifier() -> None:
    frame = pd.DataFrame({"x": pd.Series([k + 0.5 for k in range(200)], dtype=object), "y": [k % 2 for k in range(200)]})
    assert dpviz.dataset(frame, target="y").feature_names[0] == "x"


def test_the_same_rows_from_another_file_have_its_notes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"A title\n" + rows(0, "a"))
    (tmp_path / "b.csv").write_bytes(rows(0, "a"))
    titled, plain = dpviz.dataset(tmp_path / "a.csv"), dpviz.dataset(tmp_path / "b.csv")
    assert titled.name == plain.name
    assert any("One line above" in note for note in titled.notes)
    assert not any("One line above" in note for note in plain.notes)
    assert "b.csv" in plain.source


N = 400


def plain() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return pd.DataFrame({"age": rng.integers(20, 70, N) + 5 * y, "dose": rng.integers(0, 9, N), "y": y})


def dataset_of(frame: pd.DataFrame, **how: object) -> Dataset:
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
    assert [said in remark for remark in dataset_of(frame).remarks] == [True], dataset_of(frame).remarks


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
    assert dataset_of(frame).remarks == ()
    assert set(dataset_of(frame).beside) == {"row_id"}


@pytest.mark.parametrize("name", ["customerID", "patient_id", "ID", "person", "Account No", "uuid"])
def test_an_identifier_is_never_a_feature_but_kept_beside(name: str) -> None:
    rng = np.random.default_rng(5)
    for values in (rng.integers(0, 150, N), rng.permutation(N), [f"a{k}" for k in rng.integers(0, 90, N)]):
        dataset = dataset_of(plain().assign(**{name: values}))
        assert not any(feature.startswith(name) for feature in dataset.feature_names)
        assert list(dataset.beside) == [name]
        assert dataset.looked_at == ("age", "dose")
        assert name in dataset_of(plain().assign(**{name: values}), columns=["age", name]).frame


def test_what_is_lost_is_said_in_few_lines_and_rows_first() -> None:
    frame = plain().assign(**{f"zero{k}": 0 for k in range(9)}, row_id=np.arange(N), age=lambda t: t["age"].astype(float))
    frame.loc[frame.index[frame["y"] == 1][:8], "age"] = np.nan
    rows, *others = (one.sentence for one in dataset_of(frame).lost if one.kind != "lengths")
    assert rows == "8 of 400 rows were dropped because of gaps in: age (8). All of them have y = 1."
    assert others[0] == (
        "9 columns have the same value in every row and are not used: zero0, zero1, zero2, zero3, zero4, zero5 and 3 more."
    )
    assert len(others) == 2


def test_a_proposed_range_answers_the_remark_and_stays_in_what_was_looked_at() -> None:
    frame, _ = wide()
    proposed = dataset_of(frame, proposed=["pressure"])
    assert proposed.remarks == ()
    assert "pressure" in proposed.looked_at
    assert any("values of pressure outside [90, 170] were clipped" in one.sentence for one in proposed.lost)
    ranges = {"age": (20, 75), "dose": (0, 8), "pressure": (90, 170)}
    stated = dataset_of(frame, ranges=ranges)
    assert stated.looked_at == ()
    assert dataset_of(frame, ranges=ranges, proposed=["pressure"]).looked_at == ("pressure",)
    np.testing.assert_array_equal(stated.frame["pressure"], frame["pressure"])
