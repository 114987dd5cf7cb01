"""One budget for several releases: all together stay within it, and little more would not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpviz.estimator.guarantee import share
from dpviz.mechanisms import get_mechanism
from dpviz.models import get_model
from dpviz.privacy.accounting.division import divided
from dpviz.privacy.budget import Budget


def worst_delta(each: Budget, k: int, epsilon: float) -> float:
    """delta of k releases at epsilon, by summing over all outcomes of the worst one (Kairouz, Oh, Viswanath 2015, section 3).

    Randomised response that shows its input with probability delta: outcomes "it is 0", "rather 0", "rather 1", "it is 1".
    """
    e, d = math.exp(each.epsilon), each.delta
    p = np.array([d, (1 - d) * e / (1 + e), (1 - d) / (1 + e), 0.0])
    q = p[::-1]
    total = 0.0
    for outcome in itertools.product(range(4), repeat=k):
        total += max(0.0, math.prod(p[list(outcome)]) - math.exp(epsilon) * math.prod(q[list(outcome)]))
    return total


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget(0.1, 0.01), Budget(4.0, 0.05)])
def test_whatever_the_releases_are_together_they_keep_the_budget(budget: Budget, k: int) -> None:
    each = divided(budget, k)
    assert each.epsilon >= budget.epsilon / k
    assert worst_delta(each, k, budget.epsilon) <= budget.delta * (1 + 1e-9)
    more = Budget(each.epsilon * 1.05, each.delta * 1.05)  # the control
    assert worst_delta(more, k, budget.epsilon) > budget.delta


def test_pure_budgets_are_added() -> None:
    assert divided(Budget(3.0), 3) == Budget(1.0)


@pytest.mark.parametrize("classes", [3, 10])
def test_gaussian_models_of_several_classes_keep_the_budget_and_use_it(classes: int) -> None:
    """The joint release is one Gaussian in as many blocks: its delta in closed form, and with 5 % less noise."""
    setting, budget = get_model("logistic").setting(500, 5, 0.01), Budget(1.0, 1e-4)
    mechanism = get_mechanism("output-gaussian")()
    each, how = share(mechanism, setting, budget, classes)
    cal = mechanism.calibrate(setting, each)

    def delta(scale: float) -> float:
        distance = math.sqrt(classes) * 2 / (setting.n * setting.lam) / scale  # every class's minimiser moves by 2G/(n lam)
        a, e = distance / 2, budget.epsilon / distance  # Balle, Wang 2018, Theorem 8
        return float(norm.cdf(a - e) - math.exp(budget.epsilon) * norm.cdf(-a - e))

    assert budget.delta * 0.99 < delta(cal.noise_scale) <= budget.delta * (1 + 1e-6)
    assert delta(0.95 * cal.noise_scale) > budget.delta
    assert "exactly" in how
    assert each.epsilon > divided(budget, classes).epsilon
