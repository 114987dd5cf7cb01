"""Numbers from outside: one rule for values, one for text."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_refused

import dpviz
from dpviz.cli.main import main
from dpviz.common import toml
from dpviz.common.validate import InvalidInput, check_integer, number, number_from_text

TAKEN: list[Any] = [1, 1.0, np.float32(1), np.float64(1), np.int64(1), Fraction(1), Decimal(1), Decimal("1.0")]


@pytest.mark.parametrize("value", TAKEN, ids=lambda v: type(v).__name__)
def test_numbers_of_all_kinds_are_taken_alike(value: Any) -> None:
    found = number("x", value), check_integer("x", value, 0, 5)
    assert found == (1.0, 1)
    assert [*map(type, found)] == [float, int]
    assert dpviz.RunSpec(epsilon=value, lam=value) == dpviz.RunSpec(epsilon=1.0, lam=1.0)


@pytest.mark.parametrize(
    "value",
    ["1", b"1", True, np.True_, None, 1 + 0j, [1.0], np.ones(1), Decimal("nan"), Decimal("snan"), Decimal("inf"), 10**400],
    ids=repr,
)
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    assert_refused(number, "x", value, match=r"^x: must be")


@pytest.mark.parametrize(
    "text", ["１", "1_0", "٣", "²", "nan", "inf", "-inf", "1e400", "0x10", "1,5", "", " ", "1 0", "--1", "1e", "."]
)
def test_text_that_is_no_plain_number_is_refused(text: str) -> None:
    assert_refused(number_from_text, "x", text, match=r"^x: must be")
    found: list[InvalidInput] = []
    assert dpviz.RunSpec.from_query({"epsilon": text, "lam": text, "seed": text}, found) == dpviz.RunSpec()
    assert {problem.field for problem in found} == {"epsilon", "lam", "seed"}


@pytest.mark.parametrize(
    ("text", "value"), [(" 12 ", 12), ("-3", -3), ("−3", -3), ("1e−5", 1e-5), (".5", 0.5), ("2.", 2.0), ("+1E3", 1e3)]
)
def test_plain_numbers_are_read(text: str, value: float) -> None:
    assert number_from_text("x", text) == value


@settings(max_examples=300)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**40) + 1, 10**40 - 1))
def test_what_python_writes_is_read_back_exactly(value: float) -> None:
    assert number_from_text("x", str(value)) == value


@given(st.text(max_size=12))
def test_any_text_is_a_finite_number_or_one_clear_error(text: str) -> None:
    try:
        value = number_from_text("x", text)
    except InvalidInput as problem:
        told = problem
    else:
        assert np.isfinite(float(value))
        assert all(sign in "0123456789+-.eE\u2212" for sign in text.strip())
        return
    assert told.field == "x"
    assert told.fix


@pytest.mark.parametrize("seed", ["nan", "-1"])
def test_seeds_of_claims_are_checked_before_anything_runs(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "claims", "--test=all", f"--seed={seed}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dpviz: seed: must")


BAD = {
    "no TOML": (b"a = ", "is not TOML"),
    "Latin-1": (b"a = '\xe9'", "is not TOML"),
    "nested deeply": (b"a = " + b"[" * 5000 + b"]" * 5000, "is not TOML"),
    "a number of many digits": (b"a = " + b"9" * 5_000, "is not TOML"),
    "a day that there is not": (b"a = 2023-02-30", "is not TOML"),
    "too large": (b"#" * (toml.MOST_BYTES + 1), "larger than 64 KiB"),
}


@pytest.mark.parametrize("how", BAD)
def test_refused_in_words(how: str, tmp_path: Path) -> None:
    content, cause = BAD[how]
    (tmp_path / "a.toml").write_bytes(content)
    assert_refused(toml.read, tmp_path / "a.toml", "spec file", match=cause)


@pytest.mark.parametrize(
    ("path", "cause"), [("nowhere.toml", "No such file"), ("a\0b.toml", "is no path"), ("/dev/zero", "a device")]
)
def test_no_file(path: str, cause: str) -> None:
    if path.startswith("/dev") and not Path(path).exists():
        pytest.skip("no such device here")
    assert_refused(toml.read, path, "spec file", match=cause)


def test_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = [1, 2]\n[b]\nc = 'ε'", encoding="utf-8")
    assert toml.read(tmp_path / "a.toml", "spec file") == {"a": [1, 2], "b": {"c": "ε"}}
