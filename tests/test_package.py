"""The package's public names and examples, and every way into dpviz, which refuses what `run` refuses."""

import doctest
import importlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from support import assert_refused, make_problem, of_each
from support_shell import Shell

import dpviz
from dpviz.auditing import audit, audit_one_run
from dpviz.auditing.one_run import row_canaries
from dpviz.auditing.pairs import label_flip
from dpviz.cli.main import main
from dpviz.experiments.studies import noise_comparison
from dpviz.mechanisms import get_mechanism
from dpviz.privacy.budget import Budget, default_delta


@pytest.mark.parametrize("name", dpviz.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(dpviz, name) is not None
    assert name in dir(dpviz)


@pytest.mark.parametrize(
    ("name", "rest", "wrong"),
    [
        *((name, (), "spec: must be a RunSpec") for name in ("run", "resolve", "setup_for", "audit_run", "release")),
        ("attack_run", (), "spec: must be a RunSpec"),
        ("run_epsilons", ([1.0],), "spec: must be a RunSpec"),
        ("private_search", ({"lam": [0.1]},), "spec: must be a RunSpec"),
        ("run_sweep", (), "spec: must be a SweepSpec"),
        ("cross_validate", (2,), "spec: must be a SweepSpec"),
        ("influence_of", (), "of: must be a Problem"),
        ("audit", (3, 3, 3), "mechanism: must be a Mechanism"),
        ("audit_one_run", (3, 3), "mechanism: must be a Mechanism"),
    ],
)
def test_an_argument_of_another_class_is_one_error(name: str, rest: tuple[object, ...], wrong: str) -> None:
    assert_refused(getattr(dpviz, name), 3, *rest, match=f"{wrong}, got an object of the class int. Give one of the class dpviz.")


def test_rooms_are_attributes_and_other_names_are_refused() -> None:
    assert dpviz.datasets is import_module("dpviz.datasets")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpviz.nonsense  # type: ignore[attr-defined]


ROOT = Path(__file__).parents[1]
FILES = [path for path in (ROOT / "dpviz").rglob("*.py") if ">>> " in path.read_text()]
LEAST = 60  # functions, classes and modules with an example


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@of_each(FILES)
def test_examples_are_true(path: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failed, attempted = doctest.testmod(importlib.import_module(name(path)), optionflags=flags)
    assert attempted
    assert not failed


def test_there_are_examples_where_people_would_try_them() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {one.name for path in FILES for one in finder.find(importlib.import_module(name(path))) if one.examples}
    assert len(found) >= LEAST, len(found)


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
    "accounting": lambda: noise_comparison.accounted_release(SPEC),
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
    assert_refused(PYTHON[name], match="is not below 1/n")


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


def test_the_largest_delta_that_means_something_is_taken(shell: Shell) -> None:
    """What is refused above is refused for delta alone."""
    assert dpviz.calibrate("output-gaussian", n=100, d=5, epsilon=1.0, delta=0.0099).proved_budget == Budget(1.0, 0.0099)
    assert "proved" in shell(["calibrate", "--n", "100", "--d", "5", "--mechanism", "output-gaussian", "--delta", "0.0099"])
    assert pair(0.0099) is not None
    assert one_run(0.0099) is not None


@pytest.mark.parametrize(
    ("bad", "field"),
    [({"epsilon": 0.0}, "epsilon"), ({"epsilon": 1e9}, "epsilon"), ({"lam": -1.0}, "lam"), ({"n": 0}, "n"), ({"d": 1.5}, "d")],
)
def test_calibrate_refuses_whatever_run_refuses(bad: dict[str, float], field: str) -> None:
    facts = {"n": 100, "d": 5, "epsilon": 1.0} | bad
    assert_refused(dpviz.calibrate, "output-gaussian", field=field, **facts)


def test_the_synthetic_pair_of_an_audit_has_rows_for_which_delta_means_something() -> None:
    """A run's delta is below 1/n of its own rows; the synthetic pair has more rows where a run has fewer than 1,000."""
    spec = dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", seeds=1)
    n = dpviz.resolve(spec).n_train
    assert n < 900
    delta = 1 / (n + 1)
    result = dpviz.audit_run(dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", delta=delta), runs=40)
    assert result.calibration.budget.delta == delta
