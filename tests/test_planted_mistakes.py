"""Mistakes planted one at a time (`planting.toml`): a test of theirs must fail."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import LIMIT

from benchmarks.planted import ROOT, draw, outcome, quick_tests

_TABLE: dict[str, list[dict[str, str]]] = tomllib.loads((Path(__file__).parent / "planting.toml").read_text("utf-8"))
#: (file below dpviz, without its suffix; name, old and new source text, the test that must fail)
MISTAKES = [(module, row) for module, rows in _TABLE.items() for row in rows]
#: tried by the gate, as each needs an interpreter of its own; the others are tried before a release
FIRST = {rows[0]["name"] for rows in _TABLE.values()}


def source(module: str, row: dict[str, str]) -> str:
    """The module's source with the mistake."""
    text = (ROOT / "dpviz" / f"{module}.py").read_text("utf-8")
    assert text.count(row["old"]) == 1, f"{row['name']}: {module} reads otherwise now"
    return text.replace(row["old"], row["new"])


def case(module: str, row: dict[str, str]) -> object:
    mark = pytest.mark.long if row["name"] in FIRST else pytest.mark.before_release
    return pytest.param(module, row, id=row["name"], marks=mark)


def test_every_mistake_can_be_planted() -> None:
    assert len({row["name"] for _, row in MISTAKES}) == len(MISTAKES)
    for module, row in MISTAKES:
        compile(source(module, row), row["name"], "exec")
        path, test = row["seen_by"].split("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{row['name']}: {row['seen_by']} is gone"


@pytest.mark.parametrize(("module", "row"), [case(module, row) for module, row in MISTAKES])
def test_the_mistake_is_seen(module: str, row: dict[str, str]) -> None:
    code = outcome(f"dpviz/{module}.py", source(module, row), [row["seen_by"]], "long or not long", int(LIMIT))
    assert code == pytest.ExitCode.TESTS_FAILED


def test_drawn_mistakes_change_the_module_and_are_tried_on_the_tests_that_run_them() -> None:
    path = ROOT / "dpviz" / "privacy" / "accounting" / "gaussian.py"
    drawn = [*draw([path], 5, 0)]
    assert len(drawn) >= 4
    assert len({mistake.body for mistake in drawn}) == len(drawn)
    for mistake in drawn:
        compile(mistake.source, mistake.path, "exec")
        assert mistake.source.count("def ") == path.read_text("utf-8").count("def ")
    seen = {5: [""], 9: ["slow|run", "fast|run", "fast|setup", "long|run"]}
    ran = SimpleNamespace(contexts_by_lineno=lambda at: seen if at == str(path) else {1: ["user|run"]})
    # 5: the default of an argument, 10: a line that no test is seen to run, as those of compiled loops
    for line, expected in ((9, ["fast", "slow"]), (10, ["user"]), (5, ["fast", "slow"])):
        assert (
            quick_tests(drawn[0]._replace(body=range(8, 20), line=line), ran, {"slow": 2.0, "fast": 1.0, "user": 3.0}) == expected
        )
