"""Theorems on population and empirical risk: closed forms against the printed formulas, and claims that can fail."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support_stand_in import StandIn

from dpviz.mechanisms import Training
from dpviz.mechanisms.base import Fit, NoiseRecord
from dpviz.models import get_model
from dpviz.papers.claims import Outcome, list_claims, population
from dpviz.papers.claims.context import Context


def test_bounds_are_those_of_the_paper_at_the_best_tau() -> None:
    setting = get_model("logistic").setting(3000, 23, 0.02)
    smooth, mu, n, gap, risk, least = 0.27, 0.02, 3000, 0.013, 0.61, 0.58

    def printed2(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return 8 * (tau + smooth) / mu * gap + 16 * (tau + smooth) / (n * mu) ** 2 + smooth * risk / tau

    def printed3(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return (tau + smooth) * ((8 * tau + mu) / (mu * tau) * gap + 16 / (n * mu) ** 2) + smooth / tau * least

    for ours, printed in ((population.theorem2, printed2), (population.theorem3, printed3)):
        best = minimize_scalar(printed, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9}).fun
        assert ours(setting, gap, risk, least) == pytest.approx(best, rel=1e-9)


def test_the_rate_of_theorem_4_is_that_of_the_paper() -> None:
    setting = get_model("logistic").setting(1000, 23, 0.1)
    smooth, radius, alpha, n = 0.35, math.sqrt(2 * math.log(2) / 0.1), 1 / 0.35, 1000
    common = alpha * (2 * smooth * radius + 1) * 22 * math.log(1e5)
    bound, steps = population.theorem4(setting)
    assert bound == pytest.approx(common * math.log(n) ** 2 / (n * (n - 1)), rel=1e-12)
    assert (1 - 0.1 / smooth) ** steps <= common / (n * (n - 1)) < (1 - 0.1 / smooth) ** (steps - 1)
    assert population.theorem4(get_model("logistic").setting(3, 23, 0.1))[1] >= 1, "few rows"


@dataclass(frozen=True)
class Still(StandIn):
    """A model of zeros, however many rows there are."""

    def fit(self, training: Training) -> Fit:
        return Fit(np.zeros((len(training.calibrations), len(training.streams), training.problem.m)), NoiseRecord("x"))


def test_a_gap_that_does_not_fall_fails() -> None:
    claim = list_claims()["ip-excess-rate"]
    assert claim.test(Context(swaps={"input-perturbation": lambda knobs: Still()})).outcome is Outcome.FAILS
