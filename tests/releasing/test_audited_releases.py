"""Releases that are audited before: with their own hyperparameters, and what a refuted guarantee or a failed audit leaves."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import dpviz
from dpviz.auditing.result import BY_BOUND, AuditResult
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Fit, Mechanism, Training
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.releasing import training


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of the last audit of a release."""
    of_game, original = list[Any](), training.audit

    def audit(*game: Any, **named: Any) -> Any:
        of_game[:] = game
        return original(*game, **named)

    monkeypatch.setattr(training, "audit", audit)
    return of_game


def test_a_release_is_audited_with_its_own_hyperparameters(played: list[Any]) -> None:
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", epsilon=2.0)
    dpviz.release(spec, audit_runs=40)
    setting = setup_for(spec).problem.setting
    built = spec.build().settled(setting, dpviz.resolve(spec).budget)
    assert (played[0], played[1].n, played[1].lam) == (built, 100, setting.lam)
    assert built.step_size != spec.build().settled(played[1].setting, dpviz.resolve(spec).budget).step_size  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "runs", "match"),
    [
        (dpviz.RunSpec("teaching", mechanism="dp-sgd", params={"relation": "add-remove"}), 39, "audit_runs"),
        (dpviz.RunSpec("teaching", "mlp", mechanism="dp-sgd", params={"relation": "add-remove"}), 40, "row of zeros"),
    ],
)
def test_an_audit_that_cannot_be_made_spends_nothing(tmp_path: Path, spec: dpviz.RunSpec, runs: int, match: str) -> None:
    limit = Budget(9.0, 1e-4)
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=limit, relation=Neighbouring.ADD_REMOVE)
    with pytest.raises(InvalidInput, match=match):
        dpviz.release(spec, audit_runs=runs, ledger=ledger, public_n=400, all_rows=True)
    assert ledger.entries() == ()


def test_an_audit_that_fails_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*game: object, **named: object) -> None:
        raise FloatingPointError("Outputs are not finite.")

    monkeypatch.setattr(training, "audit", failing)
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(9.0, 1e-4), relation=Neighbouring.REPLACE_ONE)
    with pytest.raises(FloatingPointError):
        dpviz.release(dpviz.RunSpec("teaching", mechanism="output-gaussian"), audit_runs=40, ledger=ledger)
    assert ledger.entries() == ()


def test_a_ledger_that_refuses_is_asked_before_an_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "audit", lambda *game, **named: pytest.fail("an audit was made for nothing"))
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(0.1, 1e-4), relation=Neighbouring.REPLACE_ONE)
    with pytest.raises(dpviz.InvalidInput, match="limit"):
        dpviz.release(dpviz.RunSpec("teaching", mechanism="output-gaussian"), audit_runs=40, ledger=ledger)


@pytest.mark.parametrize("unproved", [False, True])
def test_an_audit_that_refutes_a_proof_releases_and_spends_nothing(
    tmp_path: Path, unproved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = dpviz.list_mechanisms()["output-gaussian"]
    original = method.fit

    def with_little_noise(self: Mechanism, given: Training) -> Fit:
        calibrations = [dataclasses.replace(cal, noise_scale=cal.noise_scale / 50) for cal in given.calibrations]
        return original(self, dataclasses.replace(given, calibrations=calibrations))

    monkeypatch.setattr(method, "fit", with_little_noise)
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(9.0, 1e-4))
    with pytest.raises(InvalidInput, match="an audit of 100 models a side refutes") as refused:
        dpviz.release(dpviz.RunSpec("teaching", mechanism="output-gaussian"), unproved=unproved, audit_runs=100, ledger=ledger)
    assert "ledger" not in str(refused.value)
    assert ledger.entries() == ()


def test_a_claim_that_an_audit_refutes_is_released_with_its_switch_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuditResult, "against", lambda self, budget: "" if budget is None else BY_BOUND)
    made = dpviz.release(dpviz.RunSpec("teaching", mechanism="input-perturbation"), unproved=True, audit_runs=40)
    assert "claim exceeded" in made.card


def test_few_rows_are_audited_at_a_delta_that_is_large_for_a_hundred(played: list[Any]) -> None:
    dpviz.release(dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1, delta=0.012), audit_runs=40)
    assert played[1].n == 83


BLIND = ("objective-tight", "kst-objective", "cms-objective", "cms-output")


@pytest.mark.parametrize("mechanism", [*BLIND, "output-gaussian", "dp-gd"])
def test_the_card_says_where_no_attack_sees_the_noise(mechanism: str) -> None:
    """That is said of objective perturbation and of gamma noise, and of no other method."""
    made = dpviz.release(dpviz.RunSpec("teaching", mechanism=mechanism, lam=0.1), audit_runs=40)
    blind = mechanism in BLIND
    assert ("no attack is known here that sees where this method's noise is" in made.card) == blind
    assert ("shows no lower bound above" in made.card) != blind
