"""k-fold cross validation: what the folds are, and error bars that keep splits and noise apart."""

import io

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli.main import main
from dpviz.datasets.base import train_size
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.sweeps.folds import cross_validate, splits, summarise_splits
from dpviz.experiments.sweeps.sweep import SweepSpec


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
    with pytest.raises(dpviz.InvalidInput, match="folds: one fold"):
        dpviz.RunSpec(folds=1)
    with pytest.raises(dpviz.InvalidInput, match="repeats: one split alone"):
        splits(SweepSpec())


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
