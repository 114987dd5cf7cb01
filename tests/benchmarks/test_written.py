"""Mistakes for compiled loops: one token of a function's code, in source that still compiles."""

from benchmarks import mutants, written

SOURCE = '''"""A module that adds 1 + 1."""
LIMIT = 4


def outer(n: int = 3) -> int:
    """Counts to n - 1."""
    @njit(cache=True)
    def loop(values, n):
        """Adds n values."""
        total = 0
        for i in range(n):
            if values[i] < 2:
                total += values[i]  # as a - b
        return min(total, n)
    if n < 0:
        raise ValueError("n < 0")
    return loop
'''


def test_every_change_is_one_token_of_code() -> None:
    found = written.changes(SOURCE)
    changed = {(one.function, SOURCE.splitlines()[one.line - 1][one.start : one.stop], one.new) for one in found}
    assert changed == {
        ("loop", "0", "1"),
        ("loop", "<", "<="),
        ("loop", "2", "3"),
        ("loop", "+=", "-="),
        ("loop", "min", "max"),
        ("outer", "<", "<="),
        ("outer", "0", "1"),
    }
    for one in found:
        differing = [(a, b) for a, b in zip(SOURCE.splitlines(), one.of(SOURCE).splitlines(), strict=True) if a != b]
        assert len(differing) == 1


def test_compiled_loops_have_mistakes_and_tests() -> None:
    modules = [module for module in mutants.critical(mutants.everything()) if mutants.is_written(module)]
    assert len(modules) >= 5
    assert sum(len(written.changes((mutants.ROOT / module).read_text("utf-8"))) for module in modules) > 300
    for room in ("models", "estimator", "releasing", "reporting", "papers/claims", "common/memory", "experiments/sweeps/store"):
        assert any(module.startswith(f"dpviz/{room}") for module in mutants.critical(mutants.everything())), room
