"""Files of settings from outside: read, or refused in words."""

from pathlib import Path

import pytest

from dpviz.common import toml
from dpviz.common.validate import InvalidInput

BAD = {
    "no TOML": (b"a = ", "is not TOML"),
    "Latin-1": (b"a = '\xe9'", "is not TOML"),
    "nested deeply": (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
    "a number of many digits": (b"a = " + b"9" * 5_000, "is not TOML"),
    "a day that there is not": (b"a = 2023-02-30", "is not TOML"),
    "too large": (b"#" * (toml.MOST_BYTES + 1), "larger than 64 KiB"),
}


@pytest.mark.parametrize("how", BAD)
def test_refused_in_words(how: str, tmp_path: Path) -> None:
    content, cause = BAD[how]
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(InvalidInput, match=cause):
        toml.read(tmp_path / "a.toml", "spec file")


@pytest.mark.parametrize(
    ("path", "cause"), [("nowhere.toml", "No such file"), ("a\0b.toml", "is no path"), ("/dev/zero", "a device")]
)
def test_no_file(path: str, cause: str) -> None:
    if path.startswith("/dev") and not Path(path).exists():
        pytest.skip("no such device here")
    with pytest.raises(InvalidInput, match=cause):
        toml.read(path, "spec file")


def test_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = [1, 2]\n[b]\nc = 'ε'", encoding="utf-8")
    assert toml.read(tmp_path / "a.toml", "spec file") == {"a": [1, 2], "b": {"c": "ε"}}
