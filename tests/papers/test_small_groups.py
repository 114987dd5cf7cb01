"""The claim that DP-SGD costs small groups more: planted losses show that it can hold, fail and stay open."""

import numpy as np
import pytest

from dpviz.papers.claims import Outcome, list_claims
from dpviz.papers.claims.bagdasaryan import BUDGETS, Pair, pairs
from dpviz.papers.claims.context import Context

TEST = list_claims()["small-groups-lose-more"].test


@pytest.mark.parametrize(
    ("cost", "extra", "spread", "outcome"),
    [
        (0.1, 0.05, 0.01, Outcome.HOLDS),
        (0.1, -0.05, 0.01, Outcome.FAILS),
        (0.1, 0.005, 0.05, Outcome.CANNOT_TELL),
        (0.1, 0.002, 1e-4, Outcome.FAILS),  # more by a fifth of a point, significant: no size that counts
        (0.0, 0.002, 1e-4, Outcome.CANNOT_TELL),  # neither loses anything
        (0.0, 0.0, 0.0, Outcome.CANNOT_TELL),
    ],
)
def test_the_verdict_follows_planted_losses(cost: float, extra: float, spread: float, outcome: Outcome) -> None:
    def planted(context: Context, dataset: str, budgets: tuple[float, ...], seeds: int) -> list[Pair]:
        rng = np.random.default_rng(1)
        lost = cost + spread * rng.standard_normal((2, len(budgets), seeds))
        lost[0] += extra
        return [Pair(column, "few", "many", (40, 900), lost, (0.8, 0.9)) for column in ("sex", "race")]

    assert TEST(Context(swaps={"pairs": planted})).outcome is outcome


def test_losses_are_those_of_the_trained_models() -> None:
    found = pairs(Context(), "census-1000", BUDGETS[:1], 2)
    assert {pair.column for pair in found} <= {"education", "occupation", "household", "region"}
    for pair in found:
        assert pair.sizes[0] <= pair.sizes[1]
        assert pair.lost.shape == (2, 1, 2)
        assert (np.abs(pair.lost) <= 1).all()
