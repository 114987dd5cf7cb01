"""The base of estimators that spend privacy: tags for scikit-learn, the ledger, and pickles without a seed."""

import os
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from dpviz.spending.ledger import Ledger


class PrivateEstimator(ClassifierMixin, BaseEstimator):
    """A classifier with arguments `random_state` and `ledger`; `guarantee_` is there once it is fitted."""

    ledger: str | os.PathLike[str] | Ledger | None

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
        """The ledger that was given, by itself or by its path."""
        return self.ledger if self.ledger is None or isinstance(self.ledger, Ledger) else Ledger(self.ledger)
