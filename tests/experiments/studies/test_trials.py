"""Trials of other settings: each changes one value of the run, and a gain is one of the same noise draws."""

import numpy as np

import dpviz
from dpviz.experiments.studies.trials import other_settings, trials

SPEC = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=0.5, seeds=4)


def test_each_trial_changes_one_value_of_the_run() -> None:
    for other, change in other_settings(SPEC):
        mine, its = SPEC.to_dict(), other.to_dict()
        changed = {name for name in mine if mine[name] != its[name]}
        assert changed in ({"params"}, {"lam"})
        assert change


def test_gains_are_those_of_the_same_draws_and_the_best_comes_first() -> None:
    found = trials(SPEC)
    assert [trial.gain for trial in found] == sorted((trial.gain for trial in found), reverse=True)
    base = dpviz.run(SPEC).accuracy
    for trial in found:
        better = dpviz.run(trial.spec).accuracy - base
        assert trial.gain == float(better.mean())
        assert trial.helps == (better.mean() > 2 * np.std(better, ddof=1) / 2)


def test_a_larger_lambda_helps_where_noise_on_the_minimiser_is_large_and_nothing_helps_elsewhere() -> None:
    noisy = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=10.0, lam=1e-3, seeds=10, row_scaling="unit")
    assert [trial.spec.lam for trial in trials(noisy) if trial.helps] == [0.01]
    short = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=0.5, lam=1e-3, seeds=10, row_scaling="unit")
    assert not any(trial.helps for trial in trials(short))
