"""Preparations: sensitivities against adversarial neighbours, noise against its declaration, public gates, and runs with them."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import dataset_of, preparations_of, resolve
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.mechanisms import protection
from dpviz.preparing import PREPARATIONS, get_preparation
from dpviz.preparing.scaling import DEVIATIONS, MARGIN, ScalingChosen, sameness
from dpviz.preparing.standardisation import MOST_NOISE, Standardised, moments
from dpviz.privacy.accounting.events import only_step
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

TOTAL = Budget(1.0, 1e-5)
SCALINGS = {"chosen": "scaling", "standardised": "standardisation"}


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
    """Noise whose standard deviations are noted and which is 0."""

    def __init__(self) -> None:
        super().__init__(0)
        self.scales: list[float] = []

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        self.scales.append(sigma)
        return mu


def neighbours(rows: np.ndarray, replaced: np.ndarray) -> np.ndarray:
    other = rows.copy()
    other[: len(replaced)] = replaced
    return other


@pytest.mark.parametrize("k", [1, 3])
def test_the_difference_of_both_m_moves_by_eight_over_n_at_most_and_nearly_does(k: int) -> None:
    """Rows that point one way in one scaling; the control is the ratio of rows that are not at length 1, as it was proposed."""
    n, rng, worst = 40, np.random.default_rng(0), 0.0
    corners = np.eye(4)
    for first in (np.tile(corners[0], (n, 1)), rng.uniform(size=(n, 4)), np.full((n, 4), 0.5) + 0.01 * rng.normal(size=(n, 4))):
        for replaced in (np.tile(corners[1], (k, 1)), np.ones((k, 4)), np.zeros((k, 4)), rng.uniform(size=(k, 4))):
            both = first, neighbours(first, replaced)
            gains = [sameness(2 * x - 1) - sameness(x) for x in both]
            alone = [sameness(x) for x in both]
            assert abs(gains[0] - gains[1]) <= 8 * k / n
            assert abs(alone[0] - alone[1]) <= 4 * k / n
            worst = max(worst, abs(alone[0] - alone[1]))
    aligned = np.tile(corners[0], (n, 1))
    assert sameness(aligned) - sameness(neighbours(aligned, -np.tile(corners[0], (k, 1)))) > 0.9 * 4 * k / n
    assert worst > 1.5 * k / n

    def ratio(x: np.ndarray) -> float:
        return float(x.mean(axis=0) @ x.mean(axis=0) / np.square(x).sum(axis=1).mean())

    short = np.tile(1e-3 * corners[0], (n, 1))
    assert abs(ratio(short) - ratio(neighbours(short, corners[1:2]))) > 8 / n


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


@pytest.mark.parametrize(("name", "sensitivity"), [("scaling", 8 / 4800), ("standardisation", np.sqrt(24) / 4800)])
@pytest.mark.parametrize("persons", [0, 3])
def test_noise_is_that_of_the_declared_mu_and_for_all_rows_of_a_person(name: str, sensitivity: float, persons: int) -> None:
    preparation, source = get_preparation(name), Silent()
    rows = replace(dataset_of(dpviz.RunSpec(counts(), row_scaling="unit")), person_rows=persons)
    train = np.arange(4800)
    made = preparation.prepare(rows, train, TOTAL, source)
    assert made.preparations == (name,)
    expected = max(1, persons) * sensitivity / preparation.mu(TOTAL)
    assert source.scales == pytest.approx([expected] * len(source.scales))
    assert len(source.scales) == (1 if name == "scaling" else 24)
    # rows that are not trained on change nothing
    other = replace(rows, frame=rows.frame.assign(w0=np.where(np.arange(rows.n) < 4800, rows.frame["w0"], 99.0)))
    assert np.array_equal(preparation.prepare(other, train, TOTAL, Silent()).X[:4800], made.X[:4800])
    assert np.linalg.norm(made.X, axis=1).max() <= 1 + 1e-12


def test_shares_leave_the_method_the_rest_exactly() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised", mechanism="output-gaussian", ranges="private")
    cal, whole = calibration_of(spec), gaussian_mu(resolve(spec).budget)
    squares = [get_preparation(name).mu(resolve(spec).budget) ** 2 for name in ("ranges", "standardisation")]
    assert setting_of(spec).preparations == ("ranges", "standardisation")
    assert gaussian_mu(cal.method_budget) ** 2 == pytest.approx(whole**2 - sum(squares), rel=1e-6)
    assert cal.preparation_mu**2 == pytest.approx(sum(squares))
    event = protection.released_event(spec.build(), setting_of(spec), cal)  # type: ignore[arg-type]
    assert only_step(event).mu == pytest.approx(whole, rel=1e-6)
    free = calibration_of(replace(spec, row_scaling="centred", ranges="declared"))
    assert cal.noise_scale > free.noise_scale


@pytest.mark.parametrize("value", SCALINGS)
def test_gates_read_public_facts_only(value: str) -> None:
    """Equal facts give equal gates whatever the rows are; below them nothing is paid and the noise is that of a run without."""
    preparation, spec = get_preparation(SCALINGS[value]), dpviz.RunSpec(spread(), row_scaling=value)
    for n, k, epsilon, persons in ((100, 4, 1.0, 0), (10**6, 4, 1.0, 0), (10**6, 4, 0.01, 50), (3000, 400, 10.0, 0)):
        total = Budget(epsilon, 1e-7)
        noise = (
            DEVIATIONS * ScalingChosen().noise(n, total, persons) / MARGIN
            if value == "chosen"
            else Standardised().noise(n, k, total, persons) / MOST_NOISE
        )
        assert (preparation.refusal(n, k, total, persons) == "") == (noise <= 1)
    few = replace(spec, epsilon=0.01)
    assert preparations_of(few, 4800, 4)[0] == ()
    assert dataset_of(few).preparations == ()
    assert dataset_of(few).scaling == "centred"
    assert "nothing is paid" in dataset_of(few).remarks[-1]
    plain = calibration_of(replace(few, row_scaling="centred"))
    assert (calibration_of(few).noise_scale, calibration_of(few).preparation_mu) == (plain.noise_scale, 0)


def test_the_scaling_is_that_of_the_smaller_m() -> None:
    chosen = {name: dataset_of(dpviz.RunSpec(rows, row_scaling="chosen")) for name, rows in (("a", counts()), ("b", spread()))}
    assert (chosen["a"].scaling, chosen["b"].scaling) == ("unit", "centred")


def test_standardised_rows_have_means_near_0_and_equal_spreads() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised", epsilon=5.0)
    x = setup_for(spec).problem.rows.X[:, :-1]
    assert np.abs(x.mean(axis=0)).max() < 0.05
    assert x.std(axis=0).max() < 1.2 * x.std(axis=0).min()


@pytest.mark.long
def test_counts_in_wide_ranges_gain_from_both() -> None:
    """Centred rows are all alike there; the gain is far beyond the error."""
    base = dpviz.RunSpec(counts(), seeds=10)
    plain, *found = (dpviz.run(replace(base, row_scaling=s)).accuracy.mean() for s in ("centred", *SCALINGS))
    assert min(found) > plain + 0.03


def test_runs_repeat_and_other_seeds_and_budgets_have_their_own_noise() -> None:
    spec = dpviz.RunSpec(spread(), row_scaling="standardised")
    others = replace(spec, seed=1), replace(spec, epsilon=2.0)
    assert not any(np.array_equal(dataset_of(spec).X, dataset_of(other).X) for other in others)
    assert len({resolve(each).fit_key() for each in (spec, *others)}) == 3


@pytest.mark.parametrize("value", SCALINGS)
def test_releases_refuse_noise_of_a_known_seed(value: str) -> None:
    with pytest.raises(InvalidInput, match="row_scaling"):
        dpviz.release(dpviz.RunSpec(spread(), row_scaling=value, mechanism="output-gaussian"))


def test_rows_without_ranges_refuse() -> None:
    with pytest.raises(InvalidInput, match="row_scaling"):
        dataset_of(dpviz.RunSpec("teaching", row_scaling="standardised", epsilon=100.0))


def test_every_preparation_costs_less_than_the_whole() -> None:
    for preparation in PREPARATIONS.values():
        parts: list[Any] = [preparation.mu(Budget(e, 1e-6)) / gaussian_mu(Budget(e, 1e-6)) for e in (0.1, 1.0, 10.0)]
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
