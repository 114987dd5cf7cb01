"""Results of membership attacks on a run: tables, a sentence and a verdict.

The most members that any attacker finds at a rate of false alarms, by the guarantee that is proved.

Halves of one size that differ in one member differ in one replaced row: a replace-one guarantee bounds the attacker on each
pair of them, and as the bound is concave in the false alarms it bounds the means over pairs and over rows as well (Jensen).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.auditing.attacks.base import Floats, get_attack
from dpviz.auditing.attacks.judging import CONFIDENCE, RATES, Judged
from dpviz.auditing.result import EXCEEDED, NO_CLAIM, NO_VIOLATION
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.mechanisms.attack import strongest_attack
from dpviz.models import Setting
from dpviz.privacy.budget import Neighbouring, trade_off


def detections_allowed(mechanism: Mechanism, setting: Setting, calibration: Calibration, false_alarms: Floats) -> Floats | None:
    """(k,) upper bounds on detections at (k,) rates of false alarms; None where nothing is proved.

    By the trade-off curve of what is released where that is known, and by (epsilon, delta) everywhere. A guarantee about adding
    and removing a row is applied twice, 1 - f(1 - f(a)): once to take the row away, once to put another in its place (group
    privacy: Dong, Roth, Su 2022).
    """
    budget = calibration.proved_budget
    if budget is None:
        return None
    alarms = np.asarray(false_alarms, float)
    if calibration.neighbouring is Neighbouring.ADD_REMOVE:
        return np.asarray(1 - trade_off(budget, np.minimum(1.0, 1 - trade_off(budget, alarms))))
    best = strongest_attack(mechanism, setting, calibration)
    alone = 1 - trade_off(budget, alarms)
    if best is None or best.reached is None:
        return alone
    return np.asarray(np.minimum(np.minimum(best.reached(alarms), alone), 1.0))


#: chance that an attack without any signal finds even one row
CHANCE = 0.05


@dataclass(frozen=True, eq=False)
class AttackedRun:
    """Results of membership attacks on the rows of a run.

    Attributes:
        spec: the run.
        mechanism: with the hyperparameters of the run, of which automatic ones follow from all rows.
        setting: public facts about half of the rows.
        calibration: of the run's budget for them.
        shadows, targets: how many models the attacker trained, and how many were attacked.
        row_ids: (n,) of the rows in question.
        judged: attack -> its scores beside the truth.
        separation: (n,) how many standard deviations apart a row's signals are with and without it, over shadow models.
        non_private: the same attacks on the minimiser without privacy; None where they were left out or are not there yet.
    """

    spec: RunSpec
    mechanism: Mechanism
    setting: Setting
    calibration: Calibration
    shadows: int
    targets: int
    row_ids: NDArray[np.intp]
    judged: dict[str, Judged]
    separation: Floats
    non_private: AttackedRun | None = None

    def allowed_detections(self, false_alarms: Floats) -> Floats | None:
        """(k,) the most detections that the proved guarantee allows at (k,) rates; None where nothing is proved."""
        return detections_allowed(self.mechanism, self.setting, self.calibration, np.asarray(false_alarms, float))

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each attack and rate of false alarms that has enough trials.

        Columns attack, label, false_alarms, detections, low, high (limits over the target models at 95 %), allowed (by the
        guarantee; NaN where nothing is proved), non_private (detections), auc, advantage, targets.
        """
        bound = self.allowed_detections(np.array(RATES))
        rows = []
        for name, judged in self.judged.items():
            other = None if self.non_private is None else self.non_private.judged.get(name)
            for k, rate in enumerate(RATES):
                found = judged.detections_at(rate)
                rows.append(
                    {
                        "attack": name,
                        "label": get_attack(name).label,
                        "false_alarms": rate,
                        "detections": found.value,
                        "low": found.low,
                        "high": found.high,
                        "allowed": np.nan if bound is None else float(bound[k]),
                        "non_private": np.nan if other is None else other.detections_at(rate).value,
                        "auc": judged.auc,
                        "advantage": judged.advantage,
                        "targets": len(judged.scores),
                    }
                )
        return pd.DataFrame(rows)

    def best(self, rate: float = RATES[0]) -> str:
        """The attack that finds most at a rate of false alarms."""
        return max(self.judged, key=lambda name: np.nan_to_num(self.judged[name].detections_at(rate).value, nan=-1.0))

    @property
    def verdict(self) -> str:
        """ "claim exceeded", "no violation found" or "nothing is claimed" (that is: proved).

        Exceeded where the lower limit of any attack at any rate is above the bound, at 95 % for all of them together.
        """
        bound = self.allowed_detections(np.array(RATES))
        if bound is None:
            return NO_CLAIM
        each = 1 - (1 - CONFIDENCE) / (len(self.judged) * len(RATES))
        lows = [[judged.detections_at(rate, each).low for rate in RATES] for judged in self.judged.values()]
        return EXCEEDED if np.any(np.array(lows) > bound) else NO_VIOLATION

    def sentence(self, rate: float = RATES[0], run: str = "") -> str:
        """A sentence: detections of the best attack, the limit that the guarantee sets, and detections without privacy.

        Args:
            run: what the run is called; its epsilon by default.
        """
        found, bound = self.judged[self.best(rate)].detections_at(rate).value, self.allowed_detections(np.array([rate]))
        count = {1: "the attack", 5: "the best of five attacks"}.get(len(self.judged), f"the best of {len(self.judged)} attacks")
        if np.isnan(found):
            return f"Too few rows and target models to count detections at {_percent(rate)} false alarms."
        opening = f"With {run}" if run else f"At ε = {self.spec.epsilon:.3g}"
        messages = [f"{opening} {count} finds {_percent(found)} of the members at {_percent(rate)} false alarms"]
        messages.append("no guarantee is proved" if bound is None else f"the guarantee allows {_percent(float(bound[0]))}")
        if self.non_private is not None and self.non_private.judged:
            other = self.non_private
            without = other.judged[other.best(rate)].detections_at(rate).value
            messages.append(f"without privacy {_percent(without)}" if np.isfinite(without) else "too few trials without privacy")
        return "; ".join(messages) + "."

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Rows in question by row_id, the most exposed first: how often attacks find each, at 1 % false alarms over all rows.

        Columns separation; for each attack `<attack>_found` (share of the target models trained on the row in which it is
        called a member) and `<attack>_alarms` (the same of the others); attacks_that_find: how many attacks call it a member
        more often where it is one than chance explains (hypergeometric test, `CHANCE` for all rows together). Not private.
        """
        from scipy.stats import hypergeom  # a fifth of a second, which the first page does not need

        table, finding = pd.DataFrame({"separation": self.separation}), np.zeros(len(self.row_ids), int)
        for name, judged in self.judged.items():
            called, member = judged.scores > judged.threshold_at(RATES[0]), judged.member
            right, there, all_called = (called & member).sum(axis=0), member.sum(axis=0), called.sum(axis=0)
            table[f"{name}_found"] = right / np.maximum(there, 1)
            table[f"{name}_alarms"] = (all_called - right) / np.maximum(len(member) - there, 1)
            p = hypergeom.sf(right - 1, len(member), there, all_called)
            finding += (p < CHANCE / len(self.row_ids)) & (all_called > 0)
        table.insert(1, "attacks_that_find", finding)
        table.index = pd.Index(self.row_ids, name="row_id")
        return table.sort_values("separation", ascending=False, kind="stable")


def _percent(share: float) -> str:
    """ "1.3 %", with a digit more below 1 %."""
    return f"{100 * share:.{1 if share >= 0.00995 or share == 0 else 2}f}".removesuffix(".0") + " %"
