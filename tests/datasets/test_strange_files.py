"""Files and values as programs and people write them: read as meant, with a note, or refused with what to do."""

import gzip
import io
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from support import assert_refused
from support_tables import GOOD, made, table

import dpviz
from dpviz.datasets.table.csv import read_csv
from dpviz.datasets.table.spec import TableSpec

ROWS = 60
_RNG = np.random.default_rng(0)
AGE = _RNG.integers(18, 90, ROWS)
PAY = _RNG.integers(900, 99_000, ROWS)
JOB = _RNG.choice(["clerk", "cook", "smith"], ROWS)
Y = np.where(PAY > 40_000, "yes", "no")


def text(names: str, row: str, *, before: str = "", after: str = "", end: str = "\n") -> bytes:
    """A file with one line per row, in which {age}, {pay}, {job}, {y} and {k} stand for values."""
    lines = [row.format(age=AGE[k], pay=PAY[k], job=JOB[k], y=Y[k], k=k) for k in range(ROWS)]
    return (before + end.join([*([names] if names else []), *lines]) + after).encode()


ARFF = "% mine\n\n@RELATION mine\n@ATTRIBUTE age NUMERIC\n@attribute 'job' {clerk, cook}\n@ATTRIBUTE y {no,yes}\n\n@DATA\n"
PLAIN = made(text("age,job,y", "{age},{job},{y}")).dataset
PAID = made(text("age,pay,y", "{age},{pay},{y}")).dataset

#: bytes of the same table as `PLAIN`, and what is noted
SAME: dict[str, tuple[bytes, str]] = {
    "Excel's mark and separator": (text("age;job;y", "{age};{job};{y}", before="\ufeffsep=;\r\n", end="\r\n"), "Excel's first"),
    "delimiters at the ends of all lines": (text("age,job,y,", "{age},{job},{y},"), "ends with the sign"),
    "remarks": (text("age,job,y", "{age},{job},{y}", before="# made in May, by me\n# v1\n"), "2 lines above the table"),
    "a remark as wide as the table": (text("age,job,y", "{age},{job},{y}", before="# May, by me, v1\n"), "One line above"),
    "Weka's own format": (text("", "{age},{job},{y}", before=ARFF), "Not among the declared values of job: "),
    "a title and totals": (
        text(
            "age,job,y",
            "{age},{job},{y}",
            before="Notes offered by Prospectus (https://example.org)\n",
            after='\n\n"Total amount in code 1: 64",,\n"Total amount in code 2: 19",,\n',
        ),
        "2 lines below the table were skipped",
    ),
    "a title as a workbook writes it": (text("age,job,y", "{age},{job},{y}", before="My table,,\n,,\n"), "One line above"),
    "single quotes around all values of a column": (text("age,job,y", "{age},'{job}','{y}'"), "Single quotes around all"),
    "the numbers of rows, as pandas writes them": (text(",age,job,y", "{k},{age},{job},{y}"), "first column has no name"),
    "the numbers of rows, as R writes them": (
        text('"","age","job","y"', '"{k}",{age},"{job}","{y}"'),
        "first column has no name",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_table(name: str) -> None:
    content, note = SAME[name]
    dataset = made(content).dataset
    assert dataset.sha256 == PLAIN.sha256
    assert any(note in said for said in dataset.notes)


def numbers(names: str, row: str, to: str) -> bytes:
    """A table in which the numbers of `pay` are written by `to`, a format."""
    lines = [row.format(age=AGE[k], y=Y[k], pay=to.format(int(PAY[k]), PAY[k] * 1000 + 1)) for k in range(ROWS)]
    return "\n".join([names, *lines]).encode()


#: how the column is written, and by which factor and offset it differs from that of `PAID`
WRITTEN: dict[str, tuple[bytes, float, float]] = {
    "$1,234.50": (numbers("age,pay,y", '{age},"{pay}",{y}', "${0:,}.50"), 1, 0.5),
    "1,234,567": (numbers("age,pay,y", '{age},"{pay}",{y}', "{1:,}"), 1000, 1),
    "12 %": (numbers("age,pay,y", "{age},{pay},{y}", "{0} %"), 1, 0),
    "12,5%": (numbers("age;pay;y", "{age};{pay};{y}", "{0},5%"), 1, 0.5),
    "1'234'567": (numbers("age,pay,y", "{age},{pay},{y}", "{1:_}").replace(b"_", b"'"), 1000, 1),
    "1 234 567": (numbers("age,pay,y", "{age},{pay},{y}", "{1:_}").replace(b"_", "\u00a0".encode()), 1000, 1),
    "1.234.567": (numbers("age;pay;y", "{age};{pay};{y}", "{1:_}").replace(b"_", b"."), 1000, 1),
    "1.234,50": (numbers("age;pay;y", "{age};{pay};{y}", "{0:_},50").replace(b"_", b"."), 1, 0.5),
    '"12,5"': (numbers("age,pay,y", '{age},"{pay}",{y}', "{0},5"), 1, 0.5),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_numbers_that_can_be_read_in_one_way_only_are_read(how: str) -> None:
    content, factor, offset = WRITTEN[how]
    dataset = made(content).dataset
    np.testing.assert_allclose(dataset.frame["pay"], factor * PAID.frame["pay"] + offset)
    assert any("pay" in note for note in dataset.notes)


def test_a_number_that_can_be_read_in_two_ways_leaves_its_column_out() -> None:
    """1,234 alone is one thousand or one and a bit."""
    content = numbers("age,pay,y", '{age},"{pay}",{y}', "{0:_}").replace(b"_", b",").replace(b'"9', b'"1,9')
    assert "numbers with other signs" in made(content).left_out["pay"]


#: bytes that cannot be read surely, the field and what the error says: cause and what to do
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "a name is missing in the middle": (text("age,,y", "{age},{job},{y}"), "header", "column 2 has no name.*Name every column"),
    "one row has more": (
        text("age,job,y", "{age},{job},{y},", after="\n30,cook,yes,no"),
        "file",
        "line 2 has 4 values where line 1 has 3",
    ),
    "a row after Excel's line has more": (
        text("age;job;y", "{age};{job};{y}", before="sep=;\n", after="\n30;cook;yes;no"),
        "file",
        f"line {ROWS + 3} has 4 values where line 2 has 3",
    ),
    "the label stands first": (text("y,job,age", "{y},{job},{age}"), "target", "the last column, 'age', takes.*Name the column"),
    "LIBSVM": (text("", "1 1:{age} 2:{pay}"), "file", "LIBSVM.*load_svmlight_file"),
    "sparse Weka": (b"@relation a\n@attribute b numeric\n@attribute c numeric\n@data\n{0 1}\n", "file", "line 5 lists only"),
    "Weka without rows": (b"@relation a\n@attribute b numeric\n@attribute c numeric\n", "file", "without @data"),
}


REFUSED["quoted texts without names"] = (
    text("", "'{job}','{y}','a'", after="\n'cook',nan,'b'"),
    "header",
    "looks like data: '(smith|clerk|cook)'.*Say whether the first line",
)
REFUSED["quoted numbers without names"] = (
    text("", "'{age}','{y}'"),
    "header",
    "looks like data: '\\d+'.*Say whether the first line",
)


REFUSED["a row that ends early is no total"] = (text("age,job,y", "{age},{job},{y}", after="\n5\n"), "file", "has 1 value where")
for names, sign in (("age;job;y", ","), ("age,job,y", ";"), ("age\tjob\ty", ","), ("age,job,y", " ")):
    row = sign.join(["{age}", "{job}", "{y}"])
    REFUSED[f"{names} above {row}"] = (text(names, row), "", "separates the names by .* and the rows by ")


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_says_what_to_do(name: str) -> None:
    content, field, said = REFUSED[name]
    assert_refused(made, content, match=f"(?s){said}", field=field)


NOMINAL = """% occupation codes have no order
@relation work
@attribute age numeric % in years {of a person}
@attribute occupation {5,4,'9'}
@attribute gauge {'?',A,"B b"}
@attribute caliper {.200,0.2,0.200}
@attribute 'it\\'s' string
@attribute day date yyyy-MM-dd
@attribute class {no,yes}
@data
"""


def nominal(row: str = "{k}, {o},{g},{c},'s t',2020-01-01,{y}", declared: str = NOMINAL) -> bytes:
    lines = [
        row.format(k=k, o=(5, 4, 9)[k % 3], g=("'?'", "?", '"B b"', "A")[k % 4], c=(".200", "0.2", "0.200")[k % 3], y="ny"[k % 2])
        for k in range(40)
    ]
    return (declared + "\n".join(lines).replace(",n", ",no").replace(",y", ",yes").replace("-01-01,nos", "-01-01,no")).encode()


def test_a_declared_type_decides_and_not_what_values_look_like() -> None:
    prepared = made(nominal())
    frame = prepared.dataset.frame
    assert sorted(frame["occupation"].unique()) == ["4", "5", "9"]
    assert sorted(frame["caliper"].unique()) == [".200", "0.2", "0.200"]
    assert "gaps in 10 of 40 rows" in prepared.left_out["gauge"], "? without quotes is a gap"
    gauge = made(nominal(), TableSpec("class", defaults={"gauge": "none"})).dataset.feature_names
    assert {"gauge=?", "gauge=A", "gauge=B b", "gauge=none"} <= set(gauge)
    assert not {"it's", "day"} & set(frame.columns)
    assert not any("declared" in note for note in prepared.dataset.notes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (nominal("{k},{o},{g},{c},s,2020-01-01"), "line 11 has 6 values where 7 columns are declared"),
        (nominal("x,{o},{g},{c},s,2020-01-01,{y}"), "line 11 holds 'x' where a finite number is declared"),
        (nominal("1e999,{o},{g},{c},s,2020-01-01,{y}"), "line 11 holds '1e999' where a finite number"),
        (nominal("{k},'{o},{g},{c},s,2020-01-01,{y}"), "line 11 (cannot be read|has . values)"),
        (nominal(declared=NOMINAL.replace("age numeric", "age relational")), "line 3 declares 'age' as 'relational'"),
        (nominal(declared=NOMINAL.replace("5,4,'9'}", "5,4,'9'")), "line 4 does not close the list"),
        (nominal(declared=NOMINAL.replace("occupation", "age")), "'age' is given twice"),
    ],
)
def test_a_file_that_breaks_its_declaration_is_refused_with_the_line(content: bytes, said: str) -> None:
    assert_refused(made, content, match=said)


@pytest.mark.parametrize("first", ["X1,X2,Y", ",X2,X3", "Unnamed: 0,Unnamed: 1,Unnamed: 2", "column 1,column 2,column 3"])
def test_names_below_a_line_that_numbers_the_columns(first: str) -> None:
    dataset = made(text("age,pay,y", "{age},{pay},{y}", before=f"{first}\n")).dataset
    assert dataset.sha256 == PAID.sha256
    assert any("names are on line 2" in note for note in dataset.notes)


def test_the_line_of_names_can_be_said() -> None:
    content, titled = (text("cm,kg,kind", "{age},{pay},{y}", before=above) for above in ("size,weight,label\n", "A title\n"))
    assert_refused(made, content, match=r"first two lines both look like names.*say that the second")
    assert all(made(each, header=2).dataset.feature_names[:2] == ("cm", "kg") for each in (content, titled))


def test_names_may_begin_with_a_hash() -> None:
    assert made(text("#age,job,y", "{age},{job},{y}")).dataset.feature_names[0] == "#age"


def test_line_breaks_in_quotes_belong_to_the_value() -> None:
    dataset = made(text("age,job,y", '{age},"{job}\nin town",{y}')).dataset
    assert (dataset.n, dataset.d) == (ROWS, PLAIN.d)


def test_dates_and_yes_or_no() -> None:
    prepared = made(text("day,flag,age,y", "2020-01-{k:02},yes,{age},{y}", after="\n2020-02-01,no,33,yes"))
    assert "dates or times" in prepared.left_out["day"]
    assert {"flag=no", "flag=yes"} <= set(prepared.dataset.feature_names)


def test_quotes_may_follow_blanks_at_the_beginning_of_a_line() -> None:
    made_of = made(text("age,job,y", ' "{age}",{job},{y}')).dataset
    assert made_of.X.tolist() == PLAIN.X.tolist()


def test_names_on_the_second_of_one_line_are_refused() -> None:
    assert_refused(read_csv, b"age,job,y\n", header=2, match="has a header but no rows")


def test_quotes_go_before_gaps_are_judged() -> None:
    read = read_csv(text("", "'{job}','{y}','a'", after="\n'cook',nan,'b'"), header=False)
    assert list(read.frame["column 2"].cat.categories) == ["nan", "no", "yes"]


def test_an_arff_file_that_is_a_csv_is_read_as_one_and_said(tmp_path: Path) -> None:
    (tmp_path / "kids.ARFF").write_bytes(text("age,job,y", "{age},{job},{y}"))
    dataset = dpviz.dataset(tmp_path / "kids.ARFF")
    assert dataset.X.tolist() == PLAIN.X.tolist()
    assert any("kids.ARFF is no ARFF file" in note for note in dataset.notes)


def test_a_workbook_may_begin_anywhere() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for k in range(20):
        for at, value in enumerate(["age", "y"] if k == 0 else [AGE[k], Y[k]]):
            book.active.cell(k + 3, at + 2, str(value) if k == 0 or at else int(value))
    book.create_sheet("citation").append(["a book"])
    out = io.BytesIO()
    book.save(out)
    dataset = made(out.getvalue()).dataset
    assert (dataset.n, dataset.feature_names[0]) == (19, "age")
    assert any("Other sheets were not: 'citation'" in note for note in dataset.notes)
    assert made(b",,\n,,\n" + text("age,job,y", "{age},{job},{y}")).dataset.sha256 == PLAIN.sha256, "and a CSV with empty lines"


CAFE = "café"


def labels(*values: str) -> bytes:
    return table(30, row=lambda k: f"{k},a{k % 2},{values[k % len(values)]}")


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (labels(CAFE, unicodedata.normalize("NFD", CAFE), "tea"), "Accents in 10 values of label"),
        (labels("01", "1", "0"), "Leading zeros in label, as in 01, do not count"),
        (labels("Yes", "yes"), "differ only in upper and lower case"),
        (
            table(row=lambda k: f"{k},{('True', 'true', 'False')[k % 3]},{k % 2}"),
            "Values of job that differ only in upper and lower case",
        ),
        (table(row=lambda k: f"{k},0x{k % 9:02x},{k % 2}"), "job holds hexadecimal numbers such as '0x00'"),
        (labels("yes", "yes\u200b"), r"characters that cannot be seen, such as 'yes\u200b'"),
        (labels("yes", "\u202eyes"), r"characters that cannot be seen, such as '\u202eyes'"),
        (table(row=lambda k: f"{k % 9 or '-'},a{k % 2},{k % 3 > 0}"), "age holds numbers, but also '-'"),
        (
            table(header="age;job;label", row=lambda k: f"{k + 1}.500;a{k % 2};{k % 2}"),
            "Points in age, as in 1.500, were read as decimal points",
        ),
        (labels(str(2**53), str(2**53 + 1)), "label holds whole numbers with more digits than a number keeps apart"),
    ],
)
def test_what_could_be_meant_otherwise_is_said(content: bytes, note: str) -> None:
    notes = made(content).dataset.notes
    assert any(note in said for said in notes), notes


def test_plain_values_are_not_remarked_upon() -> None:
    plain = table(header="age;zip;label", row=lambda k: f"{k}.25;{10**15 + k};{'nö' if k % 2 else 'ja'}")
    words = ("Accents", "Leading", "case", "seen", "but also", "Points", "digits", "hexadecimal")
    assert not [note for note in made(plain).dataset.notes if any(word in note for word in words)]


@pytest.mark.parametrize(
    ("content", "spec", "names"),
    [
        (labels(" yes", "yes ", "no"), None, ("no", "yes")),
        (labels("0.12345671", "0.12345672"), None, ("0.12345671", "0.12345672")),
        (labels(str(2**53), str(2**53 + 1)), None, ("9007199254740992", "9007199254740993")),
        (labels(CAFE, unicodedata.normalize("NFD", CAFE), "tea"), TableSpec("label", ("tea",)), (CAFE, "tea")),
        (text("y,job,age", "{y},{job},{age}"), TableSpec("y"), ("no", "yes")),  # the label stands first
        (text("age,job,y", "{age}, {job}, {y}.", before="|1x3 Cross validator\n"), None, ("no.", "yes.")),  # as in adult.test
    ],
)
def test_labels_are_those_that_are_written(content: bytes, spec: TableSpec | None, names: tuple[str, str]) -> None:
    assert made(content, spec).dataset.label_names == names


def test_identifiers_of_many_digits_stay_apart() -> None:
    ids = made(table(40, row=lambda k: f"{10**20 + k},{k},{k % 2}"))
    assert "like an identifier" in ids.left_out["age"]
    apart = made(table(40, row=lambda k: f"{2**60 + (k << 12)},{k},{k % 2}"))  # these are floats of their own
    assert "age" in apart.dataset.feature_names


def test_all_parts_of_a_joined_gzip_archive_are_read() -> None:
    head, rows = GOOD.split(b"\n", 1)
    joined = gzip.compress(head + b"\n" + rows) + gzip.compress(rows) + bytes(100)  # zeros at the end are padding
    assert made(joined).dataset.n == 2 * made(GOOD).dataset.n


@pytest.mark.parametrize("name", ["[age]", "{age}", "<18", "(age)"])
def test_a_bracket_in_the_first_name_is_no_other_format(name: str) -> None:
    assert made(table(header=f"{name},job,label")).dataset.feature_names[0] == name
