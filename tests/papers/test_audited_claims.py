"""What an audit says of a claim about privacy: refuted above the claim, proved by the engine alone, or not known."""

import dataclasses

import numpy as np
import pytest

import dpviz
from dpviz.auditing import AuditResult, audit
from dpviz.papers.claims import audits
from dpviz.papers.verdict import Outcome
from dpviz.privacy.audit_bounds import Counts
from dpviz.privacy.budget import Budget

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
        Outcome.CANNOT_TELL: [{"a": only_claimed}, {"a": proved, "b": only_claimed}, {"a": only_claimed, "b": proved}],
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
    assert audits._judged({"a": result}, PAIR)[0] is Outcome.CANNOT_TELL


def test_all_readings_share_the_error_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []

    def watched(*given: object, confidence: float, **more: object) -> AuditResult:
        told.append(confidence)
        raise _Enough if len(told) == 2 else _Next

    class _Next(Exception):
        pass

    class _Enough(_Next):
        pass

    monkeypatch.setattr(audits, "audit", watched)
    test = audits.stays_private("dbdp", {"a": {}, "b": {"average": False}}, audits.opposed_rows_pair, 60, (40, 40))
    with pytest.raises(_Next):
        test(audits.Context(full=False, seed=0, monitor=lambda done: None))
    assert told == [pytest.approx(1 - (1 - audits.CONFIDENCE) / 2)]
    assert np.isclose(audits.CONFIDENCE, 0.99)
