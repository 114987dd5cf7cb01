"""`PrivateSearchCV`: what it promises, what it spends, and mistakes that a search could make."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import assert_refused

from dpviz import Budget, Ledger, PrivateClassifier, PrivateSearchCV
from dpviz.estimator import classifier
from dpviz.estimator import private_search as module
from dpviz.mechanisms.calibration import REAL_NOISE, SECRET_RANDOMNESS, SECRET_SEED
from dpviz.privacy.accounting.repeated_selection import best_of, repetitions, replace_one_curve
from dpviz.privacy.budget import Status
from dpviz.spending.private_search import CONDITIONS

GRID = {"lam": [1e-3, 1e-2, 1e-1]}


def rows(n: int = 3000, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    return np.eye(4)[y] * 0.5 + 0.05 * rng.normal(size=(n, 4)), y


def searched(**how: object) -> PrivateSearchCV:
    defaults = {
        "estimator": PrivateClassifier("output-gaussian", epsilon=9.0, delta=1e-9, random_state=5),  # the search's hold
        "param_grid": GRID,
        "epsilon": 2.0,
        "random_state": 0,
    }
    return PrivateSearchCV(**(defaults | how))  # type: ignore[arg-type]


@parametrize_with_checks([searched(epsilon=100.0, param_grid={"lam": [0.1]}, mean_runs=2.0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator: PrivateSearchCV, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.mark.parametrize("classes", [2, 3])
def test_it_keeps_the_best_model_with_the_guarantee_of_the_search(classes: int) -> None:
    x, y = rows(classes=classes)
    model = searched().fit(pd.DataFrame(x, columns=list("abcd")), y)
    assert model.score(pd.DataFrame(x, columns=list("abcd")), y) > 0.95
    assert model.best_params_["lam"] in GRID["lam"]
    assert (
        {"epsilon": 2.0, "delta": None, "random_state": None} | model.best_params_
    ).items() <= model.best_estimator_.get_params().items()
    guarantee = model.guarantee_
    assert guarantee is model.best_estimator_.guarantee_
    assert 1.98 <= guarantee.proved.epsilon <= 2.0
    assert (guarantee.status, guarantee.models) == (Status.PROVED_IF, 1 if classes == 2 else 3)
    assert {*CONDITIONS, SECRET_SEED} <= set(guarantee.conditions)
    assert list(model.feature_names_in_) == list("abcd")
    assert model.predict_proba(pd.DataFrame(x, columns=list("abcd"))).shape == (len(x), classes)
    assert not hasattr(model, "cv_results_")


@pytest.mark.parametrize("classes", [2, 3])
def test_every_run_is_calibrated_for_its_share(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole cost, counted anew from the noise that training received; the control is that of a run that takes the total."""
    used = []
    train = PrivateClassifier._train
    monkeypatch.setattr(
        PrivateClassifier, "_train", lambda self, x, c, plan, *more: (used.append(plan), train(self, x, c, plan, *more))[1]
    )
    x, y = rows(classes=classes)
    model = searched(mean_runs=5.0, distribution="geometric").fit(x, y)
    models = 1 if classes == 2 else 3
    delta = model.guarantee_.proved.delta

    def cost(cal: object, setting: object) -> float:
        event = used[0].mechanism.released_event(setting, cal)
        return best_of(models * replace_one_curve(event), repetitions("geometric", 5.0), delta)

    assert used
    for planned in used:
        assert planned.setting.n == 2400
        assert cost(planned.cal, planned.setting) <= 2.0 * (1 + 1e-9)
    assert cost(used[0].mechanism.calibrate(used[0].setting, Budget(2.0, delta)), used[0].setting) > 3.0


@pytest.mark.parametrize("planted", [False, True])
def test_rows_that_are_scored_reach_no_training(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows themselves, at the last step before noise, and the count on them. The planted mistake trains on all of them."""
    trained, scored, find = [], [], module.search

    def search(made: object, train: Callable[[int], object], right: Callable[[object], int], source: object) -> object:
        runs = train.__self__  # type: ignore[attr-defined]
        scored.append(runs.x[runs.scoring])
        runs = replace(runs, training=np.arange(len(runs.x))) if planted else runs
        theta, offset, _ = model = runs.train(0)
        assert right(model) == (((scored[0] @ theta.T + offset)[:, 0] > 0) == runs.codes[runs.scoring]).sum()
        return find(made, runs.train, right, source)

    monkeypatch.setattr(module, "search", search)
    train = classifier.train
    monkeypatch.setattr(classifier, "train", lambda m, t: (trained.append(t.problem.rows.X), train(m, t))[1])
    searched(held_out=0.3).fit(*rows(1000))
    held_out = set(map(tuple, scored[0]))
    assert len(held_out) == 300
    assert all(len(x) == (1000 if planted else 700) for x in trained)
    assert any(held_out & set(map(tuple, x)) for x in trained) == planted


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_runs_draw_noise_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    thetas = []
    train = module._Runs.train
    monkeypatch.setattr(module._Runs, "train", lambda self, i: (thetas.append(train(self, i)), thetas[-1])[1])
    x, y = rows(500)
    for state in (None, np.random.RandomState(1)):
        model = searched(param_grid={"lam": [0.1]}, mean_runs=20.0, distribution="geometric", random_state=state)
        while len(thetas) < 3:
            model.fit(x, y)
        assert len({tuple(theta.ravel()) for theta, *_ in thetas}) == len(thetas)
        thetas.clear()


def test_a_seed_repeats_and_leaves_in_no_pickle() -> None:
    x, y = rows(500)
    model, again = searched(random_state=3).fit(x, y), searched(random_state=3).fit(x, y)
    np.testing.assert_array_equal(model.best_estimator_.coef_, again.best_estimator_.coef_)
    for one in (pickle.loads(pickle.dumps(model)), model.best_estimator_):
        assert (one.random_state, getattr(one, "best_estimator_", one).random_state) == (None, None)
    assert clone(model).random_state == 3


def test_the_ledger_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(3.0, 1e-4))
    x, y = rows(500)
    model = searched(ledger=ledger, random_state=None).fit(x, y)
    (entry,) = ledger.entries()
    assert (entry.what, entry.release) == ("search", model.guarantee_.proved)
    assert {*entry.conditions} == {*model.guarantee_.conditions, REAL_NOISE, SECRET_RANDOMNESS}
    monkeypatch.setattr(PrivateClassifier, "_train", lambda *a: pytest.fail("trained before the ledger was asked"))
    assert_refused(searched(ledger=str(ledger.path)).fit, x, y, match="would bring the total")
    assert len(ledger.entries()) == 1
