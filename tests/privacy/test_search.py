"""The search for the noise that a budget needs: the safe side, the bracket, and what no noise can meet."""

import ast
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import noisy_sums

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.methods import Method
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import largest, smallest


@settings(max_examples=200)
@given(st.floats(-80, 80), st.floats(-80, 80), st.floats(0.05, 8.0), st.sampled_from([1e-14, 1e-9, 4e-6]))
def test_the_root_is_met_from_above(root: float, start: float, power: float, tolerance: float) -> None:
    def excess(x: float) -> float:
        return power * (root - math.log(x))

    found = smallest(excess, start, tolerance=tolerance)
    assert excess(found) <= 1e-12
    assert abs(math.log(found) - root) <= 2e-12 / power + 3 * tolerance + 1e-14 * (1 + abs(root))


@settings(max_examples=100)
@given(st.floats(-80, 80), st.floats(-80, 80), st.booleans())
def test_the_largest_is_met_from_below(root: float, start: float, even: bool) -> None:
    def excess(x: float) -> float:
        return math.log(x) - root

    found = largest(excess, start, even=even, margin=1e-13)
    assert excess(found) <= 1e-12
    assert abs(math.log(found) - root) <= 2e-12


@pytest.mark.parametrize("jump", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("start", [1e-6, 1.0, 40.0])
def test_jumps_and_infinite_values_are_met_from_above(jump: float, start: float) -> None:
    def excess(x: float) -> float:
        return math.inf if x < jump else -math.inf

    found = smallest(excess, math.log(start))
    assert jump <= found <= jump * (1 + 1e-12)


def test_no_point_is_asked_for_twice() -> None:
    """What is asked can be an accountant."""
    for start in (-3.0, 0.0, 2.0):
        asked: list[float] = []

        def excess(x: float, asked: list[float] = asked) -> float:
            asked.append(x)
            return 1.7 - x

        assert smallest(excess, start) == pytest.approx(1.7, rel=1e-13)
        assert len(set(asked)) == len(asked) > 3


@pytest.mark.parametrize("budget", [Budget(0.01, 1e-5), Budget(1.0, 1e-6), Budget(8.0, 1e-5), Budget(2000.0, 1e-5)])
@pytest.mark.parametrize("method", [Method(), Method(relation=Neighbouring.ADD_REMOVE)])
def test_the_search_for_noise_begins_near_its_end(method: Method, budget: Budget) -> None:
    event = noisy_sums(1.0, 0.05, 400)
    start, end = account._guess(event, method, budget), math.log(account.noise_for(event, method, budget))
    assert abs(start - end) < (0.1 if budget.epsilon < 100 else 2.0)  # far beyond it the central limit is no guide


def test_noise_that_nothing_can_meet_is_refused_and_no_noise_needed_is_the_lowest() -> None:
    with pytest.raises(InvalidInput, match="epsilon: no noise is large enough"):
        smallest(lambda x: 1.0, math.log(1.0), limits=(1.0, 1e6))
    with pytest.raises(InvalidInput, match="delta: too small"):
        smallest(lambda x: 1.0 + 1 / x, math.log(1e9), limits=(1.0, 1e6), refusal=InvalidInput("delta", "too small", "Raise it."))
    assert smallest(lambda x: -1.0, math.log(1.0), limits=(0.25, 1.0)) == 0.25
    assert smallest(lambda x: 2.0 - x, math.log(100.0), limits=(1e-9, 4.0)) == pytest.approx(2.0, rel=1e-13)


def test_no_other_root_search_looks_for_noise() -> None:
    package = Path(dpviz.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for room in ("privacy", "mechanisms", "auditing", "experiments")
        for path in (package / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "scipy.optimize"
        and {"brentq", "bisect", "root_scalar", "toms748", "brenth", "ridder"} & {alias.name for alias in node.names}
    }
    assert users == {"privacy/search.py"}
