"""The total of different releases is never below the truth, and near it: exact compositions, dp_accounting, controls."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.special import gammaln
from support import mostly_long

from dpviz.privacy.accounting import heterogeneous
from dpviz.privacy.accounting.events import Event, Gaussian, Mixture, PureEpsilon, Repeated, Sampled, Shuffled, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.heterogeneous import Losses, total_epsilon
from dpviz.privacy.budget import Budget, Neighbouring

SGD = Repeated(Sampled(Gaussian.of_rows(1.0, 1.1), 0.02), 300)
ADD = Neighbouring.ADD_REMOVE


def exact_delta(budgets: Sequence[Budget], epsilon: float) -> float:
    """delta(epsilon) of the worst (epsilon_i, delta_i)-DP releases, by enumeration (Kairouz, Oh, Viswanath 2015)."""
    logs, losses = np.zeros(1), np.zeros(1)
    for budget, count in Counter(budgets).items():
        up = np.arange(count + 1)
        choose = gammaln(count + 1) - gammaln(up + 1) - gammaln(count - up + 1)
        e = budget.epsilon
        log_p = choose - up * np.logaddexp(0, -e) - (count - up) * np.logaddexp(0, e) + count * math.log1p(-budget.delta)
        logs = np.add.outer(logs, log_p).ravel()
        losses = np.add.outer(losses, (2 * up - count) * e).ravel()
    beyond = losses > epsilon
    finite = float(np.exp(logs[beyond]) @ -np.expm1(epsilon - losses[beyond]))
    return finite - math.expm1(sum(math.log1p(-b.delta) for b in budgets))


def exact_epsilon(budgets: Sequence[Budget], delta: float) -> float:
    low, high = 0.0, sum(b.epsilon for b in budgets)
    if exact_delta(budgets, high) > delta:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if exact_delta(budgets, middle) <= delta else (middle, high)
    return high


#: releases and delta for which an older formula gave too little
TABLE: list[tuple[list[Budget], float]] = [
    ([Budget(0.5, 1e-6)], 8e-7),
    ([Budget(0.01, 1e-6)], 8e-7),
    ([Budget(1.0, 1e-6), Budget(0.1, 1e-6)], 1.9e-6),
    ([Budget(0.3, 1e-9)] * 11, 1e-8),
    ([Budget(0.3, 1e-10)] * 50, 5e-9),
    ([Budget(0.02, 1e-8)] * 99, 1e-6),
    ([Budget(0.1, 1e-9)] * 30, 1e-6),
    ([Budget(0.5, 1e-6)] * 2, 2e-6),
]


def random_budgets(seed: int) -> tuple[list[Budget], float]:
    """A list of 1 to 200 releases of up to four kinds, and delta from 1e-15 to 1e-3 around what they need."""
    rng = np.random.default_rng(seed)
    delta, budgets = 10 ** rng.uniform(-15, -3), list[Budget]()
    most = int(10 ** rng.uniform(0, math.log10(200)))
    while len(budgets) < most:
        share = rng.choice([0.0, 0.01, 0.3, 0.9, 1.1])
        kind = Budget(10 ** rng.uniform(-3, 0.5), share * delta / most)
        budgets += [kind] * min(most - len(budgets), max(1, most // int(rng.integers(1, 4))))
    return budgets, delta


CASES = [*TABLE, *map(random_budgets, range(60))]


def violations(cases: Sequence[tuple[list[Budget], float]]) -> int:
    """The number of totals with which the exact composition spends more than delta."""
    totals = [total_epsilon(budgets, delta) for budgets, delta in cases]
    return sum(
        total < math.inf and exact_delta(budgets, total * (1 + 1e-13)) > delta * (1 + 1e-11)
        for (budgets, delta), total in zip(cases, totals, strict=True)
    )


def test_no_total_is_below_the_exact_composition_and_all_are_near_it() -> None:
    assert violations(CASES) == 0
    for budgets, delta in CASES:
        exact = exact_epsilon(budgets, delta)
        assert total_epsilon(budgets, delta) <= exact * (1 + 1e-4), (budgets[0], len(budgets), delta)


def missing_mass(budget: Budget) -> Losses:
    """The older formula: masses as differences of a profile's values on a grid, the infinite loss as what is missing from 1."""
    h = budget.epsilon / 40_000
    x = h * np.arange(40_001)
    height = (1 - budget.delta) / (1 + math.exp(budget.epsilon))
    delta = budget.delta + height * (math.exp(budget.epsilon) - np.exp(x))
    fall = (delta[:-1] - delta[1:]) / math.expm1(h)
    up = np.maximum(math.exp(h) * fall - np.append(fall[1:], 0.0), 0.0)
    down = up * np.exp(-x[1:])
    values, masses = np.concatenate([-x[1:], x[1:]]), np.concatenate([down, up])
    return Losses(values[masses > 0], masses[masses > 0], max(0.0, 1 - masses.sum()))


def no_infinite_loss(budget: Budget) -> Losses:
    return Losses(OF_BUDGET(budget).values, OF_BUDGET(budget).masses, 0.0)


OF_BUDGET, GRID = Losses.of_budget, heterogeneous._grid


def losses_rounded_down(losses: Losses, h: float) -> tuple[np.ndarray, Losses]:
    index = np.floor(losses.values / h).astype(int)
    return index, Losses(h * index, losses.masses, losses.infinite)


def half_of_the_split(losses: Losses, h: float) -> tuple[np.ndarray, Losses]:
    return GRID(Losses(losses.values - h / 2, losses.masses, losses.infinite), h)


WRONG = [missing_mass, no_infinite_loss, losses_rounded_down, half_of_the_split]


@pytest.mark.parametrize("wrong", mostly_long(WRONG, half_of_the_split))
def test_planted_mistakes_are_seen(wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong in (missing_mass, no_infinite_loss):
        monkeypatch.setattr(Losses, "of_budget", wrong)
    else:
        monkeypatch.setattr(heterogeneous, "_grid", wrong)
    assert violations(CASES) > 0


@functools.cache
def referee(events: tuple[Event | Budget, ...], delta: float, pessimistic: bool = True) -> float:
    """The epsilon of dp_accounting's convolution, from above or from below."""
    how = {"pessimistic_estimate": pessimistic, "value_discretization_interval": 1e-4}
    parts = []
    for event, count in Counter(events).items():
        if isinstance(event, Budget):  # randomised response that shows its dataset with chance delta
            masses = math.log1p(-event.delta) - np.logaddexp(0, [-event.epsilon, event.epsilon])
            shown = math.log(event.delta) if event.delta else -math.inf
            p, q = dict(enumerate([*masses, shown, -math.inf])), dict(enumerate([*masses[::-1], -math.inf, shown]))
            part = privacy_loss_distribution.from_two_probability_mass_functions(p, q, **how)
        else:
            (step,) = steps_of(event)
            assert isinstance(step.event, Gaussian)
            z, connect = step.event.noise_multiplier, pessimistic
            part = privacy_loss_distribution.from_gaussian_mechanism(
                z, sampling_prob=step.rate, use_connect_dots=connect, **how
            ).self_compose(step.count)
        parts.append(part.self_compose(count))
    return float(functools.reduce(lambda a, b: a.compose(b), parts).get_epsilon_for_delta(delta))


def random_mixture(seed: int) -> tuple[list[Event | Budget], float]:
    """Full, sampled, pure and (epsilon, delta) releases, and delta from 1e-9 to 1e-3, where dp_accounting's rounding is small."""
    rng = np.random.default_rng(seed)
    delta = 10 ** rng.uniform(-9, -3)
    sgd = Repeated(Sampled(Gaussian.of_rows(1.0, rng.uniform(0.8, 3)), 10 ** rng.uniform(-2.5, -0.5)), int(rng.integers(1, 200)))
    full = Repeated(Gaussian.of_rows(1.0, rng.uniform(1, 10)), int(rng.integers(1, 10)))
    budgets = [Budget(10 ** rng.uniform(-2, 0), rng.choice([0.0, 0.1, 0.4]) * delta) for _ in range(rng.integers(1, 3))]
    chosen: list[Event | Budget] = [release for release in (sgd, full, *budgets) if rng.random() < 0.8]
    return chosen or [full], delta


MIXED: list[tuple[list[Event | Budget], float]] = [
    ([Gaussian.of_rows(1.0, 1.5), *[Budget(0.3, 2e-8)] * 4], 8.1e-8),
    ([SGD, Gaussian.of_rows(2.0, 9.0), Budget(0.3), Budget(0.2, 1e-7), Repeated(Gaussian.of_rows(1.0, 8.0), 5)], 1e-5),
    *map(random_mixture, range(12)),
]


@pytest.mark.parametrize(("events", "delta"), mostly_long(MIXED, *MIXED[:2]), ids=itertools.count())
def test_totals_lie_between_both_sides_of_dp_accounting(events: list[Event | Budget], delta: float) -> None:
    total = total_epsilon(events, delta, ADD)
    assert referee(tuple(events), delta, pessimistic=False) * (1 - 1e-6) <= total <= referee(tuple(events), delta) * 1.01


def test_a_control_that_forgets_a_release_is_seen() -> None:
    events, delta = MIXED[1]
    least = referee(tuple(events), delta, pessimistic=False)
    for fewer in itertools.combinations(events, len(events) - 1):
        assert total_epsilon(fewer, delta, ADD) < least * (1 - 5e-3)


@pytest.mark.parametrize("mus", [(0.5,), (0.3, 0.4), (1.0, 2.0, 0.1)])
def test_gaussians_add_up_exactly(mus: tuple[float, ...]) -> None:
    total = total_epsilon([Gaussian(mu) for mu in mus], 1e-6)
    assert total == pytest.approx(float(gaussian_epsilon(1e-6, math.hypot(*mus))), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-15])
@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0, 20.0])
def test_the_grid_agrees_with_the_closed_form_from_above(mu: float, delta: float) -> None:
    exact = float(gaussian_epsilon(delta, math.sqrt(2) * mu))
    on_grid = heterogeneous._composed([(heterogeneous._of_gaussian(mu, delta * 1e-4), 2)], delta)
    assert exact <= on_grid <= exact * (1 + 3e-5)


@pytest.mark.parametrize("count", [32_766, 32_767, 10**6, 10**9])
def test_many_releases_cost_what_the_central_limit_says(count: int) -> None:
    """Their mu is about epsilon sqrt(count) (Dong, Roth, Su 2022, Theorem 3.5)."""
    single = 1 / math.sqrt(count)
    total = total_epsilon([Repeated(PureEpsilon(single), count)], 1e-6)
    assert total == pytest.approx(float(gaussian_epsilon(1e-6, 1.0)), rel=0.02 if count < 10**9 else 0.5)


def test_pure_lists_stay_pure() -> None:
    assert total_epsilon([Budget(0.5), PureEpsilon(1.0)], 0.0, ADD) == 1.5
    assert total_epsilon([Budget(0.5), Gaussian(1e-9)], 0.0) == total_epsilon([Budget(0.5, 1e-30)], 0.0) == math.inf
    assert total_epsilon([], 0.0) == total_epsilon([], 1e-6) == 0


@pytest.mark.parametrize("event", [Mixture((0.1, 0.2), (0.5, 0.5), 0.3), Shuffled(PureEpsilon(1.0), 10_000), SGD])
def test_other_kinds_cost_about_what_they_cost_alone(event: Event) -> None:
    alone = total_epsilon([event], 1e-6)
    assert alone * (1 - 1e-9) <= total_epsilon([event, PureEpsilon(1e-4)], 1e-6) <= alone * 1.05 + 1e-3
    assert alone < total_epsilon([event, event], 1e-6) < 2.2 * alone


@pytest.mark.parametrize(("epsilon", "count"), [(1e-320, 1), (1e-3, 1000), (800.0, 1), (1e-6, 5), (1e6, 2)])
def test_extreme_budgets_stay_finite(epsilon: float, count: int) -> None:
    total = total_epsilon([Budget(epsilon)] * count + [Gaussian(1e-3)], 1e-6)
    assert epsilon * 0.99 <= total <= epsilon * count * 1.001 + 0.01
    assert total_epsilon([Gaussian(1.0, 1e-300), Budget(epsilon)], 1e-6) == math.inf


def test_profiles_are_convex_and_at_least_the_truth() -> None:
    """Points above a chord are dropped; the losses of a profile of one point are those of its budget."""
    assert heterogeneous._convex([(0.0, 0.5), (1.0, 0.45), (2.0, 0.1), (3.0, 0.2), (4.0, 0.05)])[0].tolist() == [0, 2, 4]
    of_profile, of_budget = Losses.of_profile(np.array([1.0]), np.array([1e-3])), Losses.of_budget(Budget(1.0, 1e-3))
    for loss, mass in zip(of_budget.values, of_budget.masses, strict=True):
        assert of_profile.masses[of_profile.values == loss] == pytest.approx(mass, rel=1e-12)
    assert of_profile.infinite == of_budget.infinite == 1e-3
    assert of_profile.masses.sum() == pytest.approx(1 - 1e-3, rel=1e-12)
