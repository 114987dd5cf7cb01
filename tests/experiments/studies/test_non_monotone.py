"""Curves that fall as epsilon grows, told apart from luck."""

import numpy as np
import pandas as pd
import pytest

from dpviz.experiments.studies.non_monotone import non_monotone

EPSILONS = (0.1, 1.0, 10.0)


def swept(means: tuple[float, ...], spread: float, seeds: int, shared: bool = False) -> pd.DataFrame:
    """A table of one method with normal draws around means, the same at all budgets where they are shared."""
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((len(means), seeds))
    if shared:
        noise[:] = noise[0]
    rows = [
        ("m", e, s, mean + spread * noise[k, s])
        for k, (e, mean) in enumerate(zip(EPSILONS, means, strict=True))
        for s in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "roc_auc"])


def test_a_fall_is_certain_only_where_the_paired_draws_show_it() -> None:
    (one,) = non_monotone(swept((0.6, 0.8, 0.7), 0.01, 10), "roc_auc")
    assert (one.mechanism, one.epsilon, one.largest, one.certain) == ("m", 1.0, 10.0, True)
    assert not non_monotone(swept((0.6, 0.7, 0.8), 0.01, 10), "roc_auc")
    assert not non_monotone(swept((0.6, 0.705, 0.7), 0.0, 10), "roc_auc"), "too small to be spoken of"
    loose = non_monotone(swept((0.5, 0.55, 0.5), 0.2, 4), "roc_auc")
    assert all(not one.certain for one in loose)
    (one,) = non_monotone(swept((0.5, 0.55, 0.5), 0.2, 4, shared=True), "roc_auc")
    assert one.certain, "draws that all budgets share cancel in the difference"
    (one,) = non_monotone(swept((0.6, 0.8, 0.7), 0.0, 1), "roc_auc")
    assert not one.certain, "one draw cannot tell"


def test_luck_is_rarely_called_a_fall() -> None:
    rng = np.random.default_rng(5)
    called, trials = 0, 200
    for _ in range(trials):
        values = 0.5 + 0.1 * rng.standard_normal((3, 6))
        rows = [("m", e, s, values[k, s]) for k, e in enumerate(EPSILONS) for s in range(6)]
        table = pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "roc_auc"])
        called += any(one.certain for one in non_monotone(table, "roc_auc"))
    assert called <= 0.05 * trials + 3 * (0.05 * 0.95 * trials) ** 0.5


def test_closed_forms_need_no_draws_and_losses_fall_where_they_rise() -> None:
    table = swept((0.5, 0.55, 0.5), 0.2, 4).rename(columns={"roc_auc": "balanced_accuracy"})
    exact = table["epsilon"].map(dict(zip(EPSILONS, (0.5, 0.55, 0.5), strict=True)))
    (one,) = non_monotone(table.assign(expected_balanced_accuracy=exact), "balanced_accuracy")
    assert one.certain
    assert (one.best, one.last) == (0.55, 0.5)
    assert not non_monotone(table.assign(expected_balanced_accuracy=exact), "balanced_accuracy", ["dp-gd"])
    losses = table.rename(columns={"balanced_accuracy": "log_loss"}).assign(log_loss=1 - exact)
    (one,) = non_monotone(losses, "log_loss")
    assert (one.epsilon, one.best, one.last) == pytest.approx((1.0, 0.45, 0.5))
