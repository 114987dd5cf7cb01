"""The best possible attack: exact where the distribution is known, never above (epsilon, delta) alone, and attained."""

import dataclasses

import numpy as np
import pytest
from support import mostly_long

import dpviz
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.mechanisms import protection
from dpviz.mechanisms.attack import ALONE, DISTANCE, GAUSSIAN, Attack, allowed_accuracy, comparable_bounds, strongest_attack
from dpviz.privacy.budget import Budget, attack_accuracy, corner, trade_off


def attack_of(mechanism: str, epsilon: float = 1.0, **params: object) -> Attack | None:
    spec = dpviz.RunSpec("breast-cancer", mechanism=mechanism, epsilon=epsilon, params=params)
    return strongest_attack(spec.build(), setting_of(spec), calibration_of(spec))


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
def test_no_bound_is_above_that_of_epsilon_and_delta(mechanism: str) -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism=mechanism)
    found = strongest_attack(spec.build(), setting_of(spec), calibration_of(spec))
    if found is None:
        assert calibration_of(spec).proved_budget is None
        return
    assert 0.5 < found.accuracy <= found.accuracy_by_budget
    assert (found.table["detections_at_most"] <= found.table["by_epsilon_delta_alone"] + 1e-12).all()
    assert (found.table["detections_at_most"] >= found.table["false_alarms"] - 1e-9).all()
    assert (np.diff(found.table["detections_at_most"]) >= -1e-9).all()
    # the curve says the same as its best point, up to the grid of false alarms
    assert 0.5 + (found.best[1] - found.best[0]) / 2 == pytest.approx(found.accuracy, abs=2e-3)


@pytest.mark.parametrize("mechanism", ["dp-gd", "dp-sgd", "bassily-sgd", "rsgd-ar", "cms-output", "amp"])
@pytest.mark.parametrize("epsilon", mostly_long([0.1, 1.0, 8.0], 0.1))
def test_the_headline_is_what_the_whole_curve_says(mechanism: str, epsilon: float) -> None:
    """Guesses are right as often as the curve allows at its largest distance, though the curve is not computed for it."""
    found = attack_of(mechanism, epsilon)
    assert "table" not in vars(found), "the curve waits until it is read"
    even = 0.5 + (found.best[1] - found.best[0]) / 2
    assert found.accuracy == pytest.approx(even, abs=1e-4), "four decimals, so the shown per cent is the same"
    assert "table" in vars(found)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
def test_the_share_of_right_guesses_is_that_at_the_bend_of_the_trade_off(delta: float) -> None:
    """(1 + detections - false alarms)/2 at its largest, from the curve itself; with half of delta it would be too small."""
    budget = Budget(0.7, delta)
    alarms = np.append(np.linspace(0, 1, 2001), corner(budget))
    reached = float((1 - trade_off(budget, alarms) - alarms).max())
    assert attack_accuracy(budget) == pytest.approx(0.5 * (1 + reached), rel=1e-12)


@pytest.mark.parametrize("mechanism", ["dp-gd", "cms-output", "kst-objective"])
@pytest.mark.parametrize("factor", [0.25, 4.0, None])
def test_every_bound_rests_on_the_proof_whatever_is_claimed(mechanism: str, factor: float | None) -> None:
    """Claims smaller and larger than what is proved, and none: the first would show people as safer than they are."""
    spec = dpviz.RunSpec("breast-cancer", mechanism=mechanism)
    build, setting, cal = spec.build(), setting_of(spec), calibration_of(spec)
    proved = cal.proved_budget
    assert proved is not None
    claimed = None if factor is None else Budget(factor * proved.epsilon, proved.delta)
    changed = dataclasses.replace(cal, claimed_budget=claimed)
    alone, shown = strongest_attack(build, setting, cal), strongest_attack(build, setting, changed)
    assert shown.budget == proved
    assert (shown.accuracy, shown.accuracy_by_budget) == (alone.accuracy, attack_accuracy(proved))
    assert shown.table.equals(alone.table)
    assert allowed_accuracy(build, setting, changed) == shown.accuracy


def test_a_claim_without_a_proof_is_audited_and_bounds_nothing() -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism="input-perturbation", epsilon=2.0)
    cal = calibration_of(spec)
    assert (cal.proved_budget, cal.claimed_budget) == (None, cal.budget)
    assert strongest_attack(spec.build(), setting_of(spec), cal) is None
    assert allowed_accuracy(spec.build(), setting_of(spec), cal) == attack_accuracy(cal.budget)
    assert allowed_accuracy(spec.build(), setting_of(spec), cal.noiseless()) is None


def test_detections_at_a_rate_of_false_alarms_are_those_of_the_trade_off() -> None:
    attack = Attack(0.8, 0.8, Budget(1.0, 1e-5), "")
    for alarms in (0.0, 0.05, 0.3, 1.0):
        expected = 1 - trade_off(Budget(1.0, 1e-5), np.array([alarms]))[0]
        assert attack.detections_at(alarms) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_choice_that_was_paid_for_shifts_the_curve_of_batches_by_its_epsilon(relation: str) -> None:
    """The choice of row scaling; (e, delta) of batches is (e + epsilon of the choice, delta) of both."""
    spec = dpviz.RunSpec("breast-cancer", mechanism="dp-sgd", epsilon=1.5, params={"relation": relation})
    cal, setting = calibration_of(spec), setting_of(spec)
    assert cal.preparation_epsilon > 0, "the control: something was paid for"
    found = strongest_attack(spec.build(), setting, cal)
    own = strongest_attack(spec.build(), *protection.method_part(setting, cal))
    alarms = np.linspace(0.001, 0.6, 40)
    pair = np.exp(cal.preparation_epsilon) * own.reached(alarms)  # a test of both, after the best outcome of the choice
    assert (found.reached(alarms) <= pair + 1e-9).all()
    assert (found.reached(alarms) > own.reached(alarms)).all()
    assert own.accuracy < found.accuracy < own.accuracy + np.tanh(cal.preparation_epsilon / 2)
    assert found.accuracy < attack_accuracy(Budget(1.5, 1e-5)) - 0.05, "far below (ε, δ) alone"


def test_two_bounds_are_compared_in_one_kind() -> None:
    """By (epsilon, delta) alone where one of the two rests on nothing else; each by its own noise otherwise."""
    budget = Budget(1.0, 1e-5)
    alone, exact, distance = (
        Attack(accuracy, 0.7, budget, basis) for accuracy, basis in ((0.7, ALONE), (0.55, GAUSSIAN), (0.6, DISTANCE))
    )
    assert comparable_bounds(alone, exact) == comparable_bounds(exact, alone) == (0.7, 0.7)
    assert comparable_bounds(exact, distance) == (0.55, 0.6)
