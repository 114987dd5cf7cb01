"""Ranges of numeric columns and categories found privately: counts with Gaussian noise, and what passes a threshold.

Ranges take two queries. The first counts the values of each column in bins of powers of two, as Google's approximate bounds
do (Wilson et al. 2020, "Differentially private SQL with bounded user contribution", section 5.1.1). The second divides the range
that was found into equal parts and counts again, so that a column of years does not get the range 1024 to 2048. A range
reaches from the first to the last group of 1, 2 or 4 neighbouring bins whose noisy number of values is above what noise alone
reaches.

Categories take one query over the values that occur: a value is listed where its noisy number of rows is above a threshold T
(Korolova, Kenthapadi, Mishra, Ntoulas 2009, "Releasing search queries and clicks privately"; with Gaussian noise Wilson et al.
2020, section 3.5).

Replacing one row moves one value of each column from one bin to another. With p columns of numbers and c of categories the counts
of all queries together change by at most sqrt(2p + 2p + 2c) in L2 norm, and all of them receive noise of one standard deviation
sigma: they are one Gaussian release.

Which values occur depends on the rows, too. Let D and D' be neighbours. In a column, at most one value occurs in D and not in D',
and then in one row of D. Let tau be a bound on the chance that noise lifts such a value of any column over T:
c P[1 + N(0, sigma^2) > T] <= tau. Where it lifts none, the output holds values that occur in both, and it is a function of the
Gaussian release over these. For every set A of outputs [ours]

    P[M(D) in A] <= tau + e^eps (P[M(D') in A] + tau) + delta_gauss,

where the second tau is for values that occur in D' alone. So delta = delta_gauss + (1 + e^eps) tau; each part gets one half.
Adding or removing one row changes half as many counts, and the same holds for it.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri, ndtri_exp

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_instance, show
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

#: the part of epsilon and delta that private ranges of a fit or a release take
SHARE = 0.1

_LOWEST, _HIGHEST = -20, 40  # powers of two that have bins of their own
_PARTS = 8  # more parts would each hold too few of the rare large values to be seen
_GROUPS = (1, 2, 4)  # neighbouring bins that are looked at together
_FALSE = 0.05  # chance that noise alone is taken for values in any bin of one query

#: edges of the public bins: minus 2^40 ... minus 2^-20, 0, 2^-20 ... 2^40; what lies outside counts as the last bin
EDGES: Floats = np.concatenate([-(2.0 ** np.arange(_HIGHEST, _LOWEST - 1, -1)), [0.0], 2.0 ** np.arange(_LOWEST, _HIGHEST + 1)])


@dataclass(frozen=True)
class Noise:
    """The noise of all queries, from public facts alone.

    Attributes:
        sigma: standard deviation of the noise on every count.
        threshold: noisy number of rows above which a category is listed; infinite without categories.
        release: what is released of the rows, for a ledger: an event, or the budget where there are categories.
    """

    sigma: float
    threshold: float
    release: Event | Budget


@dataclass(frozen=True)
class PrivateRanges:
    """Ranges and categories that may be published, and what they cost.

    Attributes:
        ranges: (low, high) by column, in the order of the columns.
        categories: values by column, in alphabetical order.
        noise: of the queries.
        budget: what it was made for.
    """

    ranges: dict[str, tuple[float, float]]
    categories: dict[str, tuple[str, ...]]
    noise: Noise
    budget: Budget


def private_ranges(
    columns: Mapping[str, ArrayLike],
    budget: Budget,
    source: random.Random | None = None,
    *,
    categories: Mapping[str, ArrayLike] | None = None,
    unseen: tuple[float, float] | None = None,
) -> PrivateRanges:
    """A range of every column of numbers that holds nearly all of its values, and the frequent categories of other columns.

    All of it together is (epsilon, delta)-DP for replacing one row.

    Args:
        columns: (n,) numbers by name; gaps (NaN) are not counted. Names and their number are public.
        budget: of all ranges and categories together, delta > 0.
        source: of the noise; randomness of the operating system by default.
        categories: (n,) values by name; gaps (None, NaN) are not counted.
        unseen: the range of a column of which no bin has enough rows, public; None to raise.

    Raises:
        InvalidInput: there is no column, delta is 0, or no bin or category of a column has enough rows at this budget.

    >>> ages = np.random.default_rng(0).integers(17, 91, size=20_000)
    >>> work = ["private", "public", "none", "none"] * 4_999 + ["queen", "private", "private", "public"]
    >>> found = private_ranges({"age": ages}, Budget(0.5, 1e-6), random.Random(1), categories={"work": work})
    >>> found.ranges, found.categories
    ({'age': (16.0, 100.0)}, {'work': ('none', 'private', 'public')})
    """
    others = {name: _counted(name, column) for name, column in (categories or {}).items()}
    if not check_instance("columns", columns, Mapping) and not others:
        raise InvalidInput("columns", "there is no column", "Name at least one.")
    twice = next((name for name in others if name in columns), None)
    if twice is not None:
        raise InvalidInput(f"categories[{show(twice)}]", "is among the numbers, too", "Name each column once.")
    source = source or random.SystemRandom()
    values = {name: _numbers(name, column) for name, column in columns.items()}
    noise = plan_noise(len(values), len(others), check_instance("budget", budget, Budget))
    sigma = noise.sigma
    coarse = {name: _seen(name, column, EDGES, sigma, len(values), source, unseen) for name, column in values.items()}
    fine = {}
    for name, column in values.items():
        low, high = coarse[name]
        edges = np.linspace(low, high, _PARTS + 1)
        inside = column[(column >= low) & (column <= high)]
        fine[name] = _seen(name, inside, edges, sigma, len(values), source, otherwise=(low, high))
    listed = {name: _listed(name, counts, noise, source) for name, counts in others.items()}
    return PrivateRanges(fine, listed, noise, budget)


def plan_noise(numbers: int, categories: int, budget: Budget) -> Noise:
    """The noise for so many columns of numbers and of categories.

    Raises:
        InvalidInput: delta is 0.
    """
    gauss = Budget(budget.epsilon, budget.delta / 2) if categories else budget
    sensitivity = math.sqrt(4 * numbers + 2 * categories)  # one row moves two counts of each column in each of its queries
    sigma = sensitivity / gaussian_mu(gauss)
    if not categories:
        return Noise(sigma, math.inf, Repeated(Gaussian(math.sqrt(2 * numbers), sigma), 2))
    log_tau = math.log(budget.delta / 2) - np.logaddexp(0.0, budget.epsilon)  # (1 + e^eps) tau = delta/2
    threshold = 1 - sigma * float(ndtri_exp(log_tau - math.log(categories)))
    return Noise(sigma, threshold, budget)


def _counted(name: str, column: ArrayLike) -> Counter[str]:
    """The number of rows of each value, as text."""
    values = np.asarray(column, dtype=object)
    if values.ndim != 1:
        raise InvalidInput(f"categories[{show(name)}]", f"must have one dimension, got {values.ndim}", "Give one column.")
    return Counter(map(str, values[~pd.isna(values)]))


def _listed(name: str, counts: Counter[str], noise: Noise, source: random.Random) -> tuple[str, ...]:
    """The values whose noisy number of rows passes the threshold."""
    passed = tuple(value for value in sorted(counts) if counts[value] + source.gauss(0.0, noise.sigma) > noise.threshold)
    if not passed:
        cause = f"no value of {show(name)} has enough rows to be listed at this budget (about {math.ceil(noise.threshold):,})"
        raise InvalidInput("categories", cause, "Declare its categories, choose a larger ε for them, or fewer columns.")
    return passed


def shares(total: Budget) -> tuple[Budget, Budget]:
    """(budget of the ranges, budget of the model), whose epsilons and deltas add up to the total."""
    parts = SHARE, 1 - SHARE
    of_ranges, of_model = (Budget(part * total.epsilon, part * total.delta) for part in parts)
    return of_ranges, of_model


def total_budget(model: Budget | None, of_ranges: Budget | None) -> Budget | None:
    """The budget of a model with its private ranges, by basic composition; None where the model has none."""
    if model is None or of_ranges is None:
        return model
    return Budget(model.epsilon + of_ranges.epsilon, model.delta + of_ranges.delta)


def _numbers(name: str, column: ArrayLike) -> Floats:
    try:
        values = np.asarray(column, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"columns[{show(name)}]", "does not hold numbers", "Leave it out, or declare categories.") from error
    if values.ndim != 1:
        raise InvalidInput(f"columns[{show(name)}]", f"must have one dimension, got {values.ndim}", "Give one column.")
    return np.clip(values[~np.isnan(values)], EDGES[0], EDGES[-1])


def _quantile(bins: int, columns: int) -> float:
    """The normal quantile that no group of empty bins of any column passes, but for a chance of `_FALSE`."""
    return float(ndtri(1 - _FALSE / (len(_GROUPS) * bins * columns)))


def _seen(
    name: str,
    values: Floats,
    edges: Floats,
    sigma: float,
    columns: int,
    source: random.Random,
    otherwise: tuple[float, float] | None,
) -> tuple[float, float]:
    """From the first to the last group of bins that are seen; the noise of k bins together is sigma sqrt(k)."""
    counts = np.histogram(values, edges)[0]
    noisy = np.array([count + source.gauss(0.0, sigma) for count in counts])
    limit = _quantile(len(counts), columns) * sigma
    seen: list[tuple[int, int]] = []
    for k in _GROUPS:  # a larger group counts where none of its parts was seen
        sums = np.convolve(noisy, np.ones(k), "valid")
        groups = [(int(start), int(start) + k) for start in np.flatnonzero(sums > limit * math.sqrt(k))]
        seen += [(a, b) for a, b in groups if not any(a <= c and d <= b for c, d in seen)]
    if seen:
        return float(edges[min(start for start, _ in seen)]), float(edges[max(end for _, end in seen)])
    if otherwise is not None:
        return otherwise
    cause = f"too few rows to see where the values of {show(name)} lie at this budget (about {math.ceil(limit):,} close together)"
    raise InvalidInput("ranges", cause, "Declare its range, choose a larger ε for the ranges, or fewer columns.")
