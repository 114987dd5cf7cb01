"""The audit from one training: false alarms, planted mistakes, and what it refuses."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from support import make_problem

import dpviz
from dpviz.auditing import EXCEEDED, NO_CLAIM, NO_VIOLATION, audit_one_run, axis_canaries, row_canaries
from dpviz.auditing.one_run import judge_one_run, plan
from dpviz.common.random import spawn
from dpviz.dashboard.audit.one_training import sentence
from dpviz.mechanisms import Calibration, Fit, Mechanism, Training
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Setting, get_model
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring

BUDGET = Budget(1.0, 1e-5)


class Weak(OutputGaussian):
    """The planted mistake: a fifth of the noise that is declared."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        right = super().calibrate(setting, budget)
        return dataclasses.replace(right, noise_scale=0.2 * right.noise_scale)


def exactly_gaussian(budget: Budget) -> tuple[Mechanism, Any]:
    """Output perturbation that spends all of its sensitivity on every canary: the SVM's loss is straight there."""
    mechanism = OutputGaussian()
    canaries = axis_canaries(mechanism, get_model("svm"), BUDGET, 200, 0.1)
    minima = [canaries.apply_coins(np.full(200, form)).optimum for form in (True, False)]
    noise = mechanism.calibrate(canaries.problem.setting, budget).noise_scale
    assert np.allclose((minima[0] - minima[1]) / noise, gaussian_mu(budget), rtol=1e-3)
    return mechanism, canaries


def test_an_exactly_gaussian_mechanism_raises_no_alarm_and_a_fifth_of_its_noise_is_seen() -> None:
    mechanism, canaries = exactly_gaussian(BUDGET)
    right = [audit_one_run(mechanism, canaries, BUDGET, seed=k).verdict for k in range(40)]
    assert right.count(EXCEEDED) <= binom.ppf(1 - 1e-6, 40, 0.05)
    weak = [audit_one_run(Weak(), canaries, BUDGET, seed=k) for k in range(20)]
    assert sum(r.verdict == EXCEEDED for r in weak) > 15
    assert all((r.verdict == EXCEEDED) == (r.epsilon_lower > 1) for r in weak)


def promise(claim: Budget) -> Calibration:
    """A calibration that proves a budget, whatever it is for."""
    return Calibration.proved(claim, query="", sensitivity_source="", sensitivity=1.0, noise_scale=1.0, accountant="")


def alarms(claim: Budget, mu: float, canaries: int, audits: int, confidence: float) -> int:
    """How many audits refute a claim where the evidence on every canary is N(+-mu/2, 1)."""
    calibration, rng, found = promise(claim), np.random.default_rng(5), 0
    for _ in range(audits):
        coins = rng.random(canaries) < 0.5
        evidence = np.where(coins, mu / 2, -mu / 2) + rng.standard_normal(canaries)
        result = judge_one_run("gaussian", calibration, evidence, coins, seed=0, confidence=confidence)
        found += result.verdict == EXCEEDED
    return found


@pytest.mark.parametrize(
    ("epsilon", "canaries", "audits"), [(1.0, 300, 100), pytest.param(4.0, 1000, 200, marks=pytest.mark.long)]
)
def test_exact_gaussians_and_the_mistake_that_is_said_to_be_visible(epsilon: float, canaries: int, audits: int) -> None:
    claim = Budget(epsilon, 1e-5)
    mu, share = gaussian_mu(claim), plan(canaries, claim, 0.95)[1]
    assert alarms(claim, mu, canaries, audits, 0.95) <= binom.ppf(1 - 1e-6, audits, 0.05)
    assert 0.1 < share < 1
    # at the share that is named, the attacker expects as many right guesses as refute the claim
    assert 0.3 < alarms(claim, mu / share, canaries, audits, 0.95) / audits < 0.7
    assert alarms(claim, 1.5 * mu / share, canaries, audits, 0.95) > 0.85 * audits


def test_how_many_guesses_does_not_depend_on_the_outcome() -> None:
    calibration = promise(BUDGET)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        result = judge_one_run("any", calibration, rng.standard_normal(300), rng.random(300) < 0.5, seed=0, confidence=0.95)
        seen.add((result.guesses, int((result.table["guess"] != 0).sum())))
    assert seen == {(plan(300, BUDGET, 0.95)[0],) * 2}


@pytest.mark.parametrize(
    ("name", "params", "verdict"),
    [
        ("dp-sgd", {}, NO_VIOLATION),
        ("dp-sgd", {"batches": "reshuffled"}, NO_VIOLATION),
        ("dp-sgd", {"relation": "add-remove"}, NO_VIOLATION),
        ("ldp-gaussian", {}, NO_VIOLATION),
        ("amp", {}, NO_VIOLATION),
        ("non-private", {}, NO_CLAIM),
        ("pidp-sgd", {}, EXCEEDED),
        ("dbdp-pi", {}, EXCEEDED),
    ],
)
def test_mechanisms_are_audited_as_they_are(name: str, params: dict[str, object], verdict: str) -> None:
    mechanism = dpviz.list_mechanisms()[name].from_params(params)
    canaries = axis_canaries(mechanism, get_model("logistic"), BUDGET, 200)
    assert canaries.neighbouring == params.get("relation", "replace-one")
    result = dpviz.audit_one_run(mechanism, canaries, BUDGET, seed=3)
    assert result.verdict == verdict
    assert sentence(result).endswith("claims no privacy." if verdict == NO_CLAIM else f"{verdict}.")
    assert result.correct == round(result.guessed_right * result.guesses) <= result.guesses <= 200
    again = audit_one_run(mechanism, canaries, BUDGET, seed=3)
    assert again.table.equals(result.table)
    assert not audit_one_run(mechanism, canaries, BUDGET, seed=4).table["first"].equals(result.table["first"])


def test_rows_of_real_data_and_networks_can_be_canaries() -> None:
    problem = make_problem(n=200, d=6)
    canaries = row_canaries(DPGD(), problem, BUDGET, 150, seed=1)
    assert len(canaries) == 150
    assert (canaries.y == -canaries.first.y).all()
    drawn = canaries.apply_coins(np.arange(150) < 75)
    changed = np.flatnonzero(drawn.rows.y != problem.rows.y)
    assert np.array_equal(changed, canaries.positions[75:])
    assert audit_one_run(DPGD(), canaries, BUDGET).verdict == NO_VIOLATION
    sgd = dpviz.list_mechanisms()["dp-sgd"].from_params({"epochs": 2.0})
    assert audit_one_run(sgd, axis_canaries(sgd, get_model("mlp-4"), BUDGET, 50), BUDGET).canaries == 50


def test_the_attacker_knows_the_point_at_which_a_network_starts() -> None:
    starts: list[np.ndarray] = []

    class Watched(DPGD):
        def fit(self, training: Training) -> Fit:
            starts.append(training.problem.model.initial(training.problem.m, spawn(0, 2)))
            return super().fit(training)

    mechanism, model = Watched(steps=2), get_model("mlp-2")
    audit_one_run(mechanism, axis_canaries(mechanism, model, BUDGET, 20), BUDGET, seed=5)
    known = model.from_one_start(5).initial(starts[0].shape[1], spawn(1, 1))
    np.testing.assert_array_equal(starts[0], np.repeat(known, 2, axis=0))


def test_rows_of_zeros_stand_for_absent_ones() -> None:
    mechanism = dpviz.list_mechanisms()["dp-sgd"].from_params({"relation": "add-remove"})
    canaries = axis_canaries(mechanism, get_model("logistic"), BUDGET, 20)
    assert canaries.neighbouring is Neighbouring.ADD_REMOVE
    drawn = canaries.apply_coins(np.arange(20) < 5)
    assert np.array_equal(np.flatnonzero(drawn.rows.X.any(axis=1)), np.arange(5))
