"""The entry that a run's release makes in a ledger, and what several trainings of a run cost together."""

from dpviz.common.progress import Monitor, ignore
from dpviz.mechanisms import Calibration, DeclaresEvent, Mechanism, protection
from dpviz.models import Setting
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Mixture, PureEpsilon, Repeated, Shuffled
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.spending.ledger import Entry


def entry_of(
    mechanism: Mechanism,
    setting: Setting,
    calibration: Calibration,
    call: str = "",
    *,
    models: int = 1,
    together: Budget | None = None,
) -> Entry:
    """The entry of one release: its event where that costs no more than the budget, otherwise its budget.

    Args:
        setting: public facts of the training rows.
        calibration: of the mechanism for `setting`.
        call: the call that makes the release, for people.
        models: trained with this calibration on the same rows and released together.
        together: the budget of all of them, where there are several.
    """
    budget = calibration.proved_budget or calibration.claimed_budget
    release: Event | Budget = together or budget or calibration.budget
    if budget is not None and calibration.proved_budget is not None:
        event = _event(mechanism, setting, calibration, budget)
        if event is not None and models == 1:
            release = event
        elif event is not None and not isinstance(event, Mixture | Shuffled):  # whose secret orders may not be independent
            release = Repeated(event, models)
    return Entry(release, "release", calibration.status, calibration.conditions, call, person_rows=calibration.person_rows)


def _event(mechanism: Mechanism, setting: Setting, calibration: Calibration, budget: Budget) -> Event | None:
    """The released event, as the mechanism declares it; None where it is unknown or costs more than the proved budget.

    A mu-Gaussian DP guarantee composes as one Gaussian release does (Dong, Roth, Su 2022, Theorem 3).
    """
    event: Event | None = None
    if isinstance(mechanism, DeclaresEvent):
        event = protection.released_event(mechanism, setting, calibration)
    elif calibration.mu is not None:
        event = Gaussian(calibration.mu)
    if event is None or budget.delta == 0:
        return event
    if isinstance(event, PureEpsilon):  # published on a grid, which leaves a delta
        return None
    try:
        alone = total_epsilon([event], budget.delta, calibration.neighbouring)
    except CannotAccount:
        return None
    return event if alone <= budget.epsilon * (1 + 1e-3) else None


def totals(mechanism: Mechanism, setting: Setting, calibration: Calibration, most: int, monitor: Monitor = ignore) -> list[float]:
    """The smallest proved epsilon, at the budget's delta, of 1 .. most trainings together; empty where nothing is proved.

    Args:
        setting: public facts of the training rows.
        calibration: of the mechanism for `setting`.
        monitor: receives progress; raises to cancel.
    """
    if calibration.proved_budget is None:
        return []
    release, delta = entry_of(mechanism, setting, calibration).release, calibration.budget.delta
    sums = []
    for count in range(1, most + 1):
        sums.append(total_epsilon([release] * count, delta, calibration.neighbouring))
        monitor(count / most)
    return sums
