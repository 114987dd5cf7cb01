"""Epsilon of single persons, of one training."""

from typing import Any

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, Fit, Training
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import IndividualEpsilon


def fitted(mechanism: str, problem: Problem, seeds: int = 2, **params: object) -> tuple[Any, Calibration, Fit]:
    built = dpviz.list_mechanisms()[mechanism].from_params(params)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    return built, cal, built.fit(Training(problem, [cal], spawn(0, seeds)))


def individual(mechanism: str, problem: Problem, **params: object) -> IndividualEpsilon:
    built, cal, fit = fitted(mechanism, problem, **params)
    found = built.individual(problem, cal, fit.theta[0], fit.record.select(0))
    assert found is not None
    return found
