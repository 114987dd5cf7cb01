"""Sweeps as jobs: resume, damage, cancel, and the same numbers by every way."""

from pathlib import Path

import pandas as pd
import pytest
from support import Cancelled, cancel_after

import dpviz
from dpviz.experiments.sweeps.sweep import CellStore, SweepSpec, run_cells, run_sweep, sweep

SPEC = SweepSpec(dataset="teaching", mechanisms={"dp-gd": {"steps": 5}, "cms-output": {}}, epsilons=[3.0, 0.3], seeds=25)


def test_cells_are_ten_seeds_of_every_mechanism_then_the_next_ten() -> None:
    cells = SPEC.cells()
    assert [(c.spec.mechanism, c.replicas.start, c.replicas.stop) for c in cells] == [
        ("dp-gd", 0, 10),
        ("cms-output", 0, 10),
        ("dp-gd", 10, 20),
        ("cms-output", 10, 20),
        ("dp-gd", 20, 25),
        ("cms-output", 20, 25),
    ]
    assert len({c.key() for c in cells}) == 6
    assert [c.replicas for c in SweepSpec(mechanisms=["dp-gd"], seeds=1).cells()] == [range(1)]


def test_sweep_has_every_row_once_and_agrees_with_runs() -> None:
    table = run_sweep(SPEC)
    assert len(table) == 2 * 2 * 25
    assert not table[["mechanism", "epsilon", "seed"]].duplicated().any()
    run = dpviz.run(dpviz.RunSpec("teaching", mechanism="cms-output", epsilon=3.0, seeds=25))
    other = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", epsilon=0.3, seeds=25, params={"steps": 5}))
    part = table[(table.mechanism == "dp-gd") & (table.epsilon == 0.3)]
    assert part["objective"].to_numpy() == pytest.approx(other.objective)
    part = table[(table.mechanism == "cms-output") & (table.epsilon == 3.0)]
    assert part["objective"].to_numpy() == pytest.approx(run.objective)
    for name in ("expected_accuracy", "expected_balanced_accuracy"):
        assert part[name].iloc[0] == pytest.approx(getattr(run, name))
    pd.testing.assert_frame_equal(part[list(run.metrics)].reset_index(drop=True), run.metrics)
    assert (part["non_private_roc_auc"] == run.setup.baselines.loc["non-private", "roc_auc"]).all()
    assert part["majority_roc_auc"].isna().all()
    assert (part["majority_f1"] == run.setup.baselines.loc["majority", "f1"]).all()


def test_resumes_from_finished_cells(tmp_path: Path) -> None:
    store = CellStore(tmp_path / "cells")
    cells = iter(run_cells(SPEC.cells(), store=store))
    for _ in range(3):
        next(cells)
    del cells
    assert len(list(store.folder.glob("*.cell"))) == 3

    def monitor(done: float) -> None:
        assert done >= 3 / len(SPEC.cells()), "finished cells were computed again"

    resumed = run_sweep(SPEC, store=CellStore(store.folder), monitor=monitor)
    pd.testing.assert_frame_equal(resumed, run_sweep(SPEC))
    assert not list(store.folder.glob(".part-*"))


def test_cancel_keeps_what_is_finished(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    with pytest.raises(Cancelled):
        run_sweep(SPEC, store=store, monitor=cancel_after(0.4))
    assert 1 <= len(list(tmp_path.glob("*.cell"))) < 8


def test_toml_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "figure.toml"
    path.write_text(SPEC.to_toml())
    assert SweepSpec.from_toml(path) == SPEC


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("epsilons = [", "spec file"),
        ("epsilon = 1", "spec file"),
        ("epsilons = [0]", "epsilon"),
        ("epsilons = []", "epsilons"),
        ('mechanisms = ["x"]', "mechanism"),
        ("[mechanisms.dp-gd]\nsteps = -1", "steps"),
        ("epsilons = [1, 1.0]", "epsilons"),
        ("mechanisms = []", "mechanisms"),
        ("seeds = 1.5", "seeds"),
        ("seeds = [1]", "seeds"),
        ("seeds = 0", "seeds"),
        ("epsilons = 2020-01-01", "epsilons"),
        ("epsilons = [[1.0]]", "epsilon"),
        ("mechanisms = {dp-gd = 5}", "params"),
        ("dataset = ['iris']", "dataset"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(dpviz.InvalidInput) as caught:
        SweepSpec.from_toml(path)
    assert caught.value.field == field
    with pytest.raises(dpviz.InvalidInput, match="cannot be read"):
        SweepSpec.from_toml(tmp_path / "missing.toml")


def test_the_function_takes_what_the_spec_takes() -> None:
    table = sweep("iris", "svm", ["cms-output"], [1.0], 3, lam=0.1, intercept=False)
    assert (table["lam"] == 0.1).all()
    with pytest.raises(TypeError):
        sweep("iris", lambda_=3)
