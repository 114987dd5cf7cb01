"""A calibration's label: no status without the budgets and conditions that it stands for."""

import dataclasses
from typing import Any

import pytest

from dpviz.mechanisms import Calibration
from dpviz.privacy.budget import Budget, Status

BUDGET = Budget(1.0, 1e-5)
FACTS: dict[str, Any] = {"query": "q", "sensitivity_source": "s", "sensitivity": 1.0, "noise_scale": 2.0, "accountant": "a"}


def test_each_way_of_making_one_sets_its_own_label() -> None:
    proved = Calibration.proved(BUDGET, **FACTS)
    assert (proved.status, proved.proved_budget, proved.claimed_budget) == (Status.PROVED, BUDGET, BUDGET)
    other = Calibration.proved(BUDGET, **FACTS, proves=Budget(2.0), claims="nothing")
    assert (other.proved_budget, other.claimed_budget) == (Budget(2.0), None)
    conditional = proved.conditional("the minimiser is exact")
    assert (conditional.status, conditional.conditions) == (Status.PROVED_IF, ("the minimiser is exact",))
    claimed = Calibration.claimed(BUDGET, **FACTS)
    assert (claimed.status, claimed.proved_budget, claimed.claimed_budget) == (Status.CLAIM, None, BUDGET)
    nothing = Calibration.unprotected(BUDGET, **FACTS)
    assert (nothing.status, nothing.proved_budget, nothing.claimed_budget) == (Status.NONE, None, None)
    for made in (proved, conditional, claimed, nothing):
        quiet = made.noiseless()
        assert (quiet.status, quiet.noise_scale, quiet.proved_budget, quiet.conditions) == (Status.NONE, 0.0, None, ())


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        ("proved", {"proved_budget": None}),
        ("proved", {"status": Status.CLAIM}),
        ("proved", {"status": Status.NONE}),
        ("proved", {"status": Status.PROVED_IF}),
        ("proved", {"conditions": ("if",)}),
        ("claimed", {"status": Status.PROVED}),
        ("claimed", {"proved_budget": BUDGET}),
        ("claimed", {"claimed_budget": None}),
        ("unprotected", {"claimed_budget": BUDGET}),
        ("unprotected", {"proved_budget": BUDGET}),
    ],
)
def test_a_label_that_does_not_fit_is_an_error(made: str, wrong: dict[str, Any]) -> None:
    calibration = getattr(Calibration, made)(BUDGET, **FACTS)
    with pytest.raises(ValueError, match="does not fit"):
        dataclasses.replace(calibration, **wrong)


def test_a_conditional_guarantee_names_its_conditions() -> None:
    with pytest.raises(ValueError, match="0 conditions"):
        Calibration.proved(BUDGET, **FACTS).conditional()
