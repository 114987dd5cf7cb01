"""Rules about running times; the tables have columns mechanism, rows, turn, seconds.

Methods are measured in turns, A B C A B C ..., so that what slows the computer down meets all of them. What counts are the
ratios of times of the same turn: their median, and the order statistics that enclose the median of the ratios with a
probability of at least `LEVEL`, whatever their distribution (the interval of the sign test).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.papers.numbers import Floats, Missing
from dpviz.papers.verdict import Comparison, Outcome, Verdict, combine, summary

TIE = 1.25  # times that are nearer than this are the same
TWICE = 2.0  # times within a factor of two are alike
LEVEL = 0.93  # of the interval of a median; five turns reach it, four do not


@dataclass(frozen=True)
class Ratio:
    """The ratio of two methods' times.

    Attributes:
        median: of the ratios of paired times.
        low, high: ends of the interval; 0 and infinite where there are too few turns.
    """

    median: float
    low: float
    high: float

    def at_most(self, limit: float, beyond: float | None = None) -> bool | None:
        """True where it is at most `limit`, False above `beyond` (the limit by default), None where the interval holds one."""
        return True if self.high <= limit else False if self.low > (beyond or limit) else None

    def __str__(self) -> str:
        around = "" if self.high == self.low else f" (between {self.low:.2g} and {self.high:.2g})"
        return f"{self.median:.2g}{around if np.isfinite(self.high) else ''}"


def ratio(one: Floats, other: Floats) -> Ratio:
    """The ratio of two methods' times.

    Args:
        one, other: (T,) seconds of the same T turns.
    """
    from scipy.stats import binom  # a quarter of a second, which the first page does not need

    ratios = np.sort(one / other)
    inside = int(binom.ppf((1 - LEVEL) / 2, len(ratios), 0.5))  # the interval's ends are this far from the ends of the sample
    ends = (float(ratios[inside - 1]), float(ratios[-inside])) if inside else (0.0, np.inf)
    return Ratio(float(np.median(ratios)), *ends)


@dataclass(frozen=True)
class TimeCheck:
    """A rule for a sentence about running times.

    Attributes:
        meaning: the rule in words.
        compare: seconds with (rows, turn) as rows and mechanisms as columns -> comparisons.
    """

    meaning: str
    compare: Callable[[pd.DataFrame], list[Comparison]]

    def __call__(self, times: pd.DataFrame) -> Verdict:
        """The verdict on measured times."""
        wide = times.pivot(index=["rows", "turn"], columns="mechanism", values="seconds") if len(times) else pd.DataFrame()
        try:
            if wide.empty or wide.isna().any(axis=None):
                raise Missing("There are no complete times.")
            comparisons = self.compare(wide)
        except Missing as missing:
            return Verdict(Outcome.CANNOT_TELL, str(missing), self.rule)
        return Verdict(combine(comparisons), summary(comparisons), self.rule)

    @property
    def rule(self) -> str:
        """The rule, how times are compared, and what they are worth."""
        return (
            f"{self.meaning}. Processor times of turns A B A B; the median of the ratios of each turn counts, undecided where "
            f"its {100 * LEVEL:g} % interval holds the limit. Times are of this computer and this engine's solvers."
        )


def fastest(mechanism: str) -> TimeCheck:
    """At every size no other method takes less than 1/1.25 of the time."""

    def compare(wide: pd.DataFrame) -> list[Comparison]:
        if mechanism not in wide or wide.shape[1] < 2:
            raise Missing(f"There are no times of {mechanism} beside others.")
        comparisons = []
        for rows, times in wide.groupby(level="rows"):
            others = {name: ratio(*times[[mechanism, name]].to_numpy().T) for name in times if name != mechanism}
            each = [one.at_most(TIE) for one in others.values()]
            holds = False if False in each else None if None in each else True
            worst = max(others, key=lambda name: others[name].median)
            message = f"it takes {others[worst]} times as long as {worst} at {rows:,} rows"
            comparisons.append(Comparison(f"{rows:,} rows", holds, message, others[worst].median))
        return comparisons

    return TimeCheck(f"At every size no other method is more than {TIE:g} times faster", compare)


def as_fast(mechanism: str, other: str) -> TimeCheck:
    """Within a factor of two on average over the sizes."""

    def compare(wide: pd.DataFrame) -> list[Comparison]:
        if mechanism not in wide or other not in wide:
            raise Missing(f"There are no times of {mechanism} and {other}.")
        means = np.exp(np.log(wide[[mechanism, other]]).groupby(level="turn").mean()).to_numpy()
        found = ratio(*means.T)
        message = f"it takes {found} times as long as {other}"
        return [Comparison("all sizes", found.at_most(TWICE, TWICE * TIE), message, found.median)]

    return TimeCheck(f"At most twice the time on average over the sizes, and more than {TWICE * TIE:g} times fails", compare)
