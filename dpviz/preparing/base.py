"""The base class of preparations: a Gaussian release about the rows, its part of the budget, and the change of the rows."""

import random
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.datasets import Dataset
from dpviz.privacy.budget import Budget


class Preparation(ABC):
    """What is found in the training rows with Gaussian noise before training, and what follows for all rows.

    Attributes:
        id: by which rows and settings name it.
        what: the name of what is found, in words.
        condition: what the guarantee supposes beside the noise; "" for nothing.
    """

    id: ClassVar[str]
    what: ClassVar[str]
    condition: ClassVar[str] = ""

    @abstractmethod
    def mu(self, total: Budget) -> float:
        """The mu of the Gaussian release for the unit of `total`, the budget of the whole run; below that of `total`."""

    @abstractmethod
    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows after what the training rows gave; its `preparations` name this one.

        Args:
            dataset: rows at unit length (`Dataset.scaled`), with the persons that `total` is for.
            train: positions of the training rows, the only ones that are looked at.
            total: the budget of the whole run.
            source: of the noise.
        """
