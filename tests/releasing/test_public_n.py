"""Under add-remove the number of rows is private: what is published divides by a public number instead."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from support import make_problem

import dpviz
from dpviz import PrivateClassifier
from dpviz.cli.main import main
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training, get_mechanism
from dpviz.mechanisms.calibration import PUBLIC_DIVISOR, PUBLIC_N
from dpviz.models import Rows
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Neighbouring, Status

ADD_REMOVE = {
    "objective-tight": {},
    "kst-objective": {},
    "dp-sgd": {"sampling_rate": 1.0, "epochs": 5.0},
    "dp-svrg": {"sampling_rate": 1.0},
    "dp-agd": {},
}


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("mechanism", ADD_REMOVE)
def test_a_row_that_is_not_there_is_one_without_a_gradient(mechanism: str, public: bool) -> None:
    """A row of zeros has no gradient, so with a public divisor a run on the other rows is the same. Divided by their number it
    is not: the control."""
    n = 60
    large = make_problem(n=n, d=3).replace_row(n - 1, np.zeros(3), 1.0)
    rows = Rows(large.rows.X[:-1], large.rows.y[:-1])
    small = Problem(rows, large.model, large.lam, n if public else 0)
    built = get_mechanism(mechanism).from_params({**ADD_REMOVE[mechanism], "relation": "add-remove"})
    cal = built.calibrate(large.setting, dpviz.Budget(1.0, 1e-5))
    assert (cal.neighbouring, cal.status) == (Neighbouring.ADD_REMOVE, Status.PROVED_IF)
    assert PUBLIC_DIVISOR in cal.conditions
    thetas = [built.fit(Training(problem, [cal], spawn(3, 2), record=False)).theta for problem in (large, small)]
    assert np.allclose(*thetas, rtol=1e-5, atol=1e-7) == (public or mechanism in ("objective-tight", "kst-objective"))


def test_the_objectives_regularisation_is_that_of_the_public_number() -> None:
    problem = make_problem(n=60, d=3)
    built = get_mechanism("objective-tight").from_params({"relation": "add-remove"})
    noise = [
        built.calibrate(Problem(problem.rows, problem.model, problem.lam, n).setting, dpviz.Budget(1.0, 1e-5))
        for n in (0, 60, 90)
    ]
    assert noise[0] == noise[1] != noise[2]


@pytest.mark.parametrize("mechanism", ["objective-tight", "dp-agd"])
def test_a_release_needs_the_public_number(mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = dpviz.RunSpec("census-100", mechanism=mechanism, params={"relation": "add-remove"})
    for how, field in (({}, "public_n"), ({"public_n": 90}, "public_n"), ({"public_n": 0, "all_rows": True}, "public_n")):
        with pytest.raises(InvalidInput) as refused:
            dpviz.release(spec, **how)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="belongs to add-remove"):
        dpviz.release(dpviz.RunSpec("census-100"), public_n=90, all_rows=True)
    made = dpviz.release(spec, public_n=90, all_rows=True)
    assert (made.rows, made.model.privacy["rows"]) == (90, 90)
    assert f"Only if: {PUBLIC_DIVISOR}" in made.card
    command = [
        "release",
        "--dataset=census-100",
        f"--mechanism={mechanism}",
        "--set=relation=add-remove",
        f"--out={tmp_path / 'm'}",
    ]
    assert main(command) == 2
    refusal = capsys.readouterr().err
    assert "--public-n" in refusal
    assert main([*command, "--try=lam=0.1,0.01"]) == 2
    assert "replace-one" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="relation: is add-remove"):
        dpviz.private_search(spec, {"lam": [0.1]})
    assert dpviz.private_search(dpviz.RunSpec("census-100", mechanism="output-gaussian"), {"lam": [0.1]}).searched == 1
    assert main([*command, "--public-n=90", "--all-rows"]) == 0


def test_a_classifier_needs_it_too() -> None:
    x, y = np.eye(4)[np.arange(80) % 4], np.arange(80) % 4 // 2
    model = PrivateClassifier("objective-tight", relation="add-remove", random_state=0)
    for ranges in (None, "private"):
        with pytest.raises(InvalidInput, match="public_n"):
            clone(model).set_params(ranges=ranges).fit(x, y)
    conditions = model.set_params(public_n=80).fit(x, y).guarantee_.conditions
    assert PUBLIC_DIVISOR in conditions
    assert PUBLIC_N not in conditions
    with pytest.raises(InvalidInput, match="public_n"):
        PrivateClassifier("dp-gd", public_n=80).fit(x, y)
