"""Sweeps as jobs and k-fold cross validation: resume, damage, cancel, folds, and error bars."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import Cancelled, assert_refused, cancel_after

import dpviz
from dpviz.cli.main import main
from dpviz.datasets.base import train_size
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps.folds import cross_validate, splits, summarise_splits
from dpviz.experiments.sweeps.sweep import CellStore, SweepSpec, run_cells, run_sweep, sweep

SPEC = SweepSpec(dataset="teaching", mechanisms={"dp-gd": {"steps": 5}, "cms-output": {}}, epsilons=[3.0, 0.3], seeds=25)


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
    for name in ("accuracy", "balanced-accuracy"):
        assert part[f"expected_{name.replace('-', '_')}"].iloc[0] == pytest.approx(run.expected_value(name))
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
    assert_refused(SweepSpec.from_toml, path, field=field)
    assert_refused(SweepSpec.from_toml, tmp_path / "missing.toml", match="cannot be read")


def test_the_function_takes_what_the_spec_takes() -> None:
    table = sweep("iris", "svm", ["cms-output"], [1.0], 3, lam=0.1, intercept=False)
    assert (table["lam"] == 0.1).all()
    with pytest.raises(TypeError):
        sweep("iris", lambda_=3)


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
def test_every_row_is_tested_and_all_folds_train_on_as_many(folds: int) -> None:
    data = dpviz.load_dataset("wine")  # 178 rows: 3, 5 and 10 do not divide it
    parts = [data.split(seed, folds) for seed in range(folds, 2 * folds)]
    assert {len(part.train) for part in parts} == {train_size(178, folds)}
    for part in parts:
        assert sorted([*part.train, *part.test]) == list(range(178))
    counts = np.bincount(np.concatenate([part.test for part in parts]), minlength=178)
    assert counts.min() == 1
    assert (counts > 1).sum() == folds * -(-178 // folds) - 178
    assert not np.array_equal(parts[0].test, data.split(0, folds).test), "another permutation"
    assert train_size(178, 5) == train_size(178) == 142


def test_a_run_of_a_fold_is_resolved_with_its_number_of_rows() -> None:
    spec = dpviz.RunSpec(dataset="wine", mechanism="output-gaussian", folds=10, split_seed=3, seeds=1)
    assert dpviz.resolve(spec).n_train == setup_for(spec).problem.n == 160
    assert dpviz.RunSpec.from_query(spec.to_query()) == spec
    assert dpviz.resolve(spec).key() != dpviz.resolve(dpviz.RunSpec(**(spec.to_dict() | {"folds": 0}))).key()
    assert_refused(dpviz.RunSpec, folds=1, match="folds: one fold")
    assert_refused(splits, SweepSpec(), match="repeats: one split alone")


def test_cross_validation_runs_every_fold_with_noise_of_its_own() -> None:
    sweep = SweepSpec("wine", mechanisms=["output-gaussian"], epsilons=[1.0, 5.0], seeds=3, folds=3)
    table = cross_validate(sweep, 2)
    assert len(table) == 6 * 2 * 3
    assert table.groupby("split")[["repeat", "fold"]].first().to_numpy().tolist() == [[k // 3, k % 3] for k in range(6)]
    one = dpviz.run(splits(sweep, 2)[4].run("output-gaussian", 5.0))
    there = table[(table["split"] == 4) & (table["epsilon"] == 5.0)]
    np.testing.assert_allclose(there["accuracy"], one.accuracy)
    assert len(summarise_splits(table, 3)) == 2


def test_spreads_of_splits_and_noise_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    count, draws, split_sd, noise_sd = 4000, 4, 0.02, 0.05
    values = 0.8 + split_sd * rng.standard_normal((count, 1)) + noise_sd * rng.standard_normal((count, draws))
    table = pd.DataFrame(
        {
            "split": np.repeat(np.arange(count), draws),
            "mechanism": "m",
            "epsilon": 1.0,
            "seed": np.tile(np.arange(draws), count),
            "accuracy": values.ravel(),
        }
    )
    (found,) = summarise_splits(table, 5).to_dict("records")
    assert found["noise_sd"] == pytest.approx(noise_sd, rel=0.03)
    assert found["split_sd"] == pytest.approx(split_sd, rel=0.1)
    between = split_sd**2 + noise_sd**2 / draws
    assert found["standard_error"] == pytest.approx(np.sqrt(between * (1 / count + 0.25)), rel=0.05)
    assert found["standard_error"] > 10 * np.sqrt(between / count), "what splits share counts"


def test_the_command_line_repeats_folds(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--dataset", "wine", "--mechanisms", "output-gaussian", "--epsilons", "5", "--seeds", "2"]
    assert main(["sweep", *asked, "--folds", "2", "--repeats", "2", "--no-cache", "--quiet"]) == 0
    said = capsys.readouterr()
    table = pd.read_csv(io.StringIO(said.out))
    assert table.groupby("split").size().tolist() == [2] * 4
    assert "over 4 splits" in said.err


@pytest.mark.parametrize(("folds", "repeats", "split_seed", "seed"), [(3, 2, 4, 7), (0, 5, 2, 9), (5, 1, 1, 0)])
def test_splits_follow_the_first_permutation_and_have_noise_of_their_own(
    folds: int, repeats: int, split_seed: int, seed: int
) -> None:
    """Permutation p has the splits p k to p k + k - 1. Noise that all splits share would not average out over them."""
    made = splits(SweepSpec("teaching", folds=folds, split_seed=split_seed, seed=seed), repeats)
    k = folds or 1
    assert [one.split_seed for one in made] == list(range(split_seed * k, (split_seed + repeats) * k))
    assert [one.seed - seed for one in made] == list(range(repeats * k))
    data = dpviz.load_dataset("teaching")
    tested = np.concatenate([data.split(one.split_seed, folds).test for one in made[:k]])
    assert not folds or len(set(tested)) == data.n, "the first folds are those of one permutation"
