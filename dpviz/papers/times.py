"""Rules about running times; the tables have columns mechanism, rows, seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.papers.numbers import Missing
from dpviz.papers.verdict import Comparison, Outcome, Verdict, combine, summary

TIE = 1.25  # times that are nearer than this are the same
TWICE = 2.0  # times within a factor of two are alike


@dataclass(frozen=True)
class TimeCheck:
    """A rule for a sentence about running times.

    Attributes:
        meaning: the rule in words.
        compare: seconds with sizes as rows and mechanisms as columns -> comparisons.
    """

    meaning: str
    compare: Callable[[pd.DataFrame], list[Comparison]]

    def __call__(self, times: pd.DataFrame) -> Verdict:
        """The verdict on measured times."""
        wide = times.pivot(index="rows", columns="mechanism", values="seconds") if len(times) else pd.DataFrame()
        try:
            if wide.empty or wide.isna().any(axis=None):
                raise Missing("There are no complete times.")
            comparisons = self.compare(wide)
        except Missing as missing:
            return Verdict(Outcome.CANNOT_TELL, str(missing), self.rule)
        return Verdict(combine(comparisons), summary(comparisons), self.rule)

    @property
    def rule(self) -> str:
        """The rule, and what times are worth."""
        return f"{self.meaning}. Times are of this computer and this engine's solvers, and differ from run to run."


def fastest(mechanism: str) -> TimeCheck:
    """At every size no other method takes less than 1/1.25 of the time."""

    def compare(wide: pd.DataFrame) -> list[Comparison]:
        if mechanism not in wide or wide.shape[1] < 2:
            raise Missing(f"There are no times of {mechanism} beside others.")
        comparisons = []
        for rows, times in wide.iterrows():
            others = times.drop(mechanism)
            ratio = float(times[mechanism] / others.min())
            said = f"{others.idxmin()} takes {1 / ratio:.2g} times as long at {rows:,} rows"
            comparisons.append(Comparison(f"{rows:,} rows", ratio <= TIE, said, ratio))
        return comparisons

    return TimeCheck(f"At every size no other method is more than {TIE:g} times faster", compare)


def as_fast(mechanism: str, other: str) -> TimeCheck:
    """Within a factor of two on average over the sizes."""

    def compare(wide: pd.DataFrame) -> list[Comparison]:
        if mechanism not in wide or other not in wide:
            raise Missing(f"There are no times of {mechanism} and {other}.")
        ratio = float(np.exp(np.log(wide[mechanism] / wide[other]).mean()))
        holds = True if ratio <= TWICE else False if ratio > TWICE * TIE else None
        return [Comparison("all sizes", holds, f"it takes {ratio:.2g} times as long as {other}", ratio)]

    return TimeCheck("At most twice the time, on average over the sizes", compare)
