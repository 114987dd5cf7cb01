"""Ranges of numeric columns found privately: histograms over public bins with Gaussian noise, and what passes a threshold.

Two queries share the budget. The first counts the values of each column in bins of powers of two, as Google's approximate bounds
do (Wilson et al. 2020, "Differentially private SQL with bounded user contribution", section 5.1.1). The second divides the range
that was found into equal parts and counts again, so that a column of years does not get the range 1024 to 2048. A range
reaches from the first to the last group of 1, 2 or 4 neighbouring bins whose noisy number of values is above what noise alone
reaches.

Replacing one row moves one value of each of c columns from one bin to another: the counts of all columns together change by at
most sqrt(2c) in L2 norm. So both queries are Gaussian releases, and their event is known exactly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpviz.common.validate import InvalidInput, show
from dpviz.privacy.accounting.events import Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = -20, 40  # powers of two that have bins of their own
_PARTS = 8  # more parts would each hold too few of the rare large values to be seen
_GROUPS = (1, 2, 4)  # neighbouring bins that are looked at together
_FALSE = 0.05  # chance that noise alone is taken for values in any bin of one query

#: edges of the public bins: minus 2^40 ... minus 2^-20, 0, 2^-20 ... 2^40; what lies outside counts as the last bin
EDGES: Floats = np.concatenate([-(2.0 ** np.arange(_HIGHEST, _LOWEST - 1, -1)), [0.0], 2.0 ** np.arange(_LOWEST, _HIGHEST + 1)])


@dataclass(frozen=True)
class PrivateRanges:
    """Ranges that may be published, and what they cost.

    Attributes:
        ranges: (low, high) by column, in the order of the columns.
        event: what was released of the rows, for a ledger.
        budget: what it was made for.
        least: the number of rows that values close together need to be seen; those of fewer rows may be cut off.
    """

    ranges: dict[str, tuple[float, float]]
    event: Repeated
    budget: Budget
    least: int


def private_ranges(columns: Mapping[str, ArrayLike], budget: Budget, source: random.Random | None = None) -> PrivateRanges:
    """A range of every column that holds nearly all of its values, (epsilon, delta)-DP for replacing one row.

    Args:
        columns: (n,) numbers by name; gaps (NaN) are not counted. Names and their number are public.
        budget: of all ranges together, delta > 0.
        source: of the noise; randomness of the operating system by default.

    Raises:
        InvalidInput: there is no column, delta is 0, or no bin of a column has enough rows at this budget.

    >>> ages = np.random.default_rng(0).integers(17, 91, size=20_000)
    >>> private_ranges({"age": ages}, Budget(0.5, 1e-6), random.Random(1)).ranges
    {'age': (16.0, 100.0)}
    """
    if not columns:
        raise InvalidInput("columns", "there is no numeric column", "Name at least one.")
    source = source or random.SystemRandom()
    values = {name: _numbers(name, column) for name, column in columns.items()}
    event = planned_event(len(values), budget)
    assert isinstance(event.event, Gaussian)
    sigma = event.event.sigma
    coarse = {name: _seen(name, column, EDGES, sigma, len(values), source) for name, column in values.items()}
    fine = {}
    for name, column in values.items():
        low, high = coarse[name]
        edges = np.linspace(low, high, _PARTS + 1)
        inside = column[(column >= low) & (column <= high)]
        fine[name] = _seen(name, inside, edges, sigma, len(values), source, otherwise=(low, high))
    least = math.ceil(_quantile(_PARTS, len(values)) * sigma)
    return PrivateRanges(fine, event, budget, least)


def planned_event(columns: int, budget: Budget) -> Repeated:
    """The event of so many private ranges: two Gaussian queries of the same mu, whose mu^2 add up to the budget's.

    Raises:
        InvalidInput: delta is 0.
    """
    sensitivity, mu = math.sqrt(2 * columns), gaussian_mu(budget) / math.sqrt(2)
    return Repeated(Gaussian(sensitivity, sensitivity / mu), 2)


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
    otherwise: tuple[float, float] | None = None,
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
