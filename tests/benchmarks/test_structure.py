"""The structure's numbers on a small package in which every one of them is known."""

from pathlib import Path

import pytest

from benchmarks import structure

FILES = {
    "__init__.py": "from small.cli import main\n",
    "loose.py": "",
    "common/__init__.py": "",
    "common/words.py": "def _hidden(): ...\n",
    "common/low.py": "def f():\n    from small.papers import claims\n",
    "models/__init__.py": "",
    "models/base.py": "class Linear: ...\n",
    "models/one.py": "from small.models import two\n",
    "models/two.py": "import small.models.one\n",
    "models/_own.py": "",
    "papers/__init__.py": "",
    "papers/claims.py": """from small.common.words import _hidden
from small.common import words
words._hidden()
from small.models import _own
""",
    "dashboard/__init__.py": "",
    "dashboard/page.py": """from small.models.base import Linear

def g(x):
    try:
        return isinstance(x, Linear)
    except Exception:
        pass
""",
    "cli/__init__.py": "",
    "cli/main.py": """from small.dashboard import page
try:
    x = 1  # fmt: skip
except BaseException:
    raise
""",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "small"


def test_every_number_counts_what_it_says(small: Path) -> None:
    numbers = {what: (number, found) for what, number, found in structure.report(small)}
    assert numbers["files"][0] == str(len(FILES))
    assert numbers["rooms"] == ("5", ["cli", "common", "dashboard", "models", "papers"])
    assert numbers["imports between rooms (pairs)"][1] == [
        "cli -> dashboard (1)",
        "common -> papers (1)",
        "dashboard -> models (1)",
        "papers -> common (2)",
        "papers -> models (1)",
    ]
    assert numbers["upward imports"][1] == ["common -> papers: small/common/low.py:2"]
    assert numbers["imports between rooms of one floor"][1] == ["cli -> dashboard: small/cli/main.py:1"]
    assert numbers["circles of rooms"][1] == ["common papers"]
    assert numbers["circles of modules while loading"][1] == ["small.models.one small.models.two"]
    assert numbers["modules at the root beside __init__"][1] == ["small/loose.py:1"]
    assert numbers["private imports across modules"][1] == [
        "small/papers/claims.py:1 small.common.words _hidden",
        "small/papers/claims.py:4 small.models _own",
        "small/papers/claims.py:3 words._hidden",
    ]
    assert numbers["isinstance on models"][1] == ["small/dashboard/page.py:5 isinstance(x, Linear)"]
    assert numbers["except Exception"][1] == ["small/dashboard/page.py:6"]
    assert numbers["fmt: skip"][1] == ["small/cli/main.py:3"]
    assert numbers["longest function, lines"][0] == "5 (small/dashboard/page.py:3 g)"


def test_the_package_keeps_to_its_limits() -> None:
    numbers = {what: (number, found) for what, number, found in structure.report(structure.ROOT / "dpviz")}
    for what in (
        "upward imports, circles of rooms, circles of modules while loading, isinstance on models, except Exception, fmt: "
        "skip, private imports across modules"
    ).split(", "):
        assert not numbers[what][1], (what, numbers[what][1])
    longest = numbers["longest function, lines"][0]
    assert int(longest.split()[0]) < 60, longest


def test_the_report_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["structure", str(structure.ROOT / "dpviz" / "figures")])
    structure.main()
    assert "upward imports                         0\n" in capsys.readouterr().out
