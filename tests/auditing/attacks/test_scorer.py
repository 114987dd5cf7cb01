"""`membership_risk` in scikit-learn's searches, for our classifier and for others."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dpviz
from dpviz.auditing.attacks.scorer import _fitted, _signals

X, Y = make_classification(300, 8, n_informative=4, flip_y=0.3, random_state=0)


def test_a_memorising_model_is_found_out_and_a_simple_one_is_not() -> None:
    risk = dpviz.membership_risk("lira-online", 0.05, shadows=32, targets=16)
    forest = risk(RandomForestClassifier(20, random_state=0), X, Y)
    flat = risk(LogisticRegression(C=1e-4), X, Y)
    assert forest < -0.4
    assert flat > -0.12
    assert risk.judged(LogisticRegression(C=1e-4), X, Y).auc == pytest.approx(0.5, abs=0.04)


def test_a_search_prefers_the_private_choice() -> None:
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, None]},
        scoring=dpviz.membership_risk("lira-online", 0.1, shadows=32, targets=16),
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_params_ == {"max_depth": 1}
    assert (search.cv_results_["mean_test_score"] <= 0).all()


def test_our_classifier_is_attacked_with_noise_of_its_own_in_every_copy(recwarn: pytest.WarningsRecorder) -> None:
    model = dpviz.PrivateClassifier("output-gaussian", 1.0, data_norm=5.0, random_state=3)
    seeds = np.random.SeedSequence(0).spawn(2)
    first, second = (_fitted(model, X, Y, np.arange(100), seed) for seed in seeds)
    assert (first.coef_ != second.coef_).all()
    risk = dpviz.membership_risk("rmia", 0.1, shadows=16, targets=8)
    scores = cross_val_score(model, X, Y, scoring=risk, cv=2, error_score="raise")
    assert (scores > -0.35).all()


def test_copies_are_not_entered_into_a_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    model = dpviz.PrivateClassifier("output-gaussian", 1.0, data_norm=5.0, ledger=ledger)
    dpviz.membership_risk("loss-threshold", 0.1, shadows=8, targets=8)(model, X, Y)
    assert not ledger.exists()


def test_signals_are_logits_of_the_own_label_with_many_classes_and_pipelines() -> None:
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    p = model.predict_proba(X)[np.arange(300), np.arange(300) % 3]
    assert _signals(model, X, y, np.arange(300)) == pytest.approx(np.log(p / (1 - p)), rel=1e-6)
    part = model.fit(X[y != "c"], y[y != "c"])  # a class that the half did not have
    assert np.isfinite(_signals(part, X, y, np.arange(300))).all()
