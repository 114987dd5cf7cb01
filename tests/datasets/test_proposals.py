"""Round ranges that a person may confirm."""

import numpy as np
import pytest

from dpviz.datasets.table.proposals import count_outside, round_range


def test_outliers_are_clipped_and_ends_are_round() -> None:
    rng = np.random.default_rng(0)
    income = rng.lognormal(10, 0.5, 5000)
    income[:3] = 1e9
    low, high = round_range(income) or (0, 0)
    assert low == 0
    assert 70_000 <= high <= 90_000
    assert count_outside(income, low, high) < 0.02 * len(income)
    assert count_outside(income, low, high) >= 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(1, 11.0), (1.0, 10.0)),
        (np.r_[np.arange(1, 11.0), np.nan], (1.0, 10.0)),
        (np.arange(17, 91.0), (0.0, 90.0)),
        (np.linspace(-480, 520, 1000), (-500.0, 600.0)),
        (np.linspace(1990, 2021, 1000), (1990.0, 2030.0)),
        (np.linspace(-3, -2, 1000), (-3.0, -2.0)),
        (np.linspace(0, 0.0123, 1000), (0.0, 0.013)),
        (np.full(10, 3.0), None),
        (np.full(10, np.nan), None),
    ],
)
def test_ranges(values: np.ndarray, expected: tuple[float, float] | None) -> None:
    assert round_range(values) == expected
    if expected is not None:
        assert count_outside(values, *expected) <= 0.03 * len(values)
