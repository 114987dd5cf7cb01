"""Refutations for every value of an open constant: the derived distributions are those of the engine's own runs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm
from support import mostly_long

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Training
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.papers.claims import check, constants, list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.papers.claims.context import Context
from dpviz.papers.verdict import Outcome
from dpviz.privacy.budget import Budget

N, RUNS = 100, 4000
CONTEXT = Context(full=False, seed=0, monitor=lambda done: None)


def released(mechanism: str, row: tuple[float, float], c: float) -> tuple[np.ndarray, float]:
    """(RUNS,) coordinates along the row's own axis, and their standard deviation by the calibration."""
    X, y = np.zeros((N, 2)), np.ones(N)
    X[:, 0] = 1.0
    X[7] = (0.0, row[0])
    y[7] = row[1]
    problem = Problem(Rows(X, y), get_model("logistic"), 0.01)
    built = dpviz.list_mechanisms()[mechanism].from_params({"steps": 1, "c": c, "step_size": 1.0})
    cal = built.calibrate(problem.setting, Budget(CLAIMED, DELTA))
    fit = built.fit(Training(problem, [cal], spawn(0, RUNS), record=False))
    size = cal.details.get("batch_size", N)
    # theta_2 = step/(2 B) Z
    return fit.theta[0, :, 1] * 2 * size / problem.setting.unit_step, cal.noise_scale * math.sqrt(size)


def mixture(q: float, shift: float, deviation: float) -> Callable[[Any], Any]:
    return lambda z: (1 - q) * norm.cdf(z, 0, deviation) + q * norm.cdf(z, shift, deviation)


@pytest.mark.parametrize(("row", "shift"), [((1.0, 1.0), 1.0), ((1.0, -1.0), -1.0), ((0.0, 1.0), 0.0)])
@pytest.mark.parametrize("mechanism", mostly_long(["dbdp", "input-perturbation"], "dbdp"))
def test_one_step_releases_the_derived_distribution(mechanism: str, row: tuple[float, float], shift: float) -> None:
    z, deviation = released(mechanism, row, 0.02)
    q = 0.1 if mechanism == "dbdp" else 1.0
    assert kstest(z, mixture(q, shift, deviation)).pvalue > 1e-3
    assert kstest(z, mixture(q, shift, 1.3 * deviation)).pvalue < 1e-6, "30 % more noise is detected"
    if shift:
        assert kstest(z, mixture(q, 0.0, deviation)).pvalue < 1e-3


def test_epsilon_of_the_mixture_is_that_of_its_densities() -> None:
    """delta of the pair at that epsilon, by quadrature, is the one asked for."""
    for q, distance in ((0.03, 1.7), (0.5, 3.0), (0.01, 6.0)):
        epsilon = constants.mixture_epsilon(q, distance, DELTA)
        z = np.linspace(-40, 60, 2_000_001)
        p = (1 - q) * norm.pdf(z) + q * norm.pdf(z, distance)
        delta = float(np.trapezoid(np.maximum(p - math.exp(epsilon) * norm.pdf(z), 0.0), z))
        assert delta == pytest.approx(DELTA, rel=1e-4)
    assert constants.mixture_epsilon(1e-6, 0.1, DELTA) == 0.0


@pytest.mark.parametrize("claim", ["dbdp-any-constant", "ip-any-constant"])
def test_both_theorems_fail_for_every_constant(claim: str) -> None:
    found = check(claim)
    assert found.verdict.outcome is Outcome.FAILS
    assert found.verdict.picture.limit == CLAIMED
    assert found.verdict.picture.limit_label == "claimed"
    table = found.verdict.table
    assert set(table["series"]) == {f"c = {c:g}" for c in constants.CONSTANTS}
    for _, part in table.dropna().groupby("series"):
        above = part["y"].to_numpy() > CLAIMED
        assert above[-1], "with enough rows"
        assert (np.diff(part["y"].to_numpy()[above]) > 0).all(), "and more so with more of them"
    assert not list_claims()[claim].privacy, "one step is not the form that a badge is about"


def test_enough_noise_is_not_refuted() -> None:
    """The control: noise that falls as slowly as one row's share of the sum would meet the claim at every n."""

    def enough(context: Context, n: int, c: float) -> tuple[float, float]:
        return 0.2, float(constants.gaussian_epsilon(DELTA, 0.2))

    verdict = constants.constant_test("dbdp", enough, 0.25)(CONTEXT)
    assert verdict.outcome is Outcome.CANNOT_TELL
