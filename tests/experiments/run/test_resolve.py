"""Runs checked against the data that is there; making one reads nothing."""

import builtins
import json
import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support import assert_refused

import dpviz
from dpviz.experiments.sweeps.cell import Cell
from dpviz.privacy.budget import default_delta

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
    assert_refused(dpviz.run_sweep, mlp, on_cell=ran.append, match="not convex")
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
