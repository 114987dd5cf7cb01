"""Noise against its exact law, with controls that must fail at 5 %."""

import numpy as np
import pytest

import dpviz
from dpviz.common import random


@pytest.mark.parametrize("mechanism", ["cms-output", "output-gaussian"])
@pytest.mark.parametrize("dataset", ["breast-cancer", "teaching", "iris"])
def test_expected_accuracy_is_what_draws_average_to(mechanism: str, dataset: str) -> None:
    for epsilon in (0.1, 1.0, 10.0):
        result = dpviz.run(dpviz.RunSpec(dataset=dataset, mechanism=mechanism, epsilon=epsilon, seeds=2000, seed=5))
        error = result.accuracy.std(ddof=1) / np.sqrt(2000)
        assert abs(result.accuracy.mean() - result.expected_accuracy) < 4 * error + 1e-12


def test_expected_accuracy_would_notice_wrong_noise() -> None:
    spec = dpviz.RunSpec(dataset="breast-cancer", mechanism="output-gaussian", epsilon=1.0, lam=0.01, seeds=2000)
    result = dpviz.run(spec)
    wrong = dpviz.run(dpviz.RunSpec(**(spec.to_dict() | {"epsilon": 2.0})))
    error = result.accuracy.std(ddof=1) / np.sqrt(2000)
    assert abs(result.accuracy.mean() - wrong.expected_accuracy) > 4 * error


def test_streams_do_not_depend_on_how_many_are_asked_for() -> None:
    few, many = random.standard_gaussian(random.spawn(3, 2), 4), random.standard_gaussian(random.spawn(3, 50), 4)
    assert np.array_equal(few, many[:2])
    assert len(np.unique(random.standard_gamma_sphere(random.spawn(0, 500), 3)[:, 0])) == 500
    one, two = random.substreams(random.spawn(3, 1)[0], 2)
    assert not np.array_equal(random.standard_gaussian([one], 4), random.standard_gaussian([two], 4))


def test_moving_epsilon_keeps_the_draw() -> None:
    specs = [dpviz.RunSpec("breast-cancer", mechanism="output-gaussian", epsilon=e, seeds=3, lam=1e-3) for e in (0.5, 2.0)]
    runs = [dpviz.run(spec) for spec in specs]
    standard = [(r.theta - r.non_private.theta) / r.calibration.noise_scale for r in runs]
    np.testing.assert_allclose(standard[0], standard[1], rtol=1e-9)
