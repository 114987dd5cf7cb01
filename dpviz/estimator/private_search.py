"""`PrivateSearchCV`: the best `PrivateClassifier` of a private search over settings, with scikit-learn's interface."""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_bool, check_choice, check_range, show
from dpviz.estimator.base import PrivateEstimator
from dpviz.estimator.classifier import PrivateClassifier
from dpviz.estimator.features import PRIVATE
from dpviz.estimator.guarantee import Plan, conditions_of
from dpviz.mechanisms.registry import AUTOMATIC
from dpviz.privacy.accounting.repeated_selection import KINDS, repetitions
from dpviz.privacy.budget import row_budget
from dpviz.privacy.private_ranges import shares
from dpviz.releasing.ranges import method_of_few_rows
from dpviz.releasing.tuning import MOST_SETTINGS, split_positions
from dpviz.spending.ledger import Ledger
from dpviz.spending.private_search import Candidate, plan, search
from dpviz.spending.private_search import Plan as SearchPlan

#: arguments that are the search's own, or that decide how all rows are mapped
_FIXED = ("epsilon", "delta", "random_state", "ledger", "classes", "data_norm", "ranges", "fit_intercept")


@dataclass(eq=False, repr=False)
class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):
    """A random number of private models with random settings, of which the best one is kept; epsilon pays for the choice, too.

    It stands where `GridSearchCV` would spend the budget once for every fit. Models are trained on one part of the rows and
    scored by a noisy number of right predictions on the other (`dpviz.private_search`). Other models, scores and their number are
    secret, so there is no `cv_results_`.

    Args:
        estimator: a `PrivateClassifier`; its epsilon, delta, ledger and random_state are not used. An automatic mechanism is that
            of small n epsilon, DP-GD.
        param_grid: as for `GridSearchCV`: values of `mechanism`, `lam` or hyperparameters, fixed before looking at the rows.
        epsilon: privacy budget of the whole search.
        delta: additive slack beside e^epsilon, below one over the rows that are trained on; None for `default_delta`.
        mean_runs: models trained on average, above 1.
        distribution: of their number: "logarithmic", which costs least, "geometric", "negative-binomial" or "poisson".
        held_out: share of the rows that models are scored on, 0.05 to 0.5.
        random_state: as for `PrivateClassifier`.
        ledger: of the table: every fit is entered before it begins, and refused where it would pass the limit.

    Attributes:
        best_estimator_: the model, fitted.
        best_params_: its settings.
        guarantee_: what is guaranteed for the whole search.
        classes_, n_features_in_, feature_names_in_: as in scikit-learn.

    >>> x, y = np.eye(4)[np.arange(4000) % 4], np.arange(4000) % 4 // 2
    >>> grid = {"lam": [0.001, 0.01, 0.1]}
    >>> model = PrivateSearchCV(PrivateClassifier("output-gaussian"), grid, epsilon=2.0, random_state=0).fit(x, y)
    >>> model.best_params_["lam"] in grid["lam"], model.score(x, y)
    (True, 1.0)
    >>> print(model.guarantee_.proved)
    (ε = 2, δ = 10⁻⁵)
    """

    estimator: PrivateClassifier
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    mean_runs: float = 10.0
    distribution: str = "logarithmic"
    held_out: float = 0.2
    random_state: object = None
    ledger: str | os.PathLike[str] | Ledger | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Searches with (n, d) rows, sparse ones too, and (n,) labels. Each call spends the budget anew.

        Args:
            groups: (n,) names of the rows' persons; epsilon is then for a person, of whom the estimator's `person_rows` are kept.

        Raises:
            InvalidInput: an argument that cannot be used, by name.
        """
        settings, tried = self._tried()
        first = tried[0]
        first.random_state = self.random_state  # for the rows of a person that are kept
        rows, classes, codes, read, (person_rows, _), weights = first._read(X, y, groups=groups)
        if weights is not None:
            raise InvalidInput("class_weight", "is not derived for a private search", "Leave it out of the estimator.")
        first._warn_of_rare(classes, codes)
        intercept = check_bool("fit_intercept", first.fit_intercept)
        parts = split_positions(len(rows), check_range("held_out", self.held_out, 0.05, 0.5), 0)
        n, d = len(parts[0]), rows.shape[1] + intercept
        models, whole = 1 if len(classes) == 2 else len(classes), row_budget(self.epsilon, self.delta, n)
        privately = isinstance(first.ranges, str) and first.ranges == PRIVATE
        for_ranges, total = shares(whole) if privately else (None, whole)
        # what is wrong with declared ranges is said before anything is spent
        mapped = None if privately else first._map(rows, intercept, None)
        candidates = [Candidate(*each._setting(n, d, models)[:2], models) for each in tried]
        check_choice("distribution", self.distribution, KINDS)
        made = plan(candidates, repetitions(self.distribution, self.mean_runs), total, person_rows)
        if (ledger := self._open_ledger()) is not None:
            supposed = conditions_of(made.calibration(0), exact=False, seeded=self.random_state is not None)
            made.enter(ledger, f"PrivateSearchCV(..., epsilon={self.epsilon!r}).fit", for_ranges, *supposed)
        seeded, source, of_ranges = self._source()
        if mapped is None:
            mapped = first._map_privately(rows, intercept, for_ranges, person_rows, of_ranges)
        x = first._inside(mapped, rows, intercept)
        runs = _Runs(tried, candidates, made, x, codes, *parts, seeded, source)
        index, best = search(made, runs.train, runs.right, source)
        if best is None:
            raise InvalidInput("param_grid", "no model of the search can be published", "Choose larger lam or a smaller epsilon.")
        model = tried[index].set_params(random_state=None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(model, name, getattr(first, name))
                setattr(self, name, getattr(first, name))
        cal = made.calibration(index)
        planned = Plan.from_calibration(candidates[index].mechanism, candidates[index].setting, 1, total, cal, for_ranges)
        supposed = conditions_of(cal, exact=best[2], seeded=seeded)
        model.guarantee_ = replace(planned.guarantee((*mapped.looked_at, *read), supposed), models=models)
        model._settle(classes, mapped, *best[:2])
        self.guarantee_, self.classes_ = model.guarantee_, classes
        self.best_estimator_, self.best_params_ = model, settings[index]
        return self

    def _source(self) -> tuple[bool, random.Random, random.Random]:
        """(whether randomness follows from a seed, its source, that of private ranges)."""
        if self.random_state is None:  # not the global generator, whose state may be known
            return False, random.SystemRandom(), random.SystemRandom()
        words = self._generator().randint(0, 2**32, size=4, dtype=np.uint64).tolist()
        return True, random.Random(f"search {words}"), random.Random(f"ranges {words}")

    def _tried(self) -> tuple[list[dict[str, Any]], list[PrivateClassifier]]:
        """(settings, unfitted models that have them)."""
        base = self.estimator
        if not isinstance(base, PrivateClassifier):
            raise InvalidInput("estimator", f"must be a PrivateClassifier, got {show(base)}", "Map rows before the search.")
        try:
            grid = ParameterGrid(self.param_grid)
            count = len(grid)  # before they are listed
        except (TypeError, ValueError) as error:
            raise InvalidInput("param_grid", str(error).rstrip("."), 'Give a mapping such as {"lam": [0.001, 0.01]}.') from error
        if not 1 <= count <= MOST_SETTINGS:
            raise InvalidInput("param_grid", f"holds {count:,} settings", f"Give 1 to {MOST_SETTINGS}.")
        for name in {name for each in grid.param_grid for name in each}:
            if not isinstance(name, str):
                raise InvalidInput("param_grid", f"has the name {show(name)}, which is no text", "Name hyperparameters by text.")
            if name in _FIXED:
                raise InvalidInput("param_grid", f"{name} cannot be searched over", "Give it to the search or to the estimator.")
        if base.mechanism == AUTOMATIC:  # releases that a search can count
            base = clone(base).set_params(mechanism=method_of_few_rows("logistic"))
        own = {"epsilon": self.epsilon, "delta": self.delta, "random_state": None, "ledger": None}
        settings = list(grid)
        return settings, [clone(base).set_params(**setting, **own) for setting in settings]

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores of the best model."""
        return self._best().decision_function(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(n,) labels by the best model."""
        return self._best().predict(X)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """(n, K) probabilities of the classes by the best model."""
        return self._best().predict_proba(X)

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """(n, K) logarithms of `predict_proba`."""
        return self._best().predict_log_proba(X)

    def _best(self) -> PrivateClassifier:
        check_is_fitted(self)
        return self.best_estimator_


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of a search: what each setting is trained and scored on.

    Attributes:
        tried: unfitted models, one for each setting.
        candidates: likewise.
        made: the plan.
        x: (n, m) rows in the unit ball.
        codes: (n,) positions of their classes.
        training, scoring: positions of rows.
        seeded: whether randomness follows from a seed.
        source: of all randomness, or of the seeds of models.
    """

    tried: Sequence[PrivateClassifier]
    candidates: Sequence[Candidate]
    made: SearchPlan
    x: Floats
    codes: NDArray[np.intp]
    training: NDArray[np.intp]
    scoring: NDArray[np.intp]
    seeded: bool
    source: random.Random

    def train(self, index: int) -> tuple[Floats, Floats, bool] | None:
        """(parameters, constant labels, exactness) of a new model; None where it is too large to be published."""
        model, one = self.tried[index], self.candidates[index]
        model.random_state = self.source.getrandbits(32) if self.seeded else None
        planned = Plan.from_calibration(one.mechanism, one.setting, one.models, self.made.each, self.made.calibrations[index])
        streams, noise, _ = model._randomness(one.models)
        try:
            return model._train(self.x[self.training], self.codes[self.training], planned, streams, noise)
        except InvalidInput:
            return None

    def right(self, trained: tuple[Floats, Floats, bool] | None) -> int:
        """Number of scoring rows that a model predicts right."""
        if trained is None:
            return 0
        scores = self.x[self.scoring] @ trained[0].T + trained[1]
        chosen = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        return int((chosen == self.codes[self.scoring]).sum())
