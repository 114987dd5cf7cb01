"""A calibration's label: no status without the budgets and conditions that it stands for."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from dpviz.mechanisms import Calibration, OutputNoise
from dpviz.mechanisms.calibration import StepSize
from dpviz.privacy.budget import Budget, Neighbouring, Status

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


@pytest.mark.parametrize("made", ["proved", "claimed", "unprotected"])
def test_each_way_of_making_one_passes_on_all_that_it_is_told(made: str) -> None:
    told = FACTS | {
        "noise_family": "laplace",
        "neighbouring": Neighbouring.ADD_REMOVE,
        "notes": ("a remark",),
        "for_training": StepSize(0.25),
        "details": {"number": 3.0},
    }
    told |= {"conversion": "c", "mu": 0.5} if made == "proved" else {}
    calibration = getattr(Calibration, made)(BUDGET, **told)
    held = vars(calibration) | {"details": {k: v for k, v in calibration.details.items() if k == "number"}}
    assert {name: held[name] for name in told} == told
    assert calibration.details == {"number": 3.0, "step_size": 0.25} | ({"mu": 0.5} if made == "proved" else {})


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


def test_noise_and_sensitivity_are_named_in_words() -> None:
    none = Calibration.claimed(BUDGET, **FACTS | {"sensitivity": float("nan")})
    assert (none.noise_name, none.sensitivity_text) == ("Gaussian", "no bound")
    known = dataclasses.replace(none, sensitivity=0.25, noise_family="gamma-sphere")
    assert (known.noise_name, known.sensitivity_text) == ("gamma-sphere", "0.25")
    assert known.noise_text.startswith("gamma-sphere (density ∝ exp(−‖b‖/scale)), scale "), "few know it by its name"
    assert none.noise_text.startswith("Gaussian, scale ")


def test_the_distribution_at_one_budget_is_of_the_same_family() -> None:
    scale, shared = np.array([1.0, 2.0]), np.arange(3.0)
    apart = np.arange(12.0).reshape(2, 2, 3)
    for family in ("gaussian", "gamma-sphere"):
        for centre, own, one in ((shared, False, shared), (apart, True, apart[1])):
            at = OutputNoise(centre, scale, family, own).at(1)
            assert (at.family, at.scale.tolist()) == (family, [2.0])
            np.testing.assert_array_equal(at.centre, one)


def test_noise_and_sensitivity_have_three_digits_as_all_numbers_for_people() -> None:
    cal = Calibration.proved(Budget(1.0, 1e-5), **FACTS | {"sensitivity": 0.00012345678, "noise_scale": 1234.5678})
    assert cal.sensitivity_text == "0.000123"
    assert "scale 1,230," in cal.noise_text
    assert str(cal.budget) == "(ε = 1, δ = 10⁻⁵)"
