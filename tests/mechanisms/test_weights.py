"""Weights of rows: the worst pair of every mechanism that takes them, at the largest weight, and with the bound forgotten."""

import math

import numpy as np
import pytest
from support import assert_refused, make_problem

from dpviz.common.random import spawn
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, get_mechanism, list_mechanisms, protection
from dpviz.mechanisms.objective.perturbed_objective import Regularised
from dpviz.models import Rows, get_model
from dpviz.models.losses import Logistic
from dpviz.models.problem import Problem
from dpviz.models.products import uses_kernels
from dpviz.models.solvers import many
from dpviz.privacy.accounting.gaussian import gaussian_delta
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE

BUDGET = Budget(1.0, 1e-5)
LARGEST = 6.0  # declared bound of the weights
OUTPUT = ("output-gaussian", "cms-output")
OBJECTIVE = ("objective-tight", "kst-objective", "cms-objective", "amp")


def pair(lam: float, forgotten: bool, n: int = 60) -> tuple[Problem, Problem]:
    """All rows are 0 but one of the largest weight, whose label is flipped. `forgotten`: not divided by their bound."""
    x, labels = np.zeros((n, 1)), np.where(np.arange(n) % 2, 1.0, -1.0)
    x[0] = 1.0
    weights = np.r_[1.0, np.full(n - 1, 1 / LARGEST)]
    found = []
    for sign in (1.0, -1.0):
        rows = Rows(x, np.r_[sign, labels[1:]], weights=weights)
        if forgotten:
            rows.weights = LARGEST * weights  # past the check of the constructor
        found.append(Problem(rows, get_model("logistic"), lam))
    return found[0], found[1]


def test_every_mechanism_that_takes_weights_is_tested_here() -> None:
    taking = {name for name, cls in list_mechanisms().items() if cls.weighted}
    assert taking == {*OUTPUT, *OBJECTIVE, "dp-gd", "dp-sgd", "non-private"}
    weighted = pair(0.1, False)[0].setting
    refused = {name for name, cls in list_mechanisms().items() if "weights" in (cls.refusal(weighted) or "")}
    assert refused == set(list_mechanisms()) - taking
    # the shell takes ids, and its refusal names them
    refusal = str(assert_refused(resolve, RunSpec("teaching", mechanism="nsgd", class_weight=2.0)))
    assert all(f"({name})" in refusal for name in taking)


@pytest.mark.parametrize("name", OUTPUT)
@pytest.mark.parametrize("refined", [False, True])
def test_minimisers_move_within_the_sensitivity(name: str, refined: bool) -> None:
    mechanism = get_mechanism(name)(refined=refined)
    budget = Budget(1.0) if mechanism.pure else BUDGET
    ratio = []
    for forgotten in (False, True):
        first, second = pair(1.0, forgotten)
        cal = protection.calibrate(mechanism, first.setting, budget)
        moved = float(np.linalg.norm(first.optimum - second.optimum))
        ratio.append(moved / cal.sensitivity)
        cost = moved / cal.noise_scale - 1.0 if mechanism.pure else float(gaussian_delta(1.0, moved / cal.noise_scale)) - 1e-5
        assert (cost > 0) == forgotten
    assert ratio[0] <= 1 < ratio[1]


def test_random_rows_and_weights_move_minimisers_within_the_sensitivity() -> None:
    mechanism, rng = get_mechanism("output-gaussian")(refined=True), np.random.default_rng(0)
    for _ in range(60):
        problem = make_problem(n=20, lam=0.2, seed=int(rng.integers(1000)))
        weights = rng.choice([0.0, rng.uniform(), 1.0], size=20)
        first = Rows(problem.rows.X, problem.rows.y, weights=weights)
        second = first.replace_row(0, -first.X[0], float(rng.choice([-1, 1])))
        second.weights = np.r_[rng.choice([0.0, rng.uniform(), 1.0]), weights[1:]]
        ends = [Problem(rows, problem.model, 0.2).optimum for rows in (first, second)]
        moved = np.linalg.norm(ends[0] - ends[1])
        assert moved <= protection.calibrate(mechanism, problem.setting, BUDGET).sensitivity


def cost(name: str, cal: Calibration, forgotten: bool) -> float:
    """delta at epsilon = 1 of the pair, in one dimension exactly: from b to theta and back by the density and its Jacobian.

    For a pure method, by how far the largest log-ratio passes epsilon.
    """
    w, loss, Lam, scale = LARGEST if forgotten else 1.0, Logistic(), cal.values(Regularised).Lam, cal.noise_scale
    reach = 12 * scale / Lam
    theta = np.linspace(-reach, reach, 400_001)

    def log_density(sign: float) -> np.ndarray:
        b = -(sign * w * loss.slope(sign * theta) + Lam * theta)
        of_b = (
            -np.abs(b) / scale if cal.noise_family == GAMMA_SPHERE else -((b / scale) ** 2) / 2 - math.log(scale * 2.5066282746)
        )
        return of_b + np.log(Lam + w * loss.curvature(sign * theta))

    p, q = log_density(1.0), log_density(-1.0)
    if cal.noise_family == GAMMA_SPHERE:
        return float((p - q).max()) - 1.0
    return float(np.trapezoid(np.maximum(np.exp(p) - math.e * np.exp(q), 0), theta)) - BUDGET.delta


@pytest.mark.parametrize("bound", ["two-sided", "one-sided"])
@pytest.mark.parametrize("name", OBJECTIVE)
def test_objective_noise_covers_a_row_of_the_largest_weight(name: str, bound: str) -> None:
    cls = get_mechanism(name)
    mechanism = cls.from_params({"bound": bound} if "bound" in cls.knobs() else {})
    cal = protection.calibrate(mechanism, pair(0.1, False)[0].setting, Budget(1.0) if mechanism.pure else BUDGET)
    assert cost(name, cal, False) <= 0
    assert cost(name, cal, True) > 0


def weighted(n: int = 300) -> tuple[Problem, np.ndarray]:
    plain = make_problem(n=n, d=4, lam=0.05)
    weights = np.random.default_rng(1).uniform(size=n)
    return Problem(Rows(plain.rows.X, plain.rows.y, weights=weights), plain.model, 0.05), weights


@pytest.mark.parametrize("last_resort", [False, True])
def test_training_minimises_the_weighted_objective(last_resort: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the descent of all together, and by Newton's method for what that leaves over."""
    if last_resort:
        monkeypatch.setattr(many.Batch, "descend", lambda self, *_, **__: range(len(self.theta)))
    problem, w = weighted()
    z, loss = problem.rows.signed_rows, Logistic()

    def gradient(theta: np.ndarray, b: np.ndarray) -> np.ndarray:
        return z.T @ (w * loss.slope(z @ theta)) / len(z) + 0.05 * theta + b

    assert np.linalg.norm(gradient(problem.optimum, np.zeros(4))) < 1e-10
    b = np.random.default_rng(2).normal(size=(3, 4))
    found = many.minimise_many(problem.rows, loss, np.full(3, 0.05), b)
    assert max(np.linalg.norm(gradient(t, shift)) for t, shift in zip(found, b, strict=True)) < 1e-11
    assert float(problem.objective(problem.optimum[None])[0]) == pytest.approx(
        float((w * loss.value(z @ problem.optimum)).mean()) + 0.025 * problem.optimum @ problem.optimum
    )


def test_weights_go_with_their_rows() -> None:
    problem, w = weighted()
    index = np.array([5, 3, 200])
    for part in (problem.rows.take(index), problem.rows.batch(index)):
        assert np.array_equal(part.weights, w[index])
    assert np.concatenate([part.weights for _, part in problem.rows.parts(4)]) == pytest.approx(w)
    assert not uses_kernels(Rows(np.eye(1024), np.ones(1024), weights=np.full(1024, 0.5))), "kernels know no weights"


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize(("name", "knobs"), [("dp-gd", {"steps": 5}), ("dp-sgd", {"sampling_rate": 0.5})])
def test_weights_multiply_clipped_gradients(name: str, knobs: dict[str, float], forgotten: bool) -> None:
    """The sensitivity of a sum, and with it the noise multiplier of random batches, are those without weights."""
    first, second = pair(0.1, forgotten)
    mechanism, theta = get_mechanism(name)(clip_norm=0.25, **knobs), np.zeros((1, 1))
    cal, streams = protection.calibrate(mechanism, first.setting, BUDGET), spawn(0, 20)
    apart = [float(np.linalg.norm(mechanism.query(first, theta, [s]) - mechanism.query(second, theta, [s]))) for s in streams]
    assert max(apart) == pytest.approx((LARGEST if forgotten else 1.0) * cal.sensitivity)
    assert (0 in np.round(apart, 12)) == (name == "dp-sgd"), "the row is not in every random batch"
    reached = float(gaussian_delta(1.0, math.sqrt(5) * max(apart) / cal.noise_scale))
    assert name == "dp-sgd" or (reached > BUDGET.delta * 1.01) == forgotten
