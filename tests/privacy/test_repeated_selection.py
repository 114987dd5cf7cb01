"""Private search: exact distributions of small searches stay within the bounds, and mistakes do not."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.events import Composed, Gaussian, Mixture, PureEpsilon, Repeated, Sampled
from dpviz.privacy.accounting.repeated_selection import (
    KINDS,
    NegativeBinomial,
    Poisson,
    Repetitions,
    best_of,
    repetitions,
    replace_one_curve,
)

Floats = np.ndarray
MEANS = (2.0, 10.0, 100.0)


def best(q: Floats, generating: Callable[[Floats], Floats]) -> Floats:
    """Distribution of the largest of K independent outcomes (the last one is best), from the generating function of K."""
    up_to = np.concatenate([[0.0], np.cumsum(q)])
    up_to[-1] = 1.0
    return np.diff(generating(up_to))


def generating(distribution: Repetitions) -> Callable[[Floats], Floats]:
    if isinstance(distribution, Poisson):
        return lambda x: np.exp(distribution.mean * (x - 1))
    eta, gamma = distribution.eta, distribution.gamma
    if eta == 0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def exact_delta(p: Floats, q: Floats, epsilon: float) -> float:
    return float(max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum()))


def pairs(epsilon: float) -> list[tuple[Floats, Floats]]:
    """Pairs of distributions of (model, score) that are epsilon apart: a rare good outcome, a common one, and random ones."""
    found = []
    for share in (0.001, 0.02, 0.2, 0.5, 0.9):
        good = share / (share + (1 - share) * math.exp(epsilon))
        found += [(np.array([1 - share, share]), np.array([1 - good, good]))]
    rng = np.random.default_rng(1)
    for _ in range(20):
        q = rng.dirichlet(np.ones(6))
        signs = np.where(rng.random(6) < 0.5, math.exp(epsilon / 2), math.exp(-epsilon / 2))
        found.append((q, q * signs / (q * signs).sum()))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("single", [0.1, 1.0])
def test_no_search_is_less_private_than_the_bound(kind: str, mean: float, single: float) -> None:
    distribution = repetitions(kind, mean)
    bound = best_of(replace_one_curve(PureEpsilon(single)), distribution, 1e-6)
    for p, q in pairs(single):
        a, b = best(p, generating(distribution)), best(q, generating(distribution))
        if isinstance(distribution, Poisson):  # that no run was made is an outcome, too
            a, b = np.append(a, 1 - a.sum()), np.append(b, 1 - b.sum())
        assert exact_delta(a, b, bound) <= 1e-6


def test_a_fixed_number_of_runs_breaks_it() -> None:
    """The control: the same search with K = 100 always."""
    bound = best_of(replace_one_curve(PureEpsilon(0.1)), repetitions("geometric", 100.0), 1e-6)
    worst = max(exact_delta(best(p, lambda x: x**100), best(q, lambda x: x**100), bound) for p, q in pairs(0.1))
    assert worst > 1e-3


def test_forgetting_the_mean_or_one_run_is_seen() -> None:
    """The control: R(a) alone, as if the best run were the only one."""
    broken = 0
    for p, q in pairs(1.0):
        make = generating(repetitions("geometric", 100.0))
        broken += exact_delta(best(p, make), best(q, make), rdp.epsilon(replace_one_curve(PureEpsilon(1.0)), 1e-6)[0]) > 1e-6
    assert broken


@pytest.mark.parametrize("eta", [-0.5, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("mean", MEANS)
def test_the_number_of_runs_has_the_mean_that_was_asked_for(eta: float, mean: float) -> None:
    distribution = NegativeBinomial.with_mean(mean, eta)
    assert distribution.mean == pytest.approx(mean, rel=1e-6)
    probabilities = distribution.probabilities(200_000)
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    assert probabilities @ np.arange(1, 200_001) == pytest.approx(mean, rel=2e-3)  # the tail beyond
    draws = [distribution.draw(u) for u in np.random.default_rng(3).random(2000)]
    assert min(draws) >= 1
    expected = probabilities[:3]
    counted = np.array([np.mean(np.array(draws) == k) for k in (1, 2, 3)])
    np.testing.assert_allclose(counted, expected, atol=5 * math.sqrt(0.25 / 2000))


def test_the_cost_grows_slowly_with_the_number_of_runs() -> None:
    """Papernot, Steinke 2022: two to three times one run, where K fixed at 1,000 would cost about a thousand times its mu^2."""
    one = replace_one_curve(Gaussian(0.2))
    alone = rdp.epsilon(one, 1e-6)[0]
    for kind in ("geometric", "logarithmic", "negative-binomial"):
        costs = [best_of(one, repetitions(kind, mean), 1e-6) / alone for mean in (2.0, 20.0, 200.0, 1000.0)]
        assert costs == sorted(costs)
        assert 1 < costs[0] < 2
        assert costs[-1] < 3.5


def test_curves_of_events_are_the_textbook_ones() -> None:
    a = np.asarray(rdp.ORDERS)
    np.testing.assert_allclose(replace_one_curve(Gaussian(0.5, 2.0)), a * 0.25**2 / 2)
    np.testing.assert_allclose(replace_one_curve(Repeated(Gaussian(0.5), 4)), a * 1.0**2 / 2)
    pure = replace_one_curve(PureEpsilon(0.5))
    assert (np.diff(pure) >= -1e-12).all()
    assert pure[-1] <= 0.5
    p = math.exp(0.5) / (1 + math.exp(0.5))
    at = list(rdp.ORDERS).index(3.0)
    assert pure[at] == pytest.approx(math.log(p**3 * (1 - p) ** -2 + (1 - p) ** 3 * p**-2) / 2)
    both = replace_one_curve(Composed((Gaussian(0.5), PureEpsilon(0.5))))
    np.testing.assert_allclose(both, replace_one_curve(Gaussian(0.5)) + pure)
    assert np.isfinite(replace_one_curve(Mixture((0.1, 0.2), (0.5, 0.5), 0.3))).all()
    assert (replace_one_curve(Sampled(Gaussian.of_rows(1.0, 2.0), 0.1)) < replace_one_curve(Gaussian.of_rows(1.0, 2.0))).all()
