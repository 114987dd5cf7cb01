"""Groups of rows (subgroups, fairness): size, accuracy, recall, false-positive rate and mean score of each over epsilon.

A group is a value of a column of the table, also of one that is not trained on, or an interval of a number. Everything here
is read from private rows and is not covered by epsilon.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice
from dpviz.datasets import Dataset
from dpviz.experiments.run.measure import chances_right
from dpviz.experiments.run.run import Result
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.studies.releases import Releases
from dpviz.experiments.sweeps.curves import QUANTILES

SMALL = 30  # test rows below which a group is marked and left out of the gap
MOST = 12  # groups of a column of text; the rarest beyond are put together
OTHERS, MISSING = "all others", "missing"

#: what is measured of a group, and its label
MEASURES: dict[str, str] = {
    "accuracy": "Accuracy",
    "recall": "Recall",
    "false_positive_rate": "False-positive rate",
    "mean_score": "Mean score",
}


@dataclass(frozen=True)
class Grouping:
    """A column that puts rows into groups, with cuts where it is numeric.

    Attributes:
        column: a column of `columns(dataset)`.
        cuts: rising points at which a number is cut; a value v is in [a, b) where a <= v < b. Without any, a number is cut
            at its quartiles, or at its median where quarters of the test rows would be fewer than `SMALL`, unless it takes at
            most `MOST` values.
    """

    column: str
    cuts: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups.

    Attributes:
        grouping: how they were put there.
        names: of the groups, in order.
        index: (n,) each row's group.
        cuts: that are in force; none where groups are values.
    """

    grouping: Grouping
    names: tuple[str, ...]
    index: NDArray[np.intp]
    cuts: tuple[float, ...] = ()


def columns(dataset: Dataset) -> dict[str, bool]:
    """Columns that rows can be grouped by, and whether each is a number; the label is not among them."""
    table = _table(dataset)
    return {str(name): is_numeric_dtype(table[name]) for name in table}


def suggest_column(dataset: Dataset, tested: int | None = None) -> str:
    """The first column, text before numbers, that makes at least two groups of about `SMALL` test rows; "" without columns.

    Args:
        tested: number of test rows; None for those of the 80/20 split.
    """
    is_number, tested = columns(dataset), _tested(dataset, tested)
    for name in sorted(is_number, key=lambda name: is_number[name]):
        sizes = np.bincount(group(dataset, Grouping(name), tested).index)
        if np.sum(sizes * tested >= SMALL * dataset.n) >= 2:
            return name
    return next(iter(is_number), "")


def _tested(dataset: Dataset, tested: int | None) -> int:
    return dataset.n - dataset.train_size() if tested is None else tested


def _quantiles(numbers: np.ndarray, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Quantiles without repeats, rounded to a tenth of the middle half's width or finer, so that they read well."""
    exact = tuple(float(q) for q in dict.fromkeys(np.nanquantile(numbers, shares)))
    width = float(np.subtract(*np.nanquantile(numbers, (0.75, 0.25))))
    if width <= 0:
        return exact
    rounded = tuple(dict.fromkeys(round(cut, 1 - math.floor(math.log10(width))) + 0.0 for cut in exact))
    return rounded if len(rounded) == len(exact) else exact


def _table(dataset: Dataset) -> pd.DataFrame:
    used = dataset.frame.iloc[:, :-1]
    return used if dataset.beside is None else pd.concat([used, dataset.beside.set_axis(used.index)], axis=1)


def group(dataset: Dataset, grouping: Grouping, tested: int | None = None) -> Groups:
    """Puts all rows into groups.

    Args:
        tested: number of test rows; None for those of the 80/20 split. Few of them make fewer groups of a number.

    Raises:
        InvalidInput: an unknown column, cuts of a column of text, or cuts that are not finite and rising.
    """
    is_number = columns(dataset)
    values = _table(dataset)[check_choice("group", grouping.column, is_number)]
    cuts = grouping.cuts
    if cuts and not is_number[grouping.column]:
        raise InvalidInput("cuts", f"{grouping.column} holds text and cannot be cut", "Leave the cuts empty.")
    if not np.isfinite(cuts).all() or any(b <= a for a, b in itertools.pairwise(cuts)):
        raise InvalidInput("cuts", f"must be finite and rising, got {list(cuts)}", "For example: 30, 45, 60.")
    if not is_number[grouping.column] or (not cuts and values.nunique() <= MOST):
        return _by_value(values, grouping)
    if not cuts:
        shares = (0.25, 0.5, 0.75) if _tested(dataset, tested) >= 4 * SMALL else (0.5,)
        cuts = _quantiles(values.to_numpy(float), shares)
    numbers = values.to_numpy(float)
    index = np.searchsorted(np.asarray(cuts), numbers, side="right")
    ends = [f"{cut:g}" for cut in cuts]
    names = [f"below {ends[0]}", *(f"{a} to {b}" for a, b in itertools.pairwise(ends)), f"{ends[-1]} or more"]
    if np.isnan(numbers).any():
        index = np.where(np.isnan(numbers), len(names), index)
        names.append(MISSING)
    return _occupied(grouping, names, index, cuts)


def _by_value(values: pd.Series, grouping: Grouping) -> Groups:
    number = is_numeric_dtype(values)
    text = values.map(lambda v: MISSING if pd.isna(v) else f"{v:g}" if number else str(v)).astype(str)
    counts = text.value_counts()
    order = [f"{v:g}" for v in sorted(values.dropna().unique())] if number else list(counts.index)
    order += [MISSING] if number and values.isna().any() else []
    if len(order) > MOST:
        order = [*order[: MOST - 1], OTHERS]
        text = text.where(text.isin(order), OTHERS)
    place = {name: k for k, name in enumerate(order)}
    return _occupied(grouping, order, text.map(place).to_numpy(np.intp), ())


def _occupied(grouping: Grouping, names: Sequence[str], index: NDArray[np.intp], cuts: tuple[float, ...]) -> Groups:
    """Without the groups that no row is in."""
    there, compact = np.unique(index, return_inverse=True)
    return Groups(grouping, tuple(names[k] for k in there), compact.astype(np.intp), cuts)


def measure_groups(scores: Floats, y: Floats, index: NDArray[np.intp], count: int) -> dict[str, Floats]:
    """Each of `MEASURES` but "mean_score"'s words: (R, G) values of R replicas on n rows; NaN where a group has no such row.

    Args:
        scores: (R, n); a row is called positive where its score is >= 0.
        y: (n,) labels in {-1, +1}.
        index: (n,) groups.
        count: number of groups G.
    """
    member = np.zeros((len(y), count))
    member[np.arange(len(y)), index] = 1.0
    positive, called = (y > 0).astype(float), (scores >= 0).astype(float)
    with np.errstate(invalid="ignore"):
        return {
            "accuracy": (called == positive) @ member / member.sum(axis=0),
            "recall": (called * positive) @ member / (positive @ member),
            "false_positive_rate": (called * (1 - positive)) @ member / ((1 - positive) @ member),
            "mean_score": scores @ member / member.sum(axis=0),
        }


@dataclass(frozen=True, eq=False)
class GroupReport:
    """Measures of each group over epsilon.

    Attributes:
        groups: the groups.
        sizes: (G rows, index group) columns train, test, positive (share of the test rows), small.
        draws: tidy: epsilon, seed, group, `MEASURES`, and expected_accuracy (closed form over all noise draws, else NaN).
        baselines: tidy: model ("non-private", "majority"), group, `MEASURES`; NaN where there is no such value.
        epsilons: budgets, rising.
    """

    groups: Groups
    sizes: pd.DataFrame
    draws: pd.DataFrame
    baselines: pd.DataFrame
    epsilons: tuple[float, ...] = field(default=())

    @property
    def compared(self) -> list[str]:
        """Groups that are large enough to be compared: at least `SMALL` test rows."""
        return [name for name in self.groups.names if not self.sizes.at[name, "small"]]

    def curves(self, measure: str = "accuracy") -> pd.DataFrame:
        """One row per group and budget: group, epsilon, mean, low, high (10 % and 90 % of the draws), draws, exact."""
        rows = []
        for (name, epsilon), part in self.draws.groupby(["group", "epsilon"], sort=False):
            values = part[check_choice("measure", measure, MEASURES)].to_numpy(float)
            exact = measure == "accuracy" and bool(part["expected_accuracy"].notna().all())
            mean = float(part["expected_accuracy"].mean()) if exact else float(values.mean())
            rows.append((name, epsilon, mean, *_band(values), len(values), exact))
        return pd.DataFrame(rows, columns=["group", "epsilon", "mean", "low", "high", "draws", "exact"])

    def gaps(self, measure: str = "accuracy") -> pd.DataFrame:
        """One row per budget: epsilon, mean, low, high, draws of the largest minus the smallest value of a group.

        Within each noise draw, over the groups in `compared`; no rows where fewer than two are, or have a value.
        """
        wide = self.draws.pivot(index=["epsilon", "seed"], columns="group", values=check_choice("measure", measure, MEASURES))
        wide = wide[self.compared].dropna(axis=1)
        if wide.shape[1] < 2:
            return pd.DataFrame(columns=["epsilon", "mean", "low", "high", "draws"])
        gap = (wide.max(axis=1) - wide.min(axis=1)).groupby("epsilon")
        rows = [(epsilon, float(v.mean()), *_band(v.to_numpy(float)), len(v)) for epsilon, v in gap]
        return pd.DataFrame(rows, columns=["epsilon", "mean", "low", "high", "draws"])

    def baseline(self, model: str, measure: str = "accuracy") -> pd.Series:
        """Values of "non-private" or "majority", by group."""
        part = self.baselines[self.baselines["model"] == model]
        return part.set_index("group")[check_choice("measure", measure, MEASURES)]

    def baseline_gap(self, model: str, measure: str = "accuracy") -> float:
        """Largest minus smallest value of the groups in `compared`; NaN where fewer than two have one."""
        values = self.baseline(model, measure)[self.compared].dropna()
        return float(values.max() - values.min()) if len(values) > 1 else float("nan")


def _band(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, QUANTILES)
    return float(low), float(high)


def report(made: Releases, grouping: Grouping) -> GroupReport:
    """Measures of each group of a run's test rows at each of its budgets.

    Raises:
        InvalidInput: see `group`.
    """
    setup = setup_for(made.spec)
    groups = group(setup.dataset, grouping, len(setup.split.test))
    parts = [_draws(setup, groups, release) for release in made.at]
    base = {
        "non-private": _scores(setup, setup.reference.optimum[None], None),
        "majority": _scores(setup, setup.reference.optimum[None], setup.majority_label),
    }
    baselines = [_tidy(setup, groups, scores, model != "majority").assign(model=model) for model, scores in base.items()]
    return GroupReport(
        groups,
        _sizes(setup, groups),
        pd.concat(parts, ignore_index=True),
        pd.concat(baselines, ignore_index=True).drop(columns="seed"),
        tuple(release.spec.epsilon for release in made.at),
    )


def _scores(setup: Setup, theta: Floats, labels: Floats | None) -> Floats:
    """(R, test rows) decision values; of a released label, the label."""
    if labels is not None:
        return np.repeat(np.asarray(labels, float)[:, None], len(setup.test), axis=1)
    return np.ascontiguousarray(setup.problem.model.scores(theta, setup.test).T)


def _tidy(setup: Setup, groups: Groups, scores: Floats, scored: bool) -> pd.DataFrame:
    """(R x G rows) seed, group and measures; no mean score where there is only a label."""
    index, count = groups.index[setup.split.test], len(groups.names)
    values = measure_groups(scores, setup.test.y, index, count)
    table = pd.DataFrame({name: v.ravel() for name, v in values.items()})
    table.insert(0, "group", np.tile(np.asarray(groups.names, object), len(scores)))
    table.insert(0, "seed", np.repeat(np.arange(len(scores)), count))
    return table if scored else table.assign(mean_score=np.nan)


def _draws(setup: Setup, groups: Groups, release: Result) -> pd.DataFrame:
    scores = _scores(setup, release.theta, release.labels)
    table = _tidy(setup, groups, scores, release.labels is None)
    table.insert(0, "epsilon", release.spec.epsilon)
    expected = np.full(len(groups.names), np.nan)
    if release.distribution is not None and setup.problem.setting.linear:
        index = groups.index[setup.split.test]
        weights = (index == np.arange(len(groups.names))[:, None]).astype(float)
        sizes = weights.sum(axis=1)
        there = sizes > 0
        weights[there] /= sizes[there, None]
        chances = chances_right(setup.problem, release.distribution, setup.test, weights)[0].mean(axis=0)
        expected = np.where(there, chances, np.nan)
    return table.assign(expected_accuracy=np.tile(expected, len(scores)))


def _sizes(setup: Setup, groups: Groups) -> pd.DataFrame:
    names, test = list(groups.names), groups.index[setup.split.test]
    train = np.bincount(groups.index[setup.split.train], minlength=len(names))
    counts = np.bincount(test, minlength=len(names))
    positive = np.bincount(test, setup.test.y > 0, minlength=len(names))
    with np.errstate(invalid="ignore"):
        share = positive / counts
    return pd.DataFrame(
        {"train": train, "test": counts, "positive": share, "small": counts < SMALL}, index=pd.Index(names, name="group")
    )
