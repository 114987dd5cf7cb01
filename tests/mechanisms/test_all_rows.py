"""Sums over all rows whose rows are shared by threads: the same sums to rounding, and rules that see each row once."""

import pytest

from dpviz.common.random import spawn
from dpviz.mechanisms.all_rows import seeds_together
from dpviz.mechanisms.base import Training
from dpviz.models import get_model
from dpviz.models.problem import Problem
from tests.support import make_problem

N, D, R, CLIP = 1001, 4, 3, 0.2


@pytest.mark.parametrize(("model_id", "lengths"), [("logistic", [10]), ("mlp", [2, 3, 2, 3])])
def test_seeds_of_linear_models_train_in_one_group(model_id: str, lengths: list[int]) -> None:
    problem = Problem(make_problem(n=60, d=D).rows, get_model(model_id), 1e-2)
    found = seeds_together(Training(problem, [], spawn(0, 10)))
    assert [part.stop - part.start for part in found] == lengths
