"""The search for the noise that a budget needs: the safe side, the bracket, and what no noise can meet."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.privacy.search import largest_argument, smallest


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

    found = largest_argument(excess, start, even=even, margin=1e-13)
    assert excess(found) <= 1e-12
    assert abs(math.log(found) - root) <= 2e-12


@pytest.mark.parametrize("jump", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("start", [1e-6, 1.0, 40.0])
def test_jumps_and_infinite_values_are_met_from_above(jump: float, start: float) -> None:
    def excess(x: float) -> float:
        return math.inf if x < jump else -math.inf

    found = smallest(excess, math.log(start))
    assert jump <= found <= jump * (1 + 1e-12)


def test_where_no_noise_is_needed_it_is_the_lowest() -> None:
    assert smallest(lambda x: -1.0, math.log(1.0), limits=(0.25, 1.0)) == 0.25
    assert smallest(lambda x: 2.0 - x, math.log(100.0), limits=(1e-9, 4.0)) == pytest.approx(2.0, rel=1e-13)
