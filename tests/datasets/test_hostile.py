"""What people throw at the reader: every case has its message (what, where, what to do), and nothing is repaired in silence."""

import gzip
import io
import zipfile

import pytest
from support import assert_refused
from support_tables import GOOD, made, table

from dpviz.common.limits import Limits
from dpviz.datasets.table.spec import TableSpec


def one(value: str, at: int = 7) -> bytes:
    """A table whose row `at` (from 0) has `value` for a number."""
    return table(row=lambda k: f"{value if k == at else 20 + k},{'ab'[k % 2]},{'yes' if k % 4 else 'no'}")


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.csv", table())
    return out.getvalue()


JOBS = ["x", "y"]
WORDS = ["yes", "no", "yes"]

#: name: (bytes, field, what the cause says)
FILES: dict[str, tuple[bytes, str, str]] = {
    "empty file": (b"", "file", "is empty"),
    "blank lines only": (b"\n \n\t\n", "file", "is empty"),
    "byte order mark only": (b"\xef\xbb\xbf", "file", "is empty"),
    "header without rows": (b"a,b,label\n", "file", "header but no rows"),
    "one column, wrong delimiter": (GOOD.replace(b",", b":"), "file", "one column only"),
    "a row too short": (GOOD + b"5,a\n", "file", "line 22 has 2 values where line 1 has 3"),
    "thousands separators": (GOOD + b"1,000,a,yes\n", "file", "line 22 has 4 values"),
    "duplicate header": (table(header="age,age,label"), "header", "'age' is given twice"),
    "header twins by spaces": (table(header="age, age ,label"), "header", "'age' is given twice"),
    "header twins in Unicode": (table(header="caf\u00e9,cafe\u0301,label"), "header", "looks the same as"),
    "empty header": (table(header="age,,label"), "header", "column 2 has no name"),
    "header of spaces": (table(header="age,  ,label"), "header", "column 2 has no name"),
    "no header": (table(header="25,a,no"), "header", "the first line looks like data: '25'"),
    "no header, words only": (
        table(header="x,y,no", row=lambda k: f"{JOBS[k % 2]},{JOBS[k // 2 % 2]},{WORDS[k % 3]}"),
        "header",
        "'x' is also a value in its column",
    ),
    "header with a line break": (table(header='"a\nge",job,label'), "header", "cannot be seen"),
    "header with a hidden mark": (table(header="age\u200b,job,label"), "header", "cannot be seen"),
    "endless name": (table(header="a" * 5000 + ",job,label"), "header", "has 5,000 characters"),
    "name of the constant feature": (table(header="(intercept),job,label"), "header", "stands for the constant feature"),
    "UTF-16 unmarked": (GOOD.decode().encode("utf-16-le"), "file", "zero byte at position 1.*Say its encoding"),
    "UTF-16 cut off": ((GOOD.decode().encode("utf-16"))[:-1], "file", "begins as UTF-16 but is not"),
    "bad UTF-8": (GOOD + "5,caf\u00e9 ol\u00e9,yes\n".encode() + b"5,\xc3\x28,yes\n", "file", "not UTF-8: byte 0xc3 on line 23"),
    "zero bytes": (GOOD + b"5,\x00,yes\n", "file", "zero byte"),
    "Excel under a .csv name": (zipped(), "file", "zip archive or an Excel"),
    "damaged old Excel": (b"\xd0\xcf\x11\xe0" + bytes(64), "file", "a workbook that cannot be read"),
    "PDF": (b"%PDF-1.7 ...", "file", "is a PDF"),
    "damaged Parquet": (b"PAR1" + bytes(32), "file", "damaged Parquet"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(32), "file", "a picture"),
    "program": (b"\x7fELF" + bytes(32), "file", "a program"),
    "web page": (b"<!DOCTYPE html><html><script>alert(1)</script></html>", "file", "web page"),
    "JSON": (b'[{"a": 1, "label": 0}]', "file", "is JSON"),
    "JSON lines": (b'{"a": 1, "label": 0}\n' * 20, "file", "is JSON"),
    "rich text": (b"{\\rtf1 a,b\\par}", "file", "is a rich text document"),
    "open quote": (GOOD + b'5,"a,yes\n' + GOOD[14:], "file", "line 22 cannot be read.*quote may be left open"),
    "text after a quote": (GOOD + b'5,"a"b,yes\n', "file", "line 22 cannot be read"),
    "huge cell": (GOOD + b'5,"' + b"x" * 200_000 + b'",yes\n', "file", "line 22 cannot be read.*limit"),
    "damaged gzip": (gzip.compress(GOOD)[:12] + b"\x00" * 20, "file", "damaged gzip|ends too early"),
    "cut gzip": (gzip.compress(GOOD)[:-12], "file", "ends too early|damaged"),
    "junk after gzip": (gzip.compress(GOOD) + b"junk", "file", "damaged gzip"),
    "gzip bomb": (gzip.compress(b"1,a,yes\n" * 1_000_000), "file", "unpacks to more than 1 MB"),
    "gzip in gzip": (gzip.compress(gzip.compress(GOOD)), "file", "not UTF-8|zero byte"),
    "too large": (table(1) + b"5,aaaaaaaaaaaaaaaaaaaaaaaa,yes\n" * 40_000, "file", "MB large"),
    "too many rows": (table(301), "file", "more than 300 rows"),
    "too many columns": (b",".join(b"c%d" % k for k in range(60)) + b"\n", "file", "has 60 columns"),
    "infinity": (one("inf"), "age", "row 8 holds 'inf', which is infinite"),
    "overflow": (one("1e400"), "age", "row 8 holds '1e400', which is infinite or too large"),
    "vast range": (table(row=lambda k: f"{(-1) ** k}e308,{'ab'[k % 2]},{'yes' if k % 4 else 'no'}"), "age", "too far to scale"),
    "decimal commas or thousands": (
        table(row=lambda k: f"1,{k + 100};a{k % 2};{k % 2}", header="age;job;label"),
        "age",
        "decimal commas or thousands: '1,100'",
    ),
    "two classes missing: one class": (table(row=lambda k: f"{k},a{k % 2},yes"), "target", "takes one value only"),
    "three classes": (table(row=lambda k: f"{k},a{k % 2},{'uvw'[k % 3]}"), "target", "takes 3 values"),
    "a measurement as label": (table(row=lambda k: f"{k},a{k % 2},{k * 1.5}"), "target", "takes 20 values"),
    "label missing everywhere": (table(row=lambda k: f"{k},a{k % 2},"), "missing", "every row has a gap"),
    "nine rows": (table(9), "table", "At least 10|has 9 rows"),
    "ten rows, seven with gaps": (table(10, row=lambda k: f"{k},a{k % 2},{k % 2 if k < 3 else ''}"), "table", "has 3 rows"),
    "constant columns only": (table(row=lambda k: f"1,a,{k % 2}"), "columns", "none can be used.*'age' has the same value"),
    "missing columns only": (table(row=lambda k: f"?,NA,{k % 2}"), "columns", "none can be used.*'age' has no values"),
    "dates only": (table(row=lambda k: f"2020-01-{k + 1:02},a,{k % 2}"), "columns", "holds dates"),
    "times only": (table(row=lambda k: f"{k}:30,a,{k % 2}"), "columns", "holds dates or times"),
    "dates in words": (table(row=lambda k: f"{k + 1} Jan 2020,a,{k % 2}"), "columns", "holds dates or times"),
    "Arabic digits": (table(30, row=lambda k: f"{chr(0x661 + k // 9)}{chr(0x661 + k % 9)},a,{k % 2}"), "columns", "other signs"),
    "quoted thousands": (table(30, row=lambda k: f'"{k + 1},100",a,{k % 2}'), "columns", "other signs, such as '1,100' in row 1"),
    "percents": (table(30, row=lambda k: f"{k}{'%‰'[k % 2]},a,{k % 2}"), "columns", "other signs, such as '0%' in row 1"),
    "printed minus": (table(30, row=lambda k: f"{'−' * (k % 2)}{k},a,{k % 2}"), "columns", "other signs, such as '−1' in row 2"),
    "column named as a category": (
        table(header="job,job=a,label", row=lambda k: f"{'ab'[k % 2]},{k},{k % 2}"),
        "columns",
        "two features would be called 'job=a'",
    ),
    "too many numbers": (
        table(header=",".join(f"c{k}" for k in range(45)), row=lambda k: f"{k}," * 44 + str(k % 2)),
        "columns",
        "44 of them can be used, one feature each",
    ),
    "huge categories": (table(200, row=lambda k: f"1,w{k % 90},{k % 2}"), "job", "has 90 categories"),
    "too many features": (
        table(120, header="a,b,label", row=lambda k: f"u{k % 30},w{k % 35},{k % 2}"),
        "columns",
        "need more than 40 features; 'b' alone needs 35",
    ),
    "identifiers only": (table(250, row=lambda k: f"1,person {k},{k % 2}"), "columns", "250 different texts"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_used_is_refused_in_words(case: str) -> None:
    content, field, cause = FILES[case]
    error = assert_refused(made, content, match=cause, field=field)
    assert len(str(error)) < 900
    assert "Traceback" not in str(error)


#: what a person may choose that does not fit: (spec, field, cause)
CHOICES: dict[str, tuple[dict, str, str]] = {
    "unknown target": ({"target": "lable"}, "target", "unknown value 'lable'"),
    "positive value that never occurs": ({"positive": ("maybe",)}, "positive", "never takes the value 'maybe'"),
    "threshold on text": ({"above": 3.0}, "above", "holds text"),
    "threshold and values": ({"target": "age", "above": 30.0, "positive": ("25",)}, "above", "together"),
    "label among the features": ({"columns": ("age", "label")}, "columns", "is among the features"),
    "a column twice": ({"columns": ("age", "age")}, "columns", "given twice"),
    "unknown column": ({"columns": ("height",)}, "columns", "unknown value 'height'"),
    "range upside down": ({"ranges": {"age": (9.0, 1.0)}}, "ranges['age']", "not below"),
    "range that is infinite": ({"ranges": {"age": (0.0, float("inf"))}}, "ranges['age']", "finite"),
    "range of text": ({"ranges": {"job": (0.0, 1.0)}}, "ranges['job']", "holds text"),
    "category twice": ({"categories": {"job": ("a", "a")}}, "categories['job']", "given twice"),
    "gaps in no column": ({"missing_in": {"height": ("0",)}}, "missing['height']", "unknown value"),
    "a range of the label": ({"target": "age", "above": 30.0, "ranges": {"age": (0.0, 9.0)}}, "ranges['age']", "names the label"),
    "a proposal for no column": ({"proposed": ("height",)}, "proposed['height']", "unknown value"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_a_choice_that_does_not_fit_is_refused_in_words(case: str) -> None:
    values, field, cause = CHOICES[case]
    assert_refused(made, GOOD, TableSpec(**({"target": "label"} | values)), match=cause, field=field)


def test_gaps_need_a_declared_default_and_a_number_where_numbers_are() -> None:
    content = one("")
    assert_refused(made, content, TableSpec("label", defaults={"age": "old"}), match="must be a number")
    filled = made(content, TableSpec("label", defaults={"age": 30.0})).dataset
    assert filled.frame["age"].iloc[7] == 30.0
    assert any("1 gap in age was filled with 30" in note for note in filled.notes)
    dropped = made(content)
    assert (dropped.dropped, dropped.dataset.n) == (1, 19)
    assert [one.sentence for one in dropped.dataset.lost] == ["1 of 20 rows were dropped because of gaps in: age (1)."]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (GOOD.replace(b",", b";"), "separated by semicolon"),
        (GOOD.replace(b",", b"\t"), "separated by tab"),
        (b"sep=;\n" + GOOD.replace(b",", b";"), "Excel's first line"),
        (GOOD.replace(b",", b" , "), "Spaces around"),
        (
            table(header="age;job;label", row=lambda k: f"{k},5;a{k % 2};{k % 2}"),
            "Numbers in age, such as 0,5, were read with decimal commas",
        ),
        (GOOD + GOOD[14:22] * 2, "rows repeat another one"),
    ],
)
def test_whatever_is_done_is_said(content: bytes, note: str) -> None:
    assert any(note in said for said in made(content).dataset.notes)


def test_the_same_table_in_many_shapes_is_the_same_data() -> None:
    plain = made(GOOD, TableSpec("label")).dataset
    shapes = [
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + GOOD,
        gzip.compress(GOOD),
        b"\n\n" + GOOD,
        GOOD.rstrip(b"\n"),
        GOOD.replace(b",", b";"),
        GOOD.replace(b",", b", "),
        GOOD.replace(b",", b"\t"),
        b"\n".join(b",".join(b'"' + c + b'"' for c in line.split(b",")) for line in GOOD.split()),
        b"\n".join(b", ".join(b'"' + c + b'"' for c in line.split(b",")) for line in GOOD.split()),
    ]
    assert [made(s, TableSpec("label")).dataset.sha256 for s in shapes] == [plain.sha256] * len(shapes)


def test_numbers_with_a_few_texts_are_not_taken_for_categories() -> None:
    content = table(60, header="age,job,label", row=lambda k: f"{'4l' if k == 41 else k},{'ab'[k % 2]},{k % 2}")
    left_out = made(content).left_out
    assert "'4l' in row 42" in left_out["age"]


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "<script>alert(1)</script>", "[x](javascript:alert(1))", "$\\url{x}$", "`rm`"]
)
def test_formulas_and_markup_stay_text(text: str) -> None:
    content = table(header=f'age,"{text}",label', row=lambda k: f'{k},"{text}{k % 2}",{k % 2}')
    dataset = made(content).dataset
    assert dataset.feature_names[1] == f"{text}={text}0"
    assert dataset.frame[text].iloc[0] == f"{text}0"


def test_a_feature_called_label_does_not_cover_the_label() -> None:
    content = table(header="label,job,y", row=lambda k: f"{k},a{k % 2},{'no' if k % 2 else 'yes'}")
    frame = made(content).dataset.frame
    assert (frame["label"].iloc[5], frame.iloc[5, -1]) == (5, "no")


def test_declared_ranges_and_categories_are_not_read_off_the_data() -> None:
    spec = TableSpec("label", ranges={"age": (25.0, 60.0)}, categories={"job": ("a", "b", "z")})
    dataset = made(GOOD, spec).dataset
    assert dataset.declared
    assert dataset.feature_names == ("age", "job=a", "job=b", "job=z", "(intercept)")
    assert [(one.kind, one.what, one.count) for one in dataset.lost] == [("values", "age", 5), ("values", "job", 6)]
    assert made(GOOD).dataset.looked_at == ("age", "job")


def test_a_spec_that_means_nothing_is_refused() -> None:
    for bad in (
        {"traget": "x"},
        {"target": 3},
        {"target": "a", "ranges": {"x": 1}},
        {"target": "a", "ranges": [1]},
        {"target": "a", "positive": []},
        {"target": "a", "defaults": {"x": [1]}},
        {"target": "a", "categories": {"x": []}},
    ):
        assert_refused(TableSpec.from_dict, bad)


@pytest.mark.parametrize("value", ["lots", "-1", "0", "1.5", "", "٣"])
def test_a_limit_that_is_no_number_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_MAX_ROWS", value)
    assert_refused(Limits.from_environment, match="DPVIZ_MAX_ROWS")
