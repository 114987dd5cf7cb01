"""Private ranges: the sensitivity of their counts, what they cover, what they cost, and a person at the end of a range."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import dpviz
from dpviz.privacy import private_ranges as module
from dpviz.privacy.accounting.events import Gaussian
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import EDGES, _listed, plan_noise, private_ranges
from dpviz.spending import Ledger

BUDGET = Budget(0.5, 1e-6)


@pytest.mark.parametrize(("numbers", "categories"), [(1, 0), (4, 0), (100, 0), (0, 1), (3, 2), (0, 50)])
@pytest.mark.parametrize("budget", [BUDGET, Budget(3.0, 1e-3)])
def test_all_queries_cost_the_budget(numbers: int, categories: int, budget: Budget) -> None:
    """The Gaussian part by the accountant, at the distance that one replaced row can make; the threshold by its definition."""
    noise = plan_noise(numbers, categories, budget)
    distance = math.sqrt(2 * 2 * numbers + 2 * categories)
    lifted = categories * float(norm.sf((noise.threshold - 1) / noise.sigma))
    delta = budget.delta - (1 + math.exp(budget.epsilon)) * lifted
    assert delta == pytest.approx(budget.delta / (2 if categories else 1), rel=1e-9)
    assert total_epsilon([Gaussian(distance, noise.sigma)], delta) == pytest.approx(budget.epsilon, rel=1e-6)
    assert total_epsilon([noise.release], budget.delta) == pytest.approx(budget.epsilon, rel=1e-6)


class Recorded(random.Random):
    """A source whose draws are known and that keeps the standard deviations it was asked for."""

    drawn = 0.0

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        self.asked = [*getattr(self, "asked", []), sigma]
        return mu + self.drawn


def test_every_bin_of_both_queries_receives_noise() -> None:
    source, noise = Recorded(), plan_noise(1, 0, BUDGET)
    private_ranges({"x": np.full(5000, 3.0)}, BUDGET, source)
    assert source.asked == [noise.sigma] * (len(EDGES) - 1 + module._PARTS)
    source.drawn = 1e9
    assert private_ranges({"x": np.full(5000, 3.0)}, BUDGET, source).ranges["x"] == (EDGES[0], EDGES[-1])


def test_categories_are_those_whose_noisy_number_passes() -> None:
    budget = Budget(1.0, 1e-3)
    noise = plan_noise(0, 1, budget)
    enough = math.ceil(noise.threshold) + 1
    values = ["many"] * 900 + ["b"] * enough + ["a"] * (enough + 5) + ["c"] * (enough - 3) + ["queen", None, float("nan")]
    source = Recorded()
    found = private_ranges({}, budget, source, categories={"x": values})
    assert found.categories == {"x": ("a", "b", "many")}
    assert source.asked == [noise.sigma] * 5, "every value that occurs, and gaps are none"
    listed = Counter(
        value
        for k in range(600)
        for value in private_ranges({}, budget, random.Random(k), categories={"x": values}).categories["x"]
    )
    for value, count in Counter(v for v in values if isinstance(v, str)).items():
        share = float(norm.sf((noise.threshold - count) / noise.sigma))
        assert listed[value] / 600 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 600) + 1e-3)


def test_a_value_of_one_row_stays_hidden_as_often_as_the_proof_says() -> None:
    """Replacing the only row of a value, with a delta that can be counted; at 0 as the threshold it is seen."""
    budget, runs = Budget(1.0, 0.2), 3000
    noise = plan_noise(0, 1, budget)
    source = random.Random(3)

    def shown(threshold: float) -> float:
        weak = replace(noise, threshold=threshold)
        return sum("queen" in _listed("x", Counter({"many": 10_000, "queen": 1}), weak, source) for _ in range(runs)) / runs

    most = budget.delta / 2 / (1 + math.e)
    assert shown(noise.threshold) <= most + 4 * math.sqrt(most / runs)
    assert shown(noise.threshold - 1.5 * noise.sigma) > most + 4 * math.sqrt(most / runs)


def test_replacing_a_row_moves_the_counts_by_no_more_than_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """All counts of both queries are recorded without noise; values at the ends of doubles and gaps are among the rows."""
    counted: list[np.ndarray] = []
    original = np.histogram
    monkeypatch.setattr(module.np, "histogram", lambda v, e: (counted.append(original(v, e)[0]), original(v, e))[1])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3)) * np.array([1, 1e3, 1e-3])
    extremes = np.array([0.0, -0.0, 1.7e308, -1.7e308, 5e-324, np.inf, -np.inf, np.nan, 1.0, 2.0**40, -(2.0**40)])
    for trial in range(60):
        neighbour = rows.copy()
        neighbour[trial] = rng.choice(extremes, 3)
        for queried in (rows, neighbour):
            private_ranges({f"c{j}": queried[:, j] for j in range(3)}, Budget(50.0, 1e-6), random.Random(7))
        first, second = counted[:3], counted[6:9]  # the coarse counts; fine ones follow from what was released of them
        moved = math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(first, second, strict=True)))
        assert moved <= math.sqrt(2 * 3) + 1e-12
        assert sum(int(c.sum()) for c in second) >= 3 * 1999 - 3
        counted.clear()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (np.random.default_rng(1).integers(17, 91, 20_000), 17, 90),
        (np.random.default_rng(1).integers(1985, 2021, 20_000), 1985, 2020),
        (-np.random.default_rng(1).exponential(1e5, 20_000), -3e5, -1e3),
        (np.random.default_rng(1).normal(0, 1e-3, 20_000), -2e-3, 2e-3),
        (np.zeros(20_000), 0, 0),
        (np.random.default_rng(1).normal(0, 1, 20_000) * 1e30, 2.0**40, 2.0**40),
    ],
)
def test_nearly_all_values_lie_inside(values: np.ndarray, low: float, high: float) -> None:
    for seed in range(5):
        a, b = private_ranges({"x": values}, BUDGET, random.Random(seed)).ranges["x"]
        assert a <= low <= high <= b
        inside = np.clip(values, EDGES[0], EDGES[-1])
        assert ((inside >= a) & (inside <= b)).mean() > 0.95


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_the_classifier_pays_for_its_ranges(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(17, 91, 5000), rng.exponential(1e4, 5000)])
    y = X[:, 0] > 50
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(2.0, 1e-4))
    model = dpviz.PrivateClassifier(epsilon=2.0, delta=1e-6, ranges="private", ledger=ledger, random_state=3).fit(X, y)
    again = dpviz.PrivateClassifier(epsilon=2.0, delta=1e-6, ranges="private", random_state=3).fit(X, y)
    assert model.guarantee_.proved == Budget(2.0, 1e-6)
    assert any("ranges were found privately" in note for note in model.guarantee_.notes)
    assert not any("range" in what for what in model.guarantee_.looked_at)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.score(X, y) > 0.9
    (entry,) = ledger.entries()
    assert entry.release == Budget(2.0, 1e-6)


def test_noise_of_ranges_and_of_training_come_from_different_streams() -> None:
    """With one seed the two must not share a draw, or the ranges would tell the noise of the model."""
    model = dpviz.PrivateClassifier(random_state=5)
    _, training, ranges = model._randomness(1)
    assert [training.random() for _ in range(5)] != [ranges.random() for _ in range(5)]
