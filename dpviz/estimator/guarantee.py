"""The privacy guarantee of an estimator's fit, and the division of one budget among classes."""

from dataclasses import dataclass

from dpviz.common.persons import KEPT_ROWS
from dpviz.mechanisms import Calibration, DeclaresEvent, Mechanism, protection
from dpviz.mechanisms.conditions import PUBLIC_CLASSES, PUBLIC_N, REAL_NOISE, SECRET_RANDOMNESS, SECRET_SEED
from dpviz.models import Setting
from dpviz.privacy.accounting.division import composes, divide, divide_exactly
from dpviz.privacy.accounting.events import Event
from dpviz.privacy.budget import Budget, Neighbouring, Status, status_sentence

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
