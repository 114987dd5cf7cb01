"""How often the auditor accuses mechanisms that are right, its verdicts on those that leak, and mistakes that it catches."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import doubles
import numpy as np
import pandas as pd
import pytest
from doubles import WeakDescent, WeakNoise
from scipy.stats import binom, norm
from support import assert_refused
from support_game import BUDGET, SVM, quiet

import dpviz
from dpviz.auditing import EXCEEDED, NO_CLAIM, NO_VIOLATION, AuditResult, OneRunResult, audit, battery, worst_case
from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.judging import Judged
from dpviz.auditing.game import judge, prepare
from dpviz.auditing.one_run import judge_one_run
from dpviz.auditing.pairs import differing_rows, label_flip, make, name_rows
from dpviz.auditing.runs import audit_run, pair_of
from dpviz.auditing.scores import SCORES, Distributions, gradient_direction
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Calibration, Mechanism, OutputNoise
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Setting, get_model
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.audit_bounds import Counts
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.noise import GAUSSIAN

TWO = get_model("mlp-2")


@pytest.mark.parametrize("pair", ["quiet", "pushed"])
def test_half_of_the_noise_is_caught_on_a_network(pair: str) -> None:
    chosen = make(pair, TWO, 24, 4, 0.1)
    game = (chosen.first, chosen.second, Budget(2.0, 1e-5), 2000, 3)
    assert audit(WeakDescent(steps=1, share=0.5), *game, confidence=0.99).verdict == EXCEEDED
    assert audit(WeakDescent(steps=1, share=1.0), *game, confidence=0.99).verdict == NO_VIOLATION


@pytest.mark.long
def test_worst_cases_for_networks_and_what_cannot_be_asked() -> None:
    budget = Budget(1.0, 1e-5)
    for name, cls in dpviz.list_mechanisms().items():
        if cls.refusal(TWO.setting(100, 3, 0.1)):
            assert_refused(worst_case, cls(), TWO, budget, n=30, d=3, lam=0.1, match="mechanism")
        elif name != "non-private":
            assert worst_case(cls(), TWO, budget, n=30, d=3, lam=0.1).first.model.id == "mlp-2"


SMALL = {"n": 24, "d": 4, "lam": 0.1}

#: double, its knobs, claimed epsilon, the pair that shows it, iterates seen, sizes, runs
BY_AUDIT: list[tuple[type[Mechanism], dict[str, Any], float, str, tuple[int, ...], dict[str, Any], int]] = [
    (doubles.ReusedNoise, {"steps": 5}, 1.0, "quiet", (1, 2), SMALL, 1000),
    (doubles.FittedScaler, {}, 1.0, "outlier", (), SMALL | {"n": 200}, 1000),
    (doubles.LocalSensitivity, {}, 1.0, "presence", (), SMALL, 1000),
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


PERSON_ROWS, OF_PERSON = 5, Budget(2.0, 1e-5)


class OneRowOnly(DPGD):
    """The mistake: noise for one row of a person who has several."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        cal = super().calibrate(setting, budget)
        return replace(cal, noise_scale=cal.noise_scale / PERSON_ROWS)


def test_an_exact_gaussian_is_reached_and_noise_for_one_row_is_caught() -> None:
    """One clipped step whose worst pair moves the sum by 2kC: the person's true epsilon is the one asked for, by mu = k mu_1."""
    pair = make("quiet", SVM, 20, 2, 0.2, PERSON_ROWS)
    assert differing_rows(pair.first, pair.second).tolist() == [15, 16, 17, 18, 19]
    found = {
        cls: audit(cls(steps=1, clip_norm=0.25), pair.first, pair.second, OF_PERSON, 4000, 1, confidence=0.99)
        for cls in (DPGD, OneRowOnly)
    }
    right, wrong = found[DPGD], found[OneRowOnly]
    errors = 4000 * norm.cdf(-gaussian_mu(OF_PERSON) / 2)  # on each side, expected at the mid-point of two Gaussians mu apart
    expected = Counts(round(errors), round(errors), 4000).gaussian_epsilon_lower_bound(1e-5, right.confidence_of_each)
    assert abs(right.gaussian_epsilon_lower - expected) < 0.3
    assert right.gaussian_epsilon_lower < 2.0 > right.epsilon_lower > 0.3
    assert right.verdict == NO_VIOLATION
    assert wrong.epsilon_lower > 2.0
    assert wrong.verdict == EXCEEDED
    truth = float(gaussian_epsilon(1e-5, PERSON_ROWS * wrong.calibration.mu))  # type: ignore[operator]
    assert 0.8 * truth < wrong.gaussian_epsilon_lower < truth


def test_a_row_alone_would_not_see_it() -> None:
    flipped = label_flip(make("quiet", SVM, 20, 2, 0.2, PERSON_ROWS).first, 19)
    result = audit(OneRowOnly(steps=1, clip_norm=0.25), flipped.first, flipped.second, OF_PERSON, 4000, 1, confidence=0.99)
    assert result.verdict == NO_VIOLATION


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=200)
    return pd.DataFrame({"who": np.arange(200) % 50, "x": x, "y": np.where(x + rng.normal(0, 0.2, 200) > 0.5, "b", "a")})


def test_a_run_on_persons_is_attacked_by_all_rows_of_one() -> None:
    rows = dpviz.dataset(table(), target="y", ranges={"x": (0, 1)}, person="who", person_rows=4)
    spec = dpviz.RunSpec(rows, mechanism="output-gaussian", lam=0.1)
    shared = setup_for(spec)
    ids, who = shared.split.train, shared.dataset.persons
    of_first = ids[who[ids] == who[ids[0]]]
    assert name_rows(np.arange(6)) == "ows 0, 1, 2, 3, 4, ... (all 6 of one person)"
    for kind in ("without", "label-flip", "two-rows", "most-influential", "worst-case"):
        other = int(ids[who[ids] != who[ids[0]]][0])
        pair = pair_of(spec, kind, None if kind == "most-influential" else int(ids[0]), other)
        at = differing_rows(pair.first, pair.second)
        if kind == "worst-case":
            assert len(at) == 4
        else:
            assert len(set(who[ids[at]])) == 1
            assert "of one person" in pair.why
        if kind in ("without", "label-flip"):
            assert set(ids[at]) == set(of_first)
    assert audit_run(spec, runs=40).calibration.person_rows == 4


EVERY_SCORE = tuple(SCORES)
STEPS = 3  # iterates that are seen by the score which looks at steps


def audits(
    score: str, count: int, *, share: float = 1.0, runs: int = 200, twice: bool = False, confidence: float = 0.5
) -> Iterator[AuditResult | None]:
    """Audits of an exactly Gaussian mechanism whose noise just meets what it claims, on outputs that are drawn here.

    Output perturbation, and for `steps` three Gaussian steps of which all iterates are seen. A large delta, so that errors are
    frequent enough to be counted. None for an audit that refuses, because the outputs do not follow what is declared.

    Args:
        share: of the noise that is claimed; 1 but for controls.
        twice: each output is seen two times, so that the runs that choose the threshold are those that are counted.
    """
    pair, budget, iterates = make("quiet", get_model("svm"), 20, 2, 0.2), Budget(1.0, 0.05), ()
    mechanism: Mechanism = OutputGaussian()
    if score == "steps":
        mechanism, iterates = DPGD(steps=STEPS, step_size=0.1), tuple(range(1, STEPS))
    game = prepare(mechanism, pair.first, pair.second, budget, runs, 0, score, confidence, iterates)
    sigma, kept = game.calibration.noise_scale, runs // 2 if twice else runs
    if score == "steps":
        direction = gradient_direction(*game.sides, game.rows, np.zeros(2))
        moved = game.calibration.sensitivity * direction / np.linalg.norm(direction)
        game = replace(game, line=(moved, 0.5 * STEPS * float(moved @ moved)))  # these outputs have no model
    centres = [side.optimum for side in game.sides]
    for k in range(count):
        rng = np.random.default_rng([k, 7])
        if score == "steps":  # every step differs by the whole sensitivity
            steps = [side * moved + share * sigma * rng.standard_normal((kept, STEPS, 2)) for side in range(2)]
            first, second = (np.cumsum(step, axis=1).reshape(kept, -1) for step in steps)
        else:
            first, second = (c + share * sigma * rng.standard_normal((kept, 2)) for c in centres)
        if twice:
            first, second = np.repeat(first, 2, axis=0), np.repeat(second, 2, axis=0)
        declared = [OutputNoise(c, np.array([sigma]), GAUSSIAN) for c in centres]
        known = Distributions(*declared) if score == "likelihood" else None
        try:
            yield judge(game, first, second, known)
        except InvalidInput:
            yield None


def alarms(score: str, count: int, **more: Any) -> int:
    """How many of so many audits refuse or have a bound free of assumptions above what is claimed."""
    return sum(r is None or r.epsilon_lower > r.calibration.budget.epsilon for r in audits(score, count, **more))


def accusations(score: str, count: int, **more: Any) -> int:
    """How many of so many audits refuse or find the claim exceeded, by a bound or by a Gaussian test."""
    return sum(r is None or r.verdict == EXCEEDED for r in audits(score, count, **more))


@pytest.mark.long
@pytest.mark.parametrize("score", EVERY_SCORE)
def test_audits_of_an_exact_gaussian_keep_the_declared_share_of_alarms(score: str) -> None:
    """Attacker and threshold are chosen on one half and counted on the other.

    At 50 % confidence the bound has half of the error probability, for a Gaussian test stands beside it: at most 25 % alarms.
    """
    assert 0 < alarms(score, 250) <= binom.ppf(1 - 1e-6, 250, 0.25)


@pytest.mark.long
@pytest.mark.parametrize("score", EVERY_SCORE)
def test_verdicts_on_an_exact_gaussian_keep_the_declared_share_and_half_the_noise_is_seen(score: str) -> None:
    """At 95 %: a verdict rests on a bound and on a Gaussian test, each with an error of 2.5 % at most."""
    assert accusations(score, 250, confidence=0.95) <= binom.ppf(1 - 1e-6, 250, 0.05)
    assert accusations(score, 50, confidence=0.95, share=0.5) >= 49


@pytest.mark.long
def test_a_verdict_of_two_tests_errs_as_seldom_as_it_says() -> None:
    """At 40 % confidence: each test has an error of 30 % at most, and both together accuse in 60 % of audits at most.

    Control: with the whole error probability for each of them they would accuse more often.
    """
    results = [r for r in audits("likelihood", 150, confidence=0.4) if r is not None]
    most, accused = binom.ppf(1 - 1e-4, 150, 0.6), sum(r.verdict == EXCEEDED for r in results)
    assert len(results) == 150
    assert 0 < accused <= most
    for r in results:
        claim = r.calibration.budget
        p = r.p_value(claim)
        assert r.confidence_of_each == pytest.approx(0.7)
        alone = r.counts.epsilon_lower_bound(claim.delta, r.counts_confidence) > claim.epsilon
        assert (r.verdict == EXCEEDED) == (alone or p < 0.3)
        assert r.counts_confidence == pytest.approx(0.7)
        assert (r.measured_epsilon_lower > claim.epsilon) == (p < 0.3)  # type: ignore[operator]
    whole = [replace(r, noise=None, assumption="") for r in results]
    assert all(r.confidence_of_each == pytest.approx(0.4) for r in whole), "one test alone has all of it"


@pytest.mark.long
def test_five_per_cent_less_noise_than_declared_is_seen() -> None:
    """By the noise that is measured around declared centres; no count of errors sees so little in so few runs."""
    assert accusations("likelihood", 60, confidence=0.99, runs=2000) <= binom.ppf(1 - 1e-6, 60, 0.01)
    assert accusations("likelihood", 60, confidence=0.99, runs=2000, share=0.95) >= 58


@pytest.mark.long
def test_a_threshold_chosen_on_the_counted_half_is_seen() -> None:
    for score in ("auto", "qda"):
        assert alarms(score, 200, twice=True) > 2.5 * alarms(score, 200)


@pytest.mark.parametrize("score", ["auto", "gradient", "lda", "qda", "repeat"])
def test_the_counted_half_chooses_nothing(score: str) -> None:
    """Attacker and threshold come from the other half, so every counted output is judged as it would be on its own."""
    pair, budget, n = make("quiet", get_model("svm"), 20, 2, 0.2), Budget(1.0, 0.05), 40
    game = prepare(OutputGaussian(), pair.first, pair.second, budget, n, 0, score, 0.5, ())
    rng = np.random.default_rng(5)
    sides = [c.optimum + game.calibration.noise_scale * rng.standard_normal((n, 2)) for c in game.sides]

    def errors(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        counts = judge(game, first, second, None).counts
        return counts.false_positives / counts.trials, counts.false_negatives / counts.trials

    def alone(side: np.ndarray, k: int) -> np.ndarray:
        return np.where(np.arange(n)[:, None] % 2 == 1, side[k], side)

    together = errors(*sides)
    apart = np.mean([errors(alone(sides[0], k), alone(sides[1], k)) for k in range(1, n, 2)], axis=0)
    np.testing.assert_allclose(together, apart, atol=1e-12)
    assert 0 < sum(together) < 1


def test_the_exact_attacker_chooses_its_threshold_without_a_run() -> None:
    """It counts all runs, so its threshold may depend on the declared distributions alone."""
    pair, budget, n = make("quiet", get_model("svm"), 20, 2, 0.2), Budget(1.0, 0.05), 60
    game = prepare(OutputGaussian(), pair.first, pair.second, budget, n, 0, "likelihood", 0.9, ())
    sigma, centres = game.calibration.noise_scale, [side.optimum for side in game.sides]
    known = Distributions(*(OutputNoise(c, np.array([sigma]), GAUSSIAN) for c in centres))
    cut = known.threshold(trials=n, delta=0.05, confidence=0.95, seed=0)  # two tests share the error probability
    for seed in range(5):
        rng = np.random.default_rng(seed)
        first, second = (known.log_ratio(c + sigma * rng.standard_normal((n, 2))) for c in centres)
        rng = np.random.default_rng(seed)
        outputs = [c + sigma * rng.standard_normal((n, 2)) for c in centres]
        counts = judge(game, *outputs, known).counts
        assert (counts.false_positives, counts.false_negatives) == ((first > cut).sum(), (second <= cut).sum())
        assert counts.trials == n


LARGE = Budget(50.0, 1e-5)  # a budget that no audit here contradicts
#: what is claimed and what is proved -> the verdict on a mechanism that leaks more than `BUDGET`, and on one that does not
TABLE = [
    ((None, None), NO_CLAIM, NO_CLAIM),
    ((BUDGET, None), EXCEEDED, NO_VIOLATION),
    ((None, BUDGET), EXCEEDED, NO_VIOLATION),
    ((BUDGET, BUDGET), EXCEEDED, NO_VIOLATION),
    ((BUDGET, LARGE), EXCEEDED, NO_VIOLATION),
    ((LARGE, BUDGET), EXCEEDED, NO_VIOLATION),
    ((LARGE, LARGE), NO_VIOLATION, NO_VIOLATION),
]


@cache
def games(leaks: bool) -> AuditResult:
    mechanism = WeakNoise(share=0.2) if leaks else OutputGaussian()
    return audit(*quiet(mechanism, BUDGET), BUDGET, runs=400, seed=1, confidence=0.99)  # type: ignore[arg-type]


@cache
def one_training(leaks: bool) -> OneRunResult:
    rng = np.random.default_rng(0)
    coins = rng.random(300) < 0.5
    evidence = np.where(coins, 1.0, -1.0) * (8.0 if leaks else 0.1) + rng.standard_normal(300)
    return judge_one_run("any", games(leaks).calibration, evidence, coins, seed=0, confidence=0.99)


@cache
def memberships(leaks: bool) -> AttackedRun:
    rng = np.random.default_rng(0)
    member = rng.permuted(np.tile(np.arange(100) < 50, (60, 1)), axis=1)
    judged = {"lira-online": Judged(rng.normal(size=(60, 100)) + (3.0 if leaks else 0.0) * member, member)}
    of_run = None, OutputGaussian(), SVM.setting(20, 2, 0.2), games(False).calibration
    return AttackedRun(*of_run, 64, 60, np.arange(100), judged, np.zeros(100))  # type: ignore[arg-type]


def with_budgets(calibration: Calibration, claimed: Budget | None, proved: Budget | None) -> Calibration:
    status = Status.PROVED if proved else Status.CLAIM if claimed else Status.NONE
    return replace(calibration, claimed_budget=claimed, proved_budget=proved, status=status, mu=None)


@pytest.mark.parametrize("made", [games, one_training])
@pytest.mark.parametrize(("budgets", "leaking", "honest"), TABLE)
def test_the_verdict_follows_from_both_budgets(
    made: Callable[[bool], AuditResult | OneRunResult], budgets: tuple[Budget | None, Budget | None], leaking: str, honest: str
) -> None:
    for leaks, verdict in ((True, leaking), (False, honest)):
        result = made(leaks)
        assert replace(result, calibration=with_budgets(result.calibration, *budgets)).verdict == verdict


@pytest.mark.parametrize("budgets", [budgets for budgets, *_ in TABLE])
def test_attacks_on_ordinary_rows_speak_about_the_proof_alone(budgets: tuple[Budget | None, Budget | None]) -> None:
    """A bound on an attacker follows from a proof, here from its noise; a claim bounds nothing."""
    for leaks in (True, False):
        result = memberships(leaks)
        expected = NO_CLAIM if budgets[1] is None else EXCEEDED if leaks else NO_VIOLATION
        assert replace(result, calibration=with_budgets(result.calibration, *budgets)).verdict == expected
