"""Tables as people have them: encodings, white space, decimal commas, Parquet, workbooks, identifiers and gaps."""

import io

import numpy as np
import pandas as pd
import pytest
from support import assert_refused
from support_tables import GOOD, made, table

from dpviz.common.limits import Limits
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.table.formats import read_file
from dpviz.datasets.table.spec import TableSpec

PLAIN = made(GOOD, TableSpec("label")).dataset
NUMBERS = [f"{k % 7}.5 {k * k % 11} {'-1' if k % 3 else '1'}" for k in range(30)]


def said(content: bytes) -> str:
    return " ".join(read_file(content).notes)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_forms_of_unicode_are_read_and_said(encoding: str) -> None:
    content = GOOD.decode().encode(encoding)
    assert made(content, TableSpec("label")).dataset.sha256 == PLAIN.sha256
    assert f"The file is in {encoding.upper()}." in said(content)


def test_latin_1_is_read_and_said_and_can_be_chosen() -> None:
    content = GOOD + "5,café,yes\n".encode("latin-1")
    read = read_file(content)
    assert "café" in read.frame["job"].cat.categories
    assert "not UTF-8; it was read as Western European" in read.notes[0]
    assert "line 22" in read.notes[0]
    russian = (GOOD.decode() + "5,Москва,yes\n" * 3).encode("cp1251")
    assert "Москва" in read_file(russian, encoding="cp1251").frame["job"].cat.categories
    assert_refused(read_file, russian, encoding="utf-8", match=r"not UTF-8.*byte 0xcc on line 22")
    assert_refused(read_file, GOOD, encoding="klingon", match="encoding: unknown value 'klingon'")
    # a mark is not needed where the encoding is chosen
    assert read_file(GOOD.decode().encode("utf-16-le"), encoding="utf-16").frame.shape == (20, 3)


@pytest.mark.parametrize("gap", [" ", "   ", "\t \t"])
def test_white_space_separates_and_a_line_of_numbers_is_data(gap: str) -> None:
    content = "\n".join(f"  {line.replace(' ', gap)}  " for line in NUMBERS).encode()
    read = read_file(content)
    assert read.frame.shape == (30, 3)
    assert list(read.frame.columns) == ["column 1", "column 2", "column 3"]
    assert read.frame["column 1"].iloc[0] == 0.5
    assert "numbers only, so it was read as data" in " ".join(read.notes)
    named = read_file(f"a b label\n{content.decode()}".encode())
    assert list(named.frame.columns) == ["a", "b", "label"]
    assert read_file(content, header=False, delimiter=" ").frame.equals(read.frame)


def test_quoted_texts_keep_their_white_space() -> None:
    content = b"a job label\n" + b"".join(b'%d "of  the %d" x%d\n' % (k, k % 2, k % 2) for k in range(20))
    assert list(read_file(content).frame["job"].cat.categories) == ["of  the 0", "of  the 1"]


@pytest.mark.parametrize("sign", [";", "\t", " "])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas_are_no_delimiters(sign: str, header: bool) -> None:
    lines = [f"{k},5{sign}{k % 4},25{sign}{k % 2}" for k in range(20)]
    content = "\n".join([f"size{sign}age{sign}label"] * header + lines).encode()
    frame = read_file(content).frame
    assert frame.shape == (20, 3)
    assert frame.iloc[3].tolist() == [3.5, 3.25, 1.0]


def test_a_comma_table_with_texts_of_several_words_is_cut_at_commas() -> None:
    content = table(row=lambda k: f"{k},New York {'abc'[k % 3]},{k % 2}")
    assert read_file(content).frame.shape == (20, 3)
    assert read_file(table(header="age;job,part,label", row=lambda k: f"{k};1,a,{k % 2}")).frame.shape == (20, 3)


FRAME = pd.DataFrame({"age": np.arange(20) + 20.0, "job": list("abcab" * 4), "label": ["yes", "no"] * 10})


def test_parquet_is_the_same_table_as_csv() -> None:
    kinds = FRAME.assign(
        age=FRAME["age"].astype("Int64").where(FRAME.index != 3), job=FRAME["job"].astype("category"), flag=FRAME["age"] > 30
    )[["age", "job", "flag", "label"]]
    out = io.BytesIO()
    kinds.to_parquet(out)
    there, text = read_table(out.getvalue()).frame, read_file(kinds.to_csv(index=False).encode()).frame
    assert np.isnan(there["age"].iloc[3])
    assert there[["age", "job", "label"]].astype(object).equals(text[["age", "job", "label"]].astype(object))
    assert list(there["flag"].cat.categories) == ["false", "true"]
    assert_refused(read_file, out.getvalue(), limits=Limits(rows=10), match="more than 10 rows")
    nested = io.BytesIO()
    pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}).to_parquet(nested)
    assert_refused(read_file, nested.getvalue(), match="a: holds values of type list")


@pytest.mark.parametrize(
    ("name", "values", "like"),
    [
        ("ID", lambda k: k + 1 if k % 5 else "", "named like an identifier"),
        ("customer_no", lambda k: 17 * k, "named like an identifier"),
        ("column 1", lambda k: k + 1, "counted like an identifier"),
        ("sample", lambda k: 1_000_000 + 7_919 * k * k % 9_999_991, "with as many digits as an identifier"),
    ],
)
def test_an_identifier_of_numbers_is_left_out_and_can_be_asked_for(name: str, values: object, like: str) -> None:
    content = table(200, header=f"{name},age,label", row=lambda k: f"{values(k)},{k % 50},{k % 3 // 2}")  # type: ignore[operator]
    prepared = made(content)
    assert like in prepared.left_out[name]
    assert prepared.dataset.n == 200
    assert name not in prepared.dataset.looked_at, "what is no feature needs no declaration"
    assert "which columns were left out because of their values" in prepared.dataset.taken_as_public
    assert [one.what for one in prepared.dataset.lost if one.kind != "lengths"] == [name]
    asked = made(content, TableSpec("label", columns=(name, "age"))).dataset
    assert asked.feature_names[0] == name
    assert all(one.kind in ("rows", "lengths") for one in asked.lost)


def test_amounts_and_measurements_are_no_identifiers() -> None:
    rng = np.random.default_rng(0)
    income, weight = rng.integers(100, 4000, 200) * 100, rng.normal(70, 10, 200)
    content = table(200, header="income,weight,label", row=lambda k: f"{income[k]},{weight[k]},{k % 2}")
    assert made(content).left_out == {}


def test_few_gaps_are_kept_many_are_left_out_and_every_loss_is_one_list() -> None:
    def row(k: int) -> str:
        few, many = ("" if k % 20 == 0 else k % 9), ("" if k % 4 == 0 else k % 8)
        return f"{few},{many},1,{k % 50},{k % 50},{k % 3 // 2}"

    content = table(200, header="few,many,same,note,age,label", row=row)
    spec = TableSpec("label", drop=("note",), ranges={"age": (0.0, 40.0)})
    dataset = made(content, spec).dataset
    assert dataset.n == 190
    sentences = [one.sentence for one in dataset.lost if one.kind != "lengths"]
    assert sentences == [
        "10 of 200 rows were dropped because of gaps in: few (10).",
        "many is not used: has gaps in 50 of 200 rows, which would be dropped.",
        "same is not used: has the same value in every row.",
        "note is not used: dropped by the settings.",
        f"{int((dataset.frame['age'] > 40).sum())} values of age outside [0, 40] were clipped.",
    ]
    assert dataset.looked_at == ("few",)
    kept = made(content, TableSpec("label", columns=("few", "many"))).dataset
    assert "dropped because of gaps in: many (50), few (10)" in kept.lost[0].sentence
    assert kept.n == 150 - 0


def test_drop_and_columns_do_not_go_together() -> None:
    for values in ({"drop": ("age",), "columns": ("job",)}, {"drop": ("height",)}, {"drop": ("label",)}):
        assert_refused(made, GOOD, TableSpec("label", **values), match="drop")
    assert made(GOOD, TableSpec.from_dict({"target": "label", "drop": "job"})).left_out == {"job": "dropped by the settings"}


def test_a_column_that_is_constant_in_the_rows_that_are_left_is_named() -> None:
    content = table(40, header="a,b,label", row=lambda k: f"{k % 5},{'2' if k < 3 else '1'},{'' if k < 3 else k % 2}")
    lost = made(content).dataset.lost
    assert "b has the same value in every row that is left" in lost[1].sentence
