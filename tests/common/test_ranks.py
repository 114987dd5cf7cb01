"""Scores in order: ties, zeros of both signs, scores that are nearly equal, far apart, or unevenly spread."""

import numpy as np
import pytest

from dpviz.common import ranks


def rows(n: int) -> np.ndarray:
    """(k, n) scores of many kinds."""
    rng = np.random.default_rng(n)
    normal, few = rng.standard_normal(n), rng.integers(-2, 3, n).astype(float)
    return np.stack(
        [
            normal,
            np.zeros(n),
            np.where(rng.random(n) < 0.5, 0.0, -0.0),
            few,
            few + 2.0**-50 * rng.integers(-3, 4, n),
            np.where(np.arange(n) == n // 2, 1e300, normal),  # all others in one place
            np.sign(normal) * 1.7e308 * rng.random(n),  # their distance has no finite number
            5e-324 * rng.integers(0, 5, n),  # one over their distance has none
            np.exp(50 * normal),
            -np.sort(-normal),
        ]
    )


@pytest.mark.parametrize("n", [1, 2, 3, 500, 9769])
def test_keys_are_in_the_order_of_scores_and_then_of_labels(n: int) -> None:
    scores = rows(n)
    positive = np.random.default_rng(1).random(n) < 0.3
    before = scores.copy()
    found, called, tied = ranks.ranked(scores, positive)
    np.testing.assert_array_equal(scores, before)
    assert called.shape == (len(scores), positive.sum())
    for keys, places in zip(found, called, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(keys & 1) + 1, places)
    assert tied == (n > 1)
    for row, keys in zip(scores, found, strict=True):
        rounded = np.array((row + 0.0).view(np.uint64) & ~np.uint64(1)).view(float)  # the label takes the last bit
        order = np.lexsort((positive, -rounded))
        np.testing.assert_array_equal(keys & 1, positive[order])
        assert (keys[:-1] <= keys[1:]).all()
        same = np.diff(rounded[order]) == 0
        np.testing.assert_array_equal(keys[1:] >> 1 == keys[:-1] >> 1, same)
    np.testing.assert_array_equal(found, np.sort(ranks.keys_of(scores, positive), axis=1))


@pytest.mark.parametrize("labels", [(False, False), (False, True), (True, False), (True, True)])
def test_equal_scores_are_seen(labels: tuple[bool, bool]) -> None:
    positive = np.array([*labels, True])
    assert ranks.ranked(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 0.0]]), positive).tied
    assert not ranks.ranked(np.array([[1.0, 2.0, 3.0], [0.5, 1.0, -0.0]]), positive).tied
