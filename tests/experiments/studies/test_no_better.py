"""Models that are no better than the majority label: the cause and the remedy."""

from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.experiments.studies.cost import Cost
from dpviz.experiments.studies.majority_baseline import Cause, guessing, looks_no_better, majority_baseline, training_loss_note

COST = Cost(np.array([0.60, 0.58]), np.array([0.80]), 0.85, majority=0.59)
SPEC = dpviz.RunSpec("breast-cancer", mechanism="dp-gd")


@pytest.mark.parametrize(
    ("cost", "cause"),
    [
        (COST, Cause.NOISE),
        (replace(COST, noiseless=np.array([0.61])), Cause.TRAINING),
        (replace(COST, non_private=0.59), Cause.REGULARISATION),
        (replace(COST, non_private=0.62, floor_error=0.05), Cause.REGULARISATION),  # few test rows: no better that can be seen
        (replace(COST, private=np.array([0.70, 0.72])), None),
    ],
)
def test_the_cause_is_the_larger_part_of_the_cost(cost: Cost, cause: Cause | None) -> None:
    found = majority_baseline(cost, SPEC)
    assert (None if found is None else found.cause) == cause
    assert found is None or not found.worse


def test_a_method_that_cannot_learn_more_says_why_instead() -> None:
    """At epsilon = 10 the local method gives breast-cancer's rows the larger class, and does so without any noise."""
    spec = dpviz.RunSpec("breast-cancer", mechanism="ldp-duchi", epsilon=10.0, seeds=3)
    result = dpviz.run(spec)
    found = guessing(result, ["accuracy"], result.metrics, result.setup.baselines)["accuracy"]
    assert found.cause is Cause.TRAINING
    assert "p/(1 − p)" in found.fix
    assert "p/(1 − p)" in " ".join(result.calibration.notes)
    short = replace(COST, private=np.array([0.70, 0.72]), noiseless=np.array([0.73]))
    for other in (replace(spec, params={"release": "gradient"}), replace(spec, params={"training": "plain"}), SPEC):
        assert "p/(1 − p)" not in str(training_loss_note(short, other, 1e-4))
    assert "p/(1 − p)" in str(training_loss_note(short, spec, 1e-4))


def test_what_training_loses_is_said_where_it_is_much_and_more_than_noise() -> None:
    short = replace(COST, private=np.array([0.70, 0.72]), noiseless=np.array([0.73]))
    said = training_loss_note(short, SPEC, 1e-4)
    assert said is not None
    assert "12.0 points in accuracy" in said
    assert "λ = 0.0001" in said
    assert "steps set by hand" in str(training_loss_note(short, replace(SPEC, params={"steps": 1}), 1e-4))
    assert "own regularisation" in str(training_loss_note(short, replace(SPEC, mechanism="cms-output"), 1e-4)), (
        "a method without steps"
    )
    for cost in (replace(short, noiseless=np.array([0.82])), replace(short, private=np.array([0.60]))):
        assert training_loss_note(cost, SPEC, 1e-4) is None, "little, or less than the noise"


def test_a_run_is_set_beside_the_majority_label_in_every_metric_that_is_asked_for() -> None:
    bad = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="cms-output", epsilon=0.01, seed=4, seeds=3))
    found = guessing(bad, ("accuracy", "balanced-accuracy", "roc-auc", "log-loss"), bad.metrics, bad.setup.baselines)
    assert "accuracy" in found
    assert not {"roc-auc", "log-loss"} & set(found), "the majority label has no value there, or less is better"
    floor = bad.setup.baselines.at["majority", "balanced_accuracy"]
    assert ("balanced-accuracy" in found) == (bad.expected("balanced-accuracy") <= floor + 0.0005)
    good = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="dp-gd", epsilon=10.0, seeds=3))
    for run, there in ((bad, True), (good, False)):
        assert looks_no_better(run.spec, run.theta, "accuracy") == there
        assert not looks_no_better(run.spec, run.theta, "roc-auc")
    assert not guessing(good, ("accuracy", "balanced-accuracy", "f1"), good.metrics, good.setup.baselines)
