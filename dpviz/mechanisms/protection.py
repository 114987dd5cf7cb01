"""From a method's guarantee for one row to that of a run: person, then preparation, then the method.

A mechanism is calibrated for one row and for all of its budget (`Mechanism.calibrate`). A run may protect a person with several
rows (`Setting.person_rows`, `mechanisms.persons`), and a part of its budget may have paid for what was found in the rows before
training (`Setting.preparations`, `dpviz.preparing`). Whoever has a run's setting and whole budget calls the functions here;
a mechanism knows of neither.

All preparations are Gaussian DP, with mu_p of all of them together (`dpviz.common.paid`). The method may depend on what they
found and has

- sqrt(mu^2 - mu_p^2) of a Gaussian total mu, where it is Gaussian DP itself (Dong, Roth, Su 2022, Corollary 3.3);
- otherwise, by basic composition, what they leave of epsilon: those with delta = 0 take their epsilon, and the others what they
  need at a tenth of delta (Dwork, Roth 2014, Theorem 3.16). A method with delta = 0 keeps it beside the former.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.calibration import Calibration
from dpviz.mechanisms.capabilities import BoundsDistance, BoundsSensitivity, DeclaresEvent, IndividualBudget, ReleasesGaussians
from dpviz.mechanisms.persons import WEIGHTS, calibrate_person, convert_to_person, group_event
from dpviz.mechanisms.results import NoiseRecord
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Composed, Event, Gaussian, PureEpsilon, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_budget, gaussian_epsilon, gaussian_mu, total_variation
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.sensitivity.bounds import Bound

Built = TypeVar("Built", bound=Mechanism)

_DELTA = 0.1  # of delta, for preparations of a method that is not Gaussian DP


def calibrate(mechanism: Mechanism, setting: Setting, budget: Budget) -> Calibration:
    """Noise scale and guarantee of a run, from public facts only.

    Args:
        setting: of the run, with its persons and preparations.
        budget: of the run, for a person where there are persons.

    Raises:
        InvalidInput: the budget cannot be met, with the reason.
    """
    if setting.looked_at:
        return replace(calibrate(mechanism, replace(setting, looked_at=0), budget), looked_at=setting.looked_at)
    if not setting.preparations:
        return _for_unit(mechanism, setting, budget)
    paid = setting.preparations
    spent, own = math.hypot(*(one.mu for one in paid)), preparation_budget(paid, budget.delta)
    cal = _for_unit(mechanism, setting, Budget(budget.epsilon - own.epsilon, budget.delta - own.delta))
    if cal.mu is not None:
        rest = math.sqrt(gaussian_mu(budget) ** 2 - spent**2)
        cal = _for_unit(mechanism, setting, gaussian_budget(rest, budget))

    def total(part: Budget | None) -> Budget | None:
        """The budget with the preparations; that of the method was chosen so that it is the one that was asked for."""
        if part is None or part == cal.budget:
            return None if part is None else budget
        return Budget(part.epsilon + own.epsilon, part.delta + own.delta)

    what = " and ".join(one.what for one in paid)
    share = "A part" if own.delta else f"ε = {own.epsilon:.2g}"
    whole = replace(
        cal,
        budget=budget,
        proved_budget=total(cal.proved_budget),
        claimed_budget=total(cal.claimed_budget),
        mu=None if cal.mu is None else math.hypot(cal.mu, spent),
        notes=(*cal.notes, f"{share} of the total paid for {what}, found privately; the method has {cal.budget}."),
        preparation_mu=spent,
        preparation_epsilon=0.0 if own.delta else own.epsilon,
        method_budget=cal.budget,
        row_calibration=cal.for_row(),
    )
    conditions = dict.fromkeys([*cal.conditions, *(one.condition for one in paid if one.condition)])
    return whole if whole.proved_budget is None or not conditions else whole.conditional(*conditions)


def preparation_budget(paid: Sequence[Paid], delta: float) -> Budget:
    """The share of preparations by basic composition; those without a guarantee at delta = 0 a tenth of `delta`."""
    epsilon, gaussian = sum(one.epsilon for one in paid), [one.mu for one in paid if not one.epsilon]
    if not gaussian:
        return Budget(epsilon, 0.0)
    return Budget(epsilon + float(gaussian_epsilon(_DELTA * delta, math.hypot(*gaussian))), _DELTA * delta)


def _for_unit(mechanism: Mechanism, setting: Setting, budget: Budget) -> Calibration:
    """The calibration for a row or a person, by the setting, without preparations."""
    row, rows = row_setting(setting), setting.person_rows
    if not rows:
        cal = mechanism.calibrate(row, budget)
    elif rows > 1 and mechanism.draws_persons:
        if not setting.linear:
            cause = f"what the mean of a person's gradients costs is not derived here for {setting.model!r}"
            raise InvalidInput("batches", cause, "Choose batches of rows, or a linear model.")
        cal = convert_to_person(mechanism.calibrate(row, budget), rows)
    else:
        cal = calibrate_person(lambda part: mechanism.calibrate(row, part), budget, rows)
    return replace(cal, notes=(*cal.notes, WEIGHTS)) if setting.weighted else cal


def row_setting(setting: Setting) -> Setting:
    """The public facts that a method is calibrated for: one row, no preparation, bounds that hold for every weight."""
    return replace(setting, person_rows=0, weighted=False, preparations=(), looked_at=0)


def method_part(setting: Setting, calibration: Calibration) -> tuple[Setting, Calibration]:
    """Facts and calibration of what the method releases itself, and the budget that it has."""
    own = replace(
        calibration, preparation_mu=0.0, preparation_epsilon=0.0, budget=calibration.method_budget or calibration.budget
    )
    return replace(setting, preparations=()), own


def method_budget(mechanism: Mechanism, setting: Setting, budget: Budget) -> Budget:
    """The part of a run's budget that preparations leave to the method."""
    return calibrate(mechanism, setting, budget).method_budget or budget if setting.preparations else budget


def row_budget(mechanism: Mechanism, setting: Setting, budget: Budget) -> Budget:
    """The budget that the method's own calibration for one row has of a run's budget."""
    if not setting.preparations and not setting.person_rows:
        return budget
    return calibrate(mechanism, setting, budget).for_row().budget


def automatic_lam(mechanism: Mechanism, setting: Setting, budget: Budget) -> float:
    """The regularisation of a run that leaves it automatic; see `Mechanism.automatic_lam`."""
    return mechanism.automatic_lam(row_setting(setting), row_budget(mechanism, setting, budget))


def knob_value(mechanism: Mechanism, knob: str, setting: Setting, budget: Budget) -> Any:
    """A knob's value in a run: as set, or what the mechanism's own rule gives; see `Mechanism.value`."""
    own = row_budget(mechanism, setting, budget) if mechanism.knobs()[knob].automatic else budget
    return mechanism.value(knob, row_setting(setting), own)


def settle(mechanism: Built, setting: Setting, budget: Budget, rows: int = 0) -> Built:
    """The mechanism of a run with every automatic knob set; see `Mechanism.settled`."""
    return mechanism.settle(row_setting(setting), row_budget(mechanism, setting, budget), rows)


def sensitivity_bounds(mechanism: BoundsSensitivity, setting: Setting) -> tuple[Bound, ...]:
    """`BoundsSensitivity.sensitivity_bounds` for the unit that the setting names."""
    k, bounds = setting.person_rows, mechanism.sensitivity_bounds(row_setting(setting))
    if k <= 1 or mechanism.draws_persons:
        return bounds
    return tuple(
        replace(b, value=k * b.value, formula=rf"{k}\cdot {b.formula}", source=f"{b.source}, {k:,} rows of one person")
        for b in bounds
    )


def releases(mechanism: ReleasesGaussians, setting: Setting) -> Event | None:
    """`ReleasesGaussians.releases` for the unit that the setting names; None with preparations, whose noise has other scales."""
    if setting.preparations:
        return None
    return group_event(mechanism.releases(row_setting(setting)), 1 if mechanism.draws_persons else setting.person_rows)


def released_event(mechanism: DeclaresEvent, setting: Setting, calibration: Calibration) -> Event | None:
    """`DeclaresEvent.released` of a run, with its preparations; None without noise or where there is no such statement."""
    if calibration.noise_scale <= 0:
        return None
    own = mechanism.released_event(row_setting(setting), calibration.for_row())
    event = group_event(own, 1 if mechanism.draws_persons else calibration.person_rows)
    if event is None or not calibration.preparation_mu:
        return event
    steps = steps_of(event)
    if all(isinstance(step.event, Gaussian) and step.sampling == "full" for step in steps):
        return Gaussian(math.hypot(calibration.preparation_mu, *(step.mu for step in steps)))
    pure = calibration.preparation_epsilon
    return Composed((PureEpsilon(pure) if pure else Gaussian(calibration.preparation_mu), event))


def distance(mechanism: BoundsDistance, setting: Setting, calibration: Calibration) -> float:
    """`BoundsDistance.distance` of a run: total variations of several rows, and of several releases, add up."""
    row = mechanism.distance(row_setting(setting), calibration.for_row())
    person = row if mechanism.draws_persons else max(1, calibration.person_rows) * row
    return min(1.0, person + total_variation(calibration.preparation_mu))


def individual(
    mechanism: IndividualBudget, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
) -> IndividualEpsilon | None:
    """`IndividualBudget.individual`; None for persons with several rows, after Gaussian preparations, in which a row has a part,
    and for noise that it is not derived for. Preparations with delta = 0 add their epsilon, which holds for every row."""
    known, pure = calibration.noise_family in mechanism.individual_noise, calibration.preparation_epsilon
    if calibration.person_rows > 1 or (calibration.preparation_mu and not pure) or not known:
        return None
    own = mechanism.individual(problem, calibration.for_row(), theta, record)
    if own is None or not pure:
        return own
    parts: dict[str, Any] = {name: getattr(own, name) for name in ("epsilon", "replace", "publishable")}
    return replace(own, gaussian=False, **{name: part + pure for name, part in parts.items() if part is not None})
