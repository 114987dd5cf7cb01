"""The base of estimators that spend privacy: tags for scikit-learn, the ledger, and pickles without a seed."""

import os
import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state

from dpviz.common.validate import InvalidInput, show
from dpviz.estimator.guarantee import PrivacyWarning
from dpviz.spending.ledger import Ledger

REPETITION: str = (
    "A second fit without a ledger: every fit on the same rows spends epsilon again, each one of a search, of cross-validation "
    "or of bagging, too. Give ledger=, which adds them up and refuses what passes its limit. This is not said again."
)
_fits: Counter[type] = Counter()  # of this process, without a ledger


class PrivateEstimator(ClassifierMixin, BaseEstimator):
    """A classifier with arguments `random_state` and `ledger`; `guarantee_` is there once it is fitted."""

    ledger: str | os.PathLike[str] | Ledger | None
    random_state: object

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # noise: on few rows at epsilon = 1 a model may be no better than chance
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: what is fitted goes without its seed or generator, which would give the noise back."""
        state = dict(super().__getstate__())
        if "guarantee_" in state:
            state["random_state"] = None
        return state

    def _open_ledger(self) -> Ledger | None:
        """The ledger that was given, by itself or by its path; without one, the second fit in this process warns."""
        if self.ledger is None:
            _fits[type(self)] += 1
            if _fits[type(self)] == 2:
                warnings.warn(REPETITION, PrivacyWarning, stacklevel=3)
            return None
        return self.ledger if isinstance(self.ledger, Ledger) else Ledger(self.ledger)

    def _generator(self) -> np.random.RandomState:
        """The generator that `random_state` names, where it is not None."""
        try:
            made: np.random.RandomState = check_random_state(self.random_state)
        except ValueError as problem:
            cause = f"is no seed, got {show(self.random_state)}"
            raise InvalidInput("random_state", cause, "Give None, 0 to 4294967295 or a generator.") from problem
        return made
