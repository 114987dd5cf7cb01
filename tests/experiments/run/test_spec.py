"""The run as a value: validation, key, URL and its version."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from support import assert_refused
from support_pages import opened

import dpviz
from dpviz.experiments.run import links
from dpviz.experiments.run.settings import LEAST_DELTA, LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.run.spec import RunSpec
from dpviz.models import get_model
from dpviz.reporting import address

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
