"""Noise draws out of a sweep's table, and differences of means with what noise alone would explain.

A table has one row per dataset, model, mechanism, epsilon and seed, as `dpviz.sweep` gives it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpviz.common.arrays import Floats

LEVEL = 0.99  # of every interval of a difference of means
LEAST = 1e-12  # gaps below this are rounding


class Missing(Exception):
    """A table has no complete numbers of a mechanism."""


@dataclass(frozen=True)
class Interval:
    """A difference of means: `mean` plus or minus `half` at `LEVEL`; half is infinite where one draw says nothing."""

    mean: float
    half: float

    def at_least(self, limit: float) -> bool | None:
        """True where the difference is at least `limit`; None where the interval holds values on both sides."""
        if math.isnan(self.mean):
            return None
        return True if self.mean - self.half >= limit else False if self.mean + self.half < limit else None

    def at_most(self, limit: float) -> bool | None:
        """True where the difference is at most `limit`; None likewise."""
        return Interval(-self.mean, self.half).at_least(-limit)

    def leads(self, margin: float) -> bool | None:
        """True where a lead is distinguished from 0 and worth at least `margin`; False where no more than less is left."""
        if self.mean >= margin and self.mean - self.half > 0:
            return True
        return False if self.mean + self.half < margin or (margin == 0 and self.mean + self.half <= 0) else None


def quantile(freedom: float) -> float:
    """Student's quantile for an interval at `LEVEL`."""
    return float(stdtrit(freedom, 0.5 + LEVEL / 2))


def difference(one: Floats, other: Floats) -> Interval:
    """Mean of `one` minus mean of `other`, independent draws (Welch 1947); a constant needs no second draw."""
    means = float(one.mean()), float(other.mean())
    mean = math.nan if math.isinf(means[0]) and math.isinf(means[1]) else means[0] - means[1]
    if min(len(one), len(other)) < 2:
        return Interval(mean, math.inf)
    if not math.isfinite(mean):  # one of the two ran away, or both
        return Interval(mean, 0.0)
    a, b = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
    if a + b == 0:
        return Interval(mean, 0.0)
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    return Interval(mean, quantile(freedom) * float(a + b) ** 0.5)


def paired_mean(change: Floats) -> Interval:
    """Mean of (S,) changes that share their noise draws, for one mechanism at two budgets."""
    if len(change) < 2:
        return Interval(float(change.mean()), math.inf)
    spread = float(change.std(ddof=1))
    return Interval(float(change.mean()), quantile(len(change) - 1) * spread / math.sqrt(len(change)) if spread else 0.0)


def log_mean(values: Floats) -> tuple[float, float]:
    """(ln of the mean of gaps, its variance by the delta method); infinite where training ran away."""
    mean = max(float(values.mean()), LEAST)
    if not math.isfinite(mean):
        return math.inf, 0.0
    if len(values) < 2:
        return math.log(mean), math.inf
    return math.log(mean), float(values.var(ddof=1)) / len(values) / mean**2


def log_ratio(one: Floats, other: Floats) -> Interval:
    """ln(mean of `one` / mean of `other`) for (E, S) positive gaps, on average over E budgets.

    The budgets share their noise draws, so the half widths are averaged as if they were fully correlated.
    """
    means, halves = [], []
    for a, b in zip(one, other, strict=True):
        (x, u), (y, v) = log_mean(a), log_mean(b)
        means.append(0.0 if x == y else x - y)
        halves.append(quantile(len(a) - 1) * math.sqrt(u + v) if 0 < u + v < math.inf else u + v)
    return Interval(float(np.mean(means)), float(np.mean(halves)))


def places(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(dataset and model, rows) for each place that a table speaks about."""
    if len(table):
        several = table["model"].nunique() > 1
        for (dataset, model), part in table.groupby(["dataset", "model"], sort=False):
            yield f"{dataset}, {model}" if several else str(dataset), part


def draws(part: pd.DataFrame, mechanism: str, quantity: str) -> pd.DataFrame:
    """(E, S) values of a mechanism at one place: epsilons as the index, rising, and seeds as columns.

    Accuracies are exact over all noise draws where a closed form is known at a budget. "majority" needs no rows of its own.

    Raises:
        Missing: there are none, or some are missing.
    """
    own = part[part["mechanism"] == mechanism]
    if mechanism == "majority" and own.empty and quantity == "accuracy" and len(part):
        own = part.drop_duplicates(["epsilon", "seed"]).assign(accuracy=part["majority_accuracy"], expected_accuracy=np.nan)
    wide = own.pivot(index="epsilon", columns="seed", values=quantity).sort_index()
    if quantity == "accuracy" and len(own):
        exact = own.pivot(index="epsilon", columns="seed", values="expected_accuracy").sort_index()
        computed = exact.notna().all(axis=1)
        wide = wide.where(~computed, exact)
    if wide.empty or wide.isna().any(axis=None):
        raise Missing(f"there are no complete numbers of {mechanism}")
    return wide


def complete_draws(part: pd.DataFrame, mechanisms: tuple[str, ...] | list[str], quantity: str) -> dict[str, pd.DataFrame]:
    """`draws` of those mechanisms that have complete numbers."""
    values = {}
    for mechanism in mechanisms:
        try:
            values[mechanism] = draws(part, mechanism, quantity)
        except Missing:
            continue
    return values
