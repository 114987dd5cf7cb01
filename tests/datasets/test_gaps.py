"""Words that stand for gaps: found by rule, named by a person, never lost in silence."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support_tables import made, table

import dpviz
from dpviz.common.validate import InvalidInput
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
    with pytest.raises(InvalidInput, match=r"takes 3 values.*If 'None' \(20 rows\) is a gap in label, say so"):
        made(content, TableSpec("label"))
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
    assert prepared.dataset.frame["age"].dtype == np.float64
    assert prepared.dropped == 1
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


def test_a_workbook_reads_the_sheet_that_is_named_and_no_hidden_one() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    secret, shown = book.active, book.create_sheet("shown")
    other = book.create_sheet("other")
    secret.title, secret.sheet_state = "secret", "hidden"
    for sheet, name in ((secret, "a"), (shown, "b"), (other, "c")):
        sheet.append([name, "z", "label"])
        for k in range(20):
            sheet.append([k, k % 3, k % 2])
    out = io.BytesIO()
    book.save(out)
    assert made(out.getvalue()).dataset.feature_names[0] == "b"
    assert made(out.getvalue(), sheet="other").dataset.feature_names[0] == "c"
    assert made(out.getvalue(), sheet="secret").dataset.feature_names[0] == "a", "where it is asked for"
    with pytest.raises(InvalidInput, match="unknown value 'none'"):
        made(out.getvalue(), sheet="none")
    with pytest.raises(InvalidInput, match="part of a workbook"):
        made(rows(0, "a"), sheet="other")


def test_the_same_rows_from_another_file_have_its_notes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"A title\n" + rows(0, "a"))
    (tmp_path / "b.csv").write_bytes(rows(0, "a"))
    titled, plain = dpviz.dataset(tmp_path / "a.csv"), dpviz.dataset(tmp_path / "b.csv")
    assert titled.name == plain.name
    assert any("One line above" in note for note in titled.notes)
    assert not any("One line above" in note for note in plain.notes)
    assert "b.csv" in plain.source
