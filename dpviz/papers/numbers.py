"""Noise draws out of a sweep's table, and differences of means with what noise and splits alone would explain.

A table has one row per dataset, model, mechanism, epsilon and seed, as `dpviz.sweep` gives it. Where its column split has several
values, the mean over the draws of a split is one observation, and methods are paired over the splits. An interval is then the
wider one of that between splits and that of the noise within them, which few splits can miss by luck. Splits are drawn from the
rows of one dataset, and nothing is said about another.
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


@np.errstate(invalid="ignore")  # variances of trainings that ran away
def difference(one: pd.Series, other: pd.Series) -> Interval:
    """Mean of `one` minus mean of `other`: paired over splits, else of independent draws (Welch 1947).

    A constant needs no second draw.
    """
    if one.index.nlevels > 1:
        splits = [values.groupby(level="split") for values in (one, other)]
        within = [values - of.transform("mean") for values, of in zip((one, other), splits, strict=True)]
        return _wider(paired_mean(splits[0].mean() - splits[1].mean()), difference(*(side.droplevel("split") for side in within)))
    means = float(one.mean()), float(other.mean())
    mean = math.nan if math.isinf(means[0]) and math.isinf(means[1]) else means[0] - means[1]
    if min(len(one), len(other)) < 2:
        return Interval(mean, math.inf)
    a, b = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
    if not a + b > 0:  # all alike, or one of the two ran away
        return Interval(mean, 0.0)
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    return Interval(mean, quantile(freedom) * float(a + b) ** 0.5)


def _wider(between: Interval, noise: Interval) -> Interval:
    return Interval(between.mean, max(between.half, noise.half))


def paired_mean(change: Floats | pd.Series) -> Interval:
    """Mean of (S,) changes that share their noise draws, as of one mechanism at two budgets, or their split."""
    if isinstance(change, pd.Series) and change.index.nlevels > 1:
        splits = change.groupby(level="split")
        return _wider(paired_mean(splits.mean()), paired_mean((change - splits.transform("mean")).to_numpy()))
    mean = float(change.mean())
    if len(change) < 2:
        return Interval(mean, math.inf)
    spread = float(change.std(ddof=1)) if math.isfinite(mean) else 0.0
    return Interval(mean, quantile(len(change) - 1) * spread / math.sqrt(len(change)))


@np.errstate(invalid="ignore")
def log_ratio(one: pd.DataFrame, other: pd.DataFrame) -> Interval:
    """ln(mean of `one` / mean of `other`) for (E, S) positive gaps, on average over E budgets; paired over splits.

    The budgets share their noise draws, so the half widths, by the delta method, are averaged as if they were fully correlated.
    """
    both = [gaps.reset_index(drop=True) for gaps in (one, other)]
    if one.columns.nlevels > 1:
        logs = [np.log(gaps.T.groupby(level="split").mean().clip(lower=LEAST)) for gaps in both]
        return paired_mean((logs[0] - logs[1]).fillna(0.0).mean(axis=1))  # where both ran away, neither is better
    means, fewest = [gaps.mean(axis=1).clip(lower=LEAST) for gaps in both], min(gaps.shape[1] for gaps in both)
    variance = sum(gaps.var(axis=1, ddof=1) / gaps.shape[1] / mean**2 for gaps, mean in zip(both, means, strict=True))
    ratio = (np.log(means[0]) - np.log(means[1])).fillna(0.0)
    half = quantile(fewest - 1) * np.sqrt(variance).fillna(0.0) if fewest > 1 else math.inf
    return Interval(float(ratio.mean()), float(np.mean(half)))


def places(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(dataset and model, rows) for each place that a table speaks about."""
    if len(table):
        several = table["model"].nunique() > 1
        for (dataset, model), part in table.groupby(["dataset", "model"], sort=False):
            yield f"{dataset}, {model}" if several else str(dataset), part


def draws(part: pd.DataFrame, mechanism: str, quantity: str) -> pd.DataFrame:
    """(E, S) values of a mechanism at one place: epsilons as the index, rising; columns are seeds, or splits and seeds.

    Accuracies are exact over all noise draws where a closed form is known. "majority" needs no rows of its own.

    Raises:
        Missing: there are none, or some are missing.
    """
    own = part[part["mechanism"] == mechanism]
    units = ["split", "seed"] if "split" in part and part["split"].nunique() > 1 else ["seed"]
    if mechanism == "majority" and own.empty and quantity == "accuracy" and len(part):
        own = part.drop_duplicates(["epsilon", *units]).assign(accuracy=part["majority_accuracy"], expected_accuracy=np.nan)
    values = own["expected_accuracy"].fillna(own["accuracy"]) if quantity == "accuracy" and len(own) else own[quantity]
    wide = values.groupby([own[name] for name in ("epsilon", *units)]).mean().unstack(units)
    if wide.empty or values.isna().any() or wide.isna().any(axis=None):
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
