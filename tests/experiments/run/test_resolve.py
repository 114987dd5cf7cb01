"""Runs as values: validation, key, URL and version; checked against the data; better than guessing at their defaults."""

import builtins
import json
import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY, assert_refused
from support_pages import opened

import dpviz
from benchmarks.defaults import measured, methods
from dpviz.experiments.run import links
from dpviz.experiments.run.settings import LEAST_DELTA, LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps.cell import Cell
from dpviz.models import get_model
from dpviz.privacy.budget import default_delta
from dpviz.reporting import address

NOT_THERE = [
    ({"dataset": "adlut"}, "dataset"),
    ({"dataset": "census-5"}, "n"),
    ({"dataset": "census-2000000"}, "n"),
    ({"dataset": "../etc/passwd"}, "dataset"),
    ({"dataset": "data/nobody.csv"}, "dataset"),
    ({"delta": 1 / 320}, "delta"),
    ({"dataset": "census-100000", "delta": 1e-4}, "delta"),
    ({"model": "mlp", "mechanism": "output-gaussian"}, "mechanism"),
]


def test_making_a_run_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    dpviz.resolve(dpviz.RunSpec())  # imports the package's own modules

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"read {args}")

    for module, name in ((builtins, "open"), (os, "stat"), (os, "listdir"), (os, "scandir")):
        monkeypatch.setattr(module, name, refuse)
    spec = dpviz.RunSpec(dataset="data/people.csv", mechanism="dp-sgd", params={"epochs": 2}, model="mlp-3")
    again = dpviz.RunSpec.from_query(spec.to_query())
    with pytest.raises(AssertionError, match="read"):  # the data folder, which a folder's file needs
        dpviz.resolve(spec)
    assert again == spec


@pytest.mark.parametrize(("values", "field"), NOT_THERE, ids=[f"{f}={next(iter(v.values()))!r}"[:30] for v, f in NOT_THERE])
def test_what_does_not_fit_is_refused_with_field_cause_and_fix(values: dict, field: str) -> None:
    spec = dpviz.RunSpec(**values)
    for use in (dpviz.resolve, dpviz.run, dpviz.setup_for):
        assert assert_refused(use, spec, field=field).fix.endswith(".")


def test_all_problems_of_a_run_are_reported_at_once() -> None:
    problems: list[dpviz.InvalidInput] = []
    values = {"dataset": "nope", "delta": 0.1, "model": "mlp", "mechanism": "output-gaussian"}
    found = dpviz.resolve(dpviz.RunSpec(**values), problems)
    assert [p.field for p in problems] == ["dataset", "delta", "mechanism"]
    assert found.spec == dpviz.resolve(dpviz.RunSpec(model="mlp")).spec


@pytest.mark.parametrize("name", ["teaching", "breast-cancer", "census-100000", "census"])
def test_defaults_are_filled_in_for_the_rows_that_are_there(name: str) -> None:
    found = dpviz.resolve(dpviz.RunSpec(name))
    n = len(dpviz.load_dataset(name).split().train)
    assert found.n_train == n
    assert found.budget == dpviz.Budget(1.0, default_delta(n))
    assert found.spec.delta is None
    assert found.spec.dataset == dpviz.load_dataset(name).name
    filled = dpviz.resolve(dpviz.RunSpec(found.spec.dataset, delta=found.budget.delta))
    assert filled.key() == found.key()


def test_delta_is_held_against_the_rows_that_gaps_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.6f},{'ab'[k % 2]}" for k in range(1000)]
    (tmp_path / "whole.csv").write_text("\n".join(["x,label", *lines]) + "\n")
    gaps = [line if k % 3 == 0 else f",{'ab'[k % 2]}" for k, line in enumerate(lines)]
    (tmp_path / "gaps.csv").write_text("\n".join(["x,label", *gaps]) + "\n")
    for name in ("whole", "gaps"):
        (tmp_path / f"{name}.toml").write_text('target = "label"\ncolumns = ["x"]\n')
    # 800 training rows allow 1/801 and refuse 1/500; the 334 rows without gaps leave 267, which allow it
    assert dpviz.resolve(dpviz.RunSpec("data/whole.csv", delta=1 / 801)).n_train == 800
    assert dpviz.resolve(dpviz.RunSpec("data/gaps.csv", delta=1 / 500)).n_train == 267
    for name, delta in (("whole", 1 / 500), ("gaps", 1 / 267)):
        assert_refused(dpviz.resolve, dpviz.RunSpec(f"data/{name}.csv", delta=delta), match="delta")


def test_a_sweep_is_plain_too_and_is_refused_before_it_starts() -> None:
    spec = dpviz.SweepSpec("nope", mechanisms=["output-gaussian"], epsilons=[1.0])
    assert "delta" not in spec.to_toml()
    assert_refused(dpviz.run_sweep, spec, match="nope")
    mlp = dpviz.SweepSpec("teaching", model="mlp", mechanisms=["dp-gd", "output-gaussian"], epsilons=[1.0], seeds=1)
    ran: list[object] = []
    assert_refused(dpviz.run_sweep, mlp, monitor=ran.append, match="not convex")
    assert not ran


def test_runs_that_differ_in_anything_have_keys_of_their_own() -> None:
    """A key without delta, say, would give one budget's models for another's."""
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", delta=1e-5)
    changed: list[dict[str, object]] = [
        *({"delta": 1e-6}, {"epsilon": 2.0}, {"lam": 0.5}, {"seeds": 3}, {"seed": 4}, {"split_seed": 5}, {"folds": 3}),
        *({"model": "svm"}, {"intercept": False}, {"row_scaling": "clip"}, {"dataset": "iris"}, {"mechanism": "non-private"}),
        *({"params": {"steps": 3}}, {"params": {"steps": 4}}, {"params": {"noise": "published"}}),
    ]
    keys = [dpviz.resolve(replace(spec, **one)).key() for one in ({}, *changed)]  # type: ignore[arg-type]
    assert len(set(keys)) == len(keys)
    assert set(json.loads(keys[0])) >= {field.name for field in fields(spec)}
    cells = [Cell(replace(spec, delta=delta), (1.0, 2.0), range(2)).key() for delta in (1e-5, 1e-6)]
    parts = [((1.0, 2.0), range(2)), ((1.0, 3.0), range(2)), ((1.0, 2.0), range(2, 4)), ((1.0,), range(2))]
    cells += [Cell(spec, *part).key() for part in parts[1:]]
    assert len(set(cells)) == 5


EPSILONS, SEEDS = (0.3, 1.0, 3.0, 10.0), 5
#: reports of single people at these sizes tell the labels hardly apart, whatever their training
LOCAL = ("ldp-duchi", "ldp-gaussian")
CASES = [(dataset, model, name) for dataset, model in (("breast-cancer", "logistic"), ("iris", "svm")) for name in methods(model)]
CASES += [("teaching", "mlp", name) for name in methods("mlp")]
#: more rows, and the network whose sampling rate follows a rule of them
CASES += [("census-20000", "logistic", name) for name in ONE_OF_EACH_FAMILY if name in methods("logistic")]
CASES += [("census-20000", "mlp", "dp-sgd")]


@pytest.mark.long
@pytest.mark.parametrize(("dataset", "model", "name"), CASES)
def test_methods_at_their_defaults(dataset: str, model: str, name: str) -> None:
    found = measured(dataset, model, name, EPSILONS, SEEDS)
    two_rows = 2 / len(setup_for(dpviz.RunSpec(dataset)).split.test)
    mean, spread = found["mean"].to_numpy(), found["spread"].to_numpy()
    floor, without = found["majority"].iloc[0], found["non_private"].iloc[0]
    if name not in LOCAL:
        assert mean[-1] >= floor - max(spread[-1], two_rows, 0.005), found
    if name in LOCAL and mean.max() <= (floor + without) / 2:
        return  # reports that tell the labels hardly apart at any epsilon: their differences are luck
    for k in range(1, len(mean)):
        best = int(np.argmax(mean[: k + 1]))
        # the larger of the two spreads, or two rows of a small test set; below the majority there is nothing to lose
        least = max(spread[k], spread[best], two_rows, 0.02)
        # a draw that is luckily above the model without privacy is nothing that a larger budget could keep
        assert mean[k] >= min(mean[best], without) - least or mean[best] <= floor, found


def test_the_rule_gives_short_training_to_nobody() -> None:
    """A quick look at the sets' smallest: the long test above looks at all."""
    for name in ("dp-gd", "dp-sgd"):
        found = measured("teaching", "svm", name, [1.0], 2)
        assert found["training"].iloc[0] < 0.02
        assert found["mean"].iloc[0] > found["majority"].iloc[0]


BAD: list[tuple[dict[str, Any], str]] = [
    ({field: value}, field)
    for field, values in {
        "epsilon": [0, -1, float("nan"), float("inf"), "1", None, 10**400, 1 + 0j, [1.0], True, 1e-320, 1e-300, 1e300],
        "delta": [0, 1.5, "1e-5", float("nan"), 1e-320, 1e-300, 1e300],
        "lam": [1e-10, -1, float("inf"), 1e-320, 1e-12, 1e6, 1e308],
        "seeds": [0, 2.5, 10**9, True],
        "split_seed": [-1],
        "seed": ["x"],
        "dataset": [3, " "],
        "model": ["tree"],
        "mechanism": ["magic", ["dp-gd"]],
        "params": [{"stepz": 1}, [1]],
        "intercept": [1],
    }.items()
    for value in values
]
KNOBS = [("steps", -1), ("steps", 1.5), ("noise", "loud")]
BAD += [({"mechanism": "dp-gd", "params": {name: value}}, name) for name, value in KNOBS]


@pytest.mark.parametrize(("values", "field"), BAD, ids=[f"{f}={next(iter(v.values()))!r}"[:30] for v, f in BAD])
def test_bad_values_are_refused_with_field_cause_and_fix(values: dict, field: str) -> None:
    caught = assert_refused(dpviz.RunSpec, **values)
    assert field in caught.field
    assert caught.cause
    assert caught.fix.endswith(".")
    assert pickle.loads(pickle.dumps(caught)).field == caught.field


def test_spec_is_frozen_hashable_and_picklable() -> None:
    spec = dpviz.RunSpec(mechanism="dp-gd", params={"steps": 7})
    with pytest.raises(AttributeError):
        spec.epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        spec.params["steps"] = 8  # type: ignore[index]
    assert pickle.loads(pickle.dumps(spec)) == spec == dpviz.RunSpec(**spec.to_dict())
    assert len({spec, replace(spec, params={"steps": 7}), replace(spec, params={"steps": 8})}) == 2
    assert_refused(dpviz.RunSpec, params={"steps": 7}, match="params: are knobs of one mechanism, and it is automatic")


def test_key_is_canonical() -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism="dp-gd", params={"steps": 50, "step_size": 2.0})
    other = replace(spec, params={"step_size": 2, "steps": 50.0})
    assert dpviz.resolve(spec).key() == dpviz.resolve(other).key()
    assert dpviz.resolve(dpviz.RunSpec()).key() == dpviz.resolve(dpviz.RunSpec(mechanism="dp-gd", delta=1e-5)).key()
    values = json.loads(dpviz.resolve(spec).key())
    assert values["sha256"] == dpviz.load_dataset("breast-cancer", scaling="automatic").sha256
    assert values["engine"].startswith(dpviz.__version__)


#: tells a run's key, and what three runs give to the last bit
TOLD = """
import dpviz, hashlib
told = [dpviz.resolve(dpviz.RunSpec(dataset='teaching')).key()]
for name in ('output-gaussian', 'cms-output', 'dp-gd'):
    r = dpviz.run(dpviz.RunSpec(dataset='teaching', mechanism=name, seeds=5))
    told.append(hashlib.sha256(r.theta.tobytes() + r.accuracy.tobytes() + r.objective.tobytes()).hexdigest())
"""


@pytest.mark.long
def test_two_processes_give_the_same_key_and_the_same_bits() -> None:
    exec(TOLD, here := dict[str, Any]())
    command = [sys.executable, "-c", TOLD + "print(told)"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == str(here["told"])
    assert len(set(here["told"])) == 4


def test_default_spec_has_an_empty_url_and_foreign_keys_are_ignored() -> None:
    assert dpviz.RunSpec().to_query() == {}
    assert dpviz.RunSpec.from_query("?utm_source=x&steps=3&nsgd.steps=1") == dpviz.RunSpec()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("epsilon=abc", "epsilon"),
        ("dataset=", "dataset"),
        ("model=cnn", "model"),
        ("mechanism=<script>", "mechanism"),
        ("mechanism=dp-gd&dp-gd.steps=1e9", "steps"),
        ("mechanism=dp-gd&dp-gd.noise=x", "noise"),
        ("intercept=maybe", "intercept"),
    ],
)
def test_bad_urls_are_reported_and_the_rest_is_kept(query: str, field: str) -> None:
    assert_refused(dpviz.RunSpec.from_query, query)
    problems: list[dpviz.InvalidInput] = []
    spec = dpviz.RunSpec.from_query(query + "&seed=4", problems)
    assert [p.field for p in problems] == [field]
    assert spec.seed == 4
    dpviz.run(spec)


def test_a_delta_in_the_address_stays_whatever_the_default_is() -> None:
    assert dpviz.RunSpec.from_query("delta=1e-5").delta == 1e-5
    assert dpviz.RunSpec(delta=1e-5).to_query() == {"delta": "1e-05"}
    assert "delta" not in dpviz.RunSpec("census-100000").to_query()


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, MOST_EPSILON])
def test_every_budget_that_is_taken_can_be_counted_with(mechanism: str, epsilon: float) -> None:
    setting = get_model("logistic").setting(320, 3, 1e-3)
    for delta in (LEAST_DELTA, 3e-3):
        spec = dpviz.RunSpec("teaching", mechanism=mechanism, epsilon=epsilon, delta=delta)
        try:
            cal = spec.build().calibrate(setting, dpviz.resolve(spec).budget)
        except dpviz.InvalidInput:
            continue
        assert np.isfinite(cal.noise_scale)


RUN = {"dataset": "iris", "epsilon": "0.5"}


def test_a_link_names_its_version_and_nothing_that_is_default() -> None:
    spec = RunSpec.from_query(RUN)
    assert dict(parse_qsl(address(spec)[1:])) == {**RUN, "v": str(links.VERSION)}
    assert address(RunSpec()) == "/"
    assert RunSpec.from_query(address(spec)) == RunSpec.from_query({**RUN, "v": str(links.VERSION)}) == spec


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "²", "01", "99999999999999"])
def test_an_unknown_version_is_reported(text: str) -> None:
    problems: list[dpviz.InvalidInput] = []
    assert RunSpec.from_query({**RUN, "v": text}, problems) == RunSpec.from_query(RUN)
    assert [one.field for one in problems] == ["v"]
    assert_refused(RunSpec.from_query, {**RUN, "v": text}, match="not a version of links")


def test_a_page_writes_the_version() -> None:
    page = opened("One_model", epsilon="0.5")
    assert page.query_params["v"] in (str(links.VERSION), [str(links.VERSION)])
    assert any("not a version of links" in one.value for one in opened("One_model", v="7", epsilon="0.5").warning)
