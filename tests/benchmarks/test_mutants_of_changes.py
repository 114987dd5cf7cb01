"""Which functions count as changed, and that the gate's step on mutants keeps its limits and says what it left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import mutants, mutants_of_changes
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


def test_limits_are_shared_and_what_they_leave_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def run(module: str, children: int, folder: Path, sample: int, *, only: tuple[str, ...], seconds: float) -> list[Mutant]:
        asked.append(sample)
        assert 0 < seconds <= 100
        if module == "dpviz/b.py":
            raise subprocess.CalledProcessError(1, "mutmut")
        states = ["survived", "killed", "skipped", "not checked"]
        made = [Mutant(f"dpviz.{module[6]}.x_f__mutmut_{k}", state, ()) for k, state in enumerate(states)]
        return [*made, Mutant("dpviz.a.x_unchanged__mutmut_1", "survived", ())]

    monkeypatch.setattr(mutants, "run", run)
    found = {f"dpviz/{name}.py": ["f"] for name in "abc"}
    tried, left_out = mutants_of_changes.try_changes(found, most=9, seconds=100.0, children=1)
    assert asked == [3, 3, 7]
    assert [(m.function, m.outcome) for m in tried] == [(f"dpviz.{m}.f", o) for m in "ac" for o in ("survived", "killed")]
    assert [line.partition(":")[0] for line in left_out] == ["dpviz/a.py", "dpviz/b.py", "dpviz/c.py"]
    assert "2 of 4 mutants of f" in left_out[0]
    tried, left_out = mutants_of_changes.try_changes(found, most=9, seconds=0.0, children=1)
    assert (tried, len(left_out)) == ([], 3), "no time left"


@pytest.mark.parametrize(
    ("outcome", "line", "code"),
    [("survived", "return 1", 1), ("no tests", "return 1", 1), ("survived", "return 7", 0), ("killed", "return 1", 0)],
)
def test_only_a_survivor_on_a_changed_line_fails(
    outcome: str, line: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    mutant = Mutant("dpviz.a.x_f__mutmut_1", outcome, ("-    return 1", "+    return 2"))
    monkeypatch.setattr(mutants_of_changes, "changes", lambda since: {"dpviz/a.py": ["f"]})
    monkeypatch.setattr(mutants_of_changes, "added_lines", lambda since, modules: {line})
    monkeypatch.setattr(mutants_of_changes, "try_changes", lambda *args: ([mutant], ["dpviz/b.py: all"]))
    monkeypatch.setattr(mutants_of_changes.importlib.util, "find_spec", lambda name: mutants)
    monkeypatch.setattr("sys.argv", ["mutants_of_changes", "--since", "abc"])
    assert mutants_of_changes.main() == code
    said = capsys.readouterr().out
    assert ("dpviz.a.f ## return 2" in said) == (outcome != "killed")
    assert ("on a changed line" in said) == bool(code)
    assert "not reached: dpviz/b.py: all" in said
    monkeypatch.setattr(mutants_of_changes.importlib.util, "find_spec", lambda name: None)
    assert mutants_of_changes.main() == 0
    assert "mutmut is not installed" in capsys.readouterr().out


def test_mutants_of_another_run_are_left_out(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, earlier, new = "dpviz/privacy/audit_bounds.py", tmp_path / "earlier", tmp_path / "new"
    git(repository, "init", "-q", "-b", "main")
    commit(repository, BEFORE)
    outcomes = ("killed", "survived", "skipped")
    made = tuple(Mutant(f"dpviz.a.x_f__mutmut_{k}", outcome, ()) for k, outcome in enumerate(outcomes))
    mutants.write(mutants.kept(earlier, module), mutants.Tried("", "", made))
    left_out: list[tuple[str, ...]] = []

    def run(*args: Any, other_than: tuple[str, ...]) -> list[Mutant]:
        left_out.append(other_than)
        return [Mutant("dpviz.a.x_f__mutmut_2", "killed", ())]

    monkeypatch.setattr(mutants, "run", run)
    for asked in (["--other-than", str(earlier)], []):
        monkeypatch.setattr("sys.argv", ["mutants", module, *asked, "--results", str(new / str(len(asked)))])
        assert mutants.main() == 0
    assert left_out == [("dpviz.a.x_f__mutmut_0", "dpviz.a.x_f__mutmut_1"), ()], "one that was not tried is not left out"


def test_a_module_without_mutants_to_try_is_not_given_to_mutmut(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "init", "-q", "-b", "main")
    commit(repository, BEFORE)
    (repository / "pyproject.toml").write_text("")
    started: list[str] = []
    monkeypatch.setattr(mutants, "_mutmut", lambda copy, *arguments, seconds=None: bool(started.append(arguments[0])) or True)
    for made in ([], [Mutant("dpviz.a.x_f__mutmut_1", "skipped", ())]):
        monkeypatch.setattr(mutants, "_outcomes", lambda copy, made=made: made)
        assert mutants.run("dpviz/privacy/audit_bounds.py", 1, tmp_path_factory.mktemp("unfinished")) == made
        assert started == ["-c"], "the mutants were written, and mutmut was not started"
        started.clear()


def test_a_sample_is_drawn_from_what_other_runs_left(tmp_path: Path) -> None:
    """The script that marks mutants, with a stand-in for mutmut: two of five were tried, and two of the others are drawn."""
    stand_in = {
        "__main__.py": "set_mutant_under_test = create_mutants = lambda _: None\ncopy_also_copy_files = lambda: None",
        "utils/file_utils.py": "copy_src_dir = setup_source_paths = lambda: None\nwalk_mutatable_files = lambda: ['a.py']",
        "mutation/data.py": """
import json
class SourceFileMutationData:
    def __init__(self, path): self.exit_code_by_key = {}
    def load(self): self.exit_code_by_key = {f"a.x_f__mutmut_{k}": None for k in range(5)}
    def save(self): print(json.dumps(self.exit_code_by_key))
""",
    }
    for name, text in stand_in.items():
        path = tmp_path / "mutmut" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tried = ["a.x_f__mutmut_0", "a.x_f__mutmut_3"]
    wanted = {"sample": 2, "noticed": [], "only": None, "other_than": tried}
    command = [sys.executable, "-c", mutants._PREPARE, json.dumps(wanted)]
    marks = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    drawn = {name for name, mark in marks.items() if mark is None}
    assert len(drawn) == 2
    assert not drawn & set(tried)
    assert [mark for mark in marks.values() if mark is not None] == [34, 34, 34], "skipped"
