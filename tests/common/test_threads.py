"""Groups of seeds that train side by side."""

import pytest

from dpviz.common.threads import seed_groups


@pytest.mark.parametrize(
    ("seeds", "each", "least", "lengths"),
    [
        (10, 1, 1, [2, 3, 2, 3]),
        (3, 1, 1, [1, 1, 1]),
        (10, 1, 50, [10]),
        (10, 9, 50, [10]),
        (10, 10, 50, [5, 5]),
        (10, 15, 50, [3, 3, 4]),
        (2, 500, 50, [1, 1]),
        (100, 100, 50, [25, 25, 25, 25]),
    ],
)
def test_groups_of_seeds_are_long_enough_for_a_thread(seeds: int, each: int, least: int, lengths: list[int]) -> None:
    groups = seed_groups(seeds, each, least=least)
    assert [group.stop - group.start for group in groups] == lengths
    assert [k for group in groups for k in range(seeds)[group]] == list(range(seeds))
