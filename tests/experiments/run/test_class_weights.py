"""A public weight of class +1 in a run: training, guarantee, release, neighbouring rows, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.influence import influence_of
from dpviz.mechanisms.persons import WEIGHTS
from dpviz.models.losses import Logistic

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


def test_the_noise_is_for_a_row_of_the_largest_weight() -> None:
    """Divided by the largest weight no row counts more than 1: the noise stays, while a row of weight 1 counts 1/8."""
    plain, heavy = calibration_of(PLAIN), calibration_of(replace(PLAIN, class_weight=8.0))
    assert heavy.noise_scale == plain.noise_scale
    assert WEIGHTS in heavy.notes
    assert WEIGHTS not in plain.notes
    assert heavy.proved_budget == plain.proved_budget


def test_influence_of_a_flip_knows_both_weights() -> None:
    problem = setup_for(replace(PLAIN, class_weight=4.0, lam=0.1)).problem
    found = influence_of(problem)
    for index in (0, 5, 9):
        flipped = problem.replace_row(index, problem.rows.X[index], -float(problem.rows.y[index]))
        assert found.flip_norm[index] == pytest.approx(float(np.linalg.norm(flipped.optimum - problem.optimum)), rel=0.05)


def test_methods_and_models_without_a_derivation_refuse_in_words() -> None:
    for refused in (replace(PLAIN, mechanism="rsgd"), replace(PLAIN, mechanism="dp-gd", model="mlp-2")):
        with pytest.raises(
            InvalidInput, match=r"class_weight: what rows with weights cost is not derived here.*DP-GD \(dp-gd\), "
        ):
            dpviz.run(replace(refused, class_weight=2.0))
    problems: list[InvalidInput] = []
    kept = resolve(replace(PLAIN, mechanism="rsgd", class_weight=2.0), problems).spec
    assert (kept.mechanism, kept.class_weight, problems[0].field) == ("rsgd", 1.0, "class_weight")


@pytest.mark.parametrize("wrong", ["balanced", {1: 5}, 0, -1, float("nan"), True, "x"])
def test_only_public_numbers_are_weights(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="class_weight") as refused:
        RunSpec(class_weight=wrong)  # type: ignore[arg-type]
    assert "no ε covers" in str(refused.value) or wrong != "balanced"


def test_the_shell_takes_a_weight_and_refuses_balanced(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--dataset", "breast-cancer", "--mechanism", "output-gaussian", "--seeds", "1", "--json"]
    assert main([*run, "--class-weight", "5"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"]["class_weight"] == 5.0
    assert WEIGHTS in said["guarantee"]["notes"]
    assert main([*run, "--class-weight", "balanced"]) != 0
    facts = ["calibrate", "--n", "500", "--d", "5", "--mechanism", "dp-svrg", "--epsilon", "1"]
    assert main(facts) == 0
    assert main([*facts, "--class-weight", "3"]) != 0, "nothing is derived for its rows with weights"
    assert "which no ε covers" in capsys.readouterr().err


def test_a_release_is_weighed_and_says_so() -> None:
    """With little noise the released model is the weighted minimiser; above ε = 300 the sampler's slack leaves no δ."""
    spec = replace(PLAIN, class_weight=8.0, epsilon=250.0, lam=0.1, row_scaling="centred")
    for all_rows in (False, True):
        made = dpviz.release(spec, all_rows=all_rows, ranges_from_data=True)
        rows = setup_for(spec).problem.rows if not all_rows else None
        if rows is not None:
            assert np.linalg.norm(made.model.theta - setup_for(spec).non_private.theta) < 0.03  # the noise has a length of 0.014
        plain = dpviz.release(replace(spec, class_weight=1.0), all_rows=all_rows, ranges_from_data=True)
        assert np.linalg.norm(made.model.theta - plain.model.theta) > 0.1
    assert "class_weight = 8" in made.card
    assert WEIGHTS in made.card
    assert made.model.privacy["hyperparameters"]["class_weight"] == 8.0  # type: ignore[index]
