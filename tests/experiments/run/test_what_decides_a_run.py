"""Where powers meet: persons, weights, preparations, splits, seeds and budgets of one run, and what it is kept under."""

from dataclasses import fields, replace
from functools import cache
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
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import dataset_of, fit_key, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.inspected import inspect, row_influence
from dpviz.experiments.studies.releases import releases
from dpviz.experiments.sweeps.cell import Cell
from dpviz.mechanisms import Training, protection
from dpviz.models import get_model
from dpviz.privacy.budget import row_budget

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
    assert calibration.noise_scale == public.for_row().noise_scale
    assert result.calibration.noise_scale == public.noise_scale
    streams = [stream.generate_state(2).tolist() for stream in training.streams]
    assert streams == [stream.generate_state(2).tolist() for stream in spawn(spec.seed, spec.seeds)]


def answers(spec: dpviz.RunSpec) -> dict[str, np.ndarray]:
    """What is kept in memory for a run, by who keeps it; under "fit" what neither noise nor budget decide."""
    result, inspected = dpviz.run(spec), inspect(spec)
    return {
        "run": np.r_[result.theta.ravel(), result.accuracy, result.calibration.noise_scale],
        "inspected": np.r_[inspected.theta.ravel(), inspected.rows["margin"]],
        "releases": releases(spec, (spec.epsilon, 10.0)).at[0].theta.ravel(),
        "fit": np.r_[setup_for(spec).non_private.theta, row_influence(spec).newton_norm],
    }


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray], *names: str) -> bool:
    return all(one[k].shape == other[k].shape and np.allclose(one[k], other[k], rtol=1e-7) for k in names or one)


@settings(max_examples=30)
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
