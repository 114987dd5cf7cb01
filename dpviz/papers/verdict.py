"""The one kind of verdict on what a paper says: it holds, holds only if a condition is met, fails, is surpassed, or is undecided.

A check splits a sentence into comparisons. Each comparison holds, fails, or is undecided: the numbers here are too few, or
too close to what noise alone does, to tell. `combine` adds them up by what the sentence says: everywhere, on most datasets,
or on some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pandas as pd


class Outcome(StrEnum):
    """The outcome of a check of a paper's sentence."""

    HOLDS = "holds"
    ONLY_IF = "holds only if"
    FAILS = "fails"
    BETTER = "better than claimed"
    UNDECIDED = "undecided"


class Scope(StrEnum):
    """The scope of a sentence: where it claims to be true."""

    EVERY = "everywhere"
    MOST = "on most datasets"
    SOME = "on some datasets"


@dataclass(frozen=True)
class Picture:
    """The description of a check's chart: one chart per panel, one line per series.

    Attributes:
        x, y: titles of the axes.
        log_x, log_y: logarithmic axes.
        limit: a horizontal line that the rule looks at, None for none.
        limit_label: what the line is.
    """

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    limit: float | None = None
    limit_label: str = ""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of one check. Everything here is computed.

    Attributes:
        outcome: by `rule` from `numbers`.
        because: why it came out like this, with numbers.
        rule: the thresholds in words.
        numbers: (what, value) pairs that the rule looked at.
        condition: what must be true for the sentence to hold, where the outcome is ONLY_IF, and only there.
        table: columns panel, series, mechanism (id or ""), x, y, low, high.
        picture: how the table is drawn.
        seeds: what was drawn how often, with the seed.
    """

    outcome: Outcome
    because: str
    rule: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    condition: str = ""
    table: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    picture: Picture = Picture("", "")
    seeds: str = "No randomness."

    def __post_init__(self) -> None:
        if bool(self.condition) != (self.outcome is Outcome.ONLY_IF):
            raise ValueError(f"a condition belongs to the outcome “{Outcome.ONLY_IF}” and to no other, got {self.outcome!r}")

    @property
    def headline(self) -> str:
        """The outcome, with its condition."""
        return f"{self.outcome} {self.condition}" if self.condition else str(self.outcome)

    def add_condition(self, condition: str) -> Verdict:
        """The same verdict under a condition, where it holds; itself otherwise."""
        return replace(self, outcome=Outcome.ONLY_IF, condition=condition) if self.outcome is Outcome.HOLDS else self


@dataclass(frozen=True)
class Comparison:
    """One comparison that a check makes.

    Attributes:
        what: which methods, where, at which budget.
        holds: None where the numbers do not suffice to tell.
        numbers: in words.
        severity: how far it is from holding, for the worst one to be named; larger is worse.
        better: the sentence is too modest where it fails: the method does better than it says.
    """

    what: str
    holds: bool | None
    numbers: str
    severity: float = 0.0
    better: bool = False


def counts(comparisons: Sequence[Comparison]) -> tuple[int, int, int]:
    """The numbers of comparisons that hold, fail and are undecided."""
    return (
        sum(c.holds is True for c in comparisons),
        sum(c.holds is False for c in comparisons),
        sum(c.holds is None for c in comparisons),
    )


def combine(comparisons: Sequence[Comparison], scope: Scope = Scope.EVERY) -> Outcome:
    """The outcome of several comparisons.

    EVERY fails with one failure and holds if all hold; where all that fail do better than the sentence says, so does the whole.
    MOST needs more than half, SOME one. A single dataset can show that a sentence about most or some datasets is true of it, and
    never that it is false.
    """
    held, failed, _ = counts(comparisons)
    n = len(comparisons)
    against = Outcome.BETTER if all(c.better for c in comparisons if c.holds is False) else Outcome.FAILS
    if scope is Scope.EVERY:
        return against if failed else Outcome.HOLDS if n and held == n else Outcome.UNDECIDED
    enough, refuted = (2 * held > n, 2 * failed >= n) if scope is Scope.MOST else (held > 0, failed == n)
    if n and enough:
        return Outcome.HOLDS
    return against if n > 1 and refuted else Outcome.UNDECIDED


def summary(comparisons: Sequence[Comparison], scope: Scope = Scope.EVERY) -> str:
    """A sentence on the comparisons: counts where there are several, and the numbers of the worst one."""
    if not comparisons:
        return "There are no complete numbers."
    if len(comparisons) == 1:
        one = comparisons[0]
        note = "" if one.holds is not False or scope is Scope.EVERY else f"; the paper says so {scope} only, and this is one"
        return f"{one.numbers[:1].upper()}{one.numbers[1:]}{'' if one.holds is not None else ': too close to tell'}{note}."
    held, failed, open_ = counts(comparisons)
    parts = (("fails", failed), ("holds", held), ("undecided", open_))
    text = ", ".join(f"{word} in {count} of {len(comparisons)}" for word, count in parts if count)
    worst = max(comparisons, key=lambda c: ({False: 2, None: 1, True: 0}[c.holds], c.severity))
    return f"{text[:1].upper()}{text[1:]}. {'Closest' if held == len(comparisons) else 'Worst'}: {worst.what}, {worst.numbers}."
