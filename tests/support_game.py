"""Games on a pair of neighbours without noise of their own."""

import numpy as np

from dpviz.auditing.game import Game, prepare
from dpviz.auditing.pairs import make
from dpviz.auditing.scores import Distributions
from dpviz.mechanisms import Mechanism, OutputNoise
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAUSSIAN

SVM = get_model("svm")


BUDGET = Budget(1.0, 1e-5)


SVM_PAIR = make("quiet", SVM, 20, 3, 0.2)


def quiet(mechanism: Mechanism, budget: Budget, n: int = 20, d: int = 2, lam: float = 0.2) -> tuple[Mechanism, object, object]:
    pair = make("quiet", SVM, n, d, lam)
    return mechanism, pair.first, pair.second


def gaussian_game(runs: int) -> tuple[Game, Distributions, np.ndarray, list[np.ndarray]]:
    """A game against the exact Gaussian mechanism before its first run: with its distributions, noise scale and centres."""
    budget = Budget(1.0, 0.01)
    mechanism, first, second = quiet(OutputGaussian(), budget)
    game = prepare(mechanism, first, second, budget, runs, 0, "auto", 0.9, ())  # type: ignore[arg-type]
    sigma, centres = np.array([game.calibration.noise_scale]), [side.optimum for side in game.sides]
    return game, Distributions(*(OutputNoise(c, sigma, GAUSSIAN) for c in centres)), sigma, centres
