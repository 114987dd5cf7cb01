"""The verdict of every kind of audit on mechanisms that leak or not, and that claim, prove, both or neither."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from doubles import WeakNoise
from support_game import BUDGET, SVM, quiet

from dpviz.auditing import EXCEEDED, NO_CLAIM, NO_VIOLATION, AuditResult, OneRunResult, audit
from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.judging import Judged
from dpviz.auditing.one_run import judge_one_run
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.privacy.budget import Budget, Status

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
