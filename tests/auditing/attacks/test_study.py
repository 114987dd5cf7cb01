"""Attacks on runs: what is shown, planted exposures that must be found, and guarantees that must hold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from support import Cancelled, cancel

import dpviz
from dpviz.auditing.attacks.attacked import detections_allowed
from dpviz.auditing.attacks.study import attack_over_epsilon, attack_run, watch_attacks
from dpviz.auditing.result import NO_VIOLATION
from dpviz.experiments.run.setup import setup_for
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Neighbouring

QUICK = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=1.0, params={"steps": 5})


def flipped_rows(n: int = 300, d: int = 4, flipped: int = 1, seed: int = 0) -> dpviz.Dataset:
    """Separable rows of which the first ones carry the wrong label."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = x[:, 0] + 0.5 * rng.normal(size=n) > 0
    x[:flipped, 0], y[:flipped] = 6.0, False
    return dpviz.dataset(x, y, ranges=(-6, 6))


def test_a_run_is_attacked_and_the_comparison_follows() -> None:
    first, last = watch_attacks(QUICK, 64, 64, attacks=["lira-online", "loss-threshold"])
    assert first.non_private is None
    assert last.non_private is not None
    assert last.judged is first.judged
    table = last.table
    assert list(table["attack"].unique()) == ["lira-online", "loss-threshold"]
    assert table.loc[table["false_alarms"] == 0.01, "detections"].between(0, 1).all()
    assert (table["low"].dropna() <= table["detections"].dropna()).all()
    assert first.table["non_private"].isna().all()
    assert set(last.rows.index) == set(setup_for(QUICK).split.train)
    assert last.verdict == NO_VIOLATION


def test_the_bound_is_the_exact_trade_off_of_the_noise() -> None:
    """Full batches with Gaussian noise: Phi(Phi^-1(a) + mu) (Dong, Roth, Su 2022, eq. (6))."""
    found = attack_run(QUICK, 64, 16, attacks=["loss-threshold"], baseline=False)
    budget, rates = found.calibration.proved_budget, np.array([0.001, 0.01, 0.1])
    assert budget is not None
    exact = norm.cdf(norm.ppf(rates) + gaussian_mu(budget))
    assert found.allowed(rates) == pytest.approx(exact, rel=0.01)


def test_a_guarantee_about_adding_and_removing_is_applied_twice() -> None:
    found = attack_run(QUICK, 64, 16, attacks=["loss-threshold"], baseline=False)
    one = replace(found.calibration, neighbouring=Neighbouring.ADD_REMOVE)
    rates, eps = np.array([0.001, 0.01]), found.calibration.budget.epsilon
    allowed = detections_allowed(QUICK.build(), found.setting, one, rates)
    assert allowed == pytest.approx(np.exp(2 * eps) * rates, rel=0.01)  # delta is far below these rates


def test_a_planted_wrong_label_is_the_most_exposed_row() -> None:
    spec = dpviz.RunSpec(flipped_rows(), mechanism="non-private", lam=1e-3)
    train = setup_for(spec).split.train
    assert 0 in train, "the row with the wrong label must be a training row"
    found = attack_run(spec, 128, 64)
    assert found.rows.index[0] == 0
    first = found.rows.iloc[0]
    assert first["attacks_that_find"] >= 2
    assert first["lira-online_found"] - first["lira-online_alarms"] > 0.4


def test_over_epsilon_the_comparison_is_computed_once() -> None:
    tables = list(attack_over_epsilon(QUICK, [0.1, 10.0], 64, 64, attacks=["lira-online"]))
    assert [t["epsilon"].iloc[0] for t in tables] == [0.1, 10.0]
    assert tables[0]["non_private"].equals(tables[1]["non_private"])
    assert tables[0]["non_private"].notna().any()
    assert (tables[0]["allowed"] < tables[1]["allowed"]).all()
    with pytest.raises(dpviz.InvalidInput, match="epsilons"):
        list(attack_over_epsilon(QUICK, []))


def test_progress_rises_to_the_end_and_cancelling_stops() -> None:
    told: list[float] = []
    attack_run(QUICK, 64, 16, attacks=["lira-online"], monitor=told.append)
    assert told == sorted(told)
    assert 0.95 < told[-1] <= 1 + 1e-9
    with pytest.raises(Cancelled):
        attack_run(QUICK, 64, 16, monitor=cancel)
