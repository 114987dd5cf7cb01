"""Every method at its automatic hyperparameters: better than guessing where epsilon is large, and more budget does not hurt."""

import os
from pathlib import Path

import numpy as np
import pytest

import dpviz
from benchmarks.defaults import measured, methods
from dpviz.experiments.run.setup import setup_for

EPSILONS, SEEDS = (0.3, 1.0, 3.0, 10.0), 5
REAL = Path(os.environ.get("DPVIZ_REAL_DATA", "."))
#: reports of single people at these sizes tell the labels hardly apart, whatever their training
LOCAL = ("ldp-duchi", "ldp-gaussian")
#: with 70,000 rows
QUICK = ("rsgd", "cms-objective", "dp-gd", "song-sgd", "dbdp")
MODELS = ("logistic", "svm", "mlp")
KDD = "kddcup.data_10_percent.gz"
#: pure-ε noise on the minimiser of 142 rows is longer than the minimiser, and there is no hyperparameter to choose
NOISE_ALONE = {("cms-output", "wine")}
SETS = ("breast-cancer", "teaching", "wine", "iris", "digits", "census-20000")


def check(dataset: str, model: str, name: str, epsilons: tuple[float, ...] = EPSILONS, seeds: int = SEEDS) -> None:
    found = measured(dataset, model, name, epsilons, seeds)
    two_rows = 2 / len(setup_for(dpviz.RunSpec(dataset)).split.test)
    mean, spread = found["mean"].to_numpy(), found["spread"].to_numpy()
    floor, without = found["majority"].iloc[0], found["non_private"].iloc[0]
    if name not in LOCAL and (name, dataset) not in NOISE_ALONE:
        assert mean[-1] >= floor - max(spread[-1], two_rows, 0.005), found
    if name in LOCAL and mean.max() <= (floor + without) / 2:
        return  # reports that tell the labels hardly apart at any epsilon: their differences are luck
    for k in range(1, len(mean)):
        best = int(np.argmax(mean[: k + 1]))
        # the larger of the two spreads, or two rows of a small test set; below the majority there is nothing to lose
        least = max(spread[k], spread[best], two_rows, 0.02)
        # a draw that is luckily above the model without privacy is nothing that a larger budget could keep
        assert mean[k] >= min(mean[best], without) - least or mean[best] <= floor, found


@pytest.mark.long
@pytest.mark.parametrize("dataset", SETS)
@pytest.mark.parametrize(("model", "name"), [(m, n) for m in ("logistic", "svm") for n in methods(m)])
def test_linear_models_at_their_defaults(dataset: str, model: str, name: str) -> None:
    check(dataset, model, name)


@pytest.mark.long
@pytest.mark.parametrize("dataset", ["teaching", "iris"])
@pytest.mark.parametrize("name", methods("mlp"))
def test_networks_at_their_defaults(dataset: str, name: str) -> None:
    check(dataset, "mlp", name)


@pytest.mark.long
@pytest.mark.parametrize("name", methods("mlp"))
def test_networks_on_a_larger_set_at_their_defaults(name: str) -> None:
    """Fewer runs, as each takes longer."""
    check("census-20000", "mlp", name, (1.0, 10.0), 2)


@pytest.mark.long
@pytest.mark.skipif(not (REAL / "adult.data").is_file(), reason="DPVIZ_REAL_DATA does not name a folder with adult.data")
@pytest.mark.parametrize(("model", "name"), [(m, n) for m in MODELS for n in methods(m)])
def test_adult_at_the_defaults(model: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(REAL))
    if model == "mlp":  # fewer runs, as each takes longer
        check("data/adult.data", model, name, (1.0, 10.0), 2)
        return
    check("data/adult.data", model, name)
    if name not in LOCAL:
        assert measured("data/adult.data", model, name, [10.0], SEEDS)["training"].iloc[0] < 0.006


@pytest.mark.long
@pytest.mark.skipif(not (REAL / KDD).is_file(), reason=f"DPVIZ_REAL_DATA does not name a folder with {KDD}")
@pytest.mark.parametrize(("model", "name"), [(m, n) for m in MODELS for n in methods(m) if n in QUICK])
def test_kdd_at_the_defaults(model: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that take little time with 70,000 rows; docs/defaults.md has the best of all."""
    monkeypatch.setenv("DPVIZ_DATA", str(REAL))
    check("kddcup99-70000", model, name, (1.0, 10.0), 2)


def test_the_rule_gives_short_training_to_nobody() -> None:
    """A quick look at the sets' smallest: the long tests above look at all."""
    for name in ("dp-gd", "dp-sgd"):
        found = measured("teaching", "svm", name, [1.0], 2)
        assert found["training"].iloc[0] < 0.02
        assert found["mean"].iloc[0] > found["majority"].iloc[0]
