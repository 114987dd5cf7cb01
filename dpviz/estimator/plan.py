"""The plan of a fit's budget, from public facts alone: for ranges, and for one or more models."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.estimator.guarantee import Guarantee, share, total_budgets
from dpviz.mechanisms import Calibration, Mechanism, protection
from dpviz.mechanisms.persons import privacy_unit
from dpviz.models import Setting
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.private_ranges import shares
from dpviz.privacy.private_ranges import total_budget as with_ranges
from dpviz.releasing.grid import on_grid
from dpviz.spending.ledger import Entry
from dpviz.spending.of_run import entry_of


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
    def of(cls, mechanism: Mechanism, setting: Setting, total: Budget, models: int, *, private_ranges: bool) -> Plan:
        """Divides the total among ranges and models; epsilons and deltas of the two add up to it."""
        for_ranges, for_models = None, total
        if private_ranges:
            for_ranges, for_models = shares(total)
        each, composition = share(mechanism, setting, for_models, models)
        cal = on_grid(mechanism, protection.calibrate(mechanism, setting, each), setting.m)
        return cls(mechanism, setting, models, for_ranges, for_models, each, composition, cal)

    @classmethod
    def given(
        cls, mechanism: Mechanism, setting: Setting, models: int, each: Budget, cal: Calibration, for_ranges: Budget | None = None
    ) -> Plan:
        """The plan of models that are calibrated already."""
        return cls(mechanism, setting, models, for_ranges, each, each, "", cal)

    @property
    def budgets(self) -> tuple[Budget | None, Budget | None]:
        """(claimed, proved) budget of the whole fit."""
        claimed, proved = total_budgets(self.cal, self.each, self.for_models, self.models, self.mechanism.pure)
        return with_ranges(claimed, self.for_ranges), with_ranges(proved, self.for_ranges)

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
