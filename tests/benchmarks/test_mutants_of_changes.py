"""Functions that count as changed, mutants that count as words, and the survivors at which the gate's step fails."""

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
    outcomes: str, line: str, complete: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, change = {"s": "survived", "n": "no tests", "k": "killed"}, ("-    return 1", "+    return 2")
    made = [Mutant(f"dpviz.a.x_f__mutmut_{k}", names[outcome], change) for k, outcome in enumerate(outcomes)]
    monkeypatch.setattr(mutants_of_changes, "changes", lambda since: {"dpviz/a.py": ["f"]})
    monkeypatch.setattr(mutants_of_changes, "added_lines", lambda since, modules: {line})
    monkeypatch.setattr(mutants_of_changes, "try_changes", lambda *args: (made, [] if complete else ["dpviz/b.py: all"]))
    monkeypatch.setattr(mutants_of_changes.importlib.util, "find_spec", lambda name: mutants)
    monkeypatch.setattr("sys.argv", ["mutants_of_changes", "--since", "abc"])
    assert mutants_of_changes.main() == code
    said = capsys.readouterr().out
    assert ("survived, on a changed line" in said) == (outcomes != "k" and line == "return 1")
    assert ("not reached: dpviz/b.py: all" in said) == (not complete)


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
