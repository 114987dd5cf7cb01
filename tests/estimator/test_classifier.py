"""`PrivateClassifier`: scikit-learn's own checks, and what it promises beyond them."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import assert_refused
from support_estimator import rows

import dpviz
from dpviz import Budget, Ledger, PrivateClassifier
from dpviz.estimator import base
from dpviz.mechanisms.calibration import PUBLIC_CLASSES, PUBLIC_N, REAL_NOISE, SECRET_RANDOMNESS, SECRET_SEED
from dpviz.mechanisms.objective.perturbed_objective import EXACT
from dpviz.privacy.budget import row_budget


def expected(estimator: PrivateClassifier) -> dict[str, str]:
    """Checks of scikit-learn that cannot hold, and why."""
    knobs = "the knobs of a mechanism are arguments beyond the signature, kept under their own names as scikit-learn's params are"
    public = "the number of rows is public and decides the noise, so rows of weight 0 are not the same as no rows"
    failing = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), public
    )
    return failing | ({"check_no_attributes_set_in_init": knobs} if "steps" in estimator.get_params() else {})


@parametrize_with_checks([PrivateClassifier("output-gaussian")], expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_scikit_learns_checks(estimator: PrivateClassifier, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.mark.long
@parametrize_with_checks([PrivateClassifier("dp-gd", steps=5)], expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_scikit_learns_checks_of_a_method_with_hyperparameters(estimator: PrivateClassifier, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def test_it_learns_and_says_what_is_guaranteed() -> None:
    x, y = rows()
    model = PrivateClassifier(epsilon=1.0, random_state=0, classes=["a", "b"]).fit(x, y)
    assert model.score(x, y) > 0.95
    assert model.guarantee_.proved == dpviz.Budget(1.0, 1e-5)
    assert model.guarantee_.status is dpviz.Status.PROVED_IF
    assert model.guarantee_.looked_at == ()
    np.testing.assert_array_equal(model.predict(x), model.classes_[(model.decision_function(x) > 0).astype(int)])
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)


def test_coefficients_are_those_of_the_engine() -> None:
    """Without noise the fit is the minimiser over the mapped rows, in the rows' own units."""
    x, y = rows()
    for scale, options in ((7.0, {"data_norm": 7.0}), (7.0, {"ranges": {"u": (-7, 7), "v": (-7, 7)}})):
        frame = pd.DataFrame(x * scale, columns=["u", "v"])
        model = PrivateClassifier("non-private", lam=0.01, **options).fit(frame, y)
        z = x / (1.0 if "data_norm" in options else np.sqrt(2))
        engine = dpviz.models.LinearModel("logistic", "", dpviz.models.get_model("logistic").loss)
        signs = np.where(y == "b", 1.0, -1.0)
        inside = np.column_stack([z, np.full(len(z), 0.5)]) / np.sqrt(1.25)
        theta = engine.minimise(dpviz.models.Rows(inside, signs), 0.01)
        np.testing.assert_allclose(model.decision_function(frame), inside @ theta, atol=1e-6)
        assert list(model.feature_names_in_) == ["u", "v"]


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_without_randomness_of_its_own_two_fits_differ_and_a_seed_repeats() -> None:
    x, y = rows()
    np.random.seed(0)  # noqa: NPY002
    first = PrivateClassifier().fit(x, y).coef_
    np.random.seed(0)  # noqa: NPY002
    assert (PrivateClassifier().fit(x, y).coef_ != first).all()  # the global generator decides nothing
    seeded = PrivateClassifier(random_state=3)
    np.testing.assert_array_equal(seeded.fit(x, y).coef_, clone(seeded).fit(x, y).coef_)


def test_knobs_are_parameters() -> None:
    model = PrivateClassifier("dp-gd", steps=7)
    assert clone(model).get_params()["steps"] == 7
    assert "steps=7" in repr(model)
    assert model.set_params(mechanism="output-gaussian", refined=True).get_params()["refined"] is True
    with pytest.raises(TypeError, match="fit"):
        PrivateClassifier(fit=1)
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_pipelines_and_cross_validation() -> None:
    x, y = rows()
    frame = pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "kind": np.where(x[:, 0] > 0, "left", "right")})
    encoder = OneHotEncoder(categories=[["left", "right"]], handle_unknown="ignore")
    columns = ColumnTransformer([("kind", encoder, ["kind"])], remainder="passthrough")
    pipe = make_pipeline(columns, PrivateClassifier(epsilon=2.0, data_norm=2.0, random_state=0))
    assert cross_val_score(pipe, frame, y, cv=3).mean() > 0.9
    with pytest.raises(NotFittedError):
        PrivateClassifier().predict(x)


def test_delta_follows_from_the_rows_that_were_trained_on() -> None:
    """The automatic delta of 20,000 rows is another one than that of 2,000 or of the classes' sizes."""
    x, y = np.zeros((20_000, 1)), np.arange(20_000) % 2
    model = PrivateClassifier("output-gaussian", random_state=0).fit(x, y)
    assert model.guarantee_.proved == row_budget(1.0, None, 20_000) != row_budget(1.0, None, 2_000)
    assert_refused(PrivateClassifier("output-gaussian", delta=1 / 20_000).fit, x, y, match="1/n")
    PrivateClassifier("output-gaussian", delta=0.99 / 20_000).fit(x, y)


def test_what_a_proof_supposes_is_among_its_conditions() -> None:
    """BatchIndices and exact noise, with and without a seed; a method that proves nothing supposes nothing more."""
    x, y = rows()
    default, seeded = (PrivateClassifier("objective-tight", random_state=s).fit(x, y).guarantee_ for s in (None, 0))
    for said in (*EXACT, PUBLIC_N, PUBLIC_CLASSES, REAL_NOISE):
        assert said in default.conditions
        assert said in seeded.conditions
    assert SECRET_RANDOMNESS in default.conditions
    assert SECRET_SEED in seeded.conditions
    exact = PrivateClassifier("output-gaussian").fit(x, y).guarantee_
    assert (exact.mechanism, exact.conditions) == ("output-gaussian", (PUBLIC_N, PUBLIC_CLASSES))
    drawn = PrivateClassifier("output-gaussian", random_state=0).fit(x, y).guarantee_
    assert drawn.conditions == (PUBLIC_N, PUBLIC_CLASSES, SECRET_SEED)
    assert drawn.status is exact.status is dpviz.Status.PROVED_IF
    assert PrivateClassifier("pidp-sgd").fit(x, y).guarantee_.status is dpviz.Status.CLAIM


@pytest.mark.parametrize("state", [5, np.random.RandomState(5)])
def test_no_seed_and_no_generator_leaves_in_a_pickle(state: object) -> None:
    """A refit with the same seed would give the noise back. Before fitting it stays, for searches in other processes."""
    x, y = rows()
    model = PrivateClassifier("output-gaussian", random_state=state)
    assert pickle.loads(pickle.dumps(model)).random_state is not None
    again = pickle.loads(pickle.dumps(model.fit(x, y)))
    assert again.random_state is None
    assert b"RandomState" not in pickle.dumps(model)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert model.random_state is state


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_becomes_a_model_of_scikit_learn(classes: int, intercept: bool) -> None:
    x, y = rows(classes=classes)
    frame = pd.DataFrame(x, columns=["u", "v"])
    model = PrivateClassifier("output-gaussian", epsilon=20.0, lam=0.1, fit_intercept=intercept, random_state=0).fit(frame, y)
    plain = model.to_sklearn()
    assert type(plain) is LogisticRegression
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        ours, theirs = getattr(model, method)(frame), getattr(plain, method)(frame)
        np.testing.assert_array_equal(ours, theirs) if method == "predict" else np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(frame)), model.predict_proba(frame))
    again = pickle.loads(pickle.dumps(plain))
    assert set(vars(again)) - set(LogisticRegression().get_params()) <= {
        *("classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_", "n_iter_")
    }
    plain.coef_[:] = 0
    assert (model.coef_ != 0).any(), "a copy"


@pytest.mark.parametrize("kind", [csr_matrix, csc_array])
def test_sparse_rows_give_the_same_model(kind: type) -> None:
    x, y = rows()
    x[np.abs(x) < 0.1] = 0.0
    dense = PrivateClassifier(random_state=0).fit(x, y)
    sparse = PrivateClassifier(random_state=0).fit(kind(x), y)
    np.testing.assert_array_equal(sparse.coef_, dense.coef_)
    np.testing.assert_allclose(sparse.decision_function(kind(x)), dense.decision_function(x))


def test_nothing_is_spent_on_a_fit_that_is_refused(tmp_path: Path) -> None:
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=dpviz.Budget(3.0, 1e-6))
    for options in ({"ranges": (1, 0)}, {"data_norm": 1e-320}, {"classes": ["a"]}, {"epsilon": -1}):
        assert_refused(PrivateClassifier(ledger=ledger, **options).fit, *rows())
    assert ledger.entries() == ()


def test_the_second_fit_without_a_ledger_warns_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of one class in a process: in a loop or inside scikit-learn's tools. A ledger counts exactly, so its fits do not."""
    monkeypatch.setattr(base, "_fits", Counter())
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(9.0, 1e-4))
    model = PrivateClassifier("output-gaussian", random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            PrivateClassifier("output-gaussian", ledger=ledger).fit(*rows())
        assert (len(ledger.entries()), ledger.total().budget.epsilon > 1.5) == (3, True)
        model.fit(*rows())
        assert caught == []
        cross_val_score(model, *rows(), cv=3)
    assert [str(w.message) for w in caught] == [base.REPETITION]
