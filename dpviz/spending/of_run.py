"""The entry that a run's release makes in a ledger."""

from __future__ import annotations

from dpviz.mechanisms import Calibration, Mechanism
from dpviz.mechanisms.capabilities import DeclaresEvent
from dpviz.models import Setting
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.spending.ledger import Entry


def entry_of(mechanism: Mechanism, setting: Setting, calibration: Calibration, call: str = "", what: str = "release") -> Entry:
    """The entry of one release: its event where that proves no more than the budget, otherwise its budget.

    Args:
        setting: public facts of the training rows.
        calibration: of the mechanism for `setting`.
        call: the call that makes the release, for people.
    """
    budget = calibration.proved_budget or calibration.claimed_budget
    if budget is None:
        return Entry(calibration.budget, what, calibration.status, calibration.conditions, call)
    release: Event | Budget = budget
    if calibration.proved_budget is not None:
        release = _event(mechanism, setting, calibration, budget) or budget
    return Entry(release, what, calibration.status, calibration.conditions, call)


def _event(mechanism: Mechanism, setting: Setting, calibration: Calibration, budget: Budget) -> Event | None:
    """What is released, as the mechanism declares it; None where that is not known or costs more than the proved budget.

    A mu-Gaussian DP guarantee composes as one Gaussian release does (Dong, Roth, Su 2022, Theorem 3).
    """
    event: Event | None = None
    if isinstance(mechanism, DeclaresEvent):
        event = mechanism.released(setting, calibration)
    elif calibration.mu is not None:
        event = Gaussian(calibration.mu)
    if event is None or budget.delta == 0:
        return event
    try:
        alone = total_epsilon([event], budget.delta, calibration.neighbouring)
    except CannotAccount:
        return None
    return event if alone <= budget.epsilon * (1 + 1e-3) else None
