"""Every method at its automatic hyperparameters: better than guessing where epsilon is large, and more budget does not hurt.

One dataset for each model; `benchmarks.defaults` measures the others.
"""

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY

import dpviz
from benchmarks.defaults import measured, methods
from dpviz.experiments.run.setup import setup_for

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
