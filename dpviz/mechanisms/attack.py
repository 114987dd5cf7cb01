"""The best possible attack on a mechanism's output: the largest share of correct guesses about one person.

Where the distribution of what is released is known, its whole trade-off curve bounds the attacker; the pair
(epsilon, delta) alone allows more and is used only where nothing else is known. One bound, used by every page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.random import prob_positive
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.calibration import Calibration
from dpviz.mechanisms.capabilities import ReleasesGaussians
from dpviz.models import Setting
from dpviz.privacy.accounting import curves, tables
from dpviz.privacy.accounting.events import Event
from dpviz.privacy.accounting.gaussian import gaussian_mu, total_variation
from dpviz.privacy.budget import Budget, attack_accuracy, corner, trade_off
from dpviz.privacy.individual import IndividualEpsilon

Floats = NDArray[np.float64]

_LARGEST = 700.0  # epsilon beyond which exp overflows and every attacker is right


@dataclass(frozen=True, eq=False)
class Attack:
    """What no attacker can beat who knows all rows but one and sees the output.

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
    """The best possible attack by the tightest bound that is known; None where no budget is proved.

    - Gaussian noise on queries of known sensitivity: the exact trade-off curve of Gaussian releases (Dong, Roth, Su
      2022, Theorem 2.7), or that of the composed subsampled releases.
    - Noise with density ~ exp(-|b|/scale) on the output: by total variation. The density falls with |b|, so the best
      even guess is the nearer of two centres at the sensitivity's distance, a half-space.
    - Everything else: by (epsilon, delta) alone (Kairouz, Oh, Viswanath 2015).
    """
    budget = calibration.proved_budget
    if budget is None:
        return None
    # replace-one only, as everywhere where accountants are compared
    gaussian = isinstance(mechanism, ReleasesGaussians) and mechanism.releases(setting) is not None
    event = mechanism.released(setting, calibration) if gaussian and isinstance(mechanism, ReleasesGaussians) else None
    by_budget = attack_accuracy(budget)
    if event is not None:
        accuracy = min(0.5 + curves.advantage(event) / 2, by_budget)
        basis = "the exact distribution of the Gaussian noise"
        return Attack(accuracy, by_budget, budget, basis, partial(_by_noise, event, budget.delta))
    if mechanism.family == "output" and calibration.noise_family == "gamma-sphere" and calibration.noise_scale > 0:
        half = np.array(calibration.sensitivity / 2)
        # |<b, e>| <= Delta/2 for the unit vector e between the two centres
        inside = 2 * float(prob_positive("gamma-sphere", calibration.noise_scale, setting.m, half, np.ones(()))) - 1
        accuracy = min(0.5 + inside / 2, by_budget)
        return Attack(accuracy, by_budget, budget, "the exact distribution of the noise", partial(np.add, inside))
    return Attack(by_budget, by_budget, budget, "(ε, δ) alone")


def allowed_accuracy(mechanism: Mechanism, setting: Setting, calibration: Calibration) -> float | None:
    """Largest share of correct guesses that the guarantee allows; None where nothing is claimed or proved.

    What is claimed comes first. It is the tightest bound where the claim is proved, and (epsilon, delta) alone otherwise.
    """
    claim = calibration.claimed_budget or calibration.proved_budget
    if claim is None:
        return None
    proved = strongest_attack(mechanism, setting, calibration) if claim == calibration.proved_budget else None
    return attack_accuracy(claim) if proved is None else proved.accuracy


def _by_noise(event: Event, delta: float, alarms: Floats) -> Floats:
    """The most detections at each rate of false alarms, by the distribution of an event."""
    table = tables.attack(event, delta).table
    return np.interp(alarms, table["false_alarms"], table["detections_at_most"])


def attack_on_person(individual: IndividualEpsilon, position: int, anybody: Attack | None) -> float:
    """Largest share of correct guesses about one training row; never above the bound for anybody.

    Args:
        known: individual epsilon of all rows.
        position: of the row among the training rows.
        anybody: the bound that holds for every row.
    """
    epsilon, delta = float(individual.epsilon[:, position].max()), individual.delta
    if epsilon <= 0:
        own = 0.5 * (1 + delta)
    elif individual.gaussian and delta > 0:
        own = 0.5 * (1 + total_variation(gaussian_mu(Budget(min(epsilon, _LARGEST), delta))))
    else:
        own = attack_accuracy(Budget(min(epsilon, _LARGEST), delta))
    return own if anybody is None else min(own, anybody.accuracy)
