"""Runs and releases of persons and with a public weight of class +1: noise, unit, neighbours, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support import assert_refused
from support_shell import Shell

import dpviz
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.estimator import classifier
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.influence import influence_of
from dpviz.mechanisms import protection
from dpviz.mechanisms.persons import WEIGHTS, budget_of_row
from dpviz.models.losses import Logistic
from dpviz.privacy.private_ranges import private_ranges
from dpviz.releasing import tuning


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=n)
    return pd.DataFrame({"who": np.arange(n) % 50, "x": x, "y": np.where(x + rng.normal(0, 0.2, n) > 0.5, "b", "a")})


def spec(k: int, **more: object) -> dpviz.RunSpec:
    rows = dpviz.dataset(table(), target="y", ranges={"x": (0, 1)}, categories={"y": ["a", "b"]}, person="who", person_rows=k)
    return dpviz.RunSpec(rows, mechanism="output-gaussian", lam=0.1, seeds=1, **more)


def test_releases_and_ledgers_name_the_unit(tmp_path: Path) -> None:
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=dpviz.Budget(9.0, 1e-5), unit="person")
    for all_rows in (False, True):
        made = dpviz.release(spec(3), all_rows=all_rows, ledger=ledger)
        assert "Unit of privacy: one person, of whom at most 3 rows are kept" in made.card
        assert made.model.privacy["unit"] == "one person, of whom at most 3 rows are kept"
        assert made.calibration.noise_scale == pytest.approx(made.calibration.row_calibration.noise_scale)
    assert [entry.person_rows for entry in ledger.entries()] == [3, 3]
    assert_refused(dpviz.release, dpviz.RunSpec("teaching", mechanism="output-gaussian"), ledger=ledger, match="about one row")


def kept(spec: dpviz.RunSpec) -> str:
    """Which rows a run keeps, in their order."""
    return " ".join(f"{x:.17g}" for x in dataset_of(spec).frame["x"])


def test_seeds_decide_which_rows_a_run_keeps_and_the_operating_system_for_a_release() -> None:
    chosen = {seed: kept(spec(2, split_seed=seed)) for seed in (0, 1)}
    assert len(set(chosen.values())) == 2
    made = [dpviz.release(spec(1)), dpviz.release(spec(1)), dpviz.private_search(spec(1), {"lam": [0.1, 0.2]}, mean_runs=1.1)]
    assert len({one.dataset.sha256 for one in made} | {dataset_of(spec(1)).sha256}) == 4
    assert {seed: kept(spec(2, split_seed=seed)) for seed in (0, 1)} == chosen


def test_a_private_search_is_for_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of a run are calibrated and trained for a row at the row's budget, and the whole is for the person."""
    used = []
    train = tuning.train
    monkeypatch.setattr(tuning, "train", lambda m, t: (used.append((m, t)), train(m, t))[1])
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=dpviz.Budget(3.0, 1e-3), unit="person")
    made = dpviz.private_search(spec(2, epsilon=2.0), {"lam": [0.1, 0.2]}, ledger=ledger, mean_runs=3.0)
    assert "Unit of privacy: one person, of whom at most 2 rows are kept" in made.card
    assert made.calibration.person_rows == 2
    (entry,) = ledger.entries()
    assert (entry.person_rows, entry.release) == (2, made.calibration.proved_budget)
    automatic = dpviz.RunSpec(spec(2).dataset, mechanism="dp-gd", epsilon=2.0)
    found = dpviz.private_search(automatic, {"lam": [0.1], "steps": [0]}, mean_runs=1.5)
    mechanism, training = used[-1]
    assert training.problem.setting.person_rows == 0
    alone = protection.settle(mechanism, training.problem.setting, found.each)
    assert found.spec.params["steps"] == alone.steps, "automatic hyperparameters are those that the noise was made for"


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_a_searched_classifier_is_for_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(classifier, "private_ranges", lambda c, b, s: asked.append(b) or private_ranges(c, b, s))
    x, y = np.tile(table()[["x"]].to_numpy(), (8, 1)), np.tile(table()["y"], 8)
    base = dpviz.PrivateClassifier("output-gaussian", ranges="private", person_rows=2)
    model = dpviz.PrivateSearchCV(base, {"lam": [0.1, 0.2]}, epsilon=50.0, delta=1e-4, random_state=0)
    found = model.fit(x, y, groups=np.arange(1600) % 800).guarantee_
    assert found.unit == "one person, of whom at most 2 rows are kept"
    assert 0.9 * 50 < found.proved.epsilon <= 50
    assert 0.99e-4 < found.proved.delta <= 1e-4 * (1 + 1e-9)
    assert asked == [budget_of_row(dpviz.Budget(5.0, 1e-5), 2)]
    assert any("ranges were found privately" in note for note in found.notes)
    assert not any("range" in what for what in found.looked_at)
    again = clone(model).fit(x, y, groups=np.arange(1600) % 800)
    np.testing.assert_array_equal(again.best_estimator_.coef_, model.best_estimator_.coef_)


def test_private_ranges_of_a_classifier_are_for_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(classifier, "private_ranges", lambda c, b, s: asked.append(b) or private_ranges(c, b, s))
    model = dpviz.PrivateClassifier("output-gaussian", epsilon=50.0, delta=1e-4, ranges="private", person_rows=2, random_state=0)
    x = np.tile(table()[["x"]].to_numpy(), (4, 1))
    with pytest.warns(dpviz.PrivacyWarning, match="16 of 800 rows outside ranges"):
        model.fit(x, np.tile(table()["y"], 4), groups=np.arange(800) % 400)
    assert asked == [budget_of_row(dpviz.Budget(5.0, 1e-5), 2)]


def test_the_shell_names_the_unit(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)
    asked = ["run", "t.csv", "--person", "who", "--person-rows", "2", "--seeds", "1", "--range", "x=0,1"]
    assert "ε is for one person, of whom at most 2 rows are kept" in shell(asked)
    Path("t.toml").write_text('target = "y"\nperson = "who"\nperson_rows = 3\n')
    assert shell.json(["run", "t.csv", "--seeds", "1"])["guarantee"]["unit"] == "one person, of whom at most 3 rows are kept"


PLAIN = RunSpec("breast-cancer", mechanism="output-gaussian", lam=0.01, seeds=1)


@pytest.mark.parametrize("weight", [8.0, 0.125])
def test_the_model_minimises_the_objective_divided_by_the_larger_weight(weight: float) -> None:
    shared = setup_for(replace(PLAIN, class_weight=weight))
    x, y = shared.problem.rows.X, shared.problem.rows.y
    w = np.where(y > 0, weight, 1.0) / max(weight, 1.0)
    theta = shared.non_private.theta
    gradient = (w * y * Logistic().slope(y * (x @ theta))) @ x / len(y) + 0.01 * theta
    assert np.linalg.norm(gradient) < 1e-9
    plain = setup_for(PLAIN)
    assert plain.problem.rows.weights is None
    positive = [float((s.test.X @ s.non_private.theta > 0).mean()) for s in (shared, plain)]
    assert (positive[0] > positive[1]) == (weight > 1)  # a class that weighs more is predicted more often
    assert shared.test.weights is None
    assert shared.held_out.problem.rows.class_weights == shared.problem.rows.class_weights


def test_influence_of_a_flip_knows_both_weights() -> None:
    problem = setup_for(replace(PLAIN, class_weight=4.0, lam=0.1)).problem
    found = influence_of(problem)
    for index in (0, 5, 9):
        flipped = problem.replace_row(index, problem.rows.X[index], -float(problem.rows.y[index]))
        assert found.flip_norm[index] == pytest.approx(float(np.linalg.norm(flipped.optimum - problem.optimum)), rel=0.05)


def test_methods_and_models_without_a_derivation_refuse_in_words() -> None:
    for refused in (replace(PLAIN, mechanism="rsgd"), replace(PLAIN, mechanism="dp-gd", model="mlp-2")):
        assert_refused(
            dpviz.run,
            replace(refused, class_weight=2.0),
            match=r"class_weight: what rows with weights cost is not derived here.*DP-GD \(dp-gd\), ",
        )
    problems: list[InvalidInput] = []
    kept = resolve(replace(PLAIN, mechanism="rsgd", class_weight=2.0), problems).spec
    assert (kept.mechanism, kept.class_weight, problems[0].field) == ("rsgd", 1.0, "class_weight")


@pytest.mark.parametrize("wrong", ["balanced", {1: 5}, 0, -1, float("nan"), True, "x"])
def test_only_public_numbers_are_weights(wrong: object) -> None:
    assert_refused(RunSpec, class_weight=wrong, match="no ε covers" if wrong == "balanced" else None, field="class_weight")


def test_the_shell_takes_a_weight_and_refuses_balanced(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--dataset", "breast-cancer", "--mechanism", "output-gaussian", "--seeds", "1", "--json"]
    said = shell.json([*run, "--class-weight", "5"])
    assert said["run"]["class_weight"] == 5.0
    assert WEIGHTS in said["guarantee"]["notes"]
    assert main([*run, "--class-weight", "balanced"]) != 0
    facts = ["calibrate", "--n", "500", "--d", "5", "--mechanism", "dp-svrg", "--epsilon", "1"]
    assert main(facts) == 0
    assert main([*facts, "--class-weight", "3"]) != 0, "nothing is derived for its rows with weights"
    assert "which no ε covers" in capsys.readouterr().err


def test_a_release_with_weights_says_so() -> None:
    made = dpviz.release(replace(PLAIN, class_weight=8.0), ranges_from_data=True)
    assert "class_weight = 8" in made.card
    assert WEIGHTS in made.card
    assert made.model.privacy["hyperparameters"]["class_weight"] == 8.0  # type: ignore[index]
