"""Weights of classes and rows, and persons with several rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support_estimator import rows

import dpviz
from dpviz import PrivacyWarning, PrivateClassifier
from dpviz.common.validate import InvalidInput
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem


def test_persons_are_the_unit_where_groups_are_given() -> None:
    x, y = rows(300)
    who = np.arange(300) % 40
    model = PrivateClassifier("output-gaussian", epsilon=1.0, person_rows=3, random_state=0).fit(x, y, groups=who)
    assert model.guarantee_.unit == "one person, of whom at most 3 rows are kept"
    assert model.guarantee_.proved == dpviz.Budget(1.0, 1e-5)
    assert any("kept" in condition for condition in model.guarantee_.conditions)
    alone = PrivateClassifier("output-gaussian", epsilon=1.0, random_state=0).fit(x, y)
    assert alone.guarantee_.unit == "one row"
    planned = [PrivateClassifier("output-gaussian", lam=0.1)._plan(120, 3, 2, k).cal for k in (3, 0)]
    assert planned[0].noise_scale == pytest.approx(3 * planned[1].noise_scale, rel=1e-8)


def test_no_person_has_more_rows_than_are_said() -> None:
    """Coordinate 1 is seen in one person's 50 rows only; what the fit reads of them is at most two rows' worth."""
    x, y = np.zeros((200, 2)), np.tile(["a", "b"], 100)
    x[:, 0], x[:50] = 0.5, [0.0, 1.0]
    y[:50] = "b"
    who = np.r_[np.zeros(50, int), np.arange(1, 151)]
    huge = {"epsilon": 1e5, "lam": 0.5, "random_state": 0, "fit_intercept": False}  # hardly any noise
    weight = [PrivateClassifier("output-gaussian", person_rows=k, **huge).fit(x, y, groups=who).coef_[0, 1] for k in (1, 2, 50)]
    slope = [k / (150 + k) * 0.5 / 0.5 for k in (1, 2, 50)]  # of F at 0, over lam
    assert weight == pytest.approx(slope, rel=0.2)


@pytest.mark.parametrize("groups", [None, [1, 2], [[1]] * 400, [None] * 400])
def test_groups_must_name_every_row(groups: object) -> None:
    with pytest.raises(InvalidInput, match="groups"):
        PrivateClassifier("output-gaussian", person_rows=2).fit(*rows(), groups=groups)


def test_a_ledger_of_persons_takes_no_release_about_rows(tmp_path: Path) -> None:
    ledger = dpviz.Ledger.create(tmp_path / "a.toml", table="t", limit=dpviz.Budget(5.0, 1e-5), unit="person")
    model = PrivateClassifier("dp-gd", ledger=ledger, person_rows=2)
    model.fit(*rows(), groups=np.arange(400) % 90)
    assert ledger.entries()[0].person_rows == 2
    assert ledger.total().budget.epsilon == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(InvalidInput, match="about one row"):
        PrivateClassifier("dp-gd", ledger=ledger).fit(*rows())


def test_class_weights_are_divided_by_the_largest() -> None:
    x, y = rows(300)
    weighted = {"class_weight": {"a": 0.5, "b": 5.0}, "lam": 0.1, "epsilon": 1e5, "fit_intercept": False, "random_state": 0}
    model = PrivateClassifier("output-gaussian", **weighted).fit(x, y)
    signed = np.where(y == "b", 1.0, -1.0)
    target = Problem(Rows(x, signed, weights=np.where(y == "b", 1.0, 0.1)), get_model("logistic"), 0.1).optimum
    assert model.coef_[0] == pytest.approx(target, abs=0.01)
    assert any("divided by the largest" in note for note in model.guarantee_.notes)
    plain, more = (
        PrivateClassifier("dp-gd", epsilon=50.0, class_weight=given, random_state=0).fit(x, y) for given in (None, {"b": 20.0})
    )
    of_a = x[y == "a"]
    assert more.predict_proba(of_a)[:, 1].mean() > 3 * plain.predict_proba(of_a)[:, 1].mean()


@pytest.mark.parametrize("most", [4.0, 9.0])
def test_sample_weights_are_bounded_by_what_is_declared(most: float) -> None:
    """And not by the largest that is there, which is private: the control where the two differ."""
    x, y = rows(300)
    weights = np.where(np.arange(300) % 3 == 0, 4.0, 1.0)
    high = {"epsilon": 1e5, "lam": 0.1, "fit_intercept": False, "random_state": 0}
    declared = PrivateClassifier("output-gaussian", max_weight=most, **high).fit(x, y, sample_weight=weights)
    signed = np.where(y == "b", 1.0, -1.0)
    target, wrong = (Problem(Rows(x, signed, weights=weights / w), get_model("logistic"), 0.1).optimum for w in (most, 4.0))
    assert declared.coef_[0] == pytest.approx(target, abs=0.01)
    assert (declared.coef_[0] == pytest.approx(wrong, abs=0.01)) == (most == 4.0)
    with pytest.warns(PrivacyWarning, match="100 weights above max_weight"):
        clipped = PrivateClassifier("output-gaussian", **high).fit(x, y, sample_weight=weights)
    assert np.array_equal(clipped.coef_, PrivateClassifier("output-gaussian", **high).fit(x, y, sample_weight=np.ones(300)).coef_)


@pytest.mark.parametrize(
    ("arguments", "weights", "what"),
    [
        ({"class_weight": "balanced"}, None, "class_weight.*no ε covers"),
        ({"class_weight": {"z": 2.0}}, None, "class_weight"),
        ({"class_weight": {"a": 0.0}}, None, "class_weight"),
        ({"max_weight": 0.0}, None, "max_weight"),
        ({}, [-1.0] * 400, "sample_weight"),
        ({}, [1.0, 2.0], "sample_weight"),
        ({}, [2**2000] * 400, "sample_weight"),
        ({"ranges": [None, (0, 1)]}, None, "ranges"),
        ({"mechanism": "dp-agd"}, [1.0] * 400, "weights"),
        ({"mechanism": "ldp-duchi"}, [1.0] * 400, "weights"),
    ],
)
def test_weights_that_cannot_be_used_are_one_error(arguments: dict[str, object], weights: object, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        PrivateClassifier(**arguments).fit(*rows(), sample_weight=weights)
    if "mechanism" not in arguments and weights is None and "class_weight" in arguments:
        with pytest.raises(InvalidInput, match="class_weight"):
            dpviz.PrivateSearchCV(PrivateClassifier("dp-gd", **arguments), {"lam": [0.1]}).fit(*rows())


def test_a_private_search_takes_no_weights_and_no_persons() -> None:
    for more, what in (({"class_weight": {"a": 2.0}}, "class_weight"), ({"person_rows": 2}, "groups")):
        with pytest.raises(InvalidInput, match=what):
            dpviz.PrivateSearchCV(PrivateClassifier("dp-gd", **more), {"lam": [0.1]}).fit(*rows())
