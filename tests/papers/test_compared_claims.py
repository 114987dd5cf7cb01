"""Claims that compare accuracies, audit, bound risks or speak of groups, on stand-ins whose answer is known."""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support_claims import Toward, planted, toward

import dpviz
from dpviz.auditing import AuditResult, audit
from dpviz.mechanisms import Mechanism, Training
from dpviz.mechanisms.base import Fit, NoiseRecord
from dpviz.models import get_model
from dpviz.papers.claims import Outcome, accuracy, audits, population
from dpviz.papers.claims.context import Context
from dpviz.privacy.audit_bounds import Counts
from dpviz.privacy.budget import Budget


def only_started(knobs: dict[str, Any]) -> Mechanism:
    """Good from the published start only."""
    return toward(1.0 if knobs.get("start") == "non-private" else -1.0)(knobs)


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting for each method: stand-ins have no hyperparameters."""
    monkeypatch.setattr(accuracy, "STEP_COUNTS", (50,))
    monkeypatch.setattr(accuracy, "STEP_SIZES", (1.0,))


@pytest.mark.long
@pytest.mark.usefixtures("untuned")
def test_beating_depends_on_who_is_better_and_on_the_start() -> None:
    bad, good = toward(-1.0), toward(1.0)
    found = [planted("pidp-beats-dp-sgd", pidp_sgd=a, dp_sgd=b).outcome for a, b in ((good, bad), (bad, good), (good, good))]
    assert found == [Outcome.HOLDS, Outcome.FAILS, Outcome.FAILS]
    under = planted("pidp-beats-dp-sgd", pidp_sgd=only_started, dp_sgd=bad)
    assert under.outcome is Outcome.ONLY_IF
    assert "starts at the non-private model" in under.condition


@pytest.mark.usefixtures("untuned")
def test_the_gap_is_judged_from_both_starts() -> None:
    found = [planted("pidp-gap-zero", pidp_sgd=way).outcome for way in (toward(1.0), toward(-1.0), only_started)]
    assert found == [Outcome.HOLDS, Outcome.FAILS, Outcome.ONLY_IF]


@pytest.mark.long
def test_averaging_is_set_against_restarts_alone_and_against_plain_decay() -> None:
    def averaged(knobs: dict[str, Any]) -> Mechanism:
        return toward(1.0 if knobs.get("averaging", True) else -1.0)(knobs)

    cases = ((averaged, -1.0, Outcome.HOLDS), (toward(1.0), -1.0, Outcome.FAILS), (averaged, 1.0, Outcome.FAILS))
    for rsgd_ar, decay, outcome in cases:
        assert planted("averaging-raises-accuracy", rsgd_ar=rsgd_ar, rsgd=toward(decay)).outcome is outcome


@pytest.mark.usefixtures("untuned")
@pytest.mark.long
def test_comparisons_that_the_draws_cannot_decide_are_not_lost() -> None:
    """Models that are right or wrong by a coin: the means agree, and no interval is narrower than a point."""

    @dataclass(frozen=True)
    class Coin(Toward):
        def fit(self, training: Training) -> Fit:
            theta = super().fit(training).theta.copy()
            theta *= np.random.default_rng(1).choice([-1.0, 1.0], theta.shape[1])[:, None]
            return Fit(theta, NoiseRecord("x"))

    coins: dict[str, Any] = dict.fromkeys(("input_perturbation", "kst_objective"), lambda knobs: Coin())
    assert planted("ip-beats-objective", **coins).outcome is Outcome.UNDECIDED
    tossed: dict[str, Any] = dict.fromkeys(("pidp_sgd", "dp_sgd"), lambda knobs: Coin())
    assert planted("pidp-beats-dp-sgd", **tossed).outcome is Outcome.UNDECIDED
    assert planted("ip-beats-objective", input_perturbation=toward(-1.0), kst_objective=toward(1.0)).outcome is Outcome.FAILS


@pytest.mark.long
def test_rsgd_ar_is_compared_as_published_and_as_well_as_can_be() -> None:
    """Better only with the published calibrations: neither holds nor fails."""

    def other(knobs: dict[str, Any]) -> Mechanism:
        return toward(-1.0 if "published" in knobs.values() or knobs.get("relation") == "add-remove" else 1.0)(knobs)

    def mine(knobs: dict[str, Any]) -> Mechanism:
        return toward(1.0 if "published" in knobs.values() else -1.0)(knobs)

    others = dict.fromkeys(("outpert_gd", "dp_sgd", "nsgd", "dp_agd"), other)
    verdict = planted("rsgd-ar-best", rsgd_ar=mine, kst_objective=toward(1.0), **others)
    assert verdict.outcome is Outcome.ONLY_IF
    assert verdict.condition == "all methods are calibrated as published"
    assert "With the best known calibrations: Fails in 60 of 60" in verdict.because


def test_hyperparameters_are_chosen_on_training_rows_alone() -> None:
    """A setting that is good on trials only is taken, and its test accuracy is bad; noise of trials is not the final noise."""
    context = Context()
    setup, _ = context.setup("teaching")
    parts = (setup.held_out.split.train, setup.held_out.split.test)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), setup.split.train)
    assert len(parts[1]) == setup.problem.n // 4
    streams: dict[bool, set[tuple[Any, ...]]] = {True: set(), False: set()}

    @dataclass(frozen=True)
    class Turncoat(Toward):
        def fit(self, training: Training) -> Fit:
            trial = training.problem.n < setup.problem.n
            streams[trial] |= {(s.entropy, *s.spawn_key) for s in training.streams}
            object.__setattr__(self, "sign", 1.0 if trial else -1.0)
            return super().fit(training)

    swap = replace(context, swaps={"dp-gd": lambda knobs: Turncoat() if knobs["steps"] == 2 else toward(0.0)(knobs)})
    found, chosen = swap.best("dp-gd", [{"steps": 1}, {"steps": 2}], "teaching", (0.5, 5.0), 3)
    assert chosen == [{"steps": 2}] * 2
    assert found.accuracy.max() < 0.5
    assert found.epsilons == (0.5, 5.0)
    assert not streams[True] & streams[False]
    assert found.accuracy.shape == (2, 500)
    assert sorted({*found.baselines["split"]}) == [0, 1, 2, 3, 4]
    assert len(streams[False]) == 500, "noise is each split's own"
    assert "100 noise draws per point on each of 5 splits of teaching" in swap.seeds
    splits = [Context(seed=seed).setup("teaching", split=split)[0].split.train.tobytes() for seed in (0, 1) for split in range(5)]
    assert len({*splits}) == 10, "another seed has splits of its own"
    other = replace(swap, swaps={"dp-sgd": lambda knobs: Turncoat()}).best("dp-sgd", [{}], "teaching", (0.5,), 3)[0]
    assert len(streams[False]) == 1000, "noise is each method's own"
    assert other.epsilons == (0.5,)
    _, steady = swap.best("dp-gd", [{"steps": 1}], "teaching", (0.5,), 3)
    assert steady == [{"steps": 1}]


PAIR = audits.misclassified_pair(60)


@pytest.fixture(scope="module")
def found() -> AuditResult:
    mechanism = dpviz.list_mechanisms()["output-gaussian"]()
    return audit(mechanism, PAIR.first, PAIR.second, Budget(audits.CLAIMED, audits.DELTA), 40)


def showing(result: AuditResult, epsilon: float) -> AuditResult:
    """The same audit with counted errors whose bound is just at least this epsilon."""
    trials = 10**6
    for wrong in range(trials // 2, 0, -500):
        made = dataclasses.replace(result, counts=Counts(wrong, wrong, trials), counts_confidence=0.99)
        if made.epsilon_lower >= epsilon:
            return made
    raise AssertionError("no such counts")


def test_every_bound_above_the_claim_refutes_it_and_none_below(found: AuditResult) -> None:
    for shown in (0.9, 0.99):
        assert audits._judged({"as published": showing(found, shown)}, PAIR)[0] is Outcome.HOLDS
    for shown in (1.01, 1.2, 1.45, 3.0):
        result = showing(found, shown)
        assert shown <= result.epsilon_lower < shown + 0.05
        assert audits._judged({"as published": result}, PAIR)[0] is Outcome.FAILS


def test_one_reading_that_is_broken_refutes_and_one_that_is_proved_proves_nothing(found: AuditResult) -> None:
    proved = showing(found, 0.5)
    assert proved.calibration.proved_budget == Budget(audits.CLAIMED, audits.DELTA)
    claimed = dpviz.list_mechanisms()["dbdp"]().calibrate(PAIR.first.setting, Budget(audits.CLAIMED, audits.DELTA))
    assert claimed.proved_budget is None
    only_claimed = dataclasses.replace(proved, calibration=claimed)
    broken = showing(found, 1.3)
    cases: dict[Outcome, list[dict[str, AuditResult]]] = {
        Outcome.HOLDS: [{"a": proved}, {"a": proved, "b": proved}],
        Outcome.UNDECIDED: [{"a": only_claimed}, {"a": proved, "b": only_claimed}, {"a": only_claimed, "b": proved}],
        Outcome.FAILS: [{"a": proved, "b": broken}, {"a": broken, "b": proved}, {"a": only_claimed, "b": broken}],
    }
    for outcome, readings in cases.items():
        for results in readings:
            assert audits._judged(results, PAIR)[0] is outcome
    because = audits._judged({"first reading": proved, "second reading": broken}, PAIR)[1]
    assert "second reading" in because
    assert "first reading" not in because


@pytest.mark.parametrize(("epsilon", "delta"), [(1.5, audits.DELTA), (1.0, 1e-4), (1.001, audits.DELTA)])
def test_a_proof_of_more_than_was_claimed_is_none(found: AuditResult, epsilon: float, delta: float) -> None:
    weaker = dataclasses.replace(found.calibration, proved_budget=Budget(epsilon, delta))
    result = dataclasses.replace(showing(found, 0.5), calibration=weaker)
    assert audits._judged({"a": result}, PAIR)[0] is Outcome.UNDECIDED


def test_all_readings_share_the_error_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []

    def watched(*given: object, confidence: float, **more: object) -> AuditResult:
        told.append(confidence)
        raise LookupError("seen")

    monkeypatch.setattr(audits, "audit", watched)
    test = audits.stays_private("dbdp", {"a": {}, "b": {"average": False}}, audits.opposed_rows_pair, 60, (40, 40))
    with pytest.raises(LookupError, match="seen"):
        test(audits.Context(full=False, seed=0, monitor=lambda done: None))
    assert told == [pytest.approx(1 - (1 - audits.CONFIDENCE) / 2)]
    assert np.isclose(audits.CONFIDENCE, 0.99)


def test_bounds_are_those_of_the_paper_at_the_best_tau() -> None:
    setting = get_model("logistic").setting(3000, 23, 0.02)
    smooth, mu, n, gap, risk, least = 0.27, 0.02, 3000, 0.013, 0.61, 0.58

    def printed2(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return 8 * (tau + smooth) / mu * gap + 16 * (tau + smooth) / (n * mu) ** 2 + smooth * risk / tau

    def printed3(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return (tau + smooth) * ((8 * tau + mu) / (mu * tau) * gap + 16 / (n * mu) ** 2) + smooth / tau * least

    for ours, printed in ((population.theorem2, printed2), (population.theorem3, printed3)):
        best = minimize_scalar(printed, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9}).fun
        assert ours(setting, gap, risk, least) == pytest.approx(best, rel=1e-9)


def test_the_rate_of_theorem_4_is_that_of_the_paper() -> None:
    setting = get_model("logistic").setting(1000, 23, 0.1)
    smooth, radius, alpha, n = 0.35, math.sqrt(2 * math.log(2) / 0.1), 1 / 0.35, 1000
    common = alpha * (2 * smooth * radius + 1) * 22 * math.log(1e5)
    bound, steps = population.theorem4(setting)
    assert bound == pytest.approx(common * math.log(n) ** 2 / (n * (n - 1)), rel=1e-12)
    assert (1 - 0.1 / smooth) ** steps <= common / (n * (n - 1)) < (1 - 0.1 / smooth) ** (steps - 1)
    assert population.theorem4(get_model("logistic").setting(3, 23, 0.1))[1] >= 1, "few rows"


def test_a_gap_that_does_not_fall_fails() -> None:
    """A model of zeros, however many rows there are."""
    assert planted("ip-excess-rate", input_perturbation=toward(0.0)).outcome is Outcome.FAILS
