"""Every way into dpviz refuses what `run` refuses: a delta that means nothing for the number of rows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import make_problem

import dpviz
from dpviz.auditing import audit, audit_one_run
from dpviz.auditing.one_run import row_canaries
from dpviz.auditing.pairs import label_flip
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.experiments.studies import noise_comparison
from dpviz.mechanisms import get_mechanism
from dpviz.privacy.budget import Budget, default_delta

DELTA = 0.5
SPEC = dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", delta=DELTA, seeds=1)
PROBLEM = make_problem(n=100)
MECHANISM = get_mechanism("output-gaussian")()


def one_run(delta: float) -> object:
    canaries = row_canaries(MECHANISM, PROBLEM, Budget(1.0, default_delta(PROBLEM.n)), 20)
    return audit_one_run(MECHANISM, canaries, Budget(1.0, delta))


def pair(delta: float) -> object:
    return audit(MECHANISM, PROBLEM, label_flip(PROBLEM, 0).second, Budget(1.0, delta), 40)


def classifier() -> object:
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    return dpviz.PrivateClassifier(delta=DELTA, ranges=(-1, 1)).fit(X, X[:, 0] > 0)


PYTHON: dict[str, Callable[[], object]] = {
    "run": lambda: dpviz.run(SPEC),
    "run_epsilons": lambda: dpviz.run_epsilons(SPEC, [1.0]),
    "resolve": lambda: dpviz.resolve(SPEC),
    "calibrate": lambda: dpviz.calibrate("output-gaussian", n=100, d=5, epsilon=1.0, delta=DELTA),
    "accounting": lambda: noise_comparison.accounted(SPEC),
    "sweep": lambda: dpviz.sweep("teaching", mechanisms=["output-gaussian"], epsilons=[1.0], seeds=1, delta=DELTA),
    "cross_validate": lambda: dpviz.cross_validate(dpviz.SweepSpec(dataset="teaching", folds=2, seeds=1, delta=DELTA)),
    "audit": lambda: pair(DELTA),
    "audit_run": lambda: dpviz.audit_run(SPEC, runs=40),
    "audit_one_run": lambda: one_run(DELTA),
    "release": lambda: dpviz.release(SPEC),
    "PrivateClassifier": classifier,
}
RUN = "--dataset teaching --mechanism output-gaussian --delta 0.5"
SHELL = [
    *(
        f"{name} {RUN}"
        for name in ("run", "calibrate", "calibrate --accountants", "calibrate --methods", "influence", "audit", "groups")
    ),
    *(f"calibrate --n 100 --d 5 {more}" for more in ("--delta 0.5", "--delta 0.01")),
    "sweep --dataset teaching --mechanisms output-gaussian --epsilons 1 --delta 0.5 --no-cache",
    f"report {RUN} --out a.html",
    f"release {RUN} --out model",
]


@pytest.mark.parametrize("name", PYTHON)
def test_a_delta_that_means_nothing_is_refused_from_python(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not below 1/n"):
        PYTHON[name]()


@pytest.mark.parametrize("command", SHELL)
def test_it_is_refused_from_the_shell(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) != 0
    captured = capsys.readouterr()
    assert "is not below 1/n" in captured.err
    assert "proved" not in captured.out
    assert not list(tmp_path.iterdir())


def test_the_largest_delta_that_means_something_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    """What is refused above is refused for delta alone."""
    assert dpviz.calibrate("output-gaussian", n=100, d=5, epsilon=1.0, delta=0.0099).proved_budget == Budget(1.0, 0.0099)
    assert main(["calibrate", "--n", "100", "--d", "5", "--mechanism", "output-gaussian", "--delta", "0.0099"]) == 0
    assert "proved" in capsys.readouterr().out
    assert pair(0.0099) is not None
    assert one_run(0.0099) is not None


@pytest.mark.parametrize(
    ("bad", "field"),
    [({"epsilon": 0.0}, "epsilon"), ({"epsilon": 1e9}, "epsilon"), ({"lam": -1.0}, "lam"), ({"n": 0}, "n"), ({"d": 1.5}, "d")],
)
def test_calibrate_refuses_whatever_run_refuses(bad: dict[str, float], field: str) -> None:
    facts = {"n": 100, "d": 5, "epsilon": 1.0} | bad
    with pytest.raises(InvalidInput) as refused:
        dpviz.calibrate("output-gaussian", **facts)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_the_synthetic_pair_of_an_audit_has_rows_for_which_delta_means_something() -> None:
    """A run's delta is below 1/n of its own rows; the synthetic pair has more rows where a run has fewer than 1,000."""
    spec = dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", seeds=1)
    n = dpviz.resolve(spec).n_train
    assert n < 900
    delta = 1 / (n + 1)
    result = dpviz.audit_run(dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", delta=delta), runs=40)
    assert result.calibration.budget.delta == delta
