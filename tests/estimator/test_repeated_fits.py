"""Fits that are repeated, by scikit-learn's tools or in a loop of one's own: each is said, with the total of what it spends."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import joblib
import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from support_estimator import rows

from dpviz import PrivacyWarning, PrivateClassifier
from dpviz.estimator import search


@pytest.mark.parametrize("inside", [False, True])
def test_a_search_names_what_it_spends(inside: bool) -> None:
    x, y = rows(90)
    model = PrivateClassifier("output-gaussian", epsilon=0.5, random_state=0)
    name = "privateclassifier__" if inside else ""
    search = GridSearchCV(make_pipeline(model) if inside else model, {f"{name}lam": [0.1, 0.01]}, cv=3)
    with pytest.warns(PrivacyWarning) as said:
        search.fit(x, y)
    texts = [str(w.message) for w in said if "search" in str(w.message)]
    assert len(texts) == 1
    assert "7 fits" in texts[0]
    assert "ε = 3.5 in all" in texts[0]  # 2 settings x 3 folds x 0.5, and the last fit


def test_searches_over_epsilon_and_at_random_name_theirs() -> None:
    x, y = rows(90)
    model = PrivateClassifier("output-gaussian", random_state=0)
    with pytest.warns(PrivacyWarning, match="ε = 9 in all"):
        GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=3, refit=False).fit(x, y)
    with pytest.warns(PrivacyWarning, match="5 fits, ε = 5 in all"):
        RandomizedSearchCV(model, {"lam": [0.1, 0.2, 0.3]}, n_iter=2, cv=2, random_state=0).fit(x, y)


def repeated(model: PrivateClassifier, X: np.ndarray, y: np.ndarray) -> dict[str, tuple[object, int]]:
    """(a call of scikit-learn, how many fits it makes) by the name that is said."""
    three = np.arange(len(y)) % 3
    return {
        "BaggingClassifier": (lambda: BaggingClassifier(model, n_estimators=50).fit(X, y), 50),
        "cross_val_score": (lambda: cross_val_score(model, X, y, cv=5), 5),
        "cross_val_predict": (lambda: cross_val_predict(model, X, y, cv=5), 5),
        "learning_curve": (lambda: learning_curve(model, X, y, cv=3), 15),
        "validation_curve": (lambda: validation_curve(model, X, y, param_name="lam", param_range=[0.1, 0.2], cv=3), 6),
        "CalibratedClassifierCV": (lambda: CalibratedClassifierCV(model, cv=3).fit(X, y), 3),
        "StackingClassifier": (lambda: StackingClassifier([("a", model), ("b", model)], cv=3).fit(X, y), 8),
        "OneVsRestClassifier": (lambda: OneVsRestClassifier(model).fit(X, three), 3),
        "RFE": (lambda: RFE(model, n_features_to_select=1).fit(X, y), 4),
        "SequentialFeatureSelector": (lambda: SequentialFeatureSelector(model, n_features_to_select=2, cv=3).fit(X, y), 21),
        "HalvingGridSearchCV": (lambda: HalvingGridSearchCV(model, {"lam": [0.1, 0.2, 0.3, 0.4]}, cv=3).fit(X, y), 19),
        "cross_val_score ": (lambda: cross_val_score(GridSearchCV(model, {"lam": [0.1, 0.2]}, cv=3), X, y, cv=3), 21),
    }


def said_by(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning) and "fits" in str(one.message)]


@pytest.mark.parametrize("name", repeated(PrivateClassifier(), np.zeros((1, 1)), np.zeros(1)))
def test_repeated_fits_in_one_call_are_said_once_with_their_total(name: str) -> None:
    """By their names, counted here by a subclass that counts itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) / 4
    y = (X[:, 0] > 0).astype(int)
    made = []

    class Counted(PrivateClassifier):
        def fit(self, X: object, y: object) -> Counted:
            made.append(1)
            return super().fit(X, y)

    call, fits = repeated(Counted("output-gaussian", epsilon=0.5, lam=0.1), X, y)[name]
    texts = said_by(call)  # type: ignore[arg-type]
    assert len(made) == fits
    assert len(texts) == 1
    assert texts[0].startswith(f"{name.strip()} made {fits} fits, ε = {fits * 0.5:g} in all")
    assert sys.getprofile() is None


def test_fits_side_by_side_are_said_not_to_be_added_up() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) / 4
    model = PrivateClassifier("output-gaussian", lam=0.1)
    with joblib.parallel_backend("threading"):
        texts = said_by(lambda: cross_val_score(model, X, X[:, 0] > 0, cv=2, n_jobs=2))
    assert [text for text in texts if text.startswith("cross_val_score fits side by side (n_jobs)")] == texts[:1] != []
    assert not any("side by side" in text for text in said_by(lambda: cross_val_score(model, X, X[:, 0] > 0, cv=2, n_jobs=1)))
    unknown = RandomizedSearchCV(model, {"epsilon": uniform(0.5, 1)}, n_iter=2, cv=2, n_jobs=2, random_state=0)
    with joblib.parallel_backend("threading"):
        texts = said_by(lambda: unknown.fit(X, X[:, 0] > 0))
    assert [text.partition(" (")[0] for text in texts] == ["RandomizedSearchCV fits side by side"], "its ε is not known before"
    assert sys.getprofile() is None


def test_fits_in_a_loop_of_ones_own_are_counted_on_rows_that_overlap() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) / 4
    y = (X[:, 0] > 0).astype(int)
    model = PrivateClassifier("output-gaussian", epsilon=0.5, lam=0.1)
    texts = said_by(lambda: [clone(model).fit(X[10 * k :], y[10 * k :]) for k in range(5)])
    assert [text.partition(" by")[0] for text in texts] == [
        "This estimator, with its clones, made 2 fits, ε = 1 in all",
        "This estimator, with its clones, made 4 fits, ε = 2 in all",
    ]
    other = PrivateClassifier("output-gaussian", epsilon=0.5, lam=0.1)
    assert said_by(lambda: [clone(other).fit(X[100 * k :][:100], y[100 * k :][:100]) for k in range(3)]) == []
    assert said_by(lambda: make_pipeline(PrivateClassifier("output-gaussian")).fit(X, y)) == []


def test_counting_leaves_another_profiler_alone_and_keeps_no_rows() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2)) / 4
    y = (X[:, 0] > 0).astype(int)

    def other(frame: object, event: str, given: object) -> None: ...

    sys.setprofile(other)
    try:
        said_by(lambda: cross_val_score(PrivateClassifier("output-gaussian"), X, y, cv=3))
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)
    with pytest.raises(ValueError, match="cv"):
        cross_val_score(PrivateClassifier("output-gaussian"), X, y, cv=1)
    said_by(lambda: cross_val_score(PrivateClassifier("output-gaussian"), X, y, cv=3))
    assert search._calls.open is None, "a frame that was kept would hold its rows"
