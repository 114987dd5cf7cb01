"""Mutants of a module, those of changed lines, what a sample says, and its exit code."""

from dataclasses import replace

import pytest

from benchmarks import mutants, planted

SOURCE = '''"""A module that adds 1 + 1."""
LIMIT = 4


class Box:
    @cached(size=3)
    def outer(self, n: int | None = 3, *, sure: bool = True) -> int | None:
        """Counts to n - 1."""
        def loop(values, n):
            total: float | None = 0
            for i in range(n):
                if values[i] < 2 and not n:
                    total += values[i]  # as a - b
            return min(total, n)
        if n is None:
            raise ValueError("n < 0" + str(1))
        kind = "sum" if sure else f"{n + 1}"
        return loop(
            positive("n", n),
            zip(*kind, strict=True),
        )
'''
EXPECTED = {
    *("def outer(self, n: int | None = 4, *, sure: bool = True) -> int | None:",),
    *("def outer(self, n: int | None = 3, *, sure: bool = False) -> int | None:",),
    *("total: float | None = 1", "total: float | None = None", "for i in range(None):"),
    *("if values[i] <= 2 and not n:", "if values[i] < 3 and not n:", "if values[i] < 2 or not n:", "if values[i] < 2 and n:"),
    *("total -= values[i]", "total = values[i]", "for i not in range(n):"),
    *("return max(total, n)", "return min(None, n)", "return min(total, None)", "return min(n)", "return min(total, )"),
    *("if n is not None:", 'kind = "XXsumXX" if sure else f"{n + 1}"', "kind = None"),
    *('kind = "sum" if (sure) and False else f"{n + 1}"', 'kind = "sum" if (sure) or True else f"{n + 1}"'),
    *("None,", "zip(strict=True),", 'without positive("n", n),', "without zip(*kind, strict=True),"),
    *('positive("n", None),', 'positive("n", ),', "positive(n),"),
}


def test_every_mutant_changes_code_of_a_function() -> None:
    found = mutants.mutants_of(SOURCE)
    assert {mutant.place[1] for mutant in found} == EXPECTED
    assert {mutant.function for mutant in found} == {"dpviz.module.Box.outer"}
    lines = SOURCE.splitlines()
    for mutant in found:
        removed = [line[1:] for line in mutant.change if line[0] == "-"]
        assert lines[mutant.lines[0] - 1 :][: len(removed)] == removed


def test_only_those_that_compile_are_tried() -> None:
    module = "dpviz/common/random.py"
    found = mutants.mutants_of((mutants.ROOT / module).read_text("utf-8"), module)
    compiled = sum(mutant.compiles() for mutant in found)
    assert 0.9 * len(found) < compiled < len(found)


def test_characters_of_several_bytes_do_not_move_a_mutant() -> None:
    (found,) = [m for m in mutants.mutants_of('def f(x):\n    return g("ε δ", x)\n') if m.new == "None"]
    assert found.place[1] == 'return g("ε δ", None)'


def test_lines_of_a_diff() -> None:
    assert planted.new_lines("@@ -3 +4 @@ def f\n+a\n@@ -9,2 +10,3 @@\n@@ -20,2 +22,0 @@\n") == {4, 10, 11, 12, 22, 23}
    assert planted.new_lines("") == set()


def test_compiled_loops_have_mutants_and_tests() -> None:
    modules = mutants.critical(mutants.everything())
    for room in ("models/kernels", "models", "estimator", "releasing", "reporting", "papers/claims", "common/memory"):
        assert any(module.startswith(f"dpviz/{room}") for module in modules), room
    loops = [module for module in modules if module.startswith("dpviz/models/kernels")]
    assert len(loops) >= 5
    assert sum(len(mutants.mutants_of((mutants.ROOT / module).read_text("utf-8"))) for module in loops) > 300


def test_the_interval_of_a_draw() -> None:
    assert planted.interval(76, 4) == pytest.approx((0.8769, 0.9862), abs=1e-4)
    assert planted.interval(10, 0) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert planted.interval(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ("s", 1),
        ("s?", 0),  # one of many: nothing can be said of the share
        ("k", 0),
        ("?", 0),
        ("kkkkkkkkkkkkkks?", 0),
        ("kkkkkkkkkkkkkks", 1),
        ("kkkkkkkkkkkssss?", 1),
        ("", 0),
    ],
)
def test_too_many_survivors_fail(
    outcomes: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"s": "survived", "k": "noticed", "?": ""}
    made = [
        mutants.Mutant("dpviz/a.py", "a.f", k, k + 1, outcome, range(1, 2), ("-1", "+2")) for k, outcome in enumerate(outcomes)
    ]
    monkeypatch.setattr(planted, "changed", lambda since, modules: made)
    monkeypatch.setattr(mutants.Mutant, "compiles", lambda mutant: True)
    monkeypatch.setattr(mutants.Mutant, "tried", lambda mutant, seconds: replace(mutant, outcome=names[mutant.new]))
    monkeypatch.setattr("sys.argv", ["planted", "--since", "abc"])
    assert planted.main() == code
    output = capsys.readouterr().out
    assert output.count("survived  a.f") == outcomes.count("s")
    assert output.count("not tried a.f") == outcomes.count("?")


def test_every_test_that_should_notice_a_mistake_exists() -> None:
    assert all((mutants.ROOT / test).exists() for tests in mutants.TESTS.values() for test in tests)
