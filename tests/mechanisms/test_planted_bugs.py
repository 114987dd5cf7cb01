"""Each planted mistake is caught, by the auditor or by the contract; the mechanism it was planted in is not."""

from typing import Any

import doubles
import pytest
import test_contract as contract

from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit, battery
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

SMALL = {"n": 24, "d": 4, "lam": 0.1}

#: double, its knobs, claimed epsilon, the pair that shows it, iterates seen, sizes, runs
BY_AUDIT: list[tuple[type[Mechanism], dict[str, Any], float, str, tuple[int, ...], dict[str, Any], int]] = [
    (doubles.NoComposition, {"steps": 10}, 1.0, "quiet", (), SMALL, 1000),
    (doubles.ReusedNoise, {"steps": 5}, 1.0, "quiet", (1, 2), SMALL, 1000),
    (doubles.ForgottenClip, {"steps": 5, "clip_norm": 0.2}, 1.0, "quiet", (), SMALL, 1000),
    (doubles.WarmStart, {"steps": 5, "step_size": 0.1}, 1.0, "quiet", (), SMALL, 2000),
    (doubles.FittedScaler, {}, 1.0, "outlier", (), SMALL | {"n": 200}, 1000),
    (doubles.LocalSensitivity, {}, 1.0, "presence", (), SMALL, 1000),
    (doubles.FixedSeed, {}, 1.0, "quiet", (), SMALL, 1000),
    (doubles.PerCoordinateLaplace, {}, 3.0, "quiet", (), SMALL | {"d": 25}, 4000),
    (doubles.FixedBatches, {"steps": 20, "step_size": 0.02}, 1.0, "quiet", (19,), SMALL | {"n": 40}, 2000),
]


def play(cls: type[Mechanism], params: dict[str, Any], eps: float, pair: str, iterates: Any, size: Any, runs: int) -> str:
    mechanism = cls(**params)
    chosen = next(p for p in battery(mechanism, get_model("svm"), **size) if p.name == pair)
    return audit(mechanism, chosen.first, chosen.second, Budget(eps, 1e-5), runs, 3, confidence=0.99, iterates=iterates).verdict


@pytest.mark.parametrize("case", BY_AUDIT, ids=lambda case: case[0].__name__)
def test_the_auditor_catches(case: Any) -> None:
    assert play(*case) == EXCEEDED
    # the same game on what it was before the mistake
    original = next(base for base in case[0].__mro__ if base in (OutputGaussian, DPGD, CMSOutput))
    params = {k: v for k, v in case[1].items() if k in original.knobs()}
    assert play(original, params, *case[2:]) == NO_VIOLATION


def test_noise_that_is_not_a_number_is_no_noise() -> None:
    with pytest.raises(FloatingPointError, match="nan"):
        play(doubles.NaNNoise, {}, 1.0, "quiet", (), SMALL, 40)
    with pytest.raises(AssertionError):
        contract.test_calibration_is_complete(doubles.NaNNoise, "svm")


@pytest.mark.parametrize("cls", [doubles.BatchFactor, doubles.WrongRelation])
def test_the_replay_catches_a_sensitivity_that_is_too_small(cls: type[Mechanism]) -> None:
    with pytest.raises(AssertionError):
        contract.test_replayed_neighbours_stay_within_the_declared_sensitivity(cls, "svm")


def test_the_contract_catches_gaussian_noise_sold_as_pure() -> None:
    with pytest.raises(AssertionError):
        contract.test_gaussian_noise_is_never_sold_as_pure(doubles.PureByName, "svm")


def test_the_contract_catches_a_shuffle_accounted_as_poisson() -> None:
    class Shuffled(doubles.FixedBatches):
        shuffled = True

    for cls in (doubles.FixedBatches, Shuffled):
        with pytest.raises(AssertionError):
            contract.test_what_is_accounted_as_poisson_is_drawn_so(cls)
