"""Private standardisation: means and spreads of all features with Gaussian noise.

Features lie in [0, 1]. For k of them, the means of x and of x^2 over n rows are one vector in which a replaced row changes
each pair by (x - x', x^2 - x'^2)/n, of which both parts are at most 1/n: its L2 sensitivity is sqrt(2k)/n, and a row that
leaves or comes changes it no more [ours]. Of j rows of one person it is j times that. Everything after the noise is computed
from it alone, and each row is then changed on its own.
"""

import math
import random
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.datasets import Dataset
from dpviz.preparing.base import Facts, Preparation, features_of
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

#: the largest noise on a mean, of features in [0, 1], with which standardising helps
MOST_NOISE = 0.1
#: of mu^2, what it takes of the budget
SHARE = 0.15


def moments(x: Floats) -> Floats:
    """(2k,) means of x and of x^2 of features (n, k) in [0, 1]."""
    return np.concatenate([x.mean(axis=0), np.square(x).mean(axis=0)])


class Standardised(Preparation):
    """(x - mean)/max(sd, floor) by noisy means, divided by sqrt(k) and clipped to length 1."""

    id = "standardisation"
    what = "means and spreads of the features"

    def cost(self, facts: Facts) -> Paid:
        """`SHARE` of the total mu^2."""
        return Paid(self.id, self.what, math.sqrt(SHARE) * gaussian_mu(facts.total))

    def noise(self, facts: Facts) -> float:
        """Standard deviation of the noise on each mean."""
        return facts.unit_rows * math.sqrt(2 * facts.features) / facts.n / self.cost(facts).mu

    def refusal(self, facts: Facts) -> str:
        sigma = self.noise(facts)
        if sigma <= MOST_NOISE:
            return ""
        return f"Noise of ±{sigma:.2g} on a feature's mean is too much to standardise: the rows are centred, and nothing is paid."

    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The standardised rows."""
        _, x = features_of(dataset)
        k = x.shape[1]
        facts = Facts.collect(dataset, len(train), total)
        sigma = self.noise(facts)
        noisy = moments(x[train]) + [source.gauss(0.0, sigma) for _ in range(2 * k)]
        mean = np.clip(noisy[:k], 0.0, 1.0)
        # a variance below its own noise is not known to be there
        spread = np.sqrt(np.clip(noisy[k:] - mean**2, min(2 * sigma, 0.25), 0.25))
        z = (x - mean) / spread / math.sqrt(k)
        lengths = norms.row_norms(z)
        rows = z / np.maximum(1.0, lengths)[:, None]
        message = f"Features were standardised privately, for {100 * SHARE:g} % of μ²; rows longer than √k are clipped."
        return replace(
            dataset,
            X=norms.add_intercept(rows, float(dataset.intercept)),
            norms=lengths,
            scaling="clip",
            encoder=None,  # it knows ranges only
            remarks=(*dataset.remarks, message),
            preparations=(*dataset.preparations, self.cost(facts)),
        )._with_scaling_loss()
