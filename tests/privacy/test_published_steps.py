"""Bounds of Wu et al. for published rules of steps, against the recursion of any steps."""

import numpy as np
import pytest

from dpviz.privacy.sensitivity.bounds import WU_RULES, step_recursion, wu_bolt_on, wu_steps


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
