"""Sensitivity by recursions and published rules, attained by rows; amplification by iteration against exact distributions."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import nnls

from dpviz.mechanisms import get_mechanism
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.models.solvers.minibatch import minibatch_descent
from dpviz.privacy.accounting.account import Method, noise_for
from dpviz.privacy.accounting.events import Mixture
from dpviz.privacy.accounting.gaussian import gaussian_sigma
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.sensitivity import bounds as sb
from dpviz.privacy.sensitivity.algorithm2 import Algorithm2, contraction, epoch_steps, geometric
from dpviz.privacy.sensitivity.iteration import iteration


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
    assert [sb.balanced_batches(n, size)[:2] for n, size in ((30, 4000), (1, 1))] == [(1, 30), (1, 1)]
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


MU, L = 0.2, 1.0
STEPS = np.array([1.0, 0.5, 0.25])


def linear_pair(slopes: np.ndarray, jumps: np.ndarray, noises: np.ndarray) -> float:
    """The exact m of x <- slope x + N(0, noise^2) against the same with jumps added: both ends are Gaussian."""
    apart = variance = 0.0
    for slope, jump, noise in zip(slopes, jumps, noises, strict=True):
        apart, variance = slope * apart + jump, slope**2 * variance + noise**2
    return abs(apart) / variance**0.5


@pytest.mark.parametrize("position", [1, 2, 5])
def test_the_bound_of_one_pass_is_attained(position: int) -> None:
    """Batches up to the row's own forget what came before (curvature 1/eta); later ones contract as little as they may."""
    eta, m, nu, G = 1.0, 5, 3, 0.7
    bound = iteration(np.array([eta]), m, nu, MU, L, G)[0][position - 1]
    k = np.arange(1, m + 1)
    slopes = np.where(k <= position, 1 - eta * L, 1 - eta * MU)
    exact = linear_pair(slopes, np.where(k == position, 2 * eta * G / nu, 0.0), np.full(m, eta))
    assert bound == pytest.approx(exact, rel=1e-12)
    assert bound / 2 < exact, "G in the place of 2G would be too little"


def test_theorem_23_where_nothing_contracts() -> None:
    """2 G^2 alpha/(sigma^2 (n + 1 - t)), Feldman et al. 2018, for row t of n in batches of one row."""
    n = 40
    found, spread = iteration(np.array([1.7]), n, 1, 0.0, L, 0.3)
    assert found**2 / 2 == pytest.approx(2 * 0.3**2 / (n - np.arange(n)), rel=1e-12)
    assert spread == pytest.approx(1.7 * np.sqrt(n))


@pytest.mark.parametrize("steps", [STEPS, STEPS[::-1], np.array([0.3, 1.9, 0.05])])
def test_the_shifts_are_the_best_that_the_theorem_allows(steps: np.ndarray) -> None:
    """The least |a/eta| whose distance left to hide is >= 0 after every step and 0 at the end, by Lawson and Hanson's LDP."""
    m, nu = 3, 2
    eta = np.repeat(steps, m)
    rho = np.maximum(abs(1 - eta * MU), abs(1 - eta * L))
    carried = np.array([[np.prod(rho[i + 1 : k + 1]) if i <= k else 0.0 for i in range(len(eta))] for k in range(len(eta))])
    found, _ = iteration(steps, m, nu, MU, L)
    for j in range(m):
        apart = carried @ np.where(np.arange(len(eta)) % m == j, 2 * eta / nu, 0.0)
        hidden = carried * eta
        rows, least = np.vstack([-hidden, hidden[-1]]), np.r_[-apart, apart[-1]]
        system, target = np.vstack([rows.T, least]), np.r_[np.zeros(len(eta)), 1.0]
        residual = system @ nnls(system, target)[0] - target
        assert found[j] == pytest.approx(np.linalg.norm(residual[:-1] / residual[-1]), rel=1e-9)


def test_steps_that_are_too_long_to_contract_count_as_they_stretch() -> None:
    eta, m = 2.5, 4
    k = np.arange(1, m + 1)
    stretch = linear_pair(np.full(m, 1 - eta * L), np.where(k == 1, 2 * eta, 0.0), np.where(k == 1, eta, 1e-9))
    claimed = (2 / np.sqrt(m + 1 - k))[0]
    assert stretch > claimed, "with noise early, Theorem 23 would be wrong here"
    exact = linear_pair(np.full(m, 1 - eta * L), np.where(k == 2, 2 * eta, 0.0), np.full(m, eta))
    assert exact <= iteration(np.array([eta]), m, 1, MU, L)[0][1]


def test_noise_in_steps_lies_between_noise_at_the_end_and_published_iterates() -> None:
    setting, budget = get_model("logistic").setting(3000, 20, 1e-2), Budget(1.0, 1e-5)
    method = Method("hockey-stick", Neighbouring.REPLACE_ONE)
    for name in ("rsgd", "nsgd"):
        mechanism = get_mechanism(name).from_params({"batch_size": 300, "epochs": 7}).settle(setting, budget)
        noisy = mechanism.noise_in_steps(setting)
        end, last, every = (noise_for(e, method, budget) for e in (mechanism.releases(setting), noisy.last, noisy.every))
        assert end < last * noisy.spread < every * noisy.spread
        own = iteration(mechanism._epoch_steps(setting, 7), 10, 300, setting.mu, setting.L, setting.G)[0]
        assert (own >= mechanism.position_sensitivities(setting) / noisy.spread * (1 - 1e-9)).all()
        if name == "rsgd":
            assert isinstance(noisy.last, Mixture)
            assert noisy.last.sensitivities == pytest.approx(own)
            assert noisy.last.weights == pytest.approx([0.1] * 10)
        else:
            assert noisy.last.sensitivity == pytest.approx(own.max())
        assert noise_for(noisy.every, method, budget) == pytest.approx(gaussian_sigma(budget, np.sqrt(7) * 2 / 300), rel=1e-4)
    averaged = get_mechanism("rsgd-ar").from_params({}).settle(setting, budget)
    assert averaged.noise_in_steps(setting) is None


def test_steps_that_spread_runs_apart_overflow_nothing() -> None:
    """Beyond 2/L every step multiplies distances: from 1,000 of them on their square is above all doubles."""
    bounds, spread = iteration(np.full(4, 3.7), 100, 1, MU, L)
    few, _ = iteration(np.full(1, 3.7), 100, 1, MU, L)
    assert np.isfinite(bounds).all()
    assert np.isfinite(spread)
    assert few[-1] == pytest.approx(2.0), "the last batch of one pass has its own noise only"
