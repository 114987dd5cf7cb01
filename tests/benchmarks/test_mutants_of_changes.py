"""Which functions count as changed, and that the gate's step on mutants keeps its limits and says what it left out."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks import mutants, mutants_of_changes, planted
from benchmarks.mutants import Mutant

BEFORE = '''
LIMIT = 1

def same(x):
    """What it does."""
    return x + LIMIT

def other(x): return x

class Box:
    def same(self): return 1
    def other(self): return 1
'''
AFTER = '''
LIMIT = 2

def other(x):
    def inside(y): return y
    return inside(-x)

class Box:
    size: int = 3

    def other(self): return 2

    def same(self):  # a comment
        return (1)

    def new(self): return self.size

def same(x):
    """What it does, in other words."""
    return x + LIMIT
'''


def test_functions_with_other_code_are_chosen_wherever_they_stand() -> None:
    assert mutants_of_changes.changed_functions(BEFORE, AFTER) == ["other", "Box.other", "Box.new"]
    assert mutants_of_changes.changed_functions(AFTER, AFTER) == []
    assert mutants_of_changes.changed_functions("", BEFORE) == ["same", "other", "Box.same", "Box.other"]
    assert mutants_of_changes.changed_functions("def f(x=1): return x", "def f(x=2): return x") == ["f"]


def test_their_names_are_those_of_the_mutants() -> None:
    names = ["dpviz.a.x_other__mutmut_3", "dpviz.a.xǁBoxǁother__mutmut_12"]
    assert [Mutant(name, "survived", ()).function for name in names] == ["dpviz.a.other", "dpviz.a.Box.other"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mutants_of_changes, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # a hook sets them
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, source: str) -> str:
    module = folder / "dpviz" / "privacy" / "audit_bounds.py"
    for path in (module, folder / "tests" / "privacy" / "test_audit_bounds.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(source)
    (folder / "tests" / "privacy" / "test_audit_bounds.py").write_text("")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a commit")
    return git(folder, "rev-parse", "HEAD")


def test_changes_since_main_or_the_last_commit(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants_of_changes.base() is None, "no repository"
    git(repository, "init", "-q", "-b", "main")
    first = commit(repository, BEFORE)
    assert mutants_of_changes.base() is None, "one commit, as in a shallow clone"
    second = commit(repository, AFTER)
    assert mutants_of_changes.base() == first
    assert mutants_of_changes.changes(first) == {"dpviz/privacy/audit_bounds.py": ["other", "Box.other", "Box.new"]}
    assert mutants_of_changes.added_lines(first, ["dpviz"]) >= {
        "LIMIT = 2",
        "return inside(-x)",
        "def new(self): return self.size",
    }
    git(repository, "checkout", "-qb", "mine")
    commit(repository, AFTER + "\ndef third(): return 1\n")
    assert mutants_of_changes.base() == second
    commit(repository, AFTER + "\ndef third(): return 3\n")
    assert mutants_of_changes.base() == second, "all that is not on main yet"
    assert mutants_of_changes.changes(second) == {"dpviz/privacy/audit_bounds.py": ["third"]}


class Planted:
    """Stands in for a copy with mistakes: five mutants of one function, and the order in which they are asked for."""

    asked: ClassVar[list[str]] = []

    def __init__(self, folder: Path, modules: list[str], only: list[str]) -> None:
        assert modules == ["dpviz/a.py"]
        assert only == ["dpviz.a.f", "dpviz.a.g"]
        self.names = [f"dpviz.a.x_f__mutmut_{k}" for k in range(5)]

    def mutants(self, names: list[str]) -> list[Mutant]:
        return [Mutant(name, "not checked", (f"-    return {name[-1]}", "+    return 9")) for name in names]

    def try_all(self, wanted: list[Mutant], children: int, end: float, told: Any) -> list[Mutant]:
        self.asked[:] = [mutant.name[-1] for mutant in wanted]
        return [replace(mutant, outcome="killed") if k != 1 else mutant for k, mutant in enumerate(wanted)]


def test_changed_lines_come_first_and_what_limits_leave_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "Tree", Planted)
    found = {"dpviz/a.py": ["f", "g"]}
    tried, left_out = mutants_of_changes.try_changes(found, {"return 3", "return 4"}, most=3, seconds=100.0, children=1)
    assert len(Planted.asked) == 3
    assert set(Planted.asked[:2]) == {"3", "4"}
    assert [m.outcome for m in tried] == ["killed", "killed"], "one was given up"
    assert left_out == ["dpviz.a.f: 3 mutants"], "one was given up and two were not begun"


def test_a_mutant_is_judged_by_the_tests_of_its_module(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A copy with mistakes, which mutmut writes and a pytest tries: one that is noticed, one that is not, one too slow."""
    pytest.importorskip("mutmut", reason="mutmut is not installed")
    module = "dpviz/privacy/audit_bounds.py"
    source = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x - 1\n\ndef h(x):\n    return x\n"
    git(repository, "init", "-q", "-b", "main")
    commit(repository, source)
    for folder in ("dpviz", "dpviz/privacy"):
        (repository / folder / "__init__.py").write_text("")
    (repository / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ''\n")
    test = "from dpviz.privacy.audit_bounds import f, g\n\ndef test_f():\n    g(1)\n    assert f(1) == 2\n"
    (repository / "tests" / "privacy" / "test_audit_bounds.py").write_text(test)
    tree = planted.Tree(
        tmp_path_factory.mktemp("tree"), [module], ["dpviz.privacy.audit_bounds.f", "dpviz.privacy.audit_bounds.g"]
    )
    made = tree.mutants(tree.names)
    assert {m.function[-1] for m in made} == {"f", "g"}
    assert all(m.change for m in made)
    for mutant, known in zip(made, tree.try_all(made, 2, float("inf"), lambda mutant: None), strict=True):
        assert known.outcome == ("killed" if mutant.function[-1] == "f" else "survived")
    assert tree.tried(made[0], 0.001).outcome == "not checked"
    assert tree.try_all(made, 1, 0.0, lambda mutant: None) == made, "no time left"


def test_the_interval_of_a_draw() -> None:
    assert planted.interval(76, 4) == pytest.approx((0.8769, 0.9862), abs=1e-4)
    assert planted.interval(10, 0) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert planted.interval(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)


@pytest.mark.parametrize(
    ("outcomes", "line", "complete", "code"),
    [
        ("s", "return 1", True, 1),
        ("n", "return 1", True, 1),
        ("s", "return 1", False, 0),  # one of many: nothing can be said of the share
        ("s", "return 7", True, 0),
        ("k", "return 1", True, 0),
        ("kkkkkkkkkkkkkks", "return 1", False, 0),
        ("kkkkkkkkkkkkkks", "return 1", True, 1),
        ("kkkkkkkkkkkssss", "return 1", False, 1),
        ("kkkkkkkkkkkssss", "return 7", False, 0),
    ],
)
def test_survivors_on_changed_lines_fail_where_they_are_too_many(
    outcomes: str, line: str, complete: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    names = {"s": "survived", "n": "no tests", "k": "killed"}
    change = ("-    return 1", "+    return 2")
    made = [Mutant(f"dpviz.a.x_f__mutmut_{k}", names[outcome], change) for k, outcome in enumerate(outcomes)]
    monkeypatch.setattr(mutants_of_changes, "changes", lambda since: {"dpviz/a.py": ["f"]})
    monkeypatch.setattr(mutants_of_changes, "added_lines", lambda since, modules: {line})
    monkeypatch.setattr(mutants_of_changes, "try_changes", lambda *args: (made, [] if complete else ["dpviz/b.py: all"]))
    monkeypatch.setattr(mutants_of_changes.importlib.util, "find_spec", lambda name: mutants)
    monkeypatch.setattr("sys.argv", ["mutants_of_changes", "--since", "abc"])
    assert mutants_of_changes.main() == code
    said = capsys.readouterr().out
    assert ("dpviz.a.f ## return 2" in said) == (outcomes != "k")
    assert ("survived, on a changed line" in said) == (outcomes != "k" and line == "return 1")
    assert ("not reached: dpviz/b.py: all" in said) == (not complete)
    monkeypatch.setattr(mutants_of_changes.importlib.util, "find_spec", lambda name: None)
    assert mutants_of_changes.main() == 0
    assert "mutmut is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('stop("a cause", 1)', 'stop("XXa causeXX", 1)', True),
        ('stop("a cause", 1)', 'stop("a cause", 2)', False),
        ("for a, b in zip(x, y, strict=True):", "for a, b in zip(x, y, ):", True),
        ("for a, b in zip(x, y, strict=True):", "for a, b in zip(x, y, strict=None):", True),
        ("for a, b in zip(x, y, strict=True):", "for a, b in zip(x, strict=True):", False),
        ("theta = fit(x, strict=strict)", "theta = fit(x, strict=not strict)", False),
    ],
)
def test_mutants_of_words_are_told_from_others(before: str, after: str, words: bool) -> None:
    assert mutants.only_words((f"-    {before}", f"+    {after}")) is words


def test_every_test_that_should_notice_a_mistake_is_there() -> None:
    assert all((mutants.ROOT / test).exists() for tests in mutants.TESTS.values() for test in tests)
