"""Models of several classes: the share of the budget that each has, noise of its own, and classes that are declared."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from support_estimator import rows

import dpviz
from dpviz import PrivateClassifier
from dpviz.common.validate import InvalidInput
from dpviz.estimator.guarantee import share, total_budgets
from dpviz.mechanisms import get_mechanism
from dpviz.models import get_model
from dpviz.privacy.budget import row_budget
from dpviz.releasing.grid import public_step, step_of


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
        with pytest.raises(InvalidInput) as refused:
            PrivateClassifier(**options).fit(x, y)
        assert refused.value.field == field
    for wrong in ("ab", ["a", "a", "b"], 3):
        with pytest.raises(InvalidInput, match="two or more different labels"):
            PrivateClassifier(classes=wrong).fit(x, y)  # type: ignore[arg-type]
