"""`PrivateClassifier`: a differentially private linear classifier with scikit-learn's interface."""

import os
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpviz.common.arrays import Floats
from dpviz.common.persons import MOST_ROWS, bound_rows
from dpviz.common.validate import InvalidInput, check_bool, check_instance, check_integer, show
from dpviz.estimator.base import PrivateEstimator
from dpviz.estimator.features import PRIVATE, LinearMap, class_weights, norm_map, range_map, sample_weights
from dpviz.estimator.guarantee import CLASS_LABELS, Plan, PrivacyWarning, conditions_of, share
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import automatic_lam
from dpviz.experiments.run.settings import SETTINGS, check_epsilon
from dpviz.mechanisms import Mechanism, Training, get_mechanism, list_mechanisms
from dpviz.mechanisms.persons import budget_of_row
from dpviz.mechanisms.registry import AUTOMATIC, automatic_mechanism
from dpviz.models import Rows, Setting, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, check_public_n, row_budget
from dpviz.privacy.private_ranges import private_ranges
from dpviz.releasing.grid import publish
from dpviz.spending.ledger import Ledger

_Persons = tuple[int, NDArray[np.intp] | None]

_MODEL = "logistic"
_FEW = 10  # rows of a class below which a warning is due


class PrivateClassifier(PrivateEstimator):
    """Logistic regression trained by any mechanism of dpviz. Of more than two classes, one model each shares the budget.

    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = PrivateClassifier(epsilon=1.0, ranges=(-1, 1), classes=["no", "yes"], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.guarantee_.proved.epsilon
    (True, 1.0)

    The same pipeline without privacy, for comparison: `mechanism="non-private"`, whose `guarantee_` promises nothing. An
    infinite epsilon is refused, so that no model without privacy is taken for a private one.

    Rows are mapped into the unit ball by a fixed linear map: division by `data_norm`, or by declared `ranges`. Rows that do not
    keep to it are clipped with a warning when training, as the guarantee needs. The number of rows is public; so are the classes,
    which are read from the labels unless `classes` declares them. Parameters are published on a grid (`dpviz.releasing.grid`):
    noise that is added to a finished model is drawn exactly, and other models are rounded.

    Args:
        mechanism: id, one of `dpviz.list_mechanisms()`, or "automatic" for the one that a rule of n, d and epsilon names
            (`dpviz.mechanisms.registry.automatic_mechanism`).
        epsilon: privacy budget of one fit.
        delta: additive slack beside e^epsilon, below 1/n; None for `default_delta(n)`.
        lam: l2 regularisation, of the intercept too; None for the mechanism's rule of n, d and the budget.
        data_norm: declared largest norm of a row, in the rows' own units. For counts near 0 of wide ranges a usual norm is better
            than `ranges`, which centre them all to nearly the same row (docs/default_rules.md); longer rows are clipped.
        ranges: instead of `data_norm`, declared (low, high) of all features, or one pair for each, or a mapping from names.
            "private" finds them with a tenth of epsilon and delta (`dpviz.private_ranges`). "from data" reads them from the rows,
            which no epsilon covers; `guarantee_` says so.
        fit_intercept: whether to add a constant feature.
        random_state: None for randomness of the operating system. With a seed an attacker subtracts the noise, so the guarantee
            then holds only while it stays secret; a fitted model is pickled without it.
        classes: the labels as public knowledge, two or more; None reads them from `y`, which `guarantee_` says.
        ledger: of the table (`dpviz.Ledger`, or its file): every fit is entered before it is trained, and refused where it would
            pass the limit.
        person_rows: rows of one person that are kept at most, drawn at random and public, where epsilon is for a person: `fit` is
            then given `groups`. Noise grows with it. None for epsilon of a row; with groups, for 1.
        class_weight: weights of the classes as public knowledge, such as {"no": 1, "yes": 5}; a class that is not named weighs 1.
            They are divided by the largest, so that no row counts more than without weights: noise is larger beside the others.
        public_n: for a mechanism under add-remove, a public number that stands for the number of rows (`dpviz.models.problem`).
        max_weight: public bound of the weights that `fit` is given, by which they are divided; larger ones are clipped to it.
        knobs: of the mechanism, by name.

    Attributes:
        classes_: (K,) labels in order.
        coef_: (1, d) or (K, d) weights in the rows' own units.
        intercept_: (1,) or (K,) offsets.
        n_features_in_, feature_names_in_: as in scikit-learn.
        guarantee_: what is guaranteed, and how far it is proved.
    """

    def __init__(
        self,
        mechanism: str = AUTOMATIC,
        epsilon: float = 1.0,
        delta: float | None = None,
        lam: float | None = None,
        data_norm: float | None = 1.0,
        ranges: object = None,
        fit_intercept: bool = True,
        random_state: object = None,
        classes: Sequence[object] | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        person_rows: int | None = None,
        class_weight: Mapping[Any, float] | None = None,
        max_weight: float = 1.0,
        public_n: int | None = None,
        **knobs: Any,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.delta = delta
        self.lam = lam
        self.data_norm = data_norm
        self.ranges = ranges
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.classes = classes
        self.ledger = ledger
        self.person_rows = person_rows
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.public_n = public_n
        for name, value in knobs.items():
            if hasattr(type(self), name) or name.startswith("_") or name.endswith("_"):
                raise TypeError(f"unexpected argument {name!r}")
            setattr(self, name, value)  # whether the mechanism has it is checked when fitting, as scikit-learn asks

    def _knobs(self) -> dict[str, Any]:
        """The knobs that were set."""
        rest = set(vars(self)) - set(self._get_param_names())
        return {name: getattr(self, name) for name in sorted(rest) if not name.startswith("_") and not name.endswith("_")}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments, and the knobs that were set."""
        return {**super().get_params(deep), **self._knobs()}

    def set_params(self, **params: Any) -> Self:
        """Sets arguments and knobs; a knob may be new, where some mechanism has it."""
        declared = _all_knobs() | self._knobs().keys()
        knobs = {name: params.pop(name) for name in list(params) if name in declared}
        super().set_params(**params)
        for name, value in knobs.items():
            setattr(self, name, value)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Trains on (n, d) rows, sparse ones too, and (n,) labels. Each call spends the budget anew.

        Args:
            sample_weight: (n,) weights of the rows, from 0 to `max_weight`; a part of the rows, protected like the rest of them.
            groups: (n,) names of the rows' persons; epsilon is then for a person.

        Raises:
            InvalidInput: an argument that cannot be used, by name.
        """
        rows, classes, codes, read, (person_rows, who), weights = self._read(X, y, sample_weight, groups)
        self._warn_of_rare(classes, codes)
        intercept = check_bool("fit_intercept", self.fit_intercept)
        n = len(rows) if self.public_n is None else check_integer("public_n", self.public_n, 2, 10**9)
        planned = self._plan(n, rows.shape[1] + intercept, len(classes), person_rows, weights is not None)
        check_public_n(planned.cal.neighbouring, self.public_n)
        streams, source, of_ranges = self._randomness(planned.models)
        # what is wrong with declared ranges is said before anything is spent
        mapped = self._map(rows, intercept, None) if planned.for_ranges is None else None
        if (ledger := self._open_ledger()) is not None:
            call = f"PrivateClassifier({self.mechanism!r}, epsilon={self.epsilon!r}).fit"
            supposed = conditions_of(
                planned.cal, exact=False, seeded=self.random_state is not None
            )  # what is known before training
            ledger.spend(planned.entry(call, supposed), planned.cal.neighbouring)
        if mapped is None:
            mapped = self._map_privately(rows, intercept, planned.for_ranges, person_rows, of_ranges)
        x = self._inside(mapped, rows, intercept)
        theta, constant, exact = self._train(x, codes, planned, streams, source, weights, who)
        supposed = conditions_of(planned.cal, exact=exact, seeded=self.random_state is not None)
        self.guarantee_ = planned.guarantee((*mapped.looked_at, *read), supposed)
        self._settle(classes, mapped, theta, constant)
        return self

    def _read(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> tuple[Floats, NDArray[Any], NDArray[np.intp], tuple[str, ...], _Persons, Floats | None]:
        """The rows and what is to be known of them.

        ((n, d) rows, (K,) classes, (n,) position of each label among them, what was read from the labels, rows of one person at
        most and whose row each is, (n,) weights in [0, 1] or None).
        """
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all values up first
            rows, labels = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr")
        check_classification_targets(labels)
        weights, clipped = sample_weights(sample_weight, self.max_weight, len(labels))
        if clipped:
            message = f"{clipped:,} weights above max_weight = {self.max_weight:g} were clipped, as the guarantee needs."
            warnings.warn(message, PrivacyWarning, stacklevel=3)
        person_rows, kept, who = self._of_persons(groups, len(labels))
        rows = rows.toarray() if issparse(rows) else rows
        classes, codes, read = self._coded(labels[kept])
        weights, by_class = None if weights is None else weights[kept], class_weights(self.class_weight, classes)
        if by_class is not None:
            weights = by_class[codes] * (1.0 if weights is None else weights)
        return rows[kept], classes, codes, read, (person_rows, who), weights

    def _inside(self, mapped: LinearMap, rows: Floats, intercept: bool) -> Floats:
        """Rows in the unit ball, with a warning where some had to be clipped."""
        x, outside = mapped.rows(rows, intercept)
        if outside:
            what = "data_norm" if self.ranges is None else "ranges"
            message = f"{outside:,} of {len(x):,} rows outside {what} were clipped, as the guarantee needs."
            warnings.warn(message, PrivacyWarning, stacklevel=3)
        return x

    def _settle(self, classes: NDArray[Any], mapped: LinearMap, theta: Floats, constant: Floats) -> None:
        """Sets the parameters in the rows' own units."""
        self.classes_ = classes
        self.coef_, self.intercept_ = mapped.coefficients(theta, bool(self.fit_intercept))
        self.intercept_ += constant
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            del self.guarantee_
            what = "data_norm" if self.ranges is None else "ranges"
            raise InvalidInput(what, "gives coefficients beyond double precision", "Use units in which values are near 1.")

    def _of_persons(self, groups: ArrayLike | None, n: int) -> tuple[int, NDArray[np.intp] | slice, NDArray[np.intp] | None]:
        """(rows of one person at most, positions of the rows that are kept, whose they are); 0, all, None for a row."""
        if groups is None:
            if self.person_rows is not None:
                raise InvalidInput(
                    "groups", "are not given, and person_rows asks for ε of a person", "Give fit(X, y, groups=...)."
                )
            return 0, slice(None), None
        persons = pd.Series(np.asarray(groups).tolist() if np.ndim(groups) == 1 else [], dtype=object)
        if len(persons) != n or persons.isna().any():
            raise InvalidInput("groups", f"must name the person of each of {n:,} rows", "Give one name for each row.")
        most = check_integer("person_rows", 1 if self.person_rows is None else self.person_rows, 1, MOST_ROWS)
        secret = np.random.SeedSequence()
        if self.random_state is not None:
            secret = np.random.SeedSequence(self._generator().randint(0, 2**31, size=4).tolist())
        return most, *bound_rows(persons, most, secret)

    def _coded(self, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp], tuple[str, ...]]:
        """((K,) classes in order, (n,) position of each label among them, what was read from the labels)."""
        if self.classes is None:
            classes, codes = np.unique(labels, return_inverse=True)
            if len(classes) < 2:
                raise InvalidInput(
                    "y",
                    f"holds one class only, {show(classes.tolist()[0])}",
                    "Give rows of at least two classes, or classes=[...].",
                )
            return classes, codes, (CLASS_LABELS,)
        try:
            classes = np.unique(np.asarray(self.classes))
        except TypeError:  # numbers and texts together have no order
            classes = np.array([])
        if len(classes) < 2 or classes.ndim != 1 or len(classes) != len(self.classes):
            raise InvalidInput("classes", f"must be two or more different labels, got {show(self.classes)}", "Give all of them.")
        place = {label: k for k, label in enumerate(classes.tolist())}
        codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        if codes.min() < 0:
            unknown = show(labels[codes < 0].tolist()[0])
            raise InvalidInput("y", f"holds {unknown}, which is not among classes", "Correct it, or declare it.")
        return classes, codes, ()

    @staticmethod
    def _warn_of_rare(classes: NDArray[Any], codes: NDArray[np.intp]) -> None:
        counts = np.bincount(codes, minlength=len(classes))
        rare = int(counts.argmin())
        if counts[rare] < _FEW:
            message = f"Only {counts[rare]} of {len(codes):,} rows belong to the class {show(classes.tolist()[rare])}; "
            message += "a private model will hardly find it, and accuracy will hardly show that."
            warnings.warn(message, PrivacyWarning, stacklevel=3)

    def _plan(self, n: int, d: int, classes: int, person_rows: int, weighted: bool = False) -> Plan:
        """The division of the budget, from public facts: one binary model for two classes, else one for each."""
        models = 1 if classes == 2 else classes
        built, setting, total = self._setting(n, d, models, person_rows, weighted)
        return Plan.divide(built, setting, total, models, private_ranges=isinstance(self.ranges, str) and self.ranges == PRIVATE)

    def _setting(
        self, n: int, d: int, models: int, person_rows: int = 0, weighted: bool = False
    ) -> tuple[Mechanism, Setting, Budget]:
        """(mechanism, public facts of n rows with d features, total budget of several models)."""
        model, lam = get_model(_MODEL), SETTINGS["lam"].check("lam", self.lam)
        facts = replace(model.setting(n, d, lam or 1.0), weighted=weighted, person_rows=person_rows)
        total, knobs = row_budget(check_epsilon(self.epsilon), self.delta, n), self._knobs()
        name = check_instance("mechanism", self.mechanism, str)
        if name == AUTOMATIC:
            name, _ = automatic_mechanism(facts, total.epsilon, knobs, models)
        built = get_mechanism(name).from_params(knobs)
        built.require(facts)
        setting = model.setting(
            n, d, lam or automatic_lam(built, _MODEL, n, d, share(built, facts, total, models)[0], person_rows)
        )
        return built, replace(setting, person_rows=person_rows, weighted=weighted), total

    def _names(self, d: int) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)]))

    def _map(self, rows: Floats, intercept: bool, found: dict[str, tuple[float, float]] | None) -> LinearMap:
        d = rows.shape[1]
        if self.ranges is None:
            if self.data_norm is None:
                cause = "neither it nor ranges are given, and nothing is read from the rows unless you say so"
                raise InvalidInput("data_norm", cause, 'Give one of them, or ranges="from data" and a weaker guarantee.')
            return norm_map(d, self.data_norm)
        if self.data_norm not in (None, 1.0):
            raise InvalidInput("data_norm", "cannot go with ranges", "Give one of them.")
        return range_map(rows, self.ranges if found is None else found, self._names(d), intercept)

    def _map_privately(
        self, rows: Floats, intercept: bool, budget: Budget | None, person_rows: int, source: random.Random
    ) -> LinearMap:
        """The map by ranges that are found privately."""
        assert budget is not None
        columns = dict(zip(self._names(rows.shape[1]), rows.T, strict=True))
        return self._map(rows, intercept, private_ranges(columns, budget_of_row(budget, person_rows), source).ranges)

    def _train(
        self,
        x: Floats,
        codes: NDArray[np.intp],
        planned: Plan,
        streams: list[np.random.SeedSequence],
        source: random.Random,
        weights: Floats | None = None,
        who: NDArray[np.intp] | None = None,
    ) -> tuple[Floats, Floats, bool]:
        """((models, m) parameters, (models,) labels where those are released instead, else 0, whether the noise is exact)."""
        theta, constant, exact = [], np.zeros(planned.models), True
        for k, stream in enumerate(streams):
            positive = codes == (1 if planned.models == 1 else k)
            rows = Rows(x, np.where(positive, 1.0, -1.0), planned.setting.person_rows, weights, persons=who)
            problem = Problem(rows, get_model(_MODEL), planned.setting.lam, self.public_n or 0)
            fit = train(planned.mechanism, Training(problem, [planned.cal], [stream], record=False)).fit
            made = publish(planned.mechanism, planned.setting, planned.cal, fit, source)
            theta.append(made.theta)
            exact &= made.exact
            if fit.constant_label is not None:
                constant[k] = fit.constant_label[0, 0]
        return np.array(theta), constant, exact

    def _randomness(self, count: int) -> tuple[list[np.random.SeedSequence], random.Random, random.Random]:
        """(streams of training, one for each model; the source of exact noise for all models in turn; that of ranges)."""
        if self.random_state is None:  # not the global generator, whose state may be known
            return np.random.SeedSequence().spawn(count), random.SystemRandom(), random.SystemRandom()
        words = [int(w) for w in self._generator().randint(0, 2**32, size=4, dtype=np.uint64)]
        return np.random.SeedSequence(words).spawn(count), random.Random(repr(words)), random.Random(f"ranges {words}")

    def decision_function(self, X: ArrayLike) -> Floats:
        """(n,) scores of two classes, above 0 for the second, or (n, K)."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
            scores = rows @ self.coef_.T + self.intercept_
        if not np.isfinite(scores).all():
            raise InvalidInput("X", "gives scores beyond double precision", "Use the units that the model was trained in.")
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(n,) labels."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """(n, K) probabilities of the classes. Of more than two: the odds of one model each, divided by their sum."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """(n, K) logarithms of `predict_proba`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def to_sklearn(self) -> LogisticRegression:
        """The model as scikit-learn's own, for programs that know it: the same predictions, without `guarantee_`.

        >>> x, y = np.eye(4)[np.arange(80) % 4], np.arange(80) % 4 // 2
        >>> model = PrivateClassifier("output-gaussian", epsilon=5.0, random_state=0).fit(x, y)
        >>> bool((model.to_sklearn().predict(x) == model.predict(x)).all())
        True
        """
        check_is_fitted(self)
        made = LogisticRegression(C=np.inf, fit_intercept=bool(self.fit_intercept))
        for name in ("classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(made, name, np.copy(getattr(self, name)) if name != "n_features_in_" else self.n_features_in_)
        made.n_iter_ = np.ones(1, np.int32)
        return made


@cache
def _all_knobs() -> frozenset[str]:
    return frozenset(name for cls in list_mechanisms().values() for name in cls.knobs())
