"""Tables of privacy curves: identities that tie them to each other and to the exact Gaussian."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpviz.privacy.accounting import curves, tables
from dpviz.privacy.accounting.events import Event, Gaussian, Mixture, Repeated, Sampled, scaled
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring, attack_accuracy

BUDGET = Budget(1.0, 1e-5)
SIGMA = 0.02 / gaussian_mu(BUDGET)
ONE = Gaussian(0.02, SIGMA)
WITH_NOISE = Gaussian(0.02, 0.03)
SAMPLED = Repeated(Sampled(Gaussian.of_rows(0.01, 0.03), 0.1), 20)


def test_one_gaussian_is_exact_everywhere() -> None:
    curve = tables.renyi_curve(ONE, BUDGET.delta)
    assert curve.epsilon == pytest.approx(1.0, rel=1e-9)
    assert curve.table["divergence"].to_numpy() == pytest.approx(curve.table["alpha"].to_numpy() * gaussian_mu(BUDGET) ** 2 / 2)
    order, best = curve.best["improved"]
    assert best > curve.epsilon, "no Rényi conversion is exact"
    assert best < curve.best["mironov"][1]
    assert order > 1
    alarms = np.linspace(0, 1, 1001)
    detections = curves.detections(ONE, alarms)
    accuracy = 0.5 + (detections - alarms).max() / 2
    assert accuracy == pytest.approx(ndtr(gaussian_mu(BUDGET) / 2), abs=1e-3)
    assert accuracy < attack_accuracy(BUDGET)
    assert (alarms[0], detections[0]) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert tables.delta_at(ONE, 1.0) == pytest.approx(1e-5, rel=1e-6)
    assert tables.delta_at(scaled(ONE, 0.95), 1.0) > 1.2e-5, "5 % less noise is seen"


@pytest.mark.parametrize("released", [WITH_NOISE, SAMPLED, Mixture((0.01, 0.02), (0.7, 0.3), 0.03)])
def test_the_best_order_is_the_lowest_point_of_each_curve(released: Event) -> None:
    curve = tables.renyi_curve(released, 1e-5)
    for name, (order, epsilon) in curve.best.items():
        lowest = int(curve.table[name].argmin())
        assert epsilon == pytest.approx(curve.table[name][lowest], rel=2e-3)
        assert epsilon <= curve.table[name][lowest] * (1 + 1e-9)
        assert order == pytest.approx(curve.table["alpha"][lowest], rel=0.3)
    assert curve.epsilon <= curve.best["improved"][1] * (2 if released is SAMPLED else 1 + 1e-9)
    assert curve.best["improved"][1] < curve.best["mironov"][1]


@pytest.mark.parametrize("released", [WITH_NOISE, SAMPLED])
def test_delta_falls_with_epsilon_and_the_tightest_proof_is_below_the_others(released: Event) -> None:
    table = tables.delta_curve(released, 1e-5)
    assert (np.diff(table["delta"]) < 0).all()
    for name in tables.CONVERSIONS:
        known = table[name].notna()
        assert known.all() == (released is WITH_NOISE)
        assert (table["delta"][known] <= table[name][known] * (1 + 1e-9)).all()


def test_composition_orders_the_accountants_and_says_who_refuses() -> None:
    found = tables.composition(1.0, 0.1, 1e-5, Neighbouring.ADD_REMOVE, (1, 10, 100))
    table = found.table.set_index("steps")
    assert (table["PLD"] <= table["RDP, improved conversion"]).all()
    assert (table["RDP, improved conversion"] <= table["RDP, Mironov's conversion"]).all()
    assert table[found.single].loc[100] > table["PLD"].loc[100]
    assert table[found.single].loc[1] == pytest.approx(table["PLD"].loc[1])
    assert "zCDP" in found.refused
    assert not tables.composition(1.0, 1.0, 1e-5, Neighbouring.ADD_REMOVE, (1,)).refused


def test_relations_mark_what_is_proved_and_what_is_in_use() -> None:
    for released in (WITH_NOISE, SAMPLED):
        table = tables.relations(released, 1e-5)
        assert table["in_use"].sum() == 1
        assert table[table["in_use"]]["proved"].all()
        there, other = table["epsilon"].iloc[0], table[table["in_use"]]["epsilon"].iloc[0]
        assert there < other, "a replacement is a removal and an addition"
    assert math.isfinite(tables.relations(SAMPLED, 1e-5)["epsilon"].sum())
