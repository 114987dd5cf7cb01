"""What a guarantee means: the best possible attack, the noise for a tolerated one, and the conditions of each proof."""

import dataclasses
import math
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from riskcal.analysis import get_advantage_from_adp, get_beta_from_adp
from riskcal.calibration import get_advantage_for_dpsgd, get_beta_for_dpsgd
from scipy.stats import norm
from support import ONE_OF_EACH_FAMILY, assert_refused, make_problem, mostly_long, options
from support_noise_recipes import RECIPES

import dpviz
from dpviz.common import random
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.mechanisms import Calibration, Mechanism, Training, all_rows, calibration, get_mechanism, protection
from dpviz.mechanisms.attack import (
    ALONE,
    DISTANCE,
    GAUSSIAN,
    Attack,
    Attacker,
    allowed_accuracy,
    comparable_bounds,
    epsilon_by_budget,
    epsilon_for,
    strongest_attack,
)
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.local.ldp_gaussian import LDPGaussian
from dpviz.mechanisms.objective.objective_tight import ObjectiveTight
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, attack_accuracy, corner, trade_off

#: mechanisms whose shown per cent is looked at digit by digit
SHOWN = ("dp-gd", "dp-sgd", "bassily-sgd", "rsgd-ar", "cms-output", "amp")


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
@pytest.mark.parametrize("epsilon", mostly_long([0.1, 1.0, 8.0], 0.1))
def test_no_bound_is_above_that_of_epsilon_and_delta(mechanism: str, epsilon: float) -> None:
    """And the headline is what the whole curve says at its largest distance, though the curve is not computed for it."""
    spec = dpviz.RunSpec("breast-cancer", mechanism=mechanism, epsilon=epsilon)
    found = strongest_attack(spec.build(), setting_of(spec), calibration_of(spec))
    if found is None:
        assert calibration_of(spec).proved_budget is None
        return
    assert "table" not in vars(found), "the curve waits until it is read"
    assert 0.5 < found.accuracy <= found.accuracy_by_budget
    assert (found.table["detections_at_most"] <= found.table["by_epsilon_delta_alone"] + 1e-12).all()
    assert (found.table["detections_at_most"] >= found.table["false_alarms"] - 1e-9).all()
    assert (np.diff(found.table["detections_at_most"]) >= -1e-9).all()
    even = 0.5 + (found.best[1] - found.best[0]) / 2
    assert found.accuracy == pytest.approx(even, abs=1e-4 if mechanism in SHOWN else 2e-3)


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
    assert attacker.largest_reach(mechanism, SETTING, at) <= attacker.most + 1e-9
    assert attacker.largest_reach(mechanism, SETTING, above) > attacker.most
    assert epsilon >= epsilon_by_budget(attacker, DELTA) * (1 - 1e-3)


def test_riskcal_says_the_same_of_epsilon_and_delta_alone() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        budget = Budget(epsilon, DELTA)
        advantage = get_advantage_from_adp(epsilon, DELTA)
        assert Attacker.parse("advantage=0.1").by_budget(budget) == pytest.approx(advantage, rel=1e-6)
        for fpr in (0.001, 0.01, 0.1):
            missed = float(get_beta_from_adp(epsilon, DELTA, np.array([fpr]))[0])
            assert Attacker("tpr", 0.999, fpr).by_budget(budget) == pytest.approx(1 - missed, rel=1e-6)


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
    assert_refused(
        epsilon_for, Attacker.parse("advantage=0.1"), get_mechanism("dbdp")(), SETTING, DELTA, match="nothing is proved"
    )


BAD = """
    tpr tpr=0.05 tpr=0.05@ tpr=0.05@fpr= tpr=0.01@fpr=0.05 tpr=0.05@fpr=0 tpr=1.5@fpr=0.1 tpr=nan@fpr=0.1
    advantage=0 advantage=1 advantage=0.1@fpr=0.1 accuracy=0.5 auc=0.6
"""


@pytest.mark.parametrize("text", ["", *BAD.split()])
def test_what_cannot_be_tolerated_is_one_clear_error(text: str) -> None:
    assert_refused(Attacker.parse, text)


def test_delta_alone_may_allow_more() -> None:
    assert_refused(epsilon_by_budget, Attacker("tpr", 2e-3, 1e-3), 1e-2, match="δ")


def test_the_library_takes_an_attacker_in_the_place_of_a_budget() -> None:
    found = dpviz.calibrate("dp-gd", n=2000, d=10, delta=DELTA, attacker="advantage=0.1", steps=30)
    assert found.noise_scale == pytest.approx(found.sensitivity * math.sqrt(30) / (2 * norm.ppf(0.55)), rel=1e-3)
    for both in ({}, {"epsilon": 1.0, "attacker": "advantage=0.1"}):
        assert_refused(dpviz.calibrate, "dp-gd", n=2000, d=10, match="epsilon", **both)


ALL = dpviz.list_mechanisms()
BUDGET = Budget(1.0, 1e-5)


@dataclass
class Watch:
    """What a training did."""

    clips: bool = False
    single_precision: bool = False
    reads_minimum: bool = False
    features_matter: bool = False
    draws: set[str] = field(default_factory=set)


def watched(built: Mechanism, calibration: Calibration, problem: Problem, patch: pytest.MonkeyPatch) -> Watch:
    """Trains one replica, on the rows and on rows with other features, and keeps what it did."""
    seen, original, model = Watch(), random.generator, type(problem.model)
    summed, batched = model.sum_gradient, model.sum_batches
    here = threading.get_ident()  # a job of an earlier test may still train elsewhere

    class Watched(np.random.Generator):
        def standard_normal(self, *args: Any, **more: Any) -> Any:
            seen.single_precision |= more.get("dtype") is np.float32 and threading.get_ident() == here
            return super().standard_normal(*args, **more)

    def sum_gradient(self: Any, theta: np.ndarray, rows: Any, **more: Any) -> Any:
        if threading.get_ident() == here:
            seen.single_precision |= theta.dtype == np.float32
            seen.clips |= np.isfinite(more.get("clip_norm", np.inf))
        return summed(self, theta, rows, **more)

    def sum_batches(self: Any, theta: np.ndarray, rows: Any, batches: Any, **more: Any) -> Any:
        if threading.get_ident() == here:
            seen.single_precision |= more.get("precision") is np.float32
            seen.clips |= np.isfinite(more.get("clip_norm", np.inf))
        return batched(self, theta, rows, batches, **more)

    def optimum(self: Problem) -> np.ndarray:
        seen.reads_minimum |= threading.get_ident() == here
        return self.model.minimise(self.rows, self.lam)

    with patch.context() as inner:
        inner.setattr(all_rows, "_SINGLE_FROM", 0)  # as on a large table
        inner.setattr(model, "sum_gradient", sum_gradient)
        inner.setattr(model, "sum_batches", sum_batches)
        inner.setattr(Problem, "optimum", property(optimum))
        for module in list(sys.modules.values()):
            if getattr(module, "generator", None) is original:
                inner.setattr(module, "generator", lambda stream: Watched(np.random.PCG64(stream)))
        others = Problem(type(problem.rows)(problem.rows.X[::-1].copy(), problem.rows.y), problem.model, problem.lam)
        ends = [built.fit(Training(rows, [calibration], random.spawn(5, 1), record=False)) for rows in (problem, others)]
    seen.features_matter = not np.array_equal(ends[0].theta, ends[1].theta)
    return seen


def needed(cls: type[Mechanism], patch: pytest.MonkeyPatch, tried: list[dict[str, Any]]) -> set[str]:
    """The conditions that what a mechanism declares and does with the options tried makes necessary."""
    out, clips = set[str](), False
    problem = make_problem(n=20, d=4)
    sizes = [problem.model.setting(n, 4, problem.lam) for n in (4_000, 8_000)]
    for params in tried:
        built = cls.from_params(RECIPES[cls.id][1] | params)
        try:
            cal, *others = (built.calibrate(setting, BUDGET) for setting in (problem.setting, *sizes))
        except dpviz.InvalidInput:
            continue  # an option that needs more rows, or another model
        if cal.noise_scale <= 0:
            continue
        out |= {"ranges", "real-valued"}
        out |= {"public number of rows"} if len({(c.noise_scale, c.details.get("local_epsilon")) for c in others}) > 1 else set()
        if any("exact minimiser" in condition for condition in cal.conditions):
            out.add("exact minimum")
        seen = watched(built, cal, problem, patch)
        clips |= seen.clips
        out |= {"single precision"} if seen.single_precision else set()
        out |= {"minimum"} if seen.reads_minimum and cal.proved_budget else set()
        out |= {"rows in the unit ball"} if seen.features_matter else set()
    assert clips or "clipped" not in cls.guarantee, "who clips nothing must not say so"
    return out | ({"convex"} if cls.needs_strong_convexity else set())


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ONE_OF_EACH_FAMILY else pytest.mark.long) for n in ALL])
def test_every_guarantee_names_its_conditions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = ALL[name]
    tried = options(name) if name in ONE_OF_EACH_FAMILY else [{}]
    missing = {words for words in needed(cls, monkeypatch, tried) if words not in cls.guarantee}
    assert not missing


@pytest.mark.parametrize("cls", ALL.values(), ids=ALL)
def test_only_what_protects_nobody_has_no_conditions(cls: type[Mechanism]) -> None:
    assert bool(cls.supposes) == (cls.id != "non-private")
    assert cls.guarantee.count("Conditions: ") == bool(cls.supposes)
    assert ("convex" in cls.guarantee) or not cls.needs_strong_convexity


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (DPGD, {"public number of rows", "rows in the unit ball", "real-valued", "ranges", "single precision"}),
        (OutputGaussian, {"public number of rows", "minimum", "rows in the unit ball", "real-valued", "ranges", "convex"}),
        (LDPGaussian, {"public number of rows", "rows in the unit ball", "real-valued", "ranges", "single precision"}),
    ],
)
def test_what_is_needed_is_seen(cls: type[Mechanism], words: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a guarantee without conditions would miss all of these."""
    assert needed(cls, monkeypatch, options(cls.id)) == words


def test_an_exact_minimum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact minimum" in needed(ObjectiveTight, monkeypatch, [{}])


def test_the_guarantee_of_a_new_mechanism_names_what_it_supposes() -> None:
    class Mine(OutputGaussian):
        guarantee = "Proved."
        supposes = (calibration.PUBLIC_N,)

    class Unconditional(OutputGaussian):
        guarantee = "Nothing."
        supposes = ()

    last = f"{calibration.PUBLIC_RANGES}; {calibration.REAL_NOISE}."
    assert f"Proved. Conditions: {calibration.PUBLIC_N}; {last}" == Mine.guarantee
    assert Unconditional.guarantee == "Nothing."
    assert Mine.order == OutputGaussian.order > dpviz.list_mechanisms()["non-private"].order
