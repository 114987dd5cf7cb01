"""The pitfalls of private training in docs/pitfalls.md by their numbers: a test for each, here or elsewhere.

Releases that are audited before, and under add-remove, where a public number takes the place of n.
"""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support import assert_refused, make_problem
from support_shell import Shell

import dpviz
from dpviz import PrivateClassifier
from dpviz.auditing.result import BY_BOUND, AuditResult
from dpviz.cli.main import main
from dpviz.common.random import spawn
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Fit, Mechanism, Training, get_mechanism, list_mechanisms
from dpviz.mechanisms.calibration import PUBLIC_DIVISOR, PUBLIC_N, REAL_NOISE, SECRET_RANDOMNESS
from dpviz.models import Rows, Setting, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.releasing import grid, training

N, SEEDS = 60, 40
#: pitfalls that a test of all methods or models looks at
ELSEWHERE = {
    2: "test_contract.py::test_replayed_neighbours_stay_within_the_declared_sensitivity",
    3: "mechanisms/test_protected_training.py::test_rows_are_drawn_as_often_as_the_event_says",
    5: "privacy/test_declared_events.py::test_the_event_costs_no_more_than_is_proved_and_less_noise_is_seen",
    7: "models/test_network.py::test_ghost_clipping_is_clipping",
    8: "models/test_losses_models.py::test_sum_gradient_is_the_clipped_weighted_sum",
    12: "models/test_products.py::test_no_row_adds_more_than_the_clip_norm",
}


def alike(n: int = N) -> Problem:
    """Every row is the same, so a sum of gradients is a multiple of one gradient."""
    return Problem(Rows(np.tile([1.0, 0.0], (n, 1)), np.ones(n)), get_model("logistic"), 1e-3)


def one_step(n: int, noise: bool) -> tuple[np.ndarray, np.ndarray]:
    """((seeds, 2) parameters, (seeds,) batch sizes) of one step of DP-SGD from 0 with batches of a tenth of the rows."""
    problem = alike(n)
    built = get_mechanism("dp-sgd")(sampling_rate=0.1, epochs=0.1, step_size=1.0)  # type: ignore[call-arg]
    assert built.step_count(problem.setting) == 1  # type: ignore[attr-defined]
    cal = built.calibrate(problem.setting, dpviz.Budget(1.0, 1e-5))
    fit = built.fit(Training(problem, [cal if noise else cal.noiseless()], spawn(0, SEEDS)))
    return fit.theta[0], np.asarray(fit.record.visits)[0].sum(axis=1)


def test_1_the_divisor_is_public() -> None:
    """Without noise a step is proportional to the batch's random size; divided by that size it would always be the same."""
    theta, sizes = one_step(N, noise=False)
    assert len(set(sizes)) > 5
    lengths = theta[:, 0]
    some = sizes > 0
    np.testing.assert_allclose(lengths[some] / sizes[some], (lengths / np.maximum(sizes, 1))[some][0], rtol=1e-5)
    assert np.ptp(lengths) > 0.1 * lengths.max()


def test_4_calibration_knows_public_facts_only() -> None:
    """It gets no rows; and the noise of two neighbours is the same."""
    for cls in list_mechanisms().values():
        assert list(inspect.signature(cls.calibrate).parameters) == ["self", "setting", "budget"]
    assert not any("ndarray" in str(field.type) or "Rows" in str(field.type) for field in dataclasses.fields(Setting))
    problem = make_problem(n=N, d=3)
    other = problem.replace_row(0, np.array([0.0, 0.6, 0.8]), -problem.rows.y[0])
    assert problem.setting == other.setting


def test_6_an_empty_batch_has_its_noise_and_no_value_escapes() -> None:
    theta, sizes = one_step(4, noise=True)
    assert (sizes == 0).any()
    assert (theta[sizes == 0] != 0).all()
    x, y = np.random.default_rng(0).normal(size=(N, 2)) / 4, np.arange(N) % 2
    for value in (np.nan, np.inf):
        bad = x.copy()
        bad[0, 0] = value
        with pytest.raises(ValueError, match=r"NaN|inf"):
            PrivateClassifier().fit(bad, y)
        if np.isinf(value):
            assert_refused(dpviz.dataset, bad, y, match="infinite")
    bad[0, 0] = 1.7e308
    with pytest.warns(dpviz.PrivacyWarning, match="1 of 60 rows"):
        assert (PrivateClassifier(random_state=0).fit(bad, y).coef_ != 0).all()


def test_9_nothing_is_given_away_beside_the_model() -> None:
    """What a fitted classifier holds is listed; what a release holds, test_what_leaves compares byte by byte."""
    x, y = np.random.default_rng(0).normal(size=(N, 2)) / 4, np.arange(N) % 2
    fitted = vars(PrivateClassifier().fit(x, y)).keys() - vars(PrivateClassifier()).keys()
    assert fitted == {"coef_", "intercept_", "classes_", "guarantee_", "n_features_in_"}
    made = dpviz.release(dpviz.RunSpec("census-100", mechanism="dp-gd", params={"steps": 2}))
    assert "Accuracy on the rows is left out" in made.card
    assert vars(made.model).keys() == {"model", "theta", "constant_label", "constant", "classes", "encoder", "privacy"}


def test_10_randomness_is_new_and_nobody_elses() -> None:
    spec = dpviz.RunSpec("census-100", mechanism="dp-gd", params={"steps": 2})
    thetas = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        made = dpviz.release(spec)
        thetas.append(made.model.theta)
    assert (thetas[0] != thetas[1]).all()
    assert SECRET_RANDOMNESS in made.calibration.conditions
    assert_refused(dpviz.release, dataclasses.replace(spec, seed=1), match="seed")
    draws = np.array([np.random.default_rng(stream).normal(size=4) for stream in spawn(3, 50)])
    assert len(np.unique(draws)) == draws.size


def test_11_published_numbers_are_on_a_grid_or_say_what_they_suppose() -> None:
    exact = dpviz.release(dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1))
    other = dpviz.release(dpviz.RunSpec("census-100", mechanism="dp-gd", params={"steps": 2}))
    for made in (exact, other):
        assert (made.model.theta / made.grid == np.rint(made.model.theta / made.grid)).all()
        assert (REAL_NOISE in made.calibration.conditions) != made.hardened
    assert set(grid.PROTECTION) == {cls.family for cls in list_mechanisms().values()}


def test_the_docs_name_each_test() -> None:
    text = (Path(__file__).parents[2] / "docs" / "pitfalls.md").read_text()
    listed = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.M)]
    tests = [int(name.split("_")[1]) for name in globals() if re.match(r"test_\d+_", name)]
    assert listed == sorted([*tests, *ELSEWHERE]) == list(range(1, 13))
    for path, test in (place.split("::") for place in ELSEWHERE.values()):
        assert f"def {test}(" in (Path(__file__).parents[1] / path).read_text(), test


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
    built = spec.build().settle(setting, dpviz.resolve(spec).budget)
    assert (played[0], played[1].n, played[1].lam) == (built, 100, setting.lam)
    assert built.step_size != spec.build().settle(played[1].setting, dpviz.resolve(spec).budget).step_size  # type: ignore[attr-defined]


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
    assert_refused(dpviz.release, spec, audit_runs=runs, ledger=ledger, public_n=400, all_rows=True, match=match)
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
    assert_refused(
        dpviz.release, dpviz.RunSpec("teaching", mechanism="output-gaussian"), audit_runs=40, ledger=ledger, match="limit"
    )


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
    refused = assert_refused(
        dpviz.release,
        dpviz.RunSpec("teaching", mechanism="output-gaussian"),
        unproved=unproved,
        audit_runs=100,
        ledger=ledger,
        match="an audit of 100 models a side refutes",
    )
    assert "ledger" not in str(refused)
    assert ledger.entries() == ()


def test_a_claim_that_an_audit_refutes_is_released_with_its_switch_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuditResult, "evidence_against", lambda self, budget: "" if budget is None else BY_BOUND)
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


ADD_REMOVE = {
    "objective-tight": {},
    "kst-objective": {},
    "dp-sgd": {"sampling_rate": 1.0, "epochs": 5.0},
    "dp-svrg": {"sampling_rate": 1.0},
    "dp-agd": {},
}


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("mechanism", ADD_REMOVE)
def test_a_row_that_is_not_there_is_one_without_a_gradient(mechanism: str, public: bool) -> None:
    """A row of zeros has no gradient, so with a public divisor a run on the other rows is the same. Divided by their number it
    is not: the control."""
    n = 60
    large = make_problem(n=n, d=3).replace_row(n - 1, np.zeros(3), 1.0)
    rows = Rows(large.rows.X[:-1], large.rows.y[:-1])
    small = Problem(rows, large.model, large.lam, n if public else 0)
    built = get_mechanism(mechanism).from_params({**ADD_REMOVE[mechanism], "relation": "add-remove"})
    cal = built.calibrate(large.setting, dpviz.Budget(1.0, 1e-5))
    assert (cal.neighbouring, cal.status) == (Neighbouring.ADD_REMOVE, Status.PROVED_IF)
    assert PUBLIC_DIVISOR in cal.conditions
    thetas = [built.fit(Training(problem, [cal], spawn(3, 2), record=False)).theta for problem in (large, small)]
    assert np.allclose(*thetas, rtol=1e-5, atol=1e-7) == (public or mechanism in ("objective-tight", "kst-objective"))


def test_the_objectives_regularisation_is_that_of_the_public_number() -> None:
    problem = make_problem(n=60, d=3)
    built = get_mechanism("objective-tight").from_params({"relation": "add-remove"})
    noise = [
        built.calibrate(Problem(problem.rows, problem.model, problem.lam, n).setting, dpviz.Budget(1.0, 1e-5))
        for n in (0, 60, 90)
    ]
    assert noise[0] == noise[1] != noise[2]


@pytest.mark.parametrize("mechanism", ["objective-tight", "dp-agd"])
def test_a_release_needs_the_public_number(mechanism: str, tmp_path: Path, shell: Shell) -> None:
    spec = dpviz.RunSpec("census-100", mechanism=mechanism, params={"relation": "add-remove"})
    for how, field in (({}, "public_n"), ({"public_n": 90}, "public_n"), ({"public_n": 0, "all_rows": True}, "public_n")):
        assert_refused(dpviz.release, spec, field=field, **how)
    assert_refused(dpviz.release, dpviz.RunSpec("census-100"), public_n=90, all_rows=True, match="belongs to add-remove")
    made = dpviz.release(spec, public_n=90, all_rows=True)
    assert (made.rows, made.model.privacy["rows"]) == (90, 90)
    assert f"Only if: {PUBLIC_DIVISOR}" in made.card
    command = [
        "release",
        "--dataset=census-100",
        f"--mechanism={mechanism}",
        "--set=relation=add-remove",
        f"--out={tmp_path / 'm'}",
    ]
    refusal = shell.refused(command)
    assert "--public-n" in refusal
    assert "replace-one" in shell.refused([*command, "--try=lam=0.1,0.01"])
    assert_refused(dpviz.private_search, spec, {"lam": [0.1]}, match="relation: is add-remove")
    assert dpviz.private_search(dpviz.RunSpec("census-100", mechanism="output-gaussian"), {"lam": [0.1]}).searched == 1
    assert main([*command, "--public-n=90", "--all-rows"]) == 0


def test_a_classifier_needs_it_too() -> None:
    x, y = np.eye(4)[np.arange(80) % 4], np.arange(80) % 4 // 2
    model = PrivateClassifier("objective-tight", relation="add-remove", random_state=0)
    for ranges in (None, "private"):
        assert_refused(clone(model).set_params(ranges=ranges).fit, x, y, match="public_n")
    conditions = model.set_params(public_n=80).fit(x, y).guarantee_.conditions
    assert PUBLIC_DIVISOR in conditions
    assert PUBLIC_N not in conditions
    assert_refused(PrivateClassifier("dp-gd", public_n=80).fit, x, y, match="public_n")
