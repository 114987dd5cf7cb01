"""Sensitivity of Algorithm 2, gradient descent, minimisers and published rules against recursions and rows that attain it."""

import itertools
import math

import numpy as np
import pytest

from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.models.solvers.minibatch import minibatch_descent
from dpviz.privacy.sensitivity import bounds as sb
from dpviz.privacy.sensitivity.algorithm2 import Algorithm2, contraction, epoch_steps, geometric


def update_by_update(T, m, eta0, nu, mu, L, G, tau, average, restart) -> np.ndarray:
    """Algorithms 2 and 3 on plain numbers, one position at a time: shares no code with the package."""
    out = []
    for j in range(1, m + 1):
        d, history, h = 0.0, [], 0
        for s in range(1, T + 1):
            h += 1
            eta = eta0 / h
            for k in range(1, m + 1):
                d = max(abs(1 - eta * mu), abs(1 - eta * L)) * d + (2 * eta * G / nu if k == j else 0.0)
                history.append(d)
            if tau and s % tau == 0:
                if average:
                    d = math.fsum(history[-m * tau :]) / (m * tau)
                if restart:
                    h = 0
        out.append(d)
    return np.array(out)


def random_setting(rng: np.random.Generator) -> tuple:
    L = 10 ** rng.uniform(-2, 1)
    mu = L * rng.choice([0.0, 1.0, 10 ** rng.uniform(-5, 0)])
    # rho < 1, the edges rho = 0 (eta = 1/L, mu = L) and rho = 1 (eta = 2/L, or mu = 0), and rho > 1
    eta0 = rng.choice([1.0, 2.0, 10 ** rng.uniform(-3, 0.3), rng.uniform(2, 5)]) / L
    return (
        int(rng.integers(1, 25)),
        int(rng.integers(1, 16)),
        eta0,
        float(rng.integers(1, 100)),
        mu,
        L,
        rng.uniform(0.1, 3),
        int(rng.integers(0, 9)),
        bool(rng.random() < 0.7),
        bool(rng.random() < 0.7),
    )


def test_recursion_closed_form_and_trace_are_the_same_numbers() -> None:
    rng = np.random.default_rng(1)
    kinds = {"expansive": 0, "averaged": 0, "rest": 0}
    for _ in range(400):
        *args, average, restart = random_setting(rng)
        T, _, eta0, _, _, L, _, tau = args
        truth = update_by_update(*args, average, restart)
        closed = Algorithm2(*args, average=average, restart=restart).by_position()
        np.testing.assert_allclose(closed, truth, rtol=1e-10, atol=1e-250)
        trace = Algorithm2(*args, average=average, restart=restart).trace(range(1, len(truth) + 1))
        np.testing.assert_allclose(trace.value[-1], truth, rtol=1e-10, atol=1e-250)
        kinds["expansive"] += eta0 * L > 2
        kinds["averaged"] += bool(tau and average)
        kinds["rest"] += bool(tau and T % tau)
    assert min(kinds.values()) > 50, kinds  # the cases that could differ were met


def test_the_trace_tells_what_happens() -> None:
    trace = Algorithm2(6, 4, 1.0, 10, 0.01, 0.3, tau=3).trace([1, 4])
    assert trace.value.shape == (1 + 6 * 4 + 2, 2)
    assert (trace.event == "average").sum() == 2
    assert trace.restarts == (3,)
    before = np.flatnonzero(trace.expands[:, 1])[0] - 1
    assert trace.value[before, 1] == 0  # nothing happens to position 4 before its turn
    assert trace.epoch[-1] == 6
    assert len(Algorithm2(2, 500, 1.0, 10, 0.01, 0.3).trace().positions) == 12


def test_sensitivity_beyond_a_double_is_infinite_and_never_nan() -> None:
    for tau in (0, 5):
        assert np.all(Algorithm2(20, 2000, 40.0, 10, 1e-3, 0.25, tau=tau).by_position() == np.inf)


def canary(n: int, m: int, position: int, label: float) -> Problem:
    """Rows of zeros but for one unit row in the given batch: the huberised hinge pulls it with full force both ways."""
    x = np.zeros((n, 2))
    y = np.ones(n)
    x[position * (n // m)] = (1.0, 0.0)
    y[position * (n // m)] = label
    return Problem(Rows(x, y), get_model("svm"), 0.02)


@pytest.mark.parametrize("decay", [1.0, 0.5])
@pytest.mark.parametrize("tau", [0, 2])
def test_algorithm_2_is_attained_exactly(tau: int, decay: float) -> None:
    n, m, T, eta0 = 40, 4, 5, 0.3
    setting = canary(n, m, 0, 1.0).setting
    args = (T, m, eta0, n // m, setting.mu, setting.L, 1.0, tau)
    bound = Algorithm2(*args, decay=decay).by_position()
    np.testing.assert_allclose(Algorithm2(*args, decay=decay).trace(range(1, m + 1)).value[-1], bound, rtol=1e-12)
    steps = np.repeat(epoch_steps(T, eta0, tau, decay), m)
    for j in range(m):
        ends = [minibatch_descent(canary(n, m, j, label), steps, m, average_every=tau)[0] for label in (1.0, -1.0)]
        moved = np.linalg.norm(ends[0] - ends[1])
        assert moved == pytest.approx(bound[j], rel=1e-12)
    if decay < 1:
        assert bound.max() > 1.02 * Algorithm2(*args).by_position().max(), "faster decay has a smaller bound: the check can fail"


def test_gradient_descent_and_step_recursion_are_attained_exactly() -> None:
    n = 30
    setting = canary(n, 1, 0, 1.0).setting
    ends = [minibatch_descent(canary(n, 1, 0, label), np.full(20, 0.5), 1)[0] for label in (1.0, -1.0)]
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(sb.gradient_descent(n, 20, 0.5, setting.mu, setting.L), rel=1e-12)
    steps = np.random.default_rng(0).uniform(0.05, 0.3, 12)
    bound = sb.step_recursion(steps, 3, n // 3, setting.mu, setting.L)
    for j in range(3):
        ends = [minibatch_descent(canary(n, 3, j, label), steps, 3)[0] for label in (1.0, -1.0)]
        assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(bound[j], rel=1e-12)


def test_proposition_2_is_the_limit_of_the_finite_recursion() -> None:
    mu, L, n = 0.01, 0.26, 500
    best = 2 / (L + mu)
    assert sb.proposition2(best, n, 1, mu, L) == pytest.approx(2 / (n * mu), rel=1e-12)
    assert sb.gradient_descent(n, 10**6, best, mu, L) == pytest.approx(2 / (n * mu), rel=1e-12)
    assert sb.gradient_descent(n, 50, best, mu, L) < sb.proposition2(best, n, 1, mu, L) < sb.zhang(n, mu, L)
    for m in (1, 3):  # a step that goes to the minimum at once forgets all earlier ones
        assert sb.proposition2(1 / L, n, m, L, L) == pytest.approx(2 / (n * L), rel=1e-12)
    constant = sb.step_recursion(np.full(4000 * 3, 1.0), 3, 100, mu, L).max()
    assert constant == pytest.approx(sb.proposition2(1.0, 100, 3, mu, L), rel=1e-9)


def test_geometric_sums_near_one() -> None:
    for rho in (0.0, 0.3, 1 - 1e-9, 1 - 1e-15, 1.0, 1 + 1e-12, 1.5):
        assert float(geometric(rho, 40)) == pytest.approx(math.fsum(rho**k for k in range(40)), rel=1e-12)


def test_batches_are_balanced() -> None:
    m, smallest, weights = sb.balanced_batches(39073, 4000)
    assert (m, smallest) == (9, 4341)
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    assert set(np.round(weights * 39073)) == {4341, 4342}
    assert sb.balanced_batches(30, 4000)[:2] == (1, 30)

    assert sb.balanced_batches(1, 1)[:2] == (1, 1)
    assert sb.balanced_batches(7, 3)[2].tolist() == [4 / 7, 3 / 7], "larger batches come first"


def test_every_sensitivity_grows_with_the_bound_on_gradients() -> None:
    """A gradient bound of 1 hides where it is put; at 3 all are three times as large, 2/G or G^2 are not."""
    mu, L, m, b = 0.05, 0.8, 4, 25
    wu = {"passes": 3, "batch_size": b, "batches": m, "mu": mu, "L": L, "step": 1.0, "n": 100}
    for bound in (
        lambda G: sb.cms(50, 0.1, G),
        lambda G: sb.zhang(50, mu, L, G),
        lambda G: sb.gradient_descent(50, 7, 0.3, mu, L, G),
        lambda G: sb.proposition2(0.3, b, m, mu, L, G),
        lambda G: sb.step_recursion(np.linspace(0.1, 0.9, 12), m, b, mu, L, G),
        lambda G: Algorithm2(5, m, 0.7, b, mu, L, G, 2, average=True, restart=True).by_position(),
        lambda G: Algorithm2(5, m, 0.7, b, mu, L, G, 2, average=True, restart=True).trace().value,
        lambda G: sb.step_trace(np.linspace(0.1, 0.9, 12), m, b, mu, L, G).value,
        *(lambda G, rule=rule: sb.wu_bolt_on(rule, **wu, G=G) for rule in sb.WU_RULES),
    ):
        np.testing.assert_allclose(bound(3.0), 3 * np.asarray(bound(1.0)), rtol=1e-12)


def test_diameter_of_logistic_gradients() -> None:
    assert sb.logistic_diameter(0.0) == pytest.approx(1.0, rel=1e-9)
    values = [sb.logistic_diameter(r) for r in np.linspace(0, 60, 40)]
    assert all(a < b < 2 for a, b in itertools.pairwise(values))
    # near r = 0 the largest value is at p = q = -r/2, where D = 1 + r^2/8 to second order
    for r in (1e-3, 1e-2):
        assert sb.logistic_diameter(r) >= 2 * np.sqrt(1 - r * r / 4) / (1 + np.exp(-r * r / 2))
        assert sb.logistic_diameter(r) - 1 == pytest.approx(r * r / 8, rel=1e-3)


def test_no_pair_of_gradients_differs_by_more_than_the_diameter() -> None:
    rng = np.random.default_rng(3)
    for radius in (0.5, 3.0, 20.0):
        w = rng.standard_normal((200_000, 3))
        w *= (radius * rng.choice([1.0, 0.7], len(w)) / np.linalg.norm(w, axis=1))[:, None]
        # rows near the boundary of the worst case: opposite sides of w, both pulled hard
        rows = rng.standard_normal((2, len(w), 3))
        rows[1] = -rows[0] + 0.3 * rng.standard_normal(w.shape) * rng.random((len(w), 1))
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        gradients = -rows / (1 + np.exp(np.einsum("kij,ij->ki", rows, w)))[:, :, None]
        largest = np.linalg.norm(gradients[0] - gradients[1], axis=1).max()
        assert largest <= sb.logistic_diameter(radius)
        assert largest > 0.93 * sb.logistic_diameter(radius)


def test_minimisers_stay_within_the_refined_bound() -> None:
    lam, n, rng = 0.05, 40, np.random.default_rng(8)  # n lam is not 1, so that no factor of it is hidden
    bound, radius = sb.cms_refined(n, lam), sb.minimiser_radius(lam)
    assert bound < sb.cms(n, lam)
    largest = 0.0
    for _ in range(100):
        x = rng.standard_normal((n, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        problem = Problem(Rows(x, np.where(x[:, 0] > 0, 1.0, -1.0)), get_model("logistic"), lam)
        assert np.linalg.norm(problem.optimum) <= radius
        moved = problem.replace_row(0, np.array([0.0, 1.0]), 1.0), problem.replace_row(0, np.array([0.0, 1.0]), -1.0)
        largest = max(largest, float(np.linalg.norm(moved[0].optimum - moved[1].optimum)))
    assert bound / 10 < largest <= bound


@pytest.mark.parametrize("rule", sb.WU_RULES)
def test_wu_closed_forms_bound_the_recursion(rule: str) -> None:
    rng = np.random.default_rng(4)
    ratios = []
    for _ in range(150):
        L = 10 ** rng.uniform(-1, 0.5)
        mu = L * 10 ** rng.uniform(-3, -0.5)
        k, m, b = (int(v) for v in (rng.integers(1, 12), rng.integers(1, 60), rng.integers(1, 50)))
        args = {
            "passes": k,
            "batches": m,
            "mu": mu,
            "L": L,
            "step": rng.uniform(0.05, 1) / L,
            "n": m * b,
            "decay": rng.uniform(0, 0.9),
        }
        exact = sb.step_recursion(sb.wu_steps(rule, **args), m, b, mu, L).max()
        ratios.append(exact / sb.wu_bolt_on(rule, batch_size=b, **args))
    assert max(ratios) <= 1 + 1e-10
    assert max(ratios) > 0.8  # a bound divided by the batch size once too often would be broken


@pytest.mark.parametrize("rule", ["convex-constant", "convex-decreasing", "convex-sqrt"])
def test_wu_convex_forms_are_the_recursion_without_contraction(rule: str) -> None:
    args = {"passes": 7, "batches": 9, "L": 0.5, "step": 1.0, "n": 180, "decay": 0.3}
    exact = sb.step_recursion(sb.wu_steps(rule, mu=0.0, **args), 9, 20, 0.0, 0.5).max()
    assert sb.wu_bolt_on(rule, batch_size=20, **args) == pytest.approx(exact, rel=1e-12)


def test_the_trace_of_any_steps_ends_at_the_recursion() -> None:
    mu, L, G, m, b = 0.05, 0.8, 1.7, 3, 25
    steps = np.array([0.5, 0.4, 2.6, 0.3, 1.1, 0.2])
    trace = sb.step_trace(steps, m, b, mu, L, G)
    np.testing.assert_allclose(trace.value[-1], sb.step_recursion(steps, m, b, mu, L, G), rtol=1e-12)
    assert trace.positions.tolist() == [1, 2, 3]
    rho = contraction(steps, mu, L)
    for t in range(6):
        visits = np.arange(3) == t % 3
        np.testing.assert_allclose(trace.value[t + 1], rho[t] * trace.value[t] + visits * 2 * steps[t] * G / b, rtol=1e-12)
        assert trace.expands[t + 1].tolist() == visits.tolist()
    many = sb.step_trace(np.full(40, 0.1), 40, b, mu, L, positions=5)
    np.testing.assert_allclose(many.value[-1], sb.step_recursion(np.full(40, 0.1), 40, b, mu, L)[many.positions - 1], rtol=1e-12)
    assert (len(many.positions), many.positions[0], many.positions[-1]) == (5, 1, 40)


def test_steps_of_the_published_rules() -> None:
    mu, L, t = 0.5, 0.8, np.arange(1, 7)
    wanted = {
        "convex-constant": np.full(6, 0.7),
        "sc-constant": np.full(6, 0.7),
        "convex-decreasing": 2 / (L * (t + 100**0.3)),
        "convex-sqrt": 2 / (L * (np.sqrt(t) + 100**0.3)),
        "sc-decreasing": [1 / L, 1 / (2 * mu), 1 / (3 * mu), 1 / (4 * mu), 1 / (5 * mu), 1 / (6 * mu)],
    }
    for rule, steps in wanted.items():
        got = sb.wu_steps(rule, passes=2, batches=3, mu=mu, L=L, step=0.7, n=100, decay=0.3)
        np.testing.assert_allclose(got, steps, rtol=1e-12)
    args = {"passes": 2, "batches": 3, "mu": mu, "L": L}
    np.testing.assert_array_equal(sb.wu_steps("convex-sqrt", **args), sb.wu_steps("convex-sqrt", **args, n=1, decay=0.5))
    plain = sb.wu_bolt_on("convex-sqrt", **args, batch_size=4)
    assert plain == sb.wu_bolt_on("convex-sqrt", **args, batch_size=4, n=12, decay=0.5)
    # the longest step there is forgets everything before it
    assert sb.wu_bolt_on("sc-constant", passes=2, batches=3, mu=L, L=L, step=1 / L, batch_size=4) == pytest.approx(2 / (L * 4))
