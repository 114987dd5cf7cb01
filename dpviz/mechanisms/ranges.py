"""Guarantees of a method whose data has ranges that were found privately: a share of the budget pays for them.

`Setting.private_ranges` says that the ranges of the rows' number columns were found with noise in the same rows
(`dpviz.privacy.private_ranges`). They cost `SHARE` of epsilon and delta, and the method has the rest. Both together are within
the whole budget by basic composition: the method may depend on the ranges (Dwork, Roth 2014, Theorem 3.16 and appendix B).
The ranges alone are Gaussian releases of `gaussian_mu` of their budget, so a method that declares an event declares both.

`Mechanism` applies this to every method of every mechanism, so that none is calibrated for a budget that was partly spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpviz.mechanisms.calibration import Calibration
from dpviz.models import Setting
from dpviz.privacy.accounting.events import Composed, Event, Gaussian, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_mu, total_variation
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import shares, together

if TYPE_CHECKING:
    from dpviz.mechanisms.base import Mechanism

#: what a proof supposes where ranges are found privately
PUBLIC_KINDS = "public: which columns hold numbers and which hold categories"


def paid(cal: Calibration, whole: Budget, of_ranges: Budget, what: str = "ranges") -> Calibration:
    """The calibration of a method with the cost of private ranges beside it; `whole` was asked for.

    Args:
        what: the name of what was found privately.
    """
    claimed, proved = (together(budget, of_ranges) for budget in (cal.claimed_budget, cal.proved_budget))
    note = f"{what} were found privately, for {of_ranges} of the total; the method has {cal.budget}"
    made = replace(
        cal,
        budget=whole,
        claimed_budget=claimed,
        proved_budget=proved,
        mu=None,
        details={},
        notes=(*cal.notes, note),
        of_ranges=of_ranges,
        alone=cal.alone or cal,
    )
    return made if proved is None else made.conditional(*cal.conditions, PUBLIC_KINDS)


def _without(setting: Setting) -> Setting:
    return replace(setting, private_ranges=False)


def _free(calibration: Calibration) -> Calibration:
    """The calibration as the method reads it, without its ranges."""
    return replace(calibration, of_ranges=None)


def calibrate(method: Callable[..., Calibration], mechanism: Mechanism, setting: Setting, budget: Budget) -> Calibration:
    """`Mechanism.calibrate` for what the ranges leave of the budget."""
    if not setting.private_ranges:
        return method(mechanism, setting, budget)
    of_ranges, of_model = shares(budget)
    return paid(method(mechanism, _without(setting), of_model), budget, of_ranges)


def automatic(
    method: Callable[..., float], mechanism: Mechanism, knob: str, setting: Setting, budget: Budget | None = None
) -> float:
    """`Mechanism.automatic`: rules are about noise, which is calibrated for the rest of the budget."""
    rest = shares(budget)[1] if setting.private_ranges and budget is not None else budget
    return method(mechanism, knob, _without(setting), rest)


def releases(method: Callable[..., Event | None], mechanism: Mechanism, setting: Setting) -> Event | None:
    """`ReleasesGaussians.releases`: none, as the noise of the ranges has a scale of its own."""
    return None if setting.private_ranges else method(mechanism, setting)


def released(
    method: Callable[..., Event | None], mechanism: Mechanism, setting: Setting, calibration: Calibration
) -> Event | None:
    """`DeclaresEvent.released`, after the ranges."""
    event = method(mechanism, _without(setting), _free(calibration))
    if event is None or calibration.of_ranges is None:
        return event
    mu, steps = gaussian_mu(calibration.of_ranges), steps_of(event)
    if all(isinstance(step.event, Gaussian) and step.sampling == "full" for step in steps):
        return Gaussian(math.hypot(mu, *(step.mu for step in steps)))  # Dong, Roth, Su 2022, Corollary 3.3
    return Composed((Gaussian(mu), event))


def distance(method: Callable[..., float], mechanism: Mechanism, setting: Setting, calibration: Calibration) -> float:
    """`BoundsDistance.distance`: total variations of two releases add up."""
    alone, ranges = method(mechanism, _without(setting), _free(calibration)), calibration.of_ranges
    return alone if ranges is None else min(1.0, alone + total_variation(gaussian_mu(ranges)))


def individual(method: Callable[..., Any], mechanism: Mechanism, problem: Any, calibration: Calibration, *rest: Any) -> Any:
    """`IndividualBudget.individual`: none, as one row's own part in the ranges is not counted."""
    return None if calibration.of_ranges is not None else method(mechanism, problem, calibration, *rest)


def alone(setting: Setting, calibration: Calibration) -> tuple[Setting, Calibration]:
    """The method without its ranges: facts and calibration for what it releases itself, and the budget that it has."""
    of_ranges = calibration.of_ranges
    rest = calibration.budget if of_ranges is None else shares(calibration.budget)[1]
    return _without(setting), replace(_free(calibration), budget=rest)


#: by the name of the method that they are put around
AROUND: dict[str, Callable[..., Any]] = {
    law.__name__: law for law in (automatic, calibrate, releases, released, distance, individual)
}
