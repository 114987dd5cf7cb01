"""The best possible attack on a mechanism's output: the largest share of correct guesses about one person.

Where the distribution of what is released is known, its whole trade-off curve bounds the attacker; the pair
(epsilon, delta) alone allows more and is used only where nothing else is known. One bound, used by every page.

From a tolerated attacker to epsilon: the least noise of a mechanism with which no attacker does better.

The search goes through the trade-off curve of what is released (Kulynych et al., NeurIPS 2024): a mechanism that is calibrated to
an (epsilon, delta) which alone excludes the attacker adds more noise than it needs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice, check_range, number_from_text, show
from dpviz.mechanisms import protection
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.calibration import Calibration
from dpviz.mechanisms.capabilities import BoundsDistance, DeclaresEvent, ReleasesGaussians
from dpviz.models import Setting
from dpviz.privacy import search
from dpviz.privacy.accounting import curves
from dpviz.privacy.accounting.events import Composed
from dpviz.privacy.accounting.gaussian import gaussian_detections, gaussian_epsilon, total_variation
from dpviz.privacy.budget import Budget, Neighbouring, attack_accuracy, corner, trade_off

#: where a bound comes from
ALONE, GAUSSIAN, DISTANCE = "(ε, δ) alone", "the exact distribution of the Gaussian noise", "the distribution of the noise"


@dataclass(frozen=True, eq=False)
class Attack:
    """The best possible attack by someone who knows all rows but one and sees the output.

    Attributes:
        accuracy: largest share of correct guesses when both cases are equally likely, in [0.5, 1].
        accuracy_by_budget: the same from (epsilon, delta) alone.
        budget: the proved (epsilon, delta).
        basis: where the bound comes from, in words.
        reached: false alarms, (k,) in [0, 1] -> the most detections by the distribution of what is released; None where
            only (epsilon, delta) is known.
    """

    accuracy: float
    accuracy_by_budget: float
    budget: Budget
    basis: str
    reached: Callable[[Floats], Floats] | None = None

    @cached_property
    def table(self) -> pd.DataFrame:
        """Columns false_alarms, detections_at_most and by_epsilon_delta_alone, all in [0, 1].

        Made when it is asked for: the composition of many small batches has to be computed for each of its tangents, and
        `accuracy` needs one of them.
        """
        fair = 1 - self.accuracy  # false alarms of the best even guess, which misses as often
        alarms = np.unique(np.r_[np.geomspace(1e-4, 0.5, 60), np.linspace(0.01, 0.99, 60), 0, 1, corner(self.budget), fair])
        alone = 1 - trade_off(self.budget, alarms)
        reached = alone if self.reached is None else self.reached(alarms)
        detections = np.minimum(np.minimum(reached, alone), 1.0)
        return pd.DataFrame({"false_alarms": alarms, "detections_at_most": detections, "by_epsilon_delta_alone": alone})

    def with_table(self) -> Self:
        """The same attack, its table made."""
        _ = self.table
        return self

    @property
    def best(self) -> tuple[float, float]:
        """(false alarms, detections) where most guesses are right."""
        alarms, detections = self.table["false_alarms"].to_numpy(), self.table["detections_at_most"].to_numpy()
        k = int(np.argmax(detections - alarms))
        return float(alarms[k]), float(detections[k])

    def detections_at(self, false_alarms: float) -> float:
        """Largest share of detections at a rate of false alarms."""
        return float(np.interp(false_alarms, self.table["false_alarms"], self.table["detections_at_most"]))


def strongest_attack(mechanism: Mechanism, setting: Setting, calibration: Calibration) -> Attack | None:
    """The best possible attack by the tightest bound that is proved; None where no budget is proved.

    The smallest of all that apply:

    - by (epsilon, delta) alone (Kairouz, Oh, Viswanath 2015);
    - a declared mu: the exact trade-off curve of mu-Gaussian DP (Dong, Roth, Su 2022, Theorem 2.7);
    - a declared event: the trade-off curve of its releases by the tightest accountant;
    - a bound on the total variation of the method's own (`BoundsDistance`).
    """
    budget = calibration.proved_budget
    if budget is None:
        return None
    by_budget = attack_accuracy(budget)
    found = [Attack(by_budget, by_budget, budget, ALONE)]

    def bounded(distance: float, basis: str, reached: Callable[[Floats], Floats]) -> None:
        found.append(Attack(min(0.5 + distance / 2, by_budget), by_budget, budget, basis, reached))

    mu = calibration.mu
    if mu is not None:
        bounded(total_variation(mu), GAUSSIAN, partial(gaussian_detections, mu))
    relation, event, pure = calibration.neighbouring, None, calibration.preparation_epsilon
    # what removing a row changes in preparations is known for those with delta = 0 only
    if isinstance(mechanism, DeclaresEvent) and (relation is Neighbouring.REPLACE_ONE or pure or not calibration.preparation_mu):
        event = protection.released_event(mechanism, setting, calibration)
    if event is not None:
        own, beside, gaussian = event, 0.0, 0.0
        if isinstance(event, Composed) and calibration.preparation_mu:  # preparations, then what the method releases
            own, beside, gaussian = event.events[-1], pure, 0.0 if pure else calibration.preparation_mu
        # total variations of preparations and of what follows add up
        distance = min(1.0, total_variation(gaussian) + curves.advantage(own, relation, beside))
        whole = isinstance(mechanism, ReleasesGaussians) and not gaussian
        reached = partial(curves.detections, own, relation=relation, pure=beside) if whole else partial(np.add, distance)
        bounded(distance, GAUSSIAN if whole else DISTANCE, reached)
    if isinstance(mechanism, BoundsDistance):
        distance = protection.distance(mechanism, setting, calibration)
        bounded(distance, DISTANCE, partial(np.add, distance))
    return min(found, key=lambda attack: attack.accuracy)


def allowed_accuracy(mechanism: Mechanism, setting: Setting, calibration: Calibration) -> float | None:
    """Largest share of correct guesses that the guarantee allows; None where nothing is claimed or proved.

    What is proved counts first, as on every page; what is only claimed allows as much as its (epsilon, delta) would.
    """
    proved = strongest_attack(mechanism, setting, calibration)
    if proved is not None:
        return proved.accuracy
    return None if calibration.claimed_budget is None else attack_accuracy(calibration.claimed_budget)


def comparable_bounds(a: Attack, b: Attack) -> tuple[float, float]:
    """Two bounds of one kind, for a comparison: by (epsilon, delta) alone where one of the two rests on nothing else."""
    if ALONE in (a.basis, b.basis):
        return a.accuracy_by_budget, b.accuracy_by_budget
    return a.accuracy, b.accuracy


#: what is tolerated -> in words
MEASURES = {
    "tpr": "share of detections at a rate of false alarms",
    "advantage": "largest detections minus false alarms",
    "accuracy": "share of correct guesses when both cases are equally likely",
}
_HOW = "For example: tpr=0.05@fpr=0.01, advantage=0.1 or accuracy=0.55."
_LIMITS = (1e-4, 1e3)  # of epsilon
_TOLERANCE = 3e-4  # of ln epsilon
_LEAST = 1e-6


@dataclass(frozen=True)
class Attacker:
    """The strongest attacker that is tolerated, under the mechanism's own neighbouring relation.

    Attributes:
        measure: a key of `MEASURES`.
        most: the largest value that is tolerated, better than a coin toss and below 1.
        at_fpr: rate of false alarms of "tpr", else 0.
    """

    measure: str
    most: float
    at_fpr: float = 0.0

    def __post_init__(self) -> None:
        check_choice("attacker", self.measure, MEASURES)
        floor = {"tpr": self.at_fpr, "advantage": 0.0, "accuracy": 0.5}[self.measure]
        if self.measure == "tpr":
            check_range("fpr", self.at_fpr, _LEAST, 1 - _LEAST)
        if not floor + _LEAST <= self.most <= 1 - _LEAST:
            why = f"{self.measure} = {self.most:g} must lie above {floor:g}, which a coin toss reaches, and below 1"
            raise InvalidInput("attacker", why, _HOW)

    @classmethod
    def parse(cls, text: str) -> Self:
        """An attacker from "tpr=0.05@fpr=0.01", "advantage=0.1" or "accuracy=0.55".

        >>> Attacker.parse("tpr=0.05@fpr=0.01")
        Attacker(measure='tpr', most=0.05, at_fpr=0.01)

        Raises:
            InvalidInput: it says something else.
        """
        limit, at, rate = text.strip().partition("@")
        measure, equals, most = limit.partition("=")
        if measure not in MEASURES or not equals or (measure == "tpr") != rate.startswith("fpr=") or bool(at) != bool(rate):
            raise InvalidInput("attacker", f"cannot be read: {show(text)}", _HOW)
        fpr = number_from_text("fpr", rate.removeprefix("fpr=")) if rate else 0.0
        return cls(measure, number_from_text(measure, most), fpr)

    def __str__(self) -> str:
        return f"{self.measure}={self.most:g}" + (f"@fpr={self.at_fpr:g}" if self.measure == "tpr" else "")

    def largest_reach(self, mechanism: Mechanism, setting: Setting, calibration: Calibration) -> float:
        """The most that any attacker reaches against a calibration; infinite where nothing is proved."""
        attack = strongest_attack(mechanism, setting, calibration)
        if attack is None:
            return math.inf
        if self.measure == "tpr":
            alone = self.by_budget(attack.budget)
            return alone if attack.reached is None else min(alone, float(attack.reached(np.array([self.at_fpr]))[0]))
        return attack.accuracy if self.measure == "accuracy" else 2 * attack.accuracy - 1

    def by_budget(self, budget: Budget) -> float:
        """The most that (epsilon, delta) alone allows."""
        if self.measure == "tpr":
            return float(1 - trade_off(budget, np.array([self.at_fpr]))[0])
        return attack_accuracy(budget) if self.measure == "accuracy" else 2 * attack_accuracy(budget) - 1


def epsilon_for(attacker: Attacker, mechanism: Mechanism, setting: Setting, delta: float) -> float:
    """The largest epsilon, at a delta, to which a mechanism can be calibrated so that no attacker does better than is tolerated.

    Raises:
        InvalidInput: nothing is proved about the mechanism, or no epsilon is small enough.
    """

    def excess(epsilon: float) -> float:
        try:
            calibration = protection.calibrate(mechanism, setting, Budget(epsilon, delta))
        except InvalidInput:  # a budget that this mechanism cannot meet is no answer
            return math.inf
        return attacker.largest_reach(mechanism, setting, calibration) - attacker.most

    if _proves_nothing(mechanism, setting, delta):
        raise InvalidInput(
            "attacker", f"nothing is proved about {mechanism.label}, so no noise excludes an attacker", "Choose another."
        )
    why = f"no ε from {_LIMITS[0]:g} on keeps {mechanism.label} below {attacker}"
    refusal = InvalidInput("attacker", why, "Tolerate more, choose a smaller delta, or another mechanism.")
    return search.largest_argument(
        excess, math.log(_guess(attacker, delta)), step=0.05, tolerance=_TOLERANCE, limits=_LIMITS, refusal=refusal
    )


def _proves_nothing(mechanism: Mechanism, setting: Setting, delta: float) -> bool:
    """True where the mechanism has no proved budget where it is asked for one; False where it cannot be asked for 1."""
    try:
        return protection.calibrate(mechanism, setting, Budget(1.0, delta)).proved_budget is None
    except InvalidInput:
        return False


def _guess(attacker: Attacker, delta: float) -> float:
    """The answer for one Gaussian release, near that of most methods: a composition of many batches takes seconds to try."""
    if attacker.measure == "tpr":
        mu = float(ndtri(attacker.most) - ndtri(attacker.at_fpr))  # Dong, Roth, Su 2022, eq. (6)
    else:
        advantage = attacker.most if attacker.measure == "advantage" else 2 * attacker.most - 1
        mu = 2 * float(ndtri(0.5 + advantage / 2))  # its total variation is 2 Phi(mu/2) - 1
    return float(np.clip(gaussian_epsilon(max(delta, 1e-12), mu), *_LIMITS))


def epsilon_by_budget(attacker: Attacker, delta: float) -> float:
    """The largest epsilon that excludes the attacker by (epsilon, delta) alone.

    Raises:
        InvalidInput: delta alone allows more.
    """
    why = f"δ = {delta:g} alone allows more than {attacker}"
    refusal = InvalidInput("attacker", why, "Tolerate more, or choose a smaller delta.")
    return search.largest_argument(
        lambda epsilon: attacker.by_budget(Budget(epsilon, delta)) - attacker.most, 0.0, limits=_LIMITS, refusal=refusal
    )
