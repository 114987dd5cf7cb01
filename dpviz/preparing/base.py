"""The base class of preparations: a noisy release about the rows, its part of the budget, and the change of the rows."""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoder import CATEGORIES, Encoder
from dpviz.privacy.budget import Budget


@dataclass(frozen=True)
class Facts:
    """The public facts that decide whether a preparation is made and what it costs.

    Attributes:
        n: training rows.
        total: the budget of the whole run.
        person_rows: rows of one person at most, where `total` is for a person; 0 where it is for a row.
        features: columns of the rows without the constant one.
        numbers: columns of numbers.
        categories: columns of categories.
    """

    n: int
    total: Budget
    person_rows: int = 0
    features: int = 1
    numbers: int = 0
    categories: int = 0

    @classmethod
    def collect(cls, dataset: Dataset, n: int, total: Budget) -> Self:
        """Those of a dataset of which `n` rows are trained on."""
        columns = () if dataset.encoder is None or dataset.norms is None else dataset.encoder.columns
        categories = sum(column.kind == CATEGORIES for column in columns)
        features = dataset.d - dataset.intercept
        return cls(n, total, dataset.person_rows, features, len(columns) - categories, categories)

    @property
    def unit_rows(self) -> int:
        """Rows that the unit of the budget has at most."""
        return max(1, self.person_rows)


class Preparation(ABC):
    """A release about the training rows, with noise and before training, and what follows for all rows.

    Attributes:
        id: by which rows and settings name it.
        what: the name of what is found, in words.
    """

    id: ClassVar[str]
    what: ClassVar[str]

    @abstractmethod
    def cost(self, facts: Facts) -> Paid:
        """The guarantee of its release for the unit of the total budget."""

    def refusal(self, facts: Facts) -> str:
        """The reason for which it is not worth its cost, from public facts alone; "" where it is made."""
        return ""

    @abstractmethod
    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows after what the training rows gave; its `preparations` hold the cost.

        Args:
            dataset: the rows, with the persons that `total` is for.
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
