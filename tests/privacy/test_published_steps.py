"""Bounds of Wu et al. for published rules of steps, against the recursion of any steps."""

import numpy as np
import pytest

from dpviz.common.validate import InvalidInput
from dpviz.privacy.sensitivity.algorithm2 import contraction
from dpviz.privacy.sensitivity.bounds import WU_RULES, balanced_batches, step_recursion, step_trace, wu_bolt_on, wu_steps


def test_wu_strongly_convex_rule_needs_no_division_by_the_batch() -> None:
    # n = 5000 and n = 5049 with batches of 50: 100 batches, the smallest of 50 rows
    for n in (5000, 5049):
        m, b, _ = balanced_batches(n, 50)
        steps = wu_steps("sc-decreasing", passes=10, batches=m, mu=0.01, L=0.26)
        exact = step_recursion(steps, m, b, 0.01, 0.26).max()
        assert exact == pytest.approx(0.04, rel=1e-12)
        assert wu_bolt_on("sc-decreasing", passes=10, batch_size=b, batches=m, mu=0.01, L=0.26) == pytest.approx(0.04, rel=1e-12)
        # the erroneous 2L/(mu n b) of public code would be fifty times too small
        assert exact > 49 * 2 / (0.01 * n * 50)


@pytest.mark.parametrize("rule", WU_RULES)
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
        exact = step_recursion(wu_steps(rule, **args), m, b, mu, L).max()
        ratios.append(exact / wu_bolt_on(rule, batch_size=b, **args))
    assert max(ratios) <= 1 + 1e-10
    assert max(ratios) > 0.8  # a bound divided by the batch size once too often would be broken


@pytest.mark.parametrize("rule", ["convex-constant", "convex-decreasing", "convex-sqrt"])
def test_wu_convex_forms_are_the_recursion_without_contraction(rule: str) -> None:
    args = {"passes": 7, "batches": 9, "L": 0.5, "step": 1.0, "n": 180, "decay": 0.3}
    exact = step_recursion(wu_steps(rule, mu=0.0, **args), 9, 20, 0.0, 0.5).max()
    assert wu_bolt_on(rule, batch_size=20, **args) == pytest.approx(exact, rel=1e-12)


def test_the_trace_of_any_steps_ends_at_the_recursion() -> None:
    mu, L, G, m, b = 0.05, 0.8, 1.7, 3, 25
    steps = np.array([0.5, 0.4, 2.6, 0.3, 1.1, 0.2])
    trace = step_trace(steps, m, b, mu, L, G)
    np.testing.assert_allclose(trace.value[-1], step_recursion(steps, m, b, mu, L, G), rtol=1e-12)
    assert trace.positions.tolist() == [1, 2, 3]
    rho = contraction(steps, mu, L)
    for t in range(6):
        visits = np.arange(3) == t % 3
        np.testing.assert_allclose(trace.value[t + 1], rho[t] * trace.value[t] + visits * 2 * steps[t] * G / b, rtol=1e-12)
        assert trace.expands[t + 1].tolist() == visits.tolist()
    many = step_trace(np.full(40, 0.1), 40, b, mu, L, positions=5)
    np.testing.assert_allclose(many.value[-1], step_recursion(np.full(40, 0.1), 40, b, mu, L)[many.positions - 1], rtol=1e-12)
    assert (len(many.positions), many.positions[0], many.positions[-1]) == (5, 1, 40)
    for wrong in ({"steps": np.ones(4), "batches": 3}, {"steps": -np.ones(3), "batches": 3}):
        with pytest.raises(InvalidInput, match="steps"):
            step_trace(**wrong, batch_size=b, mu=mu, L=L)


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
        got = wu_steps(rule, passes=2, batches=3, mu=mu, L=L, step=0.7, n=100, decay=0.3)
        np.testing.assert_allclose(got, steps, rtol=1e-12)
    args = {"passes": 2, "batches": 3, "mu": mu, "L": L}
    np.testing.assert_array_equal(wu_steps("convex-sqrt", **args), wu_steps("convex-sqrt", **args, n=1, decay=0.5))
    plain = wu_bolt_on("convex-sqrt", **args, batch_size=4)
    assert plain == wu_bolt_on("convex-sqrt", **args, batch_size=4, n=12, decay=0.5)
    # the longest step there is forgets everything before it
    assert wu_bolt_on("sc-constant", passes=2, batches=3, mu=L, L=L, step=1 / L, batch_size=4) == pytest.approx(2 / (L * 4))
    for rule in ("sc-constant", "sc-decreasing"):
        with pytest.raises(InvalidInput, match="mu"):
            wu_steps(rule, passes=1, batches=1, mu=0.0, L=1.0, step=0.1)
        with pytest.raises(InvalidInput, match="mu"):
            wu_bolt_on(rule, passes=1, batches=1, batch_size=1, mu=0.0, L=1.0, step=0.1)
