"""`membership_risk`: a membership attack as `scoring=` of scikit-learn's searches, for any classifier with `predict_proba`."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dpviz.auditing.attacks.base import Shadows, Targets, get_attack
from dpviz.auditing.attacks.judging import LEAST_ALARMS, Judged
from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_integer, check_range

_POPULATION = 0.2  # share of the rows that no model is trained on
_SMALLEST = 1e-6  # probability: trees and forests say 0 and 1, whose logits would drown all others


@dataclass(frozen=True)
class MembershipRisk:
    """A scorer: minus the share of members that an attack finds, so that larger is better as scikit-learn asks.

    Called with an estimator and rows it trains copies of the estimator, with its settings, on random halves of these rows: shadow
    models, and other models that are attacked. So it speaks of the recipe and the number of rows, not of the fitted estimator,
    and in a search the rows are those of the test fold. Seeds (`random_state`) differ from copy to copy; nothing is entered into
    a ledger, because no copy is published.

    Attributes:
        attack: id.
        at_fpr: rate of false alarms.
        shadows, targets: how many models the attacker trains, and how many are attacked.
        seed: of halves and copies.
    """

    attack: str
    at_fpr: float
    shadows: int
    targets: int
    seed: int

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Minus the share of the members that are found at `at_fpr`, in [-1, 0].

        Raises:
            InvalidInput: there are too few rows, or the estimator has no `predict_proba`.
        """
        return -self.judge(estimator, X, y).detections_at(self.at_fpr).value

    def judge(self, estimator: Any, X: Any, y: Any) -> Judged:
        """The attack's scores beside the truth: its ROC curve, AUC and limits."""
        if not hasattr(estimator, "predict_proba"):
            raise InvalidInput("estimator", f"{type(estimator).__name__} has no predict_proba", "Use one that has.")
        y, rng = np.asarray(y), np.random.default_rng(self.seed)
        order = rng.permutation(len(y))
        population, pool = np.split(order, [max(1, round(_POPULATION * len(y)))])
        trials = self.targets * (len(pool) - len(pool) // 2)
        if len(pool) < 4 or trials * self.at_fpr < LEAST_ALARMS:
            needed = int(np.ceil(LEAST_ALARMS / self.at_fpr))
            raise InvalidInput(
                "targets",
                f"{trials:,} rows outside of attacked models are too few for a rate of {self.at_fpr:g}, which needs {needed:,}",
                "Give more targets, more rows or a larger at_fpr.",
            )
        count = self.shadows + self.targets
        message, beside = np.empty((count, len(pool))), np.empty((count, len(population)))
        member = np.zeros((count, len(pool)), bool)
        for k, seed in enumerate(np.random.SeedSequence(self.seed).spawn(count)):
            member[k, np.random.default_rng(seed).permutation(len(pool))[: len(pool) // 2]] = True
            model = _fitted(estimator, X, y, pool[member[k]], seed)
            message[k], beside[k] = _signals(model, X, y, pool), _signals(model, X, y, population)
        first = self.shadows
        rows, others = (_described(X, y, at) for at in (pool, population))
        scores = get_attack(self.attack).score(
            Targets(message[first:], beside[first:], rows, others), Shadows(message[:first], member[:first], beside[:first])
        )
        return Judged(scores, member[first:], self.seed)


def membership_risk(
    attack: str = "lira-online", at_fpr: float = 0.01, *, shadows: int = 64, targets: int = 64, seed: int = 0
) -> MembershipRisk:
    """A scorer for `scoring=`; see `MembershipRisk`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.random.default_rng(0).normal(size=(200, 5))
    >>> risk = membership_risk("rmia", at_fpr=0.1, targets=16)
    >>> -1 <= risk(LogisticRegression(), x, x[:, 0] > 0) <= 0
    True

    Args:
        attack: id of a membership attack.
        at_fpr: rate of false alarms, in (0, 1).
        shadows: models that the attacker trains, 8 to 4,096.
        targets: models that are attacked, 4 to 1,024.
        seed: 0 to 2^32 - 1.

    Raises:
        InvalidInput: a bad argument.
    """
    get_attack(attack)
    at_fpr = check_range("at_fpr", at_fpr, 1e-6, 1 - 1e-6)
    shadows, targets = check_integer("shadows", shadows, 8, 4096), check_integer("targets", targets, 4, 1024)
    return MembershipRisk(attack, at_fpr, shadows, targets, check_integer("seed", seed, 0, 2**32 - 1))


def _fitted(estimator: Any, X: Any, y: NDArray[Any], at: NDArray[np.intp], seed: np.random.SeedSequence) -> Any:
    """A copy of an estimator, fitted to some rows with a seed of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of budgets that copies spend, which are thrown away, and of convergence
        copy = clone(estimator)
        # one seed for all copies would give all private models the same noise
        seeds = {name: int(seed.generate_state(1)[0]) for name in copy.get_params() if name.split("__")[-1] == "random_state"}
        ledgers = {name: None for name in copy.get_params() if name.split("__")[-1] == "ledger"}
        return copy.set_params(**seeds, **ledgers).fit(_safe_indexing(X, at), y[at])


def _signals(model: Any, X: Any, y: NDArray[Any], at: NDArray[np.intp]) -> Floats:
    """(n,) ln(p / (1 - p)) of the probability of each row's label; of a class that the model has not seen, that of 0."""
    p, labels = np.asarray(model.predict_proba(_safe_indexing(X, at)), float), y[at]
    own = np.asarray(model.classes_)[None, :] == labels[:, None]
    right, wrong = np.where(own, p, 0.0).sum(axis=1), np.where(own, 0.0, p).sum(axis=1)  # 1 - p would lose its digits
    return np.log(np.maximum(right, _SMALLEST)) - np.log(np.maximum(wrong, _SMALLEST))


def _described(X: Any, y: NDArray[Any], at: NDArray[np.intp]) -> Floats:
    """(n, d + 1) features and label as numbers; the label alone where features are no numbers."""
    label = np.unique(y, return_inverse=True)[1][at].astype(float)[:, None]
    try:
        return np.column_stack([np.asarray(_safe_indexing(X, at), float), label])
    except (TypeError, ValueError):
        return label
