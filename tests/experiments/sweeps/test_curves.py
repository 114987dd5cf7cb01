"""Means, bands, and the curve read backwards."""

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.experiments.sweeps import curves
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep

SPEC = SweepSpec(dataset="teaching", mechanisms=["cms-output", "dp-gd"], epsilons=[0.1, 1.0, 10.0], seeds=12)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return run_sweep(SPEC)


def made(means: list[float], epsilons: list[float], status: str = "proved") -> pd.DataFrame:
    return pd.DataFrame({"mechanism": "m", "epsilon": epsilons, "mean": means, "status": status})


def test_summary_has_exact_means_where_there_are_closed_forms(table: pd.DataFrame) -> None:
    summary = curves.summarise(table)
    assert list(summary["mechanism"]) == ["cms-output"] * 3 + ["dp-gd"] * 3
    assert list(summary["epsilon"]) == [0.1, 1.0, 10.0] * 2
    assert list(summary["exact"]) == [True] * 3 + [False] * 3
    part = table[(table.mechanism == "dp-gd") & (table.epsilon == 1.0)]["accuracy"]
    row = summary[(summary.mechanism == "dp-gd") & (summary.epsilon == 1.0)].iloc[0]
    assert row["mean"] == pytest.approx(part.mean())
    assert (row["low"], row["high"]) == pytest.approx((part.quantile(0.1), part.quantile(0.9)))
    output = dpviz.run(dpviz.RunSpec("teaching", mechanism="cms-output", epsilon=1.0, seeds=1))
    assert summary.loc[1, "mean"] == pytest.approx(output.expected_accuracy)


def test_band_of_the_mean(table: pd.DataFrame) -> None:
    summary = curves.summarise(table, band="mean")
    exact, sampled = summary[summary.exact], summary[~summary.exact]
    assert (exact["low"] == exact["high"]).all()
    assert (sampled["low"] <= sampled["mean"]).all()
    assert (sampled["high"] >= sampled["mean"]).all()
    # the percentile interval is near mean +- 1.96 standard errors
    x = np.random.default_rng(1).standard_normal(400)
    low, high = curves.bootstrap(x)
    assert (high - low) / 2 == pytest.approx(1.96 * x.std() / 20, rel=0.1)
    assert curves.bootstrap([0.7]) == (0.7, 0.7)
    assert curves.bootstrap(x) == (low, high)


def test_needed_budget_on_a_straight_line() -> None:
    (one,) = curves.needed_budgets(made([0.5, 0.7, 0.9], [0.1, 1.0, 10.0]), 0.8)
    assert one.epsilon == pytest.approx(10**0.5)
    (one,) = curves.needed_budgets(made([0.5, 0.7, 0.9], [0.1, 1.0, 10.0]), 0.7)
    assert one.epsilon == pytest.approx(1.0)


def test_needed_budget_at_the_ends_is_honest() -> None:
    (below,) = curves.needed_budgets(made([0.5, 0.7], [0.1, 1.0]), 0.4)
    assert (below.epsilon, below.below) == (0.1, True)
    (never,) = curves.needed_budgets(made([0.5, 0.7], [0.1, 1.0]), 0.71)
    assert never.epsilon is None
    assert (never.best, never.largest) == (0.7, 1.0)
    assert [n.epsilon for n in curves.needed_budgets(made([0.3], [1.0]), 0.2)] == [1.0]


def test_needed_budget_ignores_a_lucky_bump() -> None:
    """A mean that falls again is no proof that less budget does: the monotone curve levels it."""
    (one,) = curves.needed_budgets(made([0.5, 0.8, 0.6, 0.9], [0.1, 1.0, 10.0, 100.0]), 0.75)
    assert 10 < one.epsilon < 100
    (naive,) = curves.needed_budgets(made([0.5, 0.8, 0.8, 0.9], [0.1, 1.0, 10.0, 100.0]), 0.75)
    assert naive.epsilon < 1


def test_falling_quantities_are_read_the_other_way() -> None:
    (one,) = curves.needed_budgets(made([1.0, 0.1], [1.0, 100.0]), 0.55, rising=False)
    assert one.epsilon == pytest.approx(10.0)


def test_grid() -> None:
    assert curves.grid(0.01, 10, 4) == (0.01, 0.1, 1.0, 10.0)
    assert curves.grid(0.5, 2, 1) == (0.5,)
    with pytest.raises(dpviz.InvalidInput, match="too close"):
        curves.grid(1.0, 1.01, 30)


def test_the_interval_of_a_needed_budget_holds_it_and_shrinks_with_more_draws() -> None:
    def table(draws: int) -> pd.DataFrame:
        noise = np.random.default_rng(1).normal(0, 0.05, draws)
        rows = [("a", e, s, 0.5 + 0.1 * np.log(e) + noise[s]) for e in (0.1, 0.3, 1.0, 3.0, 10.0) for s in range(draws)]
        return pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "accuracy"])

    def width(draws: int) -> float:
        found = curves.needed_interval(table(draws), "a", 0.5)
        assert found is not None
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
