"""The result of an audit, and the conclusions that it allows."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from dpviz.mechanisms import Calibration
from dpviz.privacy.audit_bounds import (
    Counts,
    Residuals,
    clopper_pearson_lower,
    clopper_pearson_upper,
    epsilon_ceiling,
    gaussian_claim,
)
from dpviz.privacy.budget import Budget

NO_VIOLATION, EXCEEDED, NO_CLAIM = "no violation found", "claim exceeded", "nothing is claimed"
BY_BOUND, BY_NOISE, BY_ERRORS = "the bound", "the measured noise", "too few errors for a Gaussian"


def verdict_on(calibration: Calibration, exceeds: Callable[[Budget], bool]) -> str:
    """The verdict on what is claimed and on what is proved: "claim exceeded" where either budget is."""
    budgets = [budget for budget in (calibration.claimed_budget, calibration.proved_budget) if budget is not None]
    return NO_CLAIM if not budgets else EXCEEDED if any(map(exceeds, budgets)) else NO_VIOLATION


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The result of an attack on one mechanism. Lower bounds on epsilon can show that a claim is wrong, never that it is right.

    Attributes:
        mechanism: its id.
        calibration: with the claimed and the proved budget.
        runs: models trained on each dataset so far; `requested` in all. Bounds hold for the last result of a game, and for
            one looked at on the way only if it was decided beforehand to stop there.
        seed: of the whole game.
        confidence: of the verdict, and of each bound; where the verdict rests on two tests, each is at `confidence_of_each`.
        score: what the attacker computed, a key of `SCORES` with its setting.
        counts: its errors on runs that were not used for choosing.
        counts_confidence: confidence at which `counts` is turned into a bound; above `confidence_of_each` where two
            attackers share it.
        middle: its errors at the cut half-way between both sides, for the Gaussian bound.
        assumption: why the Gaussian bound may be used here, "" where it may not.
        noise: the noise measured around the declared centres, None where the distribution does not have two fixed ones.
        allowed: largest share of correct guesses that the guarantee allows, None where nothing is claimed.
        curve: the attacker's ROC with limits (`roc`).
        cloud: outputs projected to a plane, up to 1,000 a side: side (0, 1), u along the attacker's direction, v
            across it (largest remaining spread), score.
        warnings: what else is wrong.
    """

    mechanism: str
    calibration: Calibration
    runs: int
    requested: int
    seed: int
    confidence: float
    score: str
    counts: Counts
    counts_confidence: float
    middle: Counts
    assumption: str
    allowed: float | None
    curve: pd.DataFrame = field(repr=False)
    cloud: pd.DataFrame = field(repr=False)
    noise: Residuals | None = None
    warnings: tuple[str, ...] = ()

    @property
    def guessed_right(self) -> float:
        """Share of correct guesses at the cut half-way between both sides, both equally likely, in [0, 1]."""
        return 1 - self._wrong / (2 * self.middle.trials)

    @property
    def guessed_right_limits(self) -> tuple[float, float]:
        """Limits of `guessed_right` at `confidence` (Clopper-Pearson: the guesses are independent).

        Both sides have as many trials, so the number of errors is nearly binomial and never spreads more (Hoeffding 1956).
        """
        trials, side = 2 * self.middle.trials, 1 - (1 - self.confidence) / 2
        low = 1 - float(clopper_pearson_upper(self._wrong, trials, side))
        return low, 1 - float(clopper_pearson_lower(self._wrong, trials, side))

    @property
    def _wrong(self) -> float:
        return self.middle.false_positives + self.middle.false_negatives

    @property
    def confidence_of_each(self) -> float:
        """Confidence of each of the two tests that a verdict may rest on: both together err with at most 1 - confidence."""
        two = self.noise is not None or self.assumption
        return 1 - (1 - self.confidence) / 2 if two else self.confidence

    def epsilon_lower_at(self, delta: float) -> float:
        """Lower bound on epsilon at any delta in [0, 1), free of assumptions."""
        return self.counts.epsilon_lower_bound(delta, self.counts_confidence)

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon at the delta asked for, free of assumptions."""
        return self.epsilon_lower_at(self.calibration.budget.delta)

    @property
    def ceiling(self) -> float:
        """The largest `epsilon_lower` that this many runs can give."""
        return epsilon_ceiling(self.counts.trials, self.calibration.budget.delta, self.counts_confidence)

    @property
    def gaussian_epsilon_lower(self) -> float | None:
        """Lower bound on epsilon under `assumption`; None where it may not be used."""
        if not self.assumption:
            return None
        return self.middle.gaussian_epsilon_lower_bound(self.calibration.budget.delta, self.confidence_of_each)

    @property
    def measured_epsilon_lower(self) -> float | None:
        """Lower bound on epsilon from `noise`, which takes the declared centres for granted; None without it."""
        return (
            None if self.noise is None else self.noise.epsilon_lower_bound(self.calibration.budget.delta, self.confidence_of_each)
        )

    def p_value(self, budget: Budget | None) -> float | None:
        """The p-value of this result if the budget holds as mu-GDP: of so little noise, or else of so few errors.

        None where neither has a meaning: no `noise` and no `assumption`, or a pure budget.
        """
        mu = gaussian_claim(budget)
        if mu is None:
            return None
        if self.noise is not None:
            return self.noise.p_value(mu)
        return self.middle.p_value(mu) if self.assumption else None

    def evidence_against(self, budget: Budget | None) -> str:
        """The evidence against a budget at `confidence`, in words; "" where there is none.

        The bound free of assumptions and, where it has a meaning, one Gaussian test. Each has half of the error probability, so
        that what contradicts a budget that holds is seen with a probability of at most 1 - confidence.
        """
        if budget is None:
            return ""
        if self.epsilon_lower_at(budget.delta) > budget.epsilon:
            return BY_BOUND
        p = self.p_value(budget)
        return "" if p is None or p >= 1 - self.confidence_of_each else BY_NOISE if self.noise is not None else BY_ERRORS

    def exceeds(self, budget: Budget | None) -> bool:
        """True where the audit contradicts a budget; see `against`."""
        return bool(self.evidence_against(budget))

    @property
    def verdict(self) -> str:
        """ "claim exceeded", "no violation found" or "nothing is claimed"."""
        return verdict_on(self.calibration, self.exceeds)
