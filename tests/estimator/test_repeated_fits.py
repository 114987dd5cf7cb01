"""Fits that are repeated, by scikit-learn's tools or in a loop of one's own: counted and said, with the total so far."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from dpviz import PrivacyWarning, PrivateClassifier

Calls = dict[str, tuple[Callable[[], object], int]]
X = np.random.default_rng(0).normal(size=(300, 4)) / 4
Y = (X[:, 0] > 0).astype(int)


def private() -> PrivateClassifier:
    return PrivateClassifier("output-gaussian", epsilon=0.5, lam=0.1)


def said_by(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning) and "fit" in str(one.message)]


def repeated(model: PrivateClassifier) -> Calls:
    """(a call of scikit-learn, the last of its fits that is said)."""
    grid = {"privateclassifier__lam": [0.1, 0.2]}
    return {
        "bagging": (lambda: BaggingClassifier(model, n_estimators=5).fit(X, Y), 4),
        "cross validation": (lambda: cross_val_score(model, X, Y, cv=5), 4),
        "calibration": (lambda: CalibratedClassifierCV(model, cv=3).fit(X, Y), 2),
        "stacking": (lambda: StackingClassifier([("a", model), ("b", model)], cv=3).fit(X, Y), 8),
        "one against the rest": (lambda: OneVsRestClassifier(model).fit(X, np.arange(300) % 3), 2),
        "search in a pipeline": (lambda: GridSearchCV(make_pipeline(model), grid, cv=3).fit(X, Y), 4),
    }


@pytest.mark.parametrize("name", repeated(private()))
def test_repeated_fits_in_one_call_are_said_with_their_total_so_far(name: str) -> None:
    call, last = repeated(private())[name]
    counts = [2**k for k in range(1, last.bit_length())]
    starts = [f"This estimator, with its clones, made {n} fits so far, ε = {n / 2:g} in all by plain addition" for n in counts]
    assert [text.partition(". Every")[0] for text in said_by(call)] == starts


def test_fits_in_a_loop_of_ones_own_are_counted_on_rows_that_overlap() -> None:
    model = private()
    texts = said_by(lambda: [clone(model).fit(X[10 * k :], Y[10 * k :]) for k in range(5)])
    assert ["2 fits so far, ε = 1 in all" in texts[0], "4 fits so far, ε = 2 in all" in texts[1]] == [True] * len(texts)
    other = private()
    assert said_by(lambda: [clone(other).fit(X[100 * k :][:100], Y[100 * k :][:100]) for k in range(3)]) == []
    assert said_by(lambda: make_pipeline(private()).fit(X, Y)) == []
    halves = [(X[:150], Y[:150]), (X[150:], Y[150:])]
    third = private()
    texts = said_by(lambda: [clone(third).fit(*rows) for rows in [*halves, (X, Y), halves[0]]])
    assert ["made 4 fits so far" in text for text in texts] == [True], "rows that overlap both halves join their fits"


def test_a_fit_in_a_process_of_its_own_says_that_it_is_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    (text,) = said_by(lambda: private().fit(X, Y))
    assert text.startswith("A fit in a process of its own (n_jobs) spends ε = 0.5")
