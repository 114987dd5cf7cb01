"""Curves that fall as epsilon grows: whether the noise draws show it, and what it comes from.

Two things look like it. All budgets share their noise draws, so that a few lucky draws lift several neighbouring budgets at once.
And training minimises the loss, which is not the metric: with little noise a method approaches its own training without noise,
which need not be the best in ranks, or at one threshold. A rare class is called positive by no row there, and by some with noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpviz.experiments.sweeps.curves import closed_form, rises

SHARE, LOSS = 0.01, 0.02  # a smaller fall is not spoken of: of shares, and of losses relative to the best
_LEVEL = 0.05  # chance that luck alone is called a fall, for one method


@dataclass(frozen=True)
class NonMonotone:
    """A method whose mean is best below the largest budget.

    Attributes:
        mechanism: mechanism id.
        epsilon, best: the budget with the best mean, and that mean.
        largest, last: the largest budget and the mean there.
        certain: whether the draws show it: the paired difference, corrected for looking at all budgets, leaves 0 out.
    """

    mechanism: str
    epsilon: float
    best: float
    largest: float
    last: float
    certain: bool


def non_monotone(table: pd.DataFrame, quantity: str, mechanisms: Sequence[str] = ()) -> list[NonMonotone]:
    """The methods of a sweep whose mean gets worse towards the largest budget.

    Args:
        table: of `dpviz.sweep`; draws that lack one of two budgets are left out of their comparison.
        quantity: see `curves.rises`.
        mechanisms: those that are looked at; all by default.
    """
    sign, drops = (1 if rises(quantity) else -1), []
    for name, part in table.groupby("mechanism", sort=False):
        if mechanisms and name not in mechanisms:
            continue
        draws = part.pivot_table(index="seed", columns="epsilon", values=quantity, dropna=False)
        closed = {e: closed_form(at, quantity) for e, at in part.groupby("epsilon")}
        means = draws.mean() if None in closed.values() else pd.Series(closed).astype(float)
        if len(means) < 2 or means.isna().any():
            continue
        best, largest = float((sign * means).idxmax()), float(max(means.index))
        lost = sign * float(means[best] - means[largest])
        if lost < (SHARE if sign > 0 else LOSS * abs(means[best])):
            continue
        certain = None not in closed.values()
        if not certain:
            difference = sign * (draws[best] - draws[largest]).dropna().to_numpy(float)
            s = len(difference)
            bound = stdtrit(s - 1, 1 - _LEVEL / (len(means) - 1)) if s > 1 else np.inf
            certain = bool(s > 1 and difference.mean() > bound * difference.std(ddof=1) / s**0.5)
        drops.append(NonMonotone(str(name), best, float(means[best]), largest, float(means[largest]), certain))
    return drops
