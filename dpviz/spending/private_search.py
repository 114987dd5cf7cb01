"""Private search: settings from a fixed list are tried at random, a random number of times, and the best model is released.

The rows are divided by position into a part to train on and a part to score on, so that a row takes part in one of the two.
A run draws a setting, trains with it and scores the model by the number of right predictions plus Gaussian noise. Its Rényi
curve is the larger one of training and score. What the best of all runs costs is in `privacy.accounting.repeated_selection`.

Where epsilon is for a person with at most k rows, neighbours differ in up to k rows at the same positions (`common.persons`),
some of them trained on and some scored on. They are joined by k tables that differ in one row each, and the whole search is
(e, d)-DP for a row: so it is (k e, d (1 + exp(e) + ... + exp((k-1) e)))-DP for the person (`mechanisms.persons.budget_of_group`).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_range
from dpviz.mechanisms import Calibration, DeclaresEvent, Mechanism, protection
from dpviz.mechanisms.persons import budget_of_group, budget_of_row
from dpviz.models import Setting
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.repeated_selection import Repetitions, best_of, replace_one_curve
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.private_ranges import total_budget
from dpviz.privacy.search import largest_argument
from dpviz.spending.ledger import Entry, Ledger

Model = TypeVar("Model")

_LEAST_SHARE = 1e-3  # of the total: the smallest epsilon that a run is given

#: what must hold beside the conditions of the settings
CONDITIONS = ("the list of settings was fixed before looking at the rows", "only the best model leaves the search")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A setting of the list.

    Attributes:
        mechanism: with its hyperparameters.
        setting: public facts of the rows that are trained on, its regularisation included; for a row, also where the search is
            for persons.
        models: trained with this setting in one run, each with a calibration of its own: one for each of several classes.
    """

    mechanism: Mechanism
    setting: Setting
    models: int = 1


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a search's budget, from public facts alone.

    Attributes:
        total: what the release of the best model is proved to cost.
        each: the budget that every model of a run is calibrated for.
        calibrations: one for each candidate.
        score_sigma: standard deviation of the noise on the number of right predictions.
        repetitions: the distribution of the number of runs.
        person_rows: rows of one person at most; 0 where epsilon is for a row. `each` and `calibrations` are for a row.
    """

    total: Budget
    each: Budget
    calibrations: tuple[Calibration, ...]
    score_sigma: float
    repetitions: Repetitions
    person_rows: int = 0

    @property
    def accountant(self) -> str:
        """The accountant of the total, in words."""
        return (
            f"best of a random number of runs, {self.repetitions.mean:.3g} on average, over {len(self.calibrations)} settings, "
            f"each at {self.each} (Papernot, Steinke 2022, Theorem 2; Rényi DP)"
            + (f"; {self.person_rows:,} rows of one person by group privacy of the whole search" if self.person_rows > 1 else "")
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of the total."""
        return tuple(dict.fromkeys([*(c for cal in self.calibrations for c in cal.conditions), *CONDITIONS]))

    def calibration(self, index: int) -> Calibration:
        """The calibration of the best model, which has this setting, with the guarantee of the whole search."""
        return replace(
            self.calibrations[index],
            budget=self.total,
            proved_budget=self.total,
            claimed_budget=None,
            accountant=self.accountant,
            mu=None,
            details={},
            person_rows=self.person_rows,
        ).conditional(*self.conditions)

    def enter(self, ledger: Ledger, call: str, of_ranges: Budget | None = None, *conditions: str) -> None:
        """Writes the search into a ledger, with private ranges before it where there are some, or refuses it."""
        cal = self.calibration(0).conditional(*dict.fromkeys((*self.conditions, *conditions)))
        total = total_budget(self.total, of_ranges) or self.total
        ledger.spend(Entry(total, "search", cal.status, cal.conditions, call, person_rows=cal.person_rows), cal.neighbouring)


def plan(candidates: Sequence[Candidate], repetitions: Repetitions, total: Budget, person_rows: int = 0) -> Plan:
    """The largest budget for each run with which the whole search meets the total.

    Args:
        candidates: the list of settings, at least one.
        total: epsilon and delta of the release, delta > 0.
        person_rows: rows of one person at most, of whom the total is; 0 for that of a row.

    Raises:
        InvalidInput: delta is 0, a setting cannot be used or is under add-remove, or its mechanism has no proof or Rényi curve.
    """
    if not candidates:
        raise InvalidInput("grid", "holds no setting", "Give at least one.")
    if any(candidate.setting.person_rows for candidate in candidates):
        raise ValueError("candidates are for a row; group privacy is of the whole search")
    check_range("delta", total.delta, 1e-100, 1 - 1e-12)  # beside which the grid of what is published leaves nothing
    count = max(1, person_rows)
    row = budget_of_row(total, count)
    if row.delta <= 0:
        cause = f"{total.epsilon:g} is so large that group privacy leaves no δ for one of {count:,} rows"
        raise InvalidInput("epsilon", cause, "Choose a smaller epsilon, or keep fewer rows of a person.")

    def planned(epsilon: float) -> Plan:
        each = Budget(epsilon, row.delta)
        calibrations = tuple(_calibrated(candidate, each) for candidate in candidates)
        curve = _curve(candidates, calibrations)
        # the score may cost what training costs: sigma^2 = max a/(2 R(a)), for a count that one row changes by at most 1
        sigma = math.sqrt(float(np.max(np.asarray(rdp.ORDERS) / (2 * np.maximum(curve, 1e-300)))))
        cost = Budget(max(best_of(curve, repetitions, row.delta), 1e-12), row.delta)
        whole = budget_of_group(cost, count) if count > 1 else cost
        return Plan(whole, each, calibrations, sigma, repetitions, person_rows)

    cause = f"{total} is too small for a search: a single run would be left with less than a thousandth of it"
    refusal = InvalidInput("epsilon", cause, "Choose a larger epsilon or fewer runs.")
    limits = (row.epsilon * _LEAST_SHARE, row.epsilon)
    epsilon = largest_argument(
        lambda e: planned(e).total.epsilon - total.epsilon,
        math.log(row.epsilon / 2),
        tolerance=1e-4,
        margin=1e-4,
        limits=limits,
        refusal=refusal,
    )
    return planned(epsilon)


def _calibrated(candidate: Candidate, each: Budget) -> Calibration:
    candidate.mechanism.require(candidate.setting)
    cal = protection.calibrate(candidate.mechanism, candidate.setting, each)
    if cal.neighbouring is Neighbouring.ADD_REMOVE:
        cause = "is add-remove, which makes the number of rows private, and a search divides by the numbers of its two parts"
        raise InvalidInput("relation", cause, "Use replace-one.")
    return cal


def _curve(candidates: Sequence[Candidate], calibrations: Sequence[Calibration]) -> Floats:
    """(orders,) the largest Rényi divergence of all settings."""
    curves = []
    for candidate, cal in zip(candidates, calibrations, strict=True):
        mechanism = candidate.mechanism
        event = None
        if isinstance(mechanism, DeclaresEvent) and cal.proved_budget is not None:
            event = protection.released_event(mechanism, candidate.setting, cal)
        if event is None:
            cause = f"{mechanism.id} states no proved release that a search could count"
            raise InvalidInput("mechanism", cause, "Choose output-gaussian or dp-gd, for example.")
        curves.append(candidate.models * replace_one_curve(event))
    return np.max(curves, axis=0)


def search(
    made: Plan, train: Callable[[int], Model], right: Callable[[Model], int], source: random.Random, monitor: Monitor = ignore
) -> tuple[int, Model]:
    """(index of the setting, model) of the best run. Everything else of the search must stay secret, the number of runs too.

    Args:
        made: the plan.
        train: a new private model with the candidate of this index, calibrated as the plan says.
        right: number of rows of the scoring part that a model predicts right.
        source: of secret randomness: `random.SystemRandom()` for what is published.

    Raises:
        InvalidInput: a Poisson number of runs was 0.
    """
    runs = made.repetitions.draw(source.random())
    best: tuple[float, int, Model] | None = None
    for done in range(runs):
        monitor(done / runs)
        index = source.randrange(len(made.calibrations))
        model = train(index)
        score = right(model) + source.gauss(0.0, made.score_sigma)
        if best is None or score > best[0]:
            best = score, index, model
    if best is None:
        raise InvalidInput("repetitions", "the random number of runs was 0, so nothing is released", "Search again.")
    return best[1], best[2]
