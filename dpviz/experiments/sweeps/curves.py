"""A sweep's table as curves: mean and band per mechanism and epsilon, the epsilon needed for a target, fitted slopes."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice
from dpviz.experiments.run.metrics import METRICS, metric_of_column

#: what a sweep measures, and whether more is better
QUANTITIES = {"accuracy": True, "train_accuracy": True, "optimality_gap": False, "objective": False} | {
    metric.column: metric.higher_is_better for metric in METRICS.values()
}
#: what a band means
BANDS = ("draws", "mean")
QUANTILES = (0.1, 0.9)
RESAMPLES = 999
#: resamples of an interval of a budget, each of which is a curve; ends of every interval
_READ_OFF, _TAILS = 199, (0.025, 0.975)


def rises(quantity: str) -> bool:
    """True where more of a quantity is better: one of `QUANTITIES`, or the column of a metric with a level of its own.

    Raises:
        InvalidInput: neither of them.

    >>> rises("accuracy"), rises("log_loss")
    (True, False)
    """
    metric = metric_of_column(quantity)
    return QUANTITIES[check_choice("quantity", quantity, QUANTITIES)] if metric is None else metric.higher_is_better


def summarise(table: pd.DataFrame, quantity: str = "accuracy", band: str = "draws") -> pd.DataFrame:
    """One row per mechanism and epsilon, in the order in which mechanisms appear, epsilon rising.

    Args:
        table: rows as from `dpviz.run_sweep`; a part of them will do.
        quantity: see `rises`.
        band: "draws" for the 10 % and 90 % quantiles over the noise draws (what one training gives), "mean" for a 95 %
            percentile bootstrap interval of the mean over the draws (how well the line is known).

    Returns:
        Columns: mechanism, epsilon, mean, low, high, spread (one standard deviation over the draws, NaN for one), draws, exact,
        status, neighbouring, claimed_epsilon, proved_epsilon. `exact` says that `mean` is the closed form over all noise draws;
        its "mean" band has no width.

    >>> from dpviz.experiments.sweeps.sweep import sweep
    >>> table = sweep("teaching", mechanisms=["majority"], epsilons=[1.0, 10.0], seeds=2)
    >>> summarise(table)["draws"].tolist()
    [2, 2]
    """
    rises(quantity)
    check_choice("band", band, BANDS)
    rows = []
    for (mechanism, epsilon), part in table.groupby(["mechanism", "epsilon"], sort=False):
        values = part.sort_values("seed")[quantity].to_numpy(float)
        closed = closed_form(part, quantity)
        exact = closed is not None
        mean = float(part[quantity].mean()) if closed is None else closed
        if band == "draws":
            low, high = (float(v) for v in np.quantile(values, QUANTILES))
        else:
            low, high = (mean, mean) if exact else bootstrap(values)
        first = part.iloc[0]
        rows.append(
            {
                "mechanism": mechanism,
                "epsilon": epsilon,
                "mean": mean,
                "low": low,
                "high": high,
                "spread": float(np.std(values, ddof=1)) if len(values) > 1 else np.nan,
                "draws": len(values),
                "exact": exact,
                **{name: first[name] for name in ("status", "neighbouring", "claimed_epsilon", "proved_epsilon")},
            }
        )
    made = pd.DataFrame(rows)
    if made.empty:
        return made
    return sort_by_mechanism(made, table["mechanism"].unique(), "epsilon")


def sort_by_mechanism(table: pd.DataFrame, mechanisms: Iterable[str], *columns: str) -> pd.DataFrame:
    """Rows by mechanism, in the order that is given, and then by rising columns."""
    rank = table["mechanism"].map({name: k for k, name in enumerate(mechanisms)})
    return table.iloc[np.lexsort([*(table[name] for name in reversed(columns)), rank])].reset_index(drop=True)


def closed_form(part: pd.DataFrame, quantity: str) -> float | None:
    """The mean over all noise draws in closed form of a table's rows; None where there is none."""
    column = f"expected_{quantity}"
    if column not in part or not part[column].notna().all():
        return None
    return float(part[column].mean())


def bootstrap(values: ArrayLike) -> tuple[float, float]:
    """95 % percentile bootstrap interval of a mean (Efron 1979), with a fixed stream so that a picture repeats.

    Args:
        values: (S,) draws; one alone gives an interval of no width.

    >>> low, high = bootstrap([1.0, 2.0, 3.0, 4.0])
    >>> low < 2.5 < high
    True
    """
    x = np.asarray(values, float)
    picks = np.random.default_rng(0).integers(len(x), size=(RESAMPLES, len(x)))
    low, high = np.quantile(x[picks].mean(axis=1), _TAILS)
    return float(low), float(high)


@dataclass(frozen=True)
class Needed:
    """The budget that a target needs, read off the computed part of a curve.

    Attributes:
        mechanism: mechanism id.
        epsilon: the smallest budget on the monotone curve that reaches the target; None where none does.
        below: whether the smallest computed budget reaches it already, so that less may do.
        best: the best mean on the curve.
        smallest, largest: the computed range of epsilon.
        status: label of the guarantee.
    """

    mechanism: str
    epsilon: float | None
    below: bool
    best: float
    smallest: float
    largest: float
    status: str


def needed_budgets(summary: pd.DataFrame, target: float, *, rising: bool = True) -> list[Needed]:
    """The budget that each mechanism needs for a mean of `target`, cheapest first, those that miss it last.

    Each curve is made monotone by least squares (isotonic regression), then read off linearly in log epsilon: where the
    means already are monotone this is the drawn line. Nothing is extrapolated.

    Args:
        summary: from `summarise`.
        target: on the scale of `mean`.
        rising: whether more is better.

    Raises:
        InvalidInput: the target is not a finite number.
    """
    if not np.isfinite(target):
        raise InvalidInput("target", f"must be finite, got {target}", "Give a number on the scale of the curve.")
    out = []
    for mechanism, part in summary.groupby("mechanism", sort=False):
        part = part[np.isfinite(part["mean"])]
        if part.empty:
            continue
        epsilons, curve = part["epsilon"].to_numpy(float), monotone(part["mean"], rising=rising)
        epsilon = _read_off(epsilons, curve, target, rising)
        out.append(
            Needed(
                str(mechanism),
                epsilon,
                epsilon is not None and epsilon == epsilons[0],
                float(curve[-1]),
                float(epsilons[0]),
                float(epsilons[-1]),
                str(part["status"].iloc[0]),
            )
        )
    return sorted(out, key=lambda one: (one.epsilon is None, one.epsilon or 0.0))


def _read_off(epsilons: Floats, curve: Floats, target: float, rising: bool) -> float | None:
    """The smallest budget at which a monotone curve reaches the target, linearly in log epsilon; None where it does not."""
    sign = 1 if rising else -1
    reached = sign * curve >= sign * target - 1e-12
    if not reached.any():
        return None
    k = int(reached.argmax())
    if k == 0:
        return float(epsilons[0])
    share = (target - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(np.exp(np.interp(share, [0, 1], np.log(epsilons[k - 1 : k + 1]))))


def needed_interval(
    table: pd.DataFrame, mechanism: str, target: float, quantity: str = "accuracy"
) -> tuple[float | None, float | None] | None:
    """A 95 % percentile bootstrap interval of the budget of `needed_budgets` over the noise draws (Efron 1979).

    A draw uses the same standard noise at every epsilon, so whole draws are picked again, each with its curve.

    Args:
        table: rows as from `dpviz.run_sweep`; draws that lack a budget are left out.

    Returns:
        The ends, None for an end at which the target is not reached; None in place of both where the means are exact over
        the noise, or fewer than two draws are there.
    """
    rising, part = rises(quantity), table[table["mechanism"] == mechanism]
    if part.empty or closed_form(part, quantity) is not None:
        return None
    draws = part.pivot_table(index="seed", columns="epsilon", values=quantity).dropna()
    if len(draws) < 2:
        return None
    epsilons, values = draws.columns.to_numpy(float), draws.to_numpy(float)
    picks = np.random.default_rng(0).integers(len(values), size=(_READ_OFF, len(values)))
    crossings = [_read_off(epsilons, monotone(values[pick].mean(axis=0), rising=rising), target, rising) for pick in picks]
    ends = np.quantile([np.inf if one is None else one for one in crossings], _TAILS, method="inverted_cdf")
    low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return low, high


def monotone(means: ArrayLike, *, rising: bool = True) -> Floats:
    """The monotone curve next to the means in least squares.

    >>> monotone([0.5, 0.7, 0.6, 0.9]).round(2).tolist()
    [0.5, 0.65, 0.65, 0.9]
    """
    return np.asarray(isotonic_regression(np.asarray(means, float), increasing=rising).x, float)


def row_at(summary: pd.DataFrame, mechanism: str, epsilon: float) -> pd.Series | None:
    """The summary's row of a mechanism at the computed budget next to `epsilon`, None where there is none."""
    part = summary[summary["mechanism"] == mechanism]
    if part.empty:
        return None
    return part.iloc[int(np.abs(np.log(part["epsilon"].to_numpy(float) / epsilon)).argmin())]


def grid(low: float, high: float, points: int) -> tuple[float, ...]:
    """`points` budgets from `low` to `high` at equal ratios, to three significant digits, ends included.

    Raises:
        InvalidInput: the ends are not above 0 and in order, or so close that budgets coincide.

    >>> grid(0.1, 10, 5)
    (0.1, 0.316, 1.0, 3.16, 10.0)
    """
    if points == 1:
        return (float(low),)
    raw = np.geomspace(low, high, points)
    made = tuple(float(f"{e:.3g}") for e in raw)
    made = (float(low), *made[1:-1], float(high))
    if any(b <= a for a, b in itertools.pairwise(made)):
        raise InvalidInput("epsilon grid", "its ends are too close for this many points", "Take fewer points or a wider range.")
    return made


def loglog_slope(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> tuple[float, float]:
    """(slope, intercept) of the least-squares line through (ln x, ln y), over the points where both are above 0.

    Returns NaN where fewer than two points are left.

    >>> slope, intercept = loglog_slope([1, 10, 100], [3, 0.3, 0.03])
    >>> round(slope, 6), round(intercept, 6)
    (-1.0, 1.098612)
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    keep = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)
    if len(np.unique(a[keep])) < 2:
        return float("nan"), float("nan")
    slope, intercept = np.polyfit(np.log(a[keep]), np.log(b[keep]), 1)
    return float(slope), float(intercept)
