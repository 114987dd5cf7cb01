"""The choice between centred and unit rows by how much the rows point the same way, found with noise.

Let u_1, ..., u_n be the rows at length 1 (or 0), a their mean and m = |a|^2, in [0, 1]: the mean cosine of two rows. Where m is
near 1 all rows look alike to a linear model, so the smaller m is better. Replacing a row moves a by at most 2/n, so

    | |a|^2 - |a'|^2 | = |(a - a').(a + a')| <= 2/n (|a| + |a'|) <= 4/n                                                 [ours]

for either scaling, and the difference of both by at most 8/n, of k rows of one person 8k/n. The ratio |mean x|^2 / mean |x|^2 of
rows that are not at length 1 has no such bound: one long row among many short ones decides it.
"""

import random
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.arrays import Floats
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoding import CENTRED
from dpviz.preparing.base import Preparation, features_of
from dpviz.privacy.budget import Budget

#: how much smaller m of unit rows has to be with noise, and how many standard deviations of the noise that is at least
MARGIN, DEVIATIONS = 0.2, 3.0


def sameness(x: Floats) -> float:
    """m = |mean u|^2 of rows (n, d) brought to length 1; rows of zeros stay.

    >>> sameness(np.array([[2.0, 0.0], [0.0, 1.0]])), sameness(np.array([[2.0, 0.0], [1.0, 0.0]]))
    (0.5, 1.0)
    """
    lengths = norms.row_norms(x)
    mean = (x / np.where(lengths > 0, lengths, 1.0)[:, None]).mean(axis=0)
    return float(mean @ mean)


class ScalingChosen(Preparation):
    """Unit rows where they point the same way less than centred ones by more than noise explains, else centred rows."""

    id = "scaling"
    what = "the scaling of the rows"
    share = 0.02

    def noise(self, n: int, total: Budget, person_rows: int) -> float:
        """Standard deviation of the noise on the difference of both m."""
        return 8 * max(1, person_rows) / n / self.mu(total)

    def refusal(self, n: int, features: int, total: Budget, person_rows: int) -> str:
        sigma = self.noise(n, total, person_rows)
        if DEVIATIONS * sigma <= MARGIN:
            return ""
        return f"Noise of ±{sigma:.2g} on how alike the rows look decides nothing: the rows are centred, and nothing is paid."

    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows in the scaling that was chosen."""
        encoder, x = features_of(dataset)
        gain = sameness(np.where(encoder.numbers, 2 * x - 1, x)[train]) - sameness(x[train])
        noisy = gain + source.gauss(0.0, self.noise(len(train), total, dataset.person_rows))
        made = dataset.scaled("unit" if noisy > MARGIN else CENTRED)
        message = f"The scaling was chosen privately, for {100 * self.share:g} % of μ²: {made.scaling}."
        return replace(made, remarks=(*made.remarks, message), preparations=(*made.preparations, self.id))
