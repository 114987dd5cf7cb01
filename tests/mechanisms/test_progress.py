"""Training tells how far it is: shares of the work that rise, and never leave [0, 1]."""

import numpy as np
import pytest
from support import make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms.base import Training
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()


@pytest.mark.parametrize("name", ALL)
def test_shares_of_the_work_rise_from_0_to_1(name: str) -> None:
    problem, mechanism, seen = make_problem(n=300, d=4), ALL[name](), [0.0]
    calibrations = [mechanism.calibrate(problem.setting, Budget(epsilon, 1e-5)) for epsilon in (1.0, 8.0)]
    mechanism.fit(Training(problem, calibrations, spawn(0, 3), monitor=seen.append))
    assert (np.diff(seen) >= -1e-12).all()
    assert seen[-1] <= 1
    assert len(seen) < 3 or seen[-1] > 0.7, "the last report is from near the end"
