"""Weights, persons with several rows, several classes, and declared norms and ranges."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from support import assert_refused
from support_estimator import rows

import dpviz
from dpviz import PrivacyWarning, PrivateClassifier
from dpviz.estimator.features import range_map
from dpviz.estimator.guarantee import share, total_budgets
from dpviz.mechanisms import get_mechanism
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import row_budget
from dpviz.releasing.grid import public_step, step_of


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


def test_a_ledger_of_persons_takes_no_release_about_rows(tmp_path: Path) -> None:
    ledger = dpviz.Ledger.create(tmp_path / "a.toml", table="t", limit=dpviz.Budget(5.0, 1e-5), unit="person")
    model = PrivateClassifier("dp-gd", ledger=ledger, person_rows=2)
    model.fit(*rows(), groups=np.arange(400) % 90)
    assert ledger.entries()[0].person_rows == 2
    assert ledger.total().budget.epsilon == pytest.approx(1.0, rel=1e-3)
    assert_refused(PrivateClassifier("dp-gd", ledger=ledger).fit, *rows(), match="about one row")


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


def test_models_of_three_classes_have_a_third_of_a_pure_budget_and_noise_of_their_own() -> None:
    x, y = rows(300, classes=3)
    setting = get_model("logistic").setting(300, 3, 0.1)
    mechanism, budget = dpviz.list_mechanisms()["cms-output"](), dpviz.Budget(6.0, 1e-5)
    each, _ = share(mechanism, setting, budget, 3)
    assert 3 * each.epsilon == pytest.approx(6.0, rel=1e-9)
    quiet, loud = (PrivateClassifier(name, epsilon=0.1, lam=0.1, random_state=0) for name in ("non-private", "cms-output"))
    noise = loud.fit(x, y).coef_ - quiet.fit(x, y).coef_
    assert len(np.unique(noise.round(6), axis=0)) == 3
    cal = mechanism.calibrate(setting, each)
    more = dataclasses.replace(cal, proved_budget=dpviz.Budget(2.5), claimed_budget=None)
    assert total_budgets(cal, each, budget, 3, True) == (dpviz.Budget(6.0), dpviz.Budget(6.0))
    assert total_budgets(more, each, budget, 3, True) == (None, dpviz.Budget(7.5)), "what each proves beyond its share adds up"


def by_engine(seed: int | None, mechanism: str, **options: object) -> PrivateClassifier:
    """Fitted on rows of zeros: a model is its noise alone."""
    x, y = np.zeros((90, 4)), np.arange(90) % 3
    made = PrivateClassifier(mechanism, lam=0.1, fit_intercept=False, random_state=seed, **options)  # type: ignore[arg-type]
    return made.fit(x, y)


@pytest.mark.parametrize("mechanism", ["output-gaussian", "cms-output", "objective-tight", "dp-gd"])
@pytest.mark.parametrize("seed", [None, 0])
def test_every_class_has_a_draw_of_its_own(mechanism: str, seed: int | None) -> None:
    """A shared draw would cancel in the difference of two classes' models. Here a model is its noise."""
    noise = by_engine(seed, mechanism).coef_
    for a, b in itertools.combinations(noise, 2):
        assert np.abs(a - b).min() > 1e-9 * np.abs(noise).max()
        assert np.abs(a + b).min() > 1e-9 * np.abs(noise).max()  # by chance once in 10^7 runs


def test_coefficients_are_on_a_grid_that_follows_from_public_facts() -> None:
    for mechanism in ("output-gaussian", "cms-output", "objective-tight", "dp-gd"):
        coef = by_engine(None, mechanism).coef_
        budget = share(get_mechanism(mechanism)(), get_model("logistic").setting(90, 4, 0.1), row_budget(1.0, None, 90), 3)[0]
        cal = get_mechanism(mechanism)().calibrate(get_model("logistic").setting(90, 4, 0.1), budget)
        step = step_of(cal.noise_scale) if "output" in mechanism else public_step(90, budget.epsilon, 0.1)
        assert (coef / step == np.rint(coef / step)).all()


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_classes_that_are_declared_are_not_looked_at() -> None:
    """A neighbour without one of them has a model of the same shape, and one with another label is refused in words."""
    x, y = rows(90, classes=3)
    model = PrivateClassifier("output-gaussian", random_state=0, classes=["c", "a", "b"])
    assert model.fit(x, y).guarantee_.looked_at == ()
    gone = model.fit(x, np.where(y == "c", "a", y))
    assert gone.classes_.tolist() == ["a", "b", "c"]
    assert gone.coef_.shape == (3, 2)
    assert set(gone.predict(x)) <= set("abc")
    one = PrivateClassifier("output-gaussian", random_state=0, classes=[1, 0]).fit(x, np.zeros(90))
    assert one.classes_.tolist() == [0, 1]
    read = PrivateClassifier("output-gaussian", random_state=0).fit(x, y)
    assert read.guarantee_.looked_at == ("class labels",)
    for options, field in (({"classes": ["a", "b"]}, "y"), ({"classes": ["a"]}, "classes"), ({"classes": [1, "a"]}, "y")):
        assert_refused(PrivateClassifier(**options).fit, x, y, field=field)
    for wrong in ("ab", ["a", "a", "b"], 3):
        assert_refused(PrivateClassifier(classes=wrong).fit, x, y, match="two or more different labels")


def test_warnings_name_the_line_that_calls() -> None:
    x, y = rows(300)
    y[:] = "a"
    y[:9] = "b"
    with pytest.warns(PrivacyWarning) as caught:
        PrivateClassifier("output-gaussian", data_norm=0.9).fit(3 * x, y, sample_weight=np.full(300, 2.0))
    with pytest.warns(UserWarning, match="9 of 300 rows") as of_dataset:
        dpviz.dataset(x, y == "b", data_norm=1.0)
    assert [warning.filename for warning in (*caught, *of_dataset)] == [__file__] * 4


def test_rows_outside_are_clipped_with_a_warning() -> None:
    x, y = rows()
    long = x.copy()
    long[0] *= 1.9 / np.linalg.norm(long[0])
    short = long.copy()
    short[0] /= 1.9
    within = PrivateClassifier(random_state=0).fit(short, y)
    for options in ({}, {"ranges": (-1, 1)}):
        with pytest.warns(PrivacyWarning, match=f"1 of 400 rows outside {'ranges' if options else 'data_norm'} were clipped"):
            clipped = PrivateClassifier(random_state=0, **options).fit(long, y)
        if not options:
            np.testing.assert_allclose(clipped.coef_, within.coef_, atol=1e-9)


def test_nothing_is_read_from_the_rows_unless_it_is_written_out() -> None:
    x, y = rows()
    assert_refused(PrivateClassifier(data_norm=None).fit, x, y, match="from data")
    model = PrivateClassifier(ranges="from data").fit(x, y)
    assert model.guarantee_.looked_at == ("the range of x0", "the range of x1", "class labels")
    assert ", given 2 ranges and categories that were read from the rows" in str(model.guarantee_)


def test_corners_of_declared_ranges_reach_the_unit_sphere_and_nothing_lies_beyond() -> None:
    """Also without a constant feature, where 0 stays 0 and a range need not lie around it."""
    corners = np.array(list(itertools.product((-4.0, 1.0), repeat=3)))
    for intercept in (True, False):
        z, outside = range_map(corners, (-4, 1), ["a", "b", "c"], intercept).rows(corners, intercept)
        assert not outside
        assert np.linalg.norm(z, axis=1).max() == pytest.approx(1.0)
    far = range_map(corners, (-4, 1), ["a", "b", "c"], True)
    beyond, outside = far.rows(np.array([[-9.0, 0.0, 7.0]]), True)
    assert outside
    np.testing.assert_allclose(beyond, far.rows(np.array([[-4.0, 0.0, 1.0]]), True)[0])


def test_ranges_are_centred_beside_an_intercept_and_empty_ones_are_refused() -> None:
    corners = np.array(list(itertools.product((-4.0, 1.0), (2.0, 3.0))))
    z, _ = range_map(corners, [(-4, 1), (2, 3)], ["a", "b"], True).rows(corners, False)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0)  # every corner, so that no part of the ball is wasted
    np.testing.assert_allclose(z.sum(axis=0), 0.0, atol=1e-12)
    for ranges in ((1, 1), (2, 1)):
        assert_refused(range_map, corners, ranges, ["a", "b"], True, match="not below")


ENDS = [1.5e308, -1.7e308, 5e-324, 1e-320, 3.4e38, 1.4e-45, 1e160, 1e-160, 0.0]


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
@pytest.mark.parametrize("options", [{"data_norm": 0.5}, {"data_norm": 1e-140}, {"data_norm": 1e140}, {"ranges": (-1, 2)}])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_row_at_the_ends_of_double_precision_stays_within_its_clip(options: dict[str, object], intercept: bool) -> None:
    """It moves the minimiser by no more than is declared, and does not end the fit."""
    x, y = rows(60)
    x = x * float(options.get("data_norm", 1.0))  # type: ignore[arg-type]
    made = PrivateClassifier("output-gaussian", lam=0.1, fit_intercept=intercept, random_state=0, **options)  # type: ignore[arg-type]
    before = made.fit(x, y)
    unit = float(options.get("data_norm", 1.0)) if "data_norm" in options else np.sqrt(2) * 1.5  # type: ignore[arg-type]
    sensitivity = dpviz.calibrate("output-gaussian", n=60, d=2 + intercept, epsilon=1.0, lam=0.1).sensitivity
    coef = before.coef_ * unit
    for value in zip(ENDS, [*ENDS[4:], *ENDS[:4]], strict=True):
        moved = x.copy()
        moved[0] = value
        after = made.fit(moved, y).coef_ * unit  # the same noise, so the difference is that of the minimisers
        assert np.isfinite(after).all()
        assert np.linalg.norm(after - coef) <= sensitivity * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_values_whose_sum_overflows_give_no_other_warning() -> None:
    x, y = rows(60)
    x[0], x[1] = 1.7e308, -1.7e308
    fitted = PrivateClassifier(ranges=(-1, 1), random_state=0).fit(x, y)
    assert fitted.predict(x[2:]).shape == (58,)
