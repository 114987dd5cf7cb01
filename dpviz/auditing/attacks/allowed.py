"""The most members that any attacker finds at a rate of false alarms, by the guarantee that is proved.

Halves of one size that differ in one member differ in one replaced row: a replace-one guarantee bounds the attacker on each
pair of them, and as the bound is concave in the false alarms it bounds the means over pairs and over rows as well (Jensen).
"""

import numpy as np

from dpviz.common.arrays import Floats
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
