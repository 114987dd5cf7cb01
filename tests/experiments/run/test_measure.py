"""Train and measure: what runs, comparisons, excess risk and the papers' tests share."""

from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.run.measure import train
from dpviz.mechanisms import Calibration, Fit, Mechanism, Training, get_mechanism
from dpviz.models import Setting

SPEC = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3)


def training(epsilons: tuple[float, ...] = (0.5, 5.0), seeds: int = 3) -> Training:
    problem = dpviz.setup_for(SPEC).problem
    mechanism = SPEC.build()
    calibrations = [mechanism.calibrate(problem.setting, dpviz.Budget(e, 1e-5)) for e in epsilons]
    return Training(problem, calibrations, spawn(0, seeds), record=False)


class Diverging(Mechanism):
    """Output perturbation whose replica (0, 1) leaves the range of numbers."""

    id = "diverging"
    family = "output"

    def calibrate(self, setting: Setting, budget: dpviz.Budget) -> Calibration:
        return SPEC.build().calibrate(setting, budget)

    def fit(self, training: Training) -> Fit:
        fit = SPEC.build().fit(training)
        theta = fit.theta.copy()
        theta[0, 1, 0] = np.inf
        return replace(fit, theta=theta)


def test_what_is_measured_is_what_each_replica_gives() -> None:
    trained, setup = train(SPEC.build(), training()), dpviz.setup_for(SPEC)
    for rows, accuracy in ((setup.test, trained.accuracy(setup.test)), (setup.problem.rows, trained.train_accuracy)):
        right = (rows.X @ trained.fit.theta.reshape(6, -1).T >= 0) == (rows.y > 0)[:, None]
        np.testing.assert_allclose(accuracy, right.mean(axis=0).reshape(2, 3), rtol=1e-14)
    np.testing.assert_allclose(trained.optimality_gap, trained.objective - setup.problem.optimal_value, rtol=0)
    assert (trained.optimality_gap > 0).all()


def test_divergence_is_refused_or_replaced_by_a_model_of_zeros() -> None:
    with pytest.raises(dpviz.InvalidInput, match="overflow"):
        train(Diverging(), training())
    trained = train(Diverging(), training(), keep_diverged=True)
    assert trained.diverged.tolist() == [[False, True, False], [False] * 3]
    assert np.isinf(trained.optimality_gap[0, 1])
    assert np.isfinite(np.delete(trained.optimality_gap.ravel(), 1)).all()
    rows = dpviz.setup_for(SPEC).test
    assert trained.accuracy(rows)[0, 1] == (rows.y > 0).mean()  # a score of 0 predicts +1


def test_a_released_label_is_measured_as_a_constant_model() -> None:
    setup = dpviz.setup_for(SPEC)
    mechanism = get_mechanism("majority")()
    calibration = mechanism.calibrate(setup.problem.setting, dpviz.Budget(1.0, 1e-5))
    trained = train(mechanism, Training(setup.problem, [calibration], spawn(0, 2), record=False))
    assert trained.accuracy(setup.test)[0].tolist() == [setup.majority.accuracy] * 2
    assert trained.train_accuracy[0].tolist() == [setup.majority.train_accuracy] * 2
