"""The choice between centred and unit rows: the number of rows near the lowest corner of the ranges, with Laplace noise.

Numbers that are near 0 of a wide range, as counts of words are, become nearly -1 when they are centred: all rows are then nearly
the same vector, and a linear model sees little. At unit length such rows keep their directions. A row counts where its centred
numbers and its categories together have a cosine of at least `NEAR` with the corner (-1, ..., -1, 0, ..., 0). Rows are at unit
length where more than `MOST` of them count.

A row decides its own count alone, so that the number changes by at most 1 where a row is replaced, removed or added, and by at
most k with the k rows of one person. With Laplace noise of scale k/epsilon on the number it is epsilon-DP (Dwork, Roth 2014,
Theorem 3.6), and with n rows the noise on the share has the scale k/(n epsilon). That is fixed, so that epsilon = k/(n `NOISE`):
the more rows there are, the less is paid. An epsilon-DP release is mu-Gaussian DP with Phi(mu/2) = e^eps/(1 + e^eps): its
trade-off curve is at least two lines that meet at false alarms = missed detections = 1/(1 + e^eps). The Gaussian curve of
this mu passes through that point and is below the lines elsewhere, as it is convex and has the same ends [ours].

With c columns of categories, of which each has one feature at 1, beside p numbers, the cosine is at most sqrt(p/(p + c)), as in
the corner. Where that is below `NEAR` nothing has to be found, and nothing is paid.
"""

import math
import random
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from dpviz.common import norms
from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoding import CENTRED
from dpviz.preparing.base import Facts, Preparation, features_of
from dpviz.privacy.budget import Budget

#: cosine with the corner from which a row counts, and the share of rows above which rows are at unit length
NEAR, MOST = 0.95, 0.6
#: scale of the noise on the share, and the largest part of epsilon that it may cost
NOISE, LARGEST_PART = 1 / 15, 0.05


def near_corner(x: Floats, numbers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) which rows count.

    Args:
        x: (n, k) features in [0, 1].
        numbers: (k,) which of them are numbers; the others are categories.

    >>> near_corner(np.array([[0.01, 0.02], [0.0, 0.9]]), np.array([True, True]))
    array([ True, False])
    """
    centred = np.where(numbers, 2 * x - 1, x)
    along = -centred[:, numbers].sum(axis=1)
    return along > NEAR * math.sqrt(numbers.sum()) * norms.row_norms(centred)


class ScalingChosen(Preparation):
    """Unit rows where most rows are near the lowest corner of their ranges, else centred ones."""

    id = "scaling"
    what = "the scaling of the rows"

    def cost(self, facts: Facts) -> Paid:
        """That of the noise, whatever the total is."""
        epsilon = facts.unit_rows / (facts.n * NOISE)
        return Paid(self.id, self.what, float(2 * ndtri(expit(epsilon))), epsilon)

    def refusal(self, facts: Facts) -> str:
        if facts.numbers < NEAR**2 * (facts.numbers + facts.categories) or not facts.numbers:
            return "Too few of the columns are numbers: the rows are not near one corner."
        epsilon = self.cost(facts).epsilon
        if epsilon > LARGEST_PART * facts.total.epsilon:
            return f"The scaling would cost ε = {epsilon:.2g}: it is not chosen by the rows, and nothing is paid."
        return ""

    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows in the scaling that was chosen."""
        encoder, x = features_of(dataset)
        paid = self.cost(Facts.collect(dataset, len(train), total))
        rate = paid.epsilon / max(1, dataset.person_rows)
        # a difference of two exponential variables is a Laplace variable
        noisy = near_corner(x[train], encoder.numbers).sum() + source.expovariate(rate) - source.expovariate(rate)
        made = dataset.rescale("unit" if noisy > MOST * len(train) else CENTRED)
        message = f"The scaling was chosen privately, for ε = {paid.epsilon:.2g}: {made.scaling}."
        return replace(made, remarks=(*made.remarks, message), preparations=(*made.preparations, paid))
