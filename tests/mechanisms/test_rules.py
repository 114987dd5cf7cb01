"""Rules for hyperparameters that are left automatic: they balance noise and training, and see public facts only."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpviz
from dpviz.mechanisms import rules
from dpviz.models import get_model

SETTING = get_model("logistic").setting(39_073, 108, 1e-3)


def test_the_training_time_balances_both_losses() -> None:
    """The time is the smallest point of R^2/(2s) + beta s^2 nu^2/2, found here on a grid."""
    nu = 2e-4
    times = np.geomspace(1, 1e5, 200_001)
    lost = 20**2 / (2 * times) + 0.25 * times**2 * nu**2 / 2
    assert rules.training_time(SETTING, nu) == pytest.approx(times[lost.argmin()], rel=1e-3)
    assert rules.training_time(SETTING, 0.0) == 3 / SETTING.lam
    assert rules.training_time(SETTING, 1e-12) == 3 / SETTING.lam


def test_more_noise_means_shorter_steps_within_what_is_stable() -> None:
    sizes = [rules.step_size(SETTING, 200, sigma) for sigma in (0.0, 1e-4, 1e-3, 1e-2, 1e9)]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (1.9, 0.01)
    assert rules.longest_step(get_model("svm").setting(100, 3, 1e-3)) == 4.0


def test_strong_regularisation_and_large_tables_take_fewer_steps() -> None:
    assert rules.full_steps(SETTING) == 200
    assert rules.full_steps(get_model("logistic").setting(39_073, 108, 0.1)) == math.ceil(30 * 0.35 / 1.9)
    assert rules.full_steps(get_model("logistic").setting(400_000, 120, 1e-3)) == 50


def test_the_rule_is_used_and_written_down() -> None:
    """What the page shows beside the knob is what the calibration uses, and setting it by hand gives the same model."""
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.3)
    run = dpviz.run(spec)
    setting, built = run.setup.problem.setting, spec.build()
    knobs = {k: built.value(k, setting, run.budget) for k in ("steps", "step_size")}
    assert knobs == {k: run.calibration.details[k] for k in knobs}
    assert 0.01 < knobs["step_size"] < 1.9
    by_hand = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.3, params=knobs))
    np.testing.assert_array_equal(run.theta, by_hand.theta)
