"""Where powers meet in one run and what it is kept under; a field that is declared is everywhere."""

import os
import random
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz
from dpviz.common import memory
from dpviz.common.random import spawn
from dpviz.experiments.run import run as running
from dpviz.experiments.run import setup
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import dataset_of, fit_key, resolve
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.inspected import inspect, row_influence
from dpviz.experiments.studies.releases import releases
from dpviz.experiments.sweeps.cell import Cell
from dpviz.mechanisms import Training, protection
from dpviz.mechanisms.knobs import Changes
from dpviz.models import Rows, get_model
from dpviz.privacy.budget import row_budget
from dpviz.privacy.private_ranges import shares
from dpviz.releasing import Release, training, tuning

N = 160


@cache
def dataset(person_rows: int, draw: int = 0) -> dpviz.Dataset:
    """160 rows; of persons with 1 to 4 where ε is for a person. Another draw has other numbers of the same persons."""
    rng = np.random.default_rng(draw)
    x = rng.uniform(size=(N, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.where(x[:, 0] + rng.normal(0, 0.2, N) > 0.5, "yes", "no")})
    if person_rows:
        table["who"] = np.repeat(np.arange(100), np.arange(100) % 4 + 1)[:N]
    public = {"ranges": {"a": (0, 1), "b": (0, 1)}, "categories": {"y": ["no", "yes"]}}
    return dpviz.dataset(table, target="y", **public, **({"person": "who", "person_rows": person_rows} if person_rows else {}))


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "dataset": st.sampled_from([0, 2, 4, 5]).map(dataset).map(lambda rows: rows.name),
    "mechanism": st.sampled_from(["output-gaussian", "objective-tight", "dp-gd", "dp-sgd", "cms-output"]),
    "model": st.sampled_from(["logistic", "svm"]),
    "epsilon": st.sampled_from([0.6, 5.0]),
    "delta": st.sampled_from([None, 1e-6, 1e-4]),
    "lam": st.sampled_from([0.0, 0.02, 0.3]),
    "class_weight": st.sampled_from([1.0, 0.25, 6.0]),
    "seeds": st.integers(1, 3),
    "split_seed": st.integers(0, 3),
    "seed": st.integers(0, 3),
    "intercept": st.booleans(),
    "row_scaling": st.sampled_from(["automatic", "unit", "standardised"]),
    "ranges": st.sampled_from(["declared", "private"]),
    "folds": st.sampled_from([0, 3]),
}
SPECS = st.fixed_dictionaries(FIELDS)


def fitting(values: dict[str, Any]) -> dpviz.RunSpec:
    """The run, with defaults for fields that do not go together."""
    return resolve(dpviz.RunSpec(**values), []).spec


def traced(spec: dpviz.RunSpec) -> tuple[Training, dpviz.Result]:
    """What a run gives to its method, and its result."""
    given: list[Training] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "train", lambda mechanism, training: given.append(training) or train(mechanism, training))
        result = dpviz.run(spec)
    return given[0], result


@settings(max_examples=40)
@given(SPECS)
def test_training_gets_the_rows_weights_noise_and_streams_that_were_calibrated_for(values: dict[str, Any]) -> None:
    """And what is scored was not trained on; the noise is that of public facts alone."""
    spec = fitting(values)
    rows, (training, result) = dataset_of(spec), traced(spec)
    split = rows.split(spec.split_seed, spec.folds)
    (calibration,), problem, n = training.calibrations, training.problem, len(split.train)
    assert not set(split.train) & set(split.test)
    if rows.persons is not None:
        assert not set(rows.persons[split.train]) & set(rows.persons[split.test])
    for part, index in ((problem.rows, split.train), (result.setup.test, split.test)):
        assert np.array_equal(part.X, rows.X[index])
        assert np.array_equal(part.y, rows.y[index])
    heavy = np.where(problem.rows.y > 0, spec.class_weight, 1.0) / max(spec.class_weight, 1.0)
    assert (problem.rows.weights is None) == (spec.class_weight == 1)
    assert problem.rows.weights is None or problem.rows.weights == pytest.approx(heavy)
    k, budget, mechanism = rows.person_rows, row_budget(spec.epsilon, spec.delta, n), spec.build()
    facts = replace(get_model(spec.model).setting(n, rows.d, problem.lam), person_rows=k, preparations=rows.preparations)
    public = protection.calibrate(mechanism, facts, budget)
    assert (result.calibration.budget, result.calibration.person_rows) == (budget, k)
    assert result.calibration.proved_budget == public.proved_budget
    assert calibration.row_calibration is None, "training sees the method's own"
    assert calibration.noise_scale == public.for_row().noise_scale
    assert result.calibration.noise_scale == public.noise_scale
    streams = [stream.generate_state(2).tolist() for stream in training.streams]
    assert streams == [stream.generate_state(2).tolist() for stream in spawn(spec.seed, spec.seeds)]


def published(spec: dpviz.RunSpec, search: bool, all_rows: bool) -> tuple[Release, list[Training], list[Rows]]:
    """A release, or that of a private search, with what was trained and the rows that models were scored on."""
    trained: list[Training] = []
    scored: list[Rows] = []
    model = type(get_model(spec.model))
    measure = model.measure
    with pytest.MonkeyPatch.context() as patch:
        for module in (training, tuning):
            patch.setattr(module, "train", lambda mechanism, given: trained.append(given) or train(mechanism, given))
        patch.setattr(model, "measure", lambda self, theta, rows: scored.append(rows) or measure(self, theta, rows))
        patch.setattr(random, "SystemRandom", lambda: random.Random(5))
        make = (
            partial(dpviz.private_search, values={"lam": [0.05, 0.3]}, mean_runs=3.0, held_out=0.3) if search else dpviz.release
        )
        return make(spec, all_rows=all_rows), trained, scored


def content(*some: Rows) -> list[bytes]:
    """Rows with their labels, in an order that does not depend on theirs."""
    return sorted(row.tobytes() for rows in some for row in np.column_stack([rows.X, rows.y]))


def check_release(values: dict[str, Any], search: bool, all_rows: bool) -> None:
    enough = {"epsilon": 60.0} if values["ranges"] == "private" else {}
    spec = fitting(values | {"seed": 0, "row_scaling": "unit"} | enough)
    made, trained, scored = published(spec, search, all_rows)
    rows, k = made.dataset, made.dataset.person_rows
    part = np.arange(rows.n) if all_rows else rows.split(spec.split_seed, spec.folds).train
    n = len(part) - (round(0.3 * len(part)) if search else 0)
    whole = row_budget(spec.epsilon, spec.delta, n)
    for one in trained:
        (cal,), problem = one.calibrations, one.problem
        for rest in scored if search else [problem.rows.take(part[:0])]:
            assert content(problem.rows, rest) == content(Rows(rows.X[part], rows.y[part]))
        heavy = np.where(problem.rows.y > 0, spec.class_weight, 1.0) / max(spec.class_weight, 1.0)
        assert np.broadcast_to(1.0 if problem.rows.weights is None else problem.rows.weights, n) == pytest.approx(heavy)
        facts = replace(get_model(spec.model).setting(n, rows.d, problem.lam), person_rows=0 if search else k)
        budget = made.each or (shares(whole)[1] if made.of_ranges else whole)
        assert cal.noise_scale == protection.calibrate(spec.build(), facts, budget).for_row().noise_scale
        assert (cal.noise_scale > 0, problem.public_n, made.rows, made.model.privacy["rows"]) == (True, 0, n, n)
    assert bool(scored) == search
    proved = made.calibration.proved_budget
    assert proved is not None
    assert (made.calibration.person_rows, made.calibration.budget.epsilon) == (k, pytest.approx(spec.epsilon, rel=0.02))
    assert (proved.epsilon <= spec.epsilon * (1 + 1e-9), proved.delta <= whole.delta * (1 + 1e-9)) == (True, True)
    other, *_ = published(replace(spec, dataset=dataset(k, 1).name), search, all_rows)
    if spec.ranges == "declared" and not search:  # else noisy choices from the rows are public too
        assert replace(other.model, theta=made.model.theta).to_json() == made.model.to_json()
    assert (other.rows, other.each, other.calibration.proved_budget) == (n, made.each, proved)


@settings(max_examples=10)
@given(SPECS, st.booleans(), st.booleans())
def test_what_reaches_the_training_of_a_release_is_what_its_budget_pays_for(
    values: dict[str, Any], search: bool, all_rows: bool
) -> None:
    """Rows, weights, noise; what is scored was not trained on; other rows change parameters and no other public number."""
    searchable = values["mechanism"] in ("output-gaussian", "dp-gd", "dp-sgd", "cms-output")
    check_release(values, search and searchable, all_rows)


WRONG: dict[str, tuple[Any, str, Any]] = {
    "scores what it trained on": (tuning, "split_positions", lambda n, *_: (np.arange(n), np.arange(n // 3))),
    "drops class weights": (tuning, "Rows", lambda X, y, **_: Rows(X, y)),
    "half the noise": (training, "add_grid_slack", lambda _, cal, m: replace(cal, noise_scale=cal.noise_scale / 2)),
    "states a label": (training, "encoder_of", lambda rows, _: replace(rows.encoder, scaling=str(rows.y[:9]))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_a_release_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"dataset": dataset(2).name, "mechanism": "dp-gd", "class_weight": 6.0, "split_seed": 3, "ranges": "declared"}
    check_release(values, WRONG[name][0] is tuning, False)
    monkeypatch.setattr(*WRONG[name])
    with pytest.raises(AssertionError):
        check_release(values, WRONG[name][0] is tuning, False)


def answers(spec: dpviz.RunSpec) -> dict[str, np.ndarray]:
    """What is kept in memory for a run, by who keeps it; under "fit" what neither noise nor budget decide."""
    result, inspected = dpviz.run(spec), inspect(spec)
    return {
        "run": np.r_[result.theta.ravel(), result.accuracy, result.calibration.noise_scale],
        "inspected": np.r_[inspected.theta.ravel(), inspected.instances["margin"]],
        "releases": releases(spec, (spec.epsilon, 10.0)).at[0].theta.ravel(),
        "fit": np.r_[setup.setup_for(spec).non_private.theta, row_influence(spec).newton_norm],
    }


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray], *names: str) -> bool:
    return all(one[k].shape == other[k].shape and np.allclose(one[k], other[k], rtol=1e-7) for k in names or one)


@settings(max_examples=10)
@given(SPECS, SPECS, st.sampled_from(list(FIELDS)))
def test_a_run_has_answers_of_its_own_whatever_is_kept(values: dict[str, Any], others: dict[str, Any], field: str) -> None:
    """One field differs. After the other run the answers are those of empty memory, and keys differ where answers do."""
    first, second = fitting(values), fitting(values | {field: others[field]})
    before, after = answers(first), answers(second)
    for kept in memory._caches:
        if kept.name != "own rows":
            kept.clear()
    assert same(after, answers(second))
    if not same(before, after, "run", "inspected", "releases"):
        assert resolve(first).key() != resolve(second).key()
        assert len({Cell(spec, (spec.epsilon,), range(spec.seeds)).key() for spec in (first, second)}) == 2
    if not same(before, after, "fit"):
        assert fit_key(first) != fit_key(second)


def test_every_field_of_a_run_is_tried() -> None:
    assert {*FIELDS, "params", "published_split"} == {field.name for field in fields(dpviz.RunSpec)}


ROOT = Path(__file__).parents[3]

#: run with the name of what the field `colour` changes
SEEN = """
import sys
from dpviz.cli import one_run, sweep
from dpviz.cli.main import parser
from dpviz.experiments.run.resolve import fit_key, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.experiments.sweeps.cells import Cell
from dpviz.experiments.sweeps.sweep import SweepSpec

changes = sys.argv[1]
plain, red = RunSpec(seeds=1), RunSpec(seeds=1, colour=3)
assert red.to_query() == {"seeds": "1", "colour": "3"} and RunSpec.from_query("?seeds=1&colour=3") == red
assert RunSpec(**red.to_dict()) == red != plain

around = SweepSpec.from_run(red, {"dp-gd": {}}, [1.0])
assert [run.colour for run in around.runs()] == [3] and "colour = 3" in around.to_toml()
assert around.key() != SweepSpec.from_run(plain, {"dp-gd": {}}, [1.0]).key()

assert one_run.run_spec(parser().parse_args(["run", "--seeds", "1", "--colour", "3"])) == resolve(red).spec
assert sweep.spec_of(parser().parse_args(["sweep", "--colour", "3"])) == SweepSpec(colour=3)
try:
    one_run.run_spec(parser().parse_args(["run", "--colour", "10"]))
except ValueError as problem:
    assert problem.field == "colour"
else:
    raise AssertionError("a value out of range was taken")

assert resolve(plain).key() != resolve(red).key()
assert Cell(plain, (1.0,), range(1)).key() != Cell(red, (1.0,), range(1)).key()
fit = changes in ("data", "fit")
assert (fit_key(plain) != fit_key(red)) is fit
assert (setup_for(plain) is not setup_for(red)) is fit
assert (inspected.row_influence(plain) is not inspected.row_influence(red)) is fit

if changes == "data":
    from streamlit.testing.v1 import AppTest

    page = AppTest.from_file("app.py", default_timeout=600).run()
    assert not page.exception
    page.number_input(key="colour").set_value(3).run()
    assert not page.exception
    assert page.query_params["colour"] == "3"
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the app without what is computed from it."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpviz", "pages"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", folder)
    return folder


def insert(path: Path, after: str, line: str) -> None:
    text = path.read_text()
    assert text.count(after) == 1
    path.write_text(text.replace(after, f"{after}\n{line}"))


@pytest.mark.long
@pytest.mark.parametrize("changes", [Changes.DATA, Changes.NOISE])
def test_a_field_that_is_declared_is_everywhere(changes: Changes, copy: Path) -> None:
    run = copy / "dpviz/experiments/run"
    shutil.copytree(ROOT / "dpviz/experiments/run", run, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    knob = f'Whole(label="Colour", help="Of a test.", low=0, high=9, changes=Changes.{changes.name})'
    insert(run / "settings.py", "SETTINGS: dict[str, Knob] = {", f'    "colour": {knob},')
    insert(run / "spec.py", "    published_split: bool = False", "    colour: int = 0")
    ours = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", SEEN, changes], cwd=copy, env=os.environ | ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


OTHER: dict[str, object] = {"dataset": "breast-cancer", "model": "svm", "mechanism": "cms-output", "delta": 1e-7}
OTHER |= {"intercept": False, "row_scaling": "largest", "ranges": "private"}


def computed(spec: RunSpec) -> tuple[bytes, bytes]:
    """The rows of a run and its non-private model, not from any cache of training problems."""
    memory.clear()
    made = setup.setup_for(spec)
    rows = b"".join(part.tobytes() for rows in (made.problem.rows, made.test) for part in (rows.X, rows.y))
    return rows, made.problem.optimum.tobytes()


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "published_split"])  # which the bundled tables lack
def test_a_field_changes_what_it_is_said_to_change(name: str) -> None:
    """A wrong tag would serve the influence of another run. An automatic λ would follow the mechanism; here it is set."""
    plain = RunSpec("iris", lam=0.01, row_scaling="centred")  # the automatic one is paid for from some ε on
    changed = replace(plain, **{name: OTHER[name] if name in OTHER else getattr(plain, name) + 2})  # type: ignore[arg-type]
    (rows, model), (other_rows, other_model) = computed(plain), computed(changed)
    changes = SETTINGS[name].changes
    assert (rows != other_rows) is (changes is Changes.DATA)
    assert (model != other_model) is (changes in (Changes.DATA, Changes.FIT)) is (fit_key(plain) != fit_key(changed))
