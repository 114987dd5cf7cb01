"""The judge of membership attacks: ROC curves of scores against the true members, with limits over the target models.

Rows of one target model share its noise, so that target models are counted and not rows: limits come from resampling whole
target models. A false-alarm rate at which fewer than `LEAST_ALARMS` false alarms are expected has no value.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpviz.auditing.attacks.base import Flags, Floats

#: false-alarm rates that are reported
RATES = (0.01, 0.001)
LEAST_ALARMS = 10
CONFIDENCE = 0.95
_RESAMPLED = 200
_GRID = 240


@dataclass(frozen=True, eq=False)
class Rates:
    """Detections at a rate of false alarms, in [0, 1], with limits at `CONFIDENCE`; NaN where there are too few trials."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores of rows beside the true members of T target models.

    Attributes:
        scores: (T, n) large where a row looks like a member; finite.
        member: (T, n) which rows are members; some of them.
        seed: of the resampling.
    """

    scores: Floats
    member: Flags
    seed: int = 0

    @cached_property
    def _thresholds(self) -> NDArray[np.floating]:
        """Falling thresholds: order statistics of the non-members' scores at false-alarm rates spaced by their logarithm.

        Ranks and not values are spaced, so that one outlier stretches nothing.
        """
        ranks = np.unique(np.round(np.geomspace(1, self.trials, _GRID)).astype(int)) - 1
        return np.unique(self._highest[ranks])[::-1]

    @cached_property
    def _counts(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """(T, G) members and non-members of each target above each threshold, ties excluded."""
        found = np.empty((2, len(self.scores), len(self._thresholds)))
        for t, (scores, member) in enumerate(zip(self.scores, self.member, strict=True)):
            for k, kind in enumerate((member, ~member)):
                ordered = np.sort(scores[kind])
                found[k, t] = len(ordered) - np.searchsorted(ordered, self._thresholds, side="right")
        return found[0], found[1]

    @cached_property
    def _resampled(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """(B, G) detections and false alarms of resampled target models."""
        t = len(self.scores)
        weights = np.random.default_rng(self.seed).multinomial(t, np.full(t, 1 / t), size=_RESAMPLED).astype(float)
        members = self.member.sum(axis=1)
        detected, alarms = self._counts
        inside, outside = weights @ members, weights @ (self.member.shape[1] - members)
        return weights @ detected / inside[:, None], weights @ alarms / outside[:, None]

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Columns false_alarms, detections, low, high: the ROC curve at rates that have `LEAST_ALARMS`, with limits at each."""
        alarms = self._counts[1].sum(axis=0) / self.trials
        rates = np.unique(np.r_[alarms, RATES])
        rates = rates[(rates * self.trials >= LEAST_ALARMS - 1e-9) & (rates < 1)]
        value, low, high = self._at(rates)
        return pd.DataFrame({"false_alarms": rates, "detections": value, "low": low, "high": high})

    @property
    def trials(self) -> int:
        """Rows that were not members, counted over target models."""
        return int((~self.member).sum())

    @cached_property
    def _highest(self) -> Floats:
        """Scores of the non-members, falling."""
        return np.sort(self.scores[~self.member])[::-1]

    def threshold_at(self, rate: float) -> float:
        """The smallest threshold with at most this share of false alarms; a row is called a member where its score is above."""
        allowed = int(rate * self.trials + 1e-9)
        return float(self._highest[allowed]) if allowed < self.trials else -np.inf

    def detections_at(self, rate: float, confidence: float = CONFIDENCE) -> Rates:
        """Share of the members that are found at a rate of false alarms, with limits over the target models."""
        if rate * self.trials < LEAST_ALARMS - 1e-9:
            return Rates(np.nan, np.nan, np.nan)
        value, low, high = self._at(np.array([rate]), confidence)
        return Rates(float(value[0]), float(low[0]), float(high[0]))

    def _at(self, rates: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats, Floats]:
        """Detections at rates of false alarms, with limits: Student's t with the spread of resampled target models.

        Rows whose score is the threshold itself are called members by a coin that makes the rate exact, as on the lines between
        the points of an ROC curve (Fawcett 2006).
        """
        at = [self.threshold_at(float(rate)) for rate in rates]
        (found, more), (alarms, most) = (_above(np.sort(self.scores[kind]), at) for kind in (self.member, ~self.member))
        coin = np.divide(rates - alarms, most - alarms, out=np.zeros_like(rates), where=most > alarms)
        value = found + np.clip(coin, 0, 1) * (more - found)
        # on the lines between neighbouring thresholds
        curves = [
            (np.r_[0.0, alarmed, 1.0], np.r_[0.0, detected, 1.0]) for detected, alarmed in zip(*self._resampled, strict=True)
        ]
        again = np.stack([np.interp(rates, *curve) for curve in curves])
        half = stdtrit(max(1, len(self.scores) - 1), 0.5 + confidence / 2) * again.std(axis=0, ddof=1)
        return value, np.maximum(0.0, value - half), np.minimum(1.0, value + half)

    @cached_property
    def auc(self) -> float:
        """P(a member's score is above a non-member's), ties counted half; 0.5 for guesses."""
        from scipy.stats import rankdata

        member = self.member.ravel()
        ranks, inside = rankdata(self.scores.ravel()), int(member.sum())
        return float((ranks[member].sum() - inside * (inside + 1) / 2) / (inside * self.trials))

    @cached_property
    def advantage(self) -> float:
        """Largest detections minus false alarms of any one threshold; never below 0, also where there is no signal.

        The threshold is chosen on one half of the target models and counted on the other, both ways: the largest difference
        on the rows that it was chosen on would be above 0 by chance alone.
        """
        half, (detected, alarms) = len(self.scores) // 2, self._counts
        members = self.member.sum(axis=1)
        gains = []
        for chosen, counted in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            one, other = (_gain(detected[s], alarms[s], members[s], self.member.shape[1]) for s in (chosen, counted))
            gains.append(float(other[int(np.argmax(one))]))
        return max(0.0, float(np.mean(gains)))


def _above(ordered: Floats, thresholds: list[float]) -> tuple[Floats, Floats]:
    """Shares of ascending scores above each threshold, and at or above it."""
    counts = [len(ordered) - np.searchsorted(ordered, thresholds, side=side) for side in ("right", "left")]
    return counts[0] / len(ordered), counts[1] / len(ordered)


def _gain(detected: Floats, alarms: Floats, members: NDArray[np.integer], rows: int) -> Floats:
    return np.asarray(detected.sum(axis=0) / members.sum() - alarms.sum(axis=0) / (rows - members).sum())
