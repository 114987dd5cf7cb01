"""From a tolerated attacker to epsilon: the least noise of a mechanism with which no attacker does better.

The search goes through the trade-off curve of what is released (Kulynych et al., NeurIPS 2024): a mechanism that is calibrated to
an (epsilon, delta) which alone excludes the attacker adds more noise than it needs.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from dpviz.common.validate import InvalidInput, check_choice, check_range, number_from_text, show
from dpviz.mechanisms import protection
from dpviz.mechanisms.attack import strongest_attack
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.calibration import Calibration
from dpviz.models import Setting
from dpviz.privacy import search
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget, attack_accuracy, trade_off

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

    def reached(self, mechanism: Mechanism, setting: Setting, calibration: Calibration) -> float:
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
        return attacker.reached(mechanism, setting, calibration) - attacker.most

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
