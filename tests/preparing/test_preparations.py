"""Preparations: sensitivities against adversarial neighbours, noise against its declaration, public gates, and runs with them."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri
from support import assert_refused

import dpviz
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import dataset_of, fit_key, fresh_noise, resolve
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.mechanisms import protection
from dpviz.preparing import PREPARATIONS, get_preparation
from dpviz.preparing.base import Facts
from dpviz.preparing.scaling import NOISE, ScalingChosen, near_corner
from dpviz.preparing.standardisation import MOST_NOISE, Standardised, moments
from dpviz.privacy.accounting.events import single_step
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.spending.of_run import entry_of

TOTAL = Budget(1.0, 1e-5)


def counts(n: int = 6000, k: int = 12, seed: int = 0) -> Dataset:
    """Counts with heavy tails in wide ranges, as words of mails: rows near one corner."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    x = rng.pareto(1.5, (n, k)) * (rng.random((n, k)) < np.where(y[:, None], 0.5, 0.2) * np.linspace(0.4, 1.6, k))
    frame = pd.DataFrame(np.minimum(x, 100.0), columns=[f"w{j}" for j in range(k)]).assign(y=np.where(y, "spam", "ham"))
    return dpviz.dataset(frame, target="y", ranges={f"w{j}": (0.0, 100.0) for j in range(k)})


def spread(n: int = 6000, k: int = 4) -> Dataset:
    """Numbers all over their ranges."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(n, k))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(k)]).assign(y=np.where(x[:, 0] + x[:, 1] > 1, "b", "a"))
    return dpviz.dataset(frame, target="y", ranges={f"x{j}": (0.0, 1.0) for j in range(k)})


class Silent(random.Random):
    """Noise whose standard deviations or rates are noted and which is 0."""

    def __init__(self) -> None:
        super().__init__(0)
        self.scales: list[float] = []

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        self.scales.append(sigma)
        return mu

    def expovariate(self, lambd: float = 1.0) -> float:
        self.scales.append(1 / lambd)
        return 0.0


def neighbours(rows: np.ndarray, replaced: np.ndarray) -> np.ndarray:
    other = rows.copy()
    other[: len(replaced)] = replaced
    return other


@pytest.mark.parametrize("k", [1, 3])
def test_the_number_near_the_corner_moves_by_the_rows_that_change(k: int) -> None:
    """Replaced or removed; the control is a share of the rows' squared length, which one long row decides."""
    rng, numbers = np.random.default_rng(0), np.array([True, True, True, False])
    reached = set()
    for first in (np.zeros((40, 4)), rng.uniform(size=(40, 4)), 0.05 * rng.uniform(size=(40, 4))):
        for replaced in (np.zeros((k, 4)), np.ones((k, 4)), rng.uniform(size=(k, 4))):
            count = near_corner(first, numbers).sum()
            for other in (neighbours(first, replaced), first[k:]):
                reached.add(abs(int(count - near_corner(other, numbers).sum())))
    assert max(reached) == k

    def share(x: np.ndarray) -> float:
        lengths = np.square(x).sum(axis=1)
        return float(lengths[near_corner(x, numbers)].sum() / lengths.sum())

    short = np.full((40, 4), 1e-3)
    assert abs(share(short) - share(neighbours(short, np.ones((k, 4))))) > k / 40


def test_the_cost_of_the_scaling_is_that_of_its_noise() -> None:
    """Laplace noise by its density on a grid, against the trade-off curve of mu; a tenth less mu is the control."""
    for n, persons in ((100, 0), (2000, 0), (2000, 5)):
        facts = Facts(n, TOTAL, persons)
        paid, scale = ScalingChosen().cost(facts), n * NOISE
        assert paid.epsilon == pytest.approx(facts.unit_rows / scale)
        alarms = np.linspace(0.001, 0.999, 999)
        missed = np.maximum.reduce([1 - np.exp(paid.epsilon) * alarms, np.exp(-paid.epsilon) * (1 - alarms)])
        assert (missed >= ndtr(ndtri(1 - alarms) - paid.mu) - 1e-9).all()
        assert not (missed >= ndtr(ndtri(1 - alarms) - 0.9 * paid.mu)).all()


@pytest.mark.parametrize("k", [1, 3])
def test_moments_move_by_their_sensitivity_at_most_and_reach_it(k: int) -> None:
    n, d, rng = 30, 5, np.random.default_rng(0)
    bound = k * np.sqrt(2 * d) / n
    for _ in range(200):
        first = rng.uniform(size=(n, d))
        moved = moments(first) - moments(neighbours(first, rng.integers(0, 2, (k, d)).astype(float)))
        assert np.linalg.norm(moved) <= bound
    ones = np.ones((n, d))
    reached = np.linalg.norm(moments(ones) - moments(neighbours(ones, np.zeros((k, d)))))
    assert reached == pytest.approx(bound)
    assert reached > k * np.sqrt(d) / n, "the sensitivity of the means alone would be too little"


@pytest.mark.parametrize("name", ["scaling", "standardisation"])
@pytest.mark.parametrize("persons", [0, 3])
def test_noise_is_that_of_the_declared_cost_and_for_all_rows_of_a_person(name: str, persons: int) -> None:
    preparation, source = get_preparation(name), Silent()
    rows = replace(dpviz.load_dataset(counts().name, scaling="automatic"), person_rows=persons)
    train = np.arange(4800)
    made = preparation.prepare(rows, train, TOTAL, source)
    (paid,) = made.preparations
    assert (paid.id, made.encoder is None) == (name, name == "standardisation"), "an encoder knows ranges only"
    k = max(1, persons)
    expected = [k / paid.epsilon] * 2 if name == "scaling" else [k * np.sqrt(24) / 4800 / paid.mu] * 24
    assert source.scales == pytest.approx(expected)
    # rows that are not trained on change nothing
    frame, few = rows.frame.copy(), train[:1000]
    frame.loc[4800:, [f"w{j}" for j in range(12)]] = 99.0
    assert np.array_equal(preparation.prepare(replace(rows, frame=frame), train, TOTAL, Silent()).X[:4800], made.X[:4800])
    ends = []  # far from the corner where they are trained on, and near it or far elsewhere
    for last in (999, 5999):
        frame = rows.frame.copy()
        frame.loc[:last, [f"w{j}" for j in range(12)]] = 60.0
        ends.append(preparation.prepare(replace(rows, frame=frame), few, TOTAL, Silent()).X[few])
    assert np.array_equal(*ends)
    assert np.linalg.norm(made.X, axis=1).max() <= 1 + 1e-12


def test_shares_leave_the_method_the_rest_exactly() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised", mechanism="output-gaussian", ranges="private")
    cal, whole = calibration_of(spec), gaussian_mu(resolve(spec).budget)
    squares = [one.mu**2 for one in setting_of(spec).preparations]
    assert [one.id for one in setting_of(spec).preparations] == ["ranges", "standardisation"]
    assert gaussian_mu(cal.method_budget) ** 2 == pytest.approx(whole**2 - sum(squares), rel=1e-6)
    assert cal.preparation_mu**2 == pytest.approx(sum(squares))
    event = protection.released_event(spec.build(), setting_of(spec), cal)  # type: ignore[arg-type]
    assert single_step(event).mu == pytest.approx(whole, rel=1e-6)
    free = calibration_of(replace(spec, row_scaling="centred", ranges="declared"))
    assert cal.noise_scale > free.noise_scale


@pytest.mark.parametrize("mechanism", ["cms-objective", "objective-tight", "dp-sgd", "output-gaussian"])
def test_the_scaling_is_paid_for_by_methods_of_every_kind(mechanism: str) -> None:
    """The whole is what was asked for, delta stays that of the method alone, and what is declared costs no more."""
    spec = dpviz.RunSpec(counts(), mechanism=mechanism)
    cal, free, setting = calibration_of(spec), calibration_of(replace(spec, row_scaling="unit")), setting_of(spec)
    (paid,) = setting.preparations
    assert cal.noise_scale > free.noise_scale
    assert cal.method_budget.epsilon < 1.0
    assert cal.proved_budget.delta == pytest.approx(free.proved_budget.delta)
    assert cal.proved_budget.epsilon == pytest.approx(free.proved_budget.epsilon, rel=1e-6)
    if cal.mu is None:
        assert cal.method_budget.epsilon == pytest.approx(1.0 - paid.epsilon)
    else:
        assert cal.mu == pytest.approx(np.hypot(paid.mu, gaussian_mu(cal.method_budget)), rel=1e-6)
    entry = entry_of(spec.build(), setting, cal)
    assert total_epsilon([entry.release], cal.budget.delta, cal.neighbouring) <= 1.0 + 1e-3


def test_gates_read_public_facts_only() -> None:
    """Equal facts give equal gates whatever the rows are; below them nothing is paid and the noise is that of a run without."""
    scaling, standardised = get_preparation("scaling"), Standardised()
    for n, k, epsilon, persons in ((100, 4, 1.0, 0), (10**6, 4, 1.0, 0), (10**6, 4, 0.01, 50), (3000, 400, 10.0, 0)):
        facts = Facts(n, Budget(epsilon, 1e-7), persons, k, numbers=k)
        assert (scaling.refusal(facts) == "") == (15 * max(1, persons) / n <= 0.05 * epsilon)
        assert scaling.refusal(replace(facts, categories=k)), "rows with as many categories are never near the corner"
        assert (standardised.refusal(facts) == "") == (standardised.noise(facts) <= MOST_NOISE)
    for value in ("automatic", "standardised"):
        few = dpviz.RunSpec(spread(), row_scaling=value, epsilon=0.01)
        assert (dataset_of(few).preparations, dataset_of(few).scaling) == ((), "centred")
        assert ("nothing is paid" in str(dataset_of(few).remarks)) == (value == "standardised")
        plain = calibration_of(replace(few, row_scaling="centred"))
        assert (calibration_of(few).noise_scale, calibration_of(few).preparation_mu) == (plain.noise_scale, 0)


def test_the_automatic_scaling_is_unit_length_near_the_corner() -> None:
    chosen = {name: dataset_of(dpviz.RunSpec(rows)) for name, rows in (("a", counts()), ("b", spread()))}
    assert (chosen["a"].scaling, chosen["b"].scaling) == ("unit", "centred")
    assert [one.id for one in chosen["a"].preparations] == ["scaling"]
    assert "for ε = 0.0031: unit" in chosen["a"].remarks[-1]


def test_budgets_share_the_rows_of_one_choice() -> None:
    """So that a curve is trained together; a budget below the gate is centred and pays nothing."""
    results = dpviz.run_epsilons(dpviz.RunSpec(counts(), mechanism="dp-gd", seeds=2), [0.01, 1.0, 3.0])
    rows = [result.setup.problem.rows for result in results]
    assert rows[1] is rows[2]
    assert [len(one.preparations) for one in rows] == [0, 1, 1]
    alone = dpviz.run(dpviz.RunSpec(counts(), mechanism="dp-gd", seeds=2, epsilon=3.0))
    assert alone.calibration.noise_scale == results[2].calibration.noise_scale
    assert fit_key(alone.spec) == fit_key(results[1].spec) != fit_key(results[0].spec)


def test_standardised_rows_have_means_near_0_and_equal_spreads() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised", epsilon=5.0)
    x = setup_for(spec).problem.rows.X[:, :-1]
    assert np.abs(x.mean(axis=0)).max() < 0.05
    assert x.std(axis=0).max() < 1.2 * x.std(axis=0).min()


@pytest.mark.long
def test_counts_in_wide_ranges_gain() -> None:
    """Centred rows are all alike there; the gain is far beyond the error."""
    base = dpviz.RunSpec(counts(), seeds=10)
    plain, chosen = (dpviz.run(replace(base, row_scaling=s)).accuracy.mean() for s in ("centred", "automatic"))
    assert chosen > plain + 0.03


def test_runs_repeat_and_other_seeds_and_budgets_have_their_own_noise() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised")
    others = replace(spec, seed=1), replace(spec, epsilon=2.0)
    assert not any(np.array_equal(dataset_of(spec).X, dataset_of(other).X) for other in others)
    assert len({resolve(each).fit_key() for each in (spec, *others)}) == 3


def test_a_release_pays_for_its_scaling_with_noise_of_its_own(tmp_path: Path) -> None:
    """The model's file scales new rows in the same way; card and ledger state the cost; another release draws anew."""
    rows = counts(2000)
    ledger = dpviz.Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(3.0, 1e-5))
    made = dpviz.release(dpviz.RunSpec(rows, mechanism="output-gaussian"), ledger=ledger)
    (paid,) = made.dataset.preparations
    assert (made.model.encoder.scaling, made.calibration.proved_budget.epsilon) == ("unit", pytest.approx(1.0))
    assert f"ε = {paid.epsilon:.2g} of the total paid for the scaling of the rows" in made.card
    assert ledger.total().budget.epsilon == pytest.approx(1.0, rel=2e-3)
    assert np.allclose(made.model.encoder.rows(rows.frame), np.sqrt(2) * made.dataset.X[:, :-1])
    searched = dpviz.private_search(dpviz.RunSpec(rows, mechanism="output-gaussian", epsilon=2.0), {"lam": [0.1]}, mean_runs=2)
    assert searched.calibration.proved_budget.epsilon <= 2.0 + 1e-9
    assert "the scaling of the rows found privately" in searched.card
    with fresh_noise():
        once = dataset_of(dpviz.RunSpec(rows))
        assert dataset_of(dpviz.RunSpec(rows)) is once
    with fresh_noise():
        assert dataset_of(dpviz.RunSpec(rows)) is not once
    assert_refused(
        dpviz.release, dpviz.RunSpec(rows, row_scaling="standardised", mechanism="output-gaussian"), match="row_scaling"
    )


def test_rows_that_all_look_alike_are_said() -> None:
    assert "99 %" in counts().rescale("centred").alike[0]
    assert not counts().rescale("unit").alike
    assert not spread().rescale("centred").alike


def test_rows_without_ranges_refuse() -> None:
    assert_refused(dataset_of, dpviz.RunSpec("teaching", row_scaling="standardised", epsilon=100.0), match="row_scaling")


def test_every_preparation_costs_less_than_the_whole() -> None:
    for preparation in PREPARATIONS.values():
        totals = [Budget(e, 1e-6) for e in (0.1, 1.0, 10.0)]
        parts: list[Any] = [preparation.cost(Facts(5000, total)).mu / gaussian_mu(total) for total in totals]
        assert all(0 < part < 0.5 for part in parts)


def test_private_ranges_that_see_nothing_keep_declared_ones() -> None:
    """A range that was read from the rows is no public one: it is not kept, which is the control."""
    spec = dpviz.RunSpec(spread(), ranges="private", epsilon=0.001)
    kept = dataset_of(spec)
    assert [(c.low, c.high) for c in kept.encoder.columns] == [(0.0, 1.0)] * 4
    assert "keep declared ranges" in kept.remarks[-1]
    frame = spread().frame.rename(columns={"y": "label"})
    read = dataset_of(replace(spec, dataset=dpviz.dataset(frame, target=frame.columns[-1]).name))
    assert read.encoder.columns[0].high > 1e6
    assert "tell the model nothing" in read.remarks[-1]
