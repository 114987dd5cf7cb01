"""From a tolerated attacker to noise: against closed forms, riskcal, dp-accounting, and the definition itself."""

import math

import numpy as np
import pytest
from riskcal.analysis import get_advantage_from_adp, get_beta_from_adp
from riskcal.calibration import get_advantage_for_dpsgd, get_beta_for_dpsgd
from scipy.stats import norm
from support import mostly_long

import dpviz
from dpviz.mechanisms import get_mechanism
from dpviz.mechanisms.attack import Attacker, epsilon_by_budget, epsilon_for
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

SETTING = get_model("logistic").setting(2000, 10, 1e-3)
DELTA = 1e-6
TEXTS = ("tpr=0.05@fpr=0.01", "advantage=0.1", "accuracy=0.6")


@pytest.mark.parametrize("text", TEXTS)
def test_full_batches_need_the_noise_of_the_closed_form(text: str) -> None:
    """mu = Phi^-1(t) - Phi^-1(a), or 2 Phi^-1((1 + advantage)/2) (Dong, Roth, Su 2022); sigma = Delta sqrt(T)/mu."""
    attacker = Attacker.parse(text)
    mechanism = get_mechanism("dp-gd")(steps=30)
    found = mechanism.calibrate(SETTING, Budget(epsilon_for(attacker, mechanism, SETTING, DELTA), DELTA))
    of = {"tpr": norm.ppf(0.05) - norm.ppf(0.01), "advantage": 2 * norm.ppf(0.55), "accuracy": 2 * norm.ppf(0.6)}
    mu = of[attacker.measure]
    assert found.noise_scale == pytest.approx(found.sensitivity * math.sqrt(30) / mu, rel=1e-3)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["output-gaussian", "rsgd-ar", "cms-output", "objective-tight", "kst-objective", "ldp-duchi"])
def test_no_attacker_is_better_and_hardly_less_noise_would_do(text: str, name: str) -> None:
    attacker, mechanism = Attacker.parse(text), get_mechanism(name)()
    epsilon = epsilon_for(attacker, mechanism, SETTING, DELTA)
    at, above = (mechanism.calibrate(SETTING, Budget(e, DELTA)) for e in (epsilon, 1.01 * epsilon))
    assert attacker.reached(mechanism, SETTING, at) <= attacker.most + 1e-9
    assert attacker.reached(mechanism, SETTING, above) > attacker.most
    assert epsilon >= epsilon_by_budget(attacker, DELTA) * (1 - 1e-3)


def test_riskcal_says_the_same_of_epsilon_and_delta_alone() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        budget = Budget(epsilon, DELTA)
        advantage = get_advantage_from_adp(epsilon, DELTA)
        assert Attacker.parse("advantage=0.1").by_budget(budget) == pytest.approx(advantage, rel=1e-6)
        for fpr in (0.001, 0.01, 0.1):
            missed = float(get_beta_from_adp(epsilon, DELTA, np.array([fpr]))[0])
            assert Attacker("tpr", 0.999, fpr).by_budget(budget) == pytest.approx(1 - missed, rel=1e-6)


@pytest.mark.parametrize("text", mostly_long(["tpr=0.05@fpr=0.01", "tpr=0.6@fpr=0.5", "advantage=0.1"], "advantage=0.1"))
def test_one_sampled_step_under_add_remove_is_known_exactly(text: str) -> None:
    """N(0) beside its mixture with N(1/z), each of the two tested against the other; 5 % less noise lets the attacker win."""
    attacker, q = Attacker.parse(text), 0.5
    mechanism = get_mechanism("dp-sgd").from_params({"relation": "add-remove", "sampling_rate": q, "epochs": q})
    found = mechanism.calibrate(SETTING, Budget(epsilon_for(attacker, mechanism, SETTING, DELTA), DELTA))
    assert found.details["steps"] == 1

    def exact(z: float) -> float:
        y = np.linspace(-9, 9, 200_001)
        alone, mixture = norm.sf(y), (1 - q) * norm.sf(y) + q * norm.sf(y - 1 / z)
        if attacker.measure == "advantage":
            return float((mixture - alone).max())
        a = attacker.at_fpr
        return max(np.interp(a, alone[::-1], mixture[::-1]), np.interp(a, 1 - mixture, 1 - alone))

    z = found.details["noise_multiplier"]
    assert 0.99 * attacker.most < exact(z) <= attacker.most < exact(0.95 * z)


@pytest.mark.parametrize("text", mostly_long(["tpr=0.2@fpr=0.01", "advantage=0.1"], "advantage=0.1"))
def test_sampled_batches_under_add_remove_need_the_noise_that_riskcal_finds(text: str) -> None:
    attacker, q = Attacker.parse(text), 0.1
    mechanism = get_mechanism("dp-sgd").from_params({"relation": "add-remove", "sampling_rate": q, "epochs": 3.0})

    def multiplier(epsilon: float) -> float:
        return mechanism.calibrate(SETTING, Budget(epsilon, DELTA)).details["noise_multiplier"]

    def reached(z: float) -> float:
        if attacker.measure == "advantage":
            return float(get_advantage_for_dpsgd(z, q, 30, 1e-3))
        return 1 - float(get_beta_for_dpsgd(z, q, 30, attacker.at_fpr, 1e-3))

    z = multiplier(epsilon_for(attacker, mechanism, SETTING, DELTA))
    assert reached(z) == pytest.approx(attacker.most, rel=5e-3)
    assert reached(0.95 * z) > 1.02 * attacker.most
    assert multiplier(epsilon_by_budget(attacker, DELTA)) > 1.3 * z


@pytest.mark.parametrize("name", ["dp-svrg", "dp-agd"])
def test_other_methods_under_add_remove_are_never_worse_than_by_epsilon_and_delta(name: str) -> None:
    attacker, mechanism = Attacker.parse("advantage=0.1"), get_mechanism(name).from_params({"relation": "add-remove"})
    assert epsilon_for(attacker, mechanism, SETTING, DELTA) >= epsilon_by_budget(attacker, DELTA) * (1 - 1e-3)


def test_what_is_only_claimed_is_refused() -> None:
    with pytest.raises(dpviz.InvalidInput, match="nothing is proved"):
        epsilon_for(Attacker.parse("advantage=0.1"), get_mechanism("dbdp")(), SETTING, DELTA)


BAD = """
    tpr tpr=0.05 tpr=0.05@ tpr=0.05@fpr= tpr=0.01@fpr=0.05 tpr=0.05@fpr=0 tpr=1.5@fpr=0.1 tpr=nan@fpr=0.1
    advantage=0 advantage=1 advantage=0.1@fpr=0.1 accuracy=0.5 auc=0.6
"""


@pytest.mark.parametrize("text", ["", *BAD.split()])
def test_what_cannot_be_tolerated_is_one_clear_error(text: str) -> None:
    with pytest.raises(dpviz.InvalidInput):
        Attacker.parse(text)


def test_delta_alone_may_allow_more() -> None:
    with pytest.raises(dpviz.InvalidInput, match="δ"):
        epsilon_by_budget(Attacker("tpr", 2e-3, 1e-3), 1e-2)


def test_the_library_takes_an_attacker_in_the_place_of_a_budget() -> None:
    found = dpviz.calibrate("dp-gd", n=2000, d=10, delta=DELTA, attacker="advantage=0.1", steps=30)
    assert found.noise_scale == pytest.approx(found.sensitivity * math.sqrt(30) / (2 * norm.ppf(0.55)), rel=1e-3)
    for both in ({}, {"epsilon": 1.0, "attacker": "advantage=0.1"}):
        with pytest.raises(dpviz.InvalidInput, match="epsilon"):
            dpviz.calibrate("dp-gd", n=2000, d=10, **both)  # type: ignore[arg-type]
