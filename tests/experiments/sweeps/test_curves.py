"""Means, bands, inverse curves, and grids over two settings."""

import math

import numpy as np
import pandas as pd
import pytest
from support import assert_refused

import dpviz
from dpviz.experiments.sweeps import curves, grid
from dpviz.privacy.accounting.division import random_search


def made(means: list[float], epsilons: list[float], status: str = "proved") -> pd.DataFrame:
    return pd.DataFrame({"mechanism": "m", "epsilon": epsilons, "mean": means, "status": status})


@pytest.mark.parametrize(
    ("means", "target", "epsilon"),
    [
        ([0.5, 0.7, 0.9], 0.8, 10**0.5),
        ([0.5, 0.7, 0.9], 0.7, 1.0),
        ([0.5, 0.7], 0.4, 0.1),  # below all
        ([0.5, 0.7], 0.71, None),
        ([0.3], 0.2, 0.1),
        ([1.0, 0.1], 0.55, 0.1 * 10**0.5),  # a quantity that falls is read the other way
    ],
)
def test_needed_budget_on_a_straight_line_and_at_its_ends(means: list[float], target: float, epsilon: float | None) -> None:
    epsilons = [0.1, 1.0, 10.0][: len(means)]
    (one,) = curves.needed_budgets(made(means, epsilons), target, rising=means[-1] >= means[0])
    assert one.epsilon == (None if epsilon is None else pytest.approx(epsilon))
    assert one.below or target != 0.4
    assert epsilon is not None or (one.best, one.largest) == (means[-1], epsilons[-1])


def test_needed_budget_ignores_a_lucky_bump() -> None:
    """A mean that falls again is no proof that less budget does: the monotone curve levels it."""
    (one,) = curves.needed_budgets(made([0.5, 0.8, 0.6, 0.9], [0.1, 1.0, 10.0, 100.0]), 0.75)
    assert 10 < one.epsilon < 100
    (naive,) = curves.needed_budgets(made([0.5, 0.8, 0.8, 0.9], [0.1, 1.0, 10.0, 100.0]), 0.75)
    assert naive.epsilon < 1


def test_the_interval_of_a_needed_budget_holds_it_and_shrinks_with_more_draws() -> None:
    def table(draws: int) -> pd.DataFrame:
        noise = np.random.default_rng(1).normal(0, 0.05, draws)
        rows = [("a", e, s, 0.5 + 0.1 * np.log(e) + noise[s]) for e in (0.1, 0.3, 1.0, 3.0, 10.0) for s in range(draws)]
        return pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "accuracy"])

    def width(draws: int) -> float:
        found = curves.needed_interval(table(draws), "a", 0.5)
        low, high = found
        means = table(draws).groupby("epsilon")["accuracy"].mean()
        value = np.exp(np.interp(0.5, means.to_numpy(), np.log(means.index.to_numpy(float))))
        assert low < value < high
        return float(np.log(high / low))

    assert width(160) < 0.5 * width(10)
    assert curves.needed_interval(table(10), "a", 0.99) == (None, None), "not reached by any resample"
    assert curves.needed_interval(table(1), "a", 0.5) is None
    exact = table(10).assign(expected_accuracy=0.5)
    assert curves.needed_interval(exact, "a", 0.5) is None, "exact means have no such interval"


TUNED = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, lam=0.01)


def test_what_is_guaranteed_is_never_tuned() -> None:
    """The best of relation, accountant and form of noise would be the weakest guarantee."""
    for name, cls in dpviz.list_mechanisms().items():
        tuned = set(grid.declared_knobs(dpviz.RunSpec("teaching", mechanism=name)))
        assert not tuned & set("relation accountant accounting noise calibration bound slack theorem sharing".split())
        assert not tuned & {"mode", "refined", "private", "epsilon_is", "c", "lipschitz"}
        assert tuned >= {"lam", *(knob for knob, declared in cls.knobs().items() if declared.automatic)}


def test_a_grid_is_what_single_runs_give() -> None:
    made = grid.grid(TUNED, "steps", "lam", steps=3)
    assert len(made.cells) == 9
    assert len({cell.key() for _, _, cell in made.cells}) == 9
    first = [(i % 2) + (j % 2) for i, j, _ in made.cells]
    assert first == sorted(first), "a coarse picture comes first"
    tables = {k: cell.attempt() for k, (_, _, cell) in enumerate(made.cells)}
    means = made.means(tables, "accuracy")
    i, j, cell = made.cells[4]
    assert means[j, i] == pytest.approx(dpviz.run(cell.spec).accuracy.mean())
    np.testing.assert_allclose(made.draws(tables, "accuracy", i, j), dpviz.run(cell.spec).accuracy)
    assert not len(made.draws({}, "accuracy", i, j))
    assert made.settings_at(i, j) == {"steps": cell.spec.params["steps"], "lam": cell.spec.lam}
    assert np.isnan(made.means({0: tables[0]}, "optimality_gap")).sum() == 8
    assert_refused(grid.grid, TUNED, "steps", "steps")
    assert_refused(grid.grid, TUNED, "steps", "magic")


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_random_search_bound_holds_and_is_reached(eta: float) -> None:
    """A run scores 2, 1 or 0 with probabilities a, b, 1-a-b, b << a << 1; its neighbour with a/e^eps and b e^eps.

    With f the generating function of the number of runs, P[best = 1] = f(1-a) - f(1-a-b), which moves by nearly
    e^{(2+eta) eps}: the bound holds, and nothing smaller would.
    """
    epsilon, gamma = 0.5, 1e-9

    def f(x: float) -> float:
        return gamma * x / (1 - (1 - gamma) * x) if eta else math.log(1 - (1 - gamma) * x) / math.log(gamma)

    def middle(a: float, b: float) -> float:
        return f(1 - a) - f(1 - a - b)

    worst = max(
        math.log(middle(a * math.exp(-epsilon), b * math.exp(epsilon)) / middle(a, b))
        for a in (1e-1, 1e-2, 1e-3)
        for b in (a / 10, a / 100, a / 1000)
    )
    assert worst <= random_search(epsilon, eta)
    assert worst > 0.99 * random_search(epsilon, eta)
