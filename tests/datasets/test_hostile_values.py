"""Values that look alike or mean two things: what is taken for what is said, and nothing merges or is lost in silence."""

import gzip
import unicodedata

import pytest
from support_tables import GOOD, made, table

from dpviz.datasets.table.spec import TableSpec

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


def test_one_text_is_one_class_however_its_accents_are_encoded() -> None:
    content = labels(CAFE, unicodedata.normalize("NFD", CAFE), "tea")
    assert made(content, TableSpec("label", ("tea",))).dataset.label_names == (CAFE, "tea")


def test_identifiers_of_many_digits_stay_apart() -> None:
    assert made(labels(str(2**53), str(2**53 + 1))).dataset.label_names == ("9007199254740992", "9007199254740993")
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
