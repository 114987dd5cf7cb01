"""The losses of a table on its way to the rows that are trained on.

Where rows are divided by their own norms, unit rows keep directions only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SCALING = "lengths"
#: share of the variance below which nothing is said: of one-hot columns and many numbers less is lost
WORTH_SAYING = 0.05
#: share above which a model is left with little: one number that has become a constant has lost all of it
MOST = 0.5
_ROWS = 2000  # that are looked at; the share is a mean over rows


@dataclass(frozen=True)
class Lost:
    """One thing that was lost.

    Attributes:
        kind: "rows", "column", "values" or "lengths" (of rows, by scaling).
        what: the column; empty where rows were lost through several columns.
        count: rows or values that were lost; for a column, its values.
        sentence: all of it in words.
        share: for "lengths", the share of the features' variance that is lost.
    """

    kind: str
    what: str
    count: int
    sentence: str
    share: float = 0.0


def lost_share(x: NDArray[np.float64], factors: NDArray[np.float64]) -> float:
    """Share of the features' variance that no linear function of the scaled rows gives back, in [0, 1].

    1 - R^2 of the least-squares regression of the rows before scaling on the rows after it and a constant, adjusted for the
    number of features; 0 where one factor was for all rows. A linear model sees no more than such functions.

    Args:
        x: (n, d) rows after scaling, without the constant feature.
        factors: (n,) what each row was multiplied with.
    """
    every = max(1, len(x) // _ROWS)
    after, factors = x[::every], factors[::every]
    before = after / factors[:, None]
    total = float(np.square(before - before.mean(axis=0)).sum())
    with_constant = np.hstack([after, np.ones((len(after), 1))])
    fitted, _, rank, _ = np.linalg.lstsq(with_constant, before, rcond=1e-9)
    if total == 0 or rank >= len(after):
        return 0.0
    left = float(np.square(before - with_constant @ fitted).sum()) / total
    return round(min(1.0, left * (len(after) - 1) / (len(after) - int(rank))), 6)


def scaling_loss(x: NDArray[np.float64], factors: NDArray[np.float64], scaling: str) -> tuple[Lost, ...]:
    """The entry for what scaling took from the rows, none where it is little; arguments as for `lost_share`."""
    if np.ptp(factors) <= 1e-12 * factors.max():
        return ()
    share = lost_share(x, factors)
    if share < WORTH_SAYING:
        return ()
    how = "each row is divided by its own norm" if scaling == "unit" else "longer rows are clipped to 1"
    constant = scaling == "unit" and x.shape[1] == 1
    what: str = "the only feature becomes a constant" if constant else f"a linear model no longer sees {100 * share:.0f} %"
    of: str = "" if constant else " of the variance of the features"
    sentence: str = f"Norms of rows: {how}, so {what}{of}. Row scaling “bound” keeps all of it and reads nothing from the rows."
    return (Lost(SCALING, "", len(x), sentence, share=share),)


def caution(lost: tuple[Lost, ...]) -> tuple[str, ...]:
    """The sentence where most is lost."""
    return tuple(one.sentence for one in lost if one.kind == SCALING and one.share >= MOST)
