"""The base class of preparations: a Gaussian release about the rows, its part of the budget, and the change of the rows."""

import math
import random
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoder import Encoder
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget


class Preparation(ABC):
    """Facts about the training rows, released with Gaussian noise before training, and the transformation that follows.

    Attributes:
        id: by which rows and settings name it.
        what: the name of what is found, in words.
        condition: what the guarantee supposes beside the noise; "" for nothing.
        share: of mu^2, what it takes of the budget.
    """

    id: ClassVar[str]
    what: ClassVar[str]
    condition: ClassVar[str] = ""
    share: ClassVar[float] = 0.0

    def mu(self, total: Budget) -> float:
        """The mu of the Gaussian release for the unit of `total`, the budget of the whole run; below that of `total`."""
        return math.sqrt(self.share) * gaussian_mu(total)

    def refusal(self, n: int, features: int, total: Budget, person_rows: int) -> str:
        """The reason for which it is not worth its cost, from public facts alone; "" where it is done.

        Args:
            n: training rows.
            features: columns of the rows without the constant one.
            person_rows: rows of one person at most, where `total` is for a person; 0 where it is for a row.
        """
        return ""

    @abstractmethod
    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows after what the training rows gave; its `preparations` name this one.

        Args:
            dataset: rows at unit length (`Dataset.scaled`), with the persons that `total` is for.
            train: positions of the training rows, the only ones that are looked at.
            total: the budget of the whole run.
            source: of the noise.
        """


def features_of(dataset: Dataset) -> tuple[Encoder, Floats]:
    """(encoder, (n, k) features in [0, 1]) of rows whose numbers lie in known ranges.

    Raises:
        InvalidInput: there is none, or the rows need no scaling.
    """
    if dataset.encoder is None or dataset.norms is None:
        cause = f"{show(dataset.name)} does not know which of its columns are numbers with a range"
        raise InvalidInput("row_scaling", cause, "Choose another.")
    rows, lengths = dataset.encoder.before_scaling(dataset.frame)
    return dataset.encoder, np.clip(rows * lengths[:, None], 0.0, 1.0)
