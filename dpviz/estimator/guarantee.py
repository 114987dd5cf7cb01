"""The privacy guarantee of an estimator's fit, and the division of one budget among classes.

The plan of a fit's budget, from public facts alone: for ranges, and for one or more models.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.common.persons import KEPT_ROWS
from dpviz.mechanisms import Calibration, DeclaresEvent, Mechanism, protection
from dpviz.mechanisms.calibration import PUBLIC_CLASSES, PUBLIC_N, REAL_NOISE, SECRET_RANDOMNESS, SECRET_SEED
from dpviz.mechanisms.persons import privacy_unit
from dpviz.models import Setting
from dpviz.privacy.accounting.division import composes, divide, divide_exactly
from dpviz.privacy.accounting.events import Event
from dpviz.privacy.budget import Budget, Neighbouring, Status, status_sentence
from dpviz.privacy.private_ranges import shares
from dpviz.privacy.private_ranges import total_budget as add_range_cost
from dpviz.releasing.grid import add_grid_slack
from dpviz.spending.ledger import Entry
from dpviz.spending.of_run import entry_of

#: what `Guarantee.looked_at` says where the classes were taken from the labels
CLASS_LABELS = "class labels"


class PrivacyWarning(UserWarning):
    """Something that a person who counts on privacy should know."""


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of a released model.

    Attributes:
        mechanism: its id.
        claimed: the budget that the publication states for the whole model, None where it states none.
        proved: the budget that a proof supports for the whole model, None where none does.
        relation: which datasets are compared; the number of rows is public.
        accountant: how the budget was turned into noise.
        status: how far the guarantee can be trusted.
        conditions: what must hold for `proved`.
        looked_at: what was read from the rows before training, not covered by epsilon.
        models: binary models in the release, 1, or one for each class of three or more.
        composition: how the budget was divided among them, "" for one.
        notes: remarks for people.
        unit: what epsilon is for, in words: one row, or one person.
    """

    mechanism: str
    claimed: Budget | None
    proved: Budget | None
    relation: Neighbouring
    accountant: str
    status: Status
    conditions: tuple[str, ...]
    looked_at: tuple[str, ...]
    models: int
    composition: str
    notes: tuple[str, ...]
    unit: str

    def __str__(self) -> str:
        budget = self.proved or self.claimed or "nothing"
        return f"{self.sentence}: {budget} ({self.relation.value}) for {self.unit}, {self.accountant}"

    @property
    def sentence(self) -> str:
        """The status with what no epsilon covers, as of a `Calibration`; the class labels are among `conditions`."""
        return status_sentence(self.status, len([what for what in self.looked_at if what != CLASS_LABELS]))


def conditions_of(cal: Calibration, *, exact: bool, seeded: bool) -> tuple[str, ...]:
    """The conditions of the proof for this model: those of the calibration and those of the fit.

    Args:
        exact: whether the noise was drawn exactly and added on a grid, so that it counts as real-valued.
        seeded: whether its randomness follows from a seed.
    """
    if cal.proved_budget is None:
        return cal.conditions
    fit = () if exact else (REAL_NOISE,)
    secret = (SECRET_SEED,) if seeded else () if exact else (SECRET_RANDOMNESS,)
    kept = (f"public: {KEPT_ROWS}",) if cal.person_rows else ()
    number = () if cal.neighbouring is Neighbouring.ADD_REMOVE else (PUBLIC_N,)  # that one has a condition of its own
    return (*cal.conditions, *number, *kept, PUBLIC_CLASSES, *fit, *secret)


def share(mechanism: Mechanism, setting: Setting, budget: Budget, models: int) -> tuple[Budget, str]:
    """(budget of each of several models, how it was divided).

    Where the mechanism declares its releases as Gaussians, those of all models are composed exactly. Otherwise the composition
    theorem that holds for all mechanisms is used.
    """
    if models == 1:
        return budget, ""
    if isinstance(mechanism, DeclaresEvent):
        declaring: DeclaresEvent = mechanism

        def released(each: Budget) -> Event | None:
            cal = protection.calibrate(declaring, setting, each)
            usable = cal.proved_budget is not None and cal.neighbouring is Neighbouring.REPLACE_ONE
            return protection.released_event(declaring, setting, cal) if usable else None

        first = released(Budget(budget.epsilon / models, budget.delta)) if budget.delta > 0 else None
        if first is not None and composes(first):

            def again(each: Budget) -> Event:
                event = released(each)
                assert event is not None  # whether it is known does not depend on the budget
                return event

            each = divide_exactly(budget, models, again)
            return each, f"{models} models of {each} each; their Gaussian releases are composed exactly"
    each = divide(Budget(budget.epsilon) if mechanism.pure else budget, models)
    return each, f"{models} models of {each} each, by the composition theorem of Kairouz, Oh and Viswanath (2015)"


def total_budgets(cal: Calibration, each: Budget, whole: Budget, models: int, pure: bool) -> tuple[Budget | None, Budget | None]:
    """(claimed, proved) of all models together: the whole budget where each keeps to its share, else plain addition."""

    def total(one: Budget | None) -> Budget | None:
        if one is None or models == 1:
            return one
        if one.epsilon <= each.epsilon * (1 + 1e-12) and one.delta <= each.delta * (1 + 1e-12):
            return Budget(whole.epsilon) if pure else whole
        return Budget(models * one.epsilon, min(models * one.delta, 1 - 1e-16))

    return total(cal.claimed_budget), total(cal.proved_budget)


@dataclass(frozen=True, eq=False)
class Plan:
    """The budget of one fit, divided.

    Attributes:
        mechanism: of all models.
        setting: public facts of the training rows.
        models: binary models, 1 or one for each class.
        for_ranges: the budget of private ranges, None where they are declared.
        for_models: the budget of all models together.
        each: the budget that each model is calibrated for.
        composition: how `for_models` was divided, "" for one model.
        cal: the calibration of each model.
    """

    mechanism: Mechanism
    setting: Setting
    models: int
    for_ranges: Budget | None
    for_models: Budget
    each: Budget
    composition: str
    cal: Calibration

    @classmethod
    def divide(cls, mechanism: Mechanism, setting: Setting, total: Budget, models: int, *, private_ranges: bool) -> Plan:
        """Divides the total among ranges and models; epsilons and deltas of the two add up to it."""
        for_ranges, for_models = None, total
        if private_ranges:
            for_ranges, for_models = shares(total)
        each, composition = share(mechanism, setting, for_models, models)
        cal = add_grid_slack(mechanism, protection.calibrate(mechanism, setting, each), setting.m)
        return cls(mechanism, setting, models, for_ranges, for_models, each, composition, cal)

    @classmethod
    def from_calibration(
        cls, mechanism: Mechanism, setting: Setting, models: int, each: Budget, cal: Calibration, for_ranges: Budget | None = None
    ) -> Plan:
        """The plan of models that are calibrated already."""
        return cls(mechanism, setting, models, for_ranges, each, each, "", cal)

    @property
    def budgets(self) -> tuple[Budget | None, Budget | None]:
        """(claimed, proved) budget of the whole fit."""
        claimed, proved = total_budgets(self.cal, self.each, self.for_models, self.models, self.mechanism.pure)
        return add_range_cost(claimed, self.for_ranges), add_range_cost(proved, self.for_ranges)

    def entry(self, call: str, supposed: tuple[str, ...]) -> Entry:
        """The cost of the fit, as an entry of a ledger; `supposed` must hold for the proof."""
        claimed, proved = self.budgets
        cal = self.cal.conditional(*supposed) if proved and supposed else self.cal
        if self.for_ranges is not None:
            total = proved or claimed or self.for_models
            return Entry(total, "release", cal.status, cal.conditions, call, person_rows=cal.person_rows)
        return entry_of(self.mechanism, self.setting, cal, call, models=self.models, together=proved or claimed)

    def guarantee(self, looked_at: tuple[str, ...], supposed: tuple[str, ...]) -> Guarantee:
        """The guarantee of the fit.

        Args:
            looked_at: what was read from the rows, not covered by epsilon.
            supposed: what must hold for the proof.
        """
        claimed, proved = self.budgets
        ranges = () if self.for_ranges is None else (f"ranges were found privately, for {self.for_ranges} of the total",)
        return Guarantee(
            mechanism=self.mechanism.id,
            claimed=claimed,
            proved=proved,
            relation=self.cal.neighbouring,
            unit=privacy_unit(self.cal.person_rows),
            accountant=self.cal.accountant,
            status=Status.PROVED_IF if self.cal.status is Status.PROVED and supposed else self.cal.status,
            conditions=supposed,
            looked_at=looked_at,
            models=self.models,
            composition=self.composition,
            notes=(*self.cal.notes, *ranges),
        )
