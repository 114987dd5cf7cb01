"""The total of different releases: against closed forms, dp_accounting, and controls that must be noticed."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution
from dp_accounting.pld.common import DifferentialPrivacyParameters

from dpviz.privacy.accounting import account, heterogeneous
from dpviz.privacy.accounting.accountants.hockey_stick import log_pure_delta
from dpviz.privacy.accounting.dp_events import from_dp_event, to_dp_event
from dpviz.privacy.accounting.events import (
    CannotAccount,
    Composed,
    Event,
    Gaussian,
    Mixture,
    PureEpsilon,
    Repeated,
    Sampled,
    Shuffled,
)
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.heterogeneous import GaussianProfile, Profile, of_budget, total_epsilon
from dpviz.privacy.accounting.methods import TWO_HOP
from dpviz.privacy.budget import Budget, Neighbouring

SGD = Repeated(Sampled(Gaussian.of_rows(1.0, 1.1), 0.02), 300)
ADD = Neighbouring.ADD_REMOVE
RELATION = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE


def referee(events: list[Event | Budget], delta: float) -> float:
    accountant, budgets = pld_privacy_accountant.PLDAccountant(RELATION), []
    for event in events:
        if isinstance(event, Budget):
            parameters = DifferentialPrivacyParameters(event.epsilon, event.delta)
            budgets.append(privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=1e-4))
        else:
            accountant.compose(to_dp_event(event, ADD))
    composed = accountant._pld
    for budget in budgets:
        composed = composed.compose(budget)
    return float(composed.get_epsilon_for_delta(delta))


@pytest.mark.parametrize("mus", [(0.5,), (0.3, 0.4), (1.0, 2.0, 0.1)])
def test_gaussians_add_up_exactly(mus: tuple[float, ...]) -> None:
    total = total_epsilon([Gaussian(mu) for mu in mus], 1e-6)
    assert total == pytest.approx(float(gaussian_epsilon(1e-6, math.hypot(*mus))), rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0, 20.0])
def test_the_grid_agrees_with_the_closed_form_from_above(mu: float) -> None:
    exact = float(gaussian_epsilon(1e-6, math.sqrt(2) * mu))
    on_grid = heterogeneous._composed([GaussianProfile(mu), GaussianProfile(mu)], 1e-6)
    assert exact <= on_grid <= exact * 1.001


@pytest.mark.parametrize(("single", "count"), [(0.1, 100), (0.5, 20), (2.0, 3)])
def test_pure_releases_are_composed_exactly(single: float, count: int) -> None:
    """Kairouz, Oh, Viswanath 2015, Theorem 3.3."""
    total = total_epsilon([PureEpsilon(single)] * count, 1e-5)
    assert log_pure_delta(single, count, total * (1 + 1e-6)) <= math.log(1e-5) + 1e-9
    assert total <= single * count
    exact = account.epsilon(Repeated(PureEpsilon(single), count), heterogeneous.HOCKEY_STICK, 1e-5)
    assert exact * (1 - 1e-6) <= total <= exact * 1.001


MIXED: dict[str, list[Event | Budget]] = {
    "one sampled": [SGD],
    "two sampled": [SGD, Repeated(Sampled(Gaussian.of_rows(1.0, 2.0), 0.1), 100)],
    "sampled and full": [SGD, Gaussian.of_rows(1.0, 3.0)],
    "sampled and budget": [SGD, Budget(0.5, 1e-6)],
    "all kinds": [SGD, Gaussian.of_rows(2.0, 9.0), Budget(0.3), Budget(0.2, 1e-7), Repeated(Gaussian.of_rows(1.0, 8.0), 5)],
    "full": [Gaussian.of_rows(1.0, 3.0), Repeated(Gaussian.of_rows(1.0, 6.0), 4)],
    "budgets": [Budget(0.3, 1e-7), Budget(0.5, 1e-6), Budget(1.0)],
}


@pytest.mark.parametrize("events", MIXED.values(), ids=MIXED)
def test_totals_agree_with_dp_accounting(events: list[Event | Budget]) -> None:
    ours, theirs = total_epsilon(events, 1e-5, ADD), referee(events, 1e-5)
    assert theirs * (1 - 2e-3) <= ours <= theirs * 1.01


def test_a_control_that_forgets_a_release_is_seen() -> None:
    events = MIXED["all kinds"]
    for left_out in range(len(events)):
        fewer = [event for index, event in enumerate(events) if index != left_out]
        assert total_epsilon(fewer, 1e-5, ADD) < total_epsilon(events, 1e-5, ADD) * (1 - 5e-3)


def test_replace_one_of_sampled_releases_is_two_hops() -> None:
    alone = account.epsilon(SGD, TWO_HOP, 1e-5)
    assert total_epsilon([SGD], 1e-5) == pytest.approx(alone)
    profile = heterogeneous.of_step(heterogeneous.steps_of(SGD)[0], TWO_HOP)
    at = np.array([0.3, 1.0, alone])
    exact = [math.exp(account.log_delta(SGD, TWO_HOP, float(e), -40.0)) for e in at]
    assert (profile.at(at) >= np.array(exact) * (1 - 1e-9)).all()
    assert total_epsilon([SGD, PureEpsilon(1e-6)], 1e-5) <= alone * 1.01


@pytest.mark.parametrize("event", [Mixture((0.1, 0.2), (0.5, 0.5), 0.3), Shuffled(PureEpsilon(1.0), 10_000)])
def test_other_kinds_cost_about_what_they_cost_alone(event: Event) -> None:
    alone = total_epsilon([event], 1e-6)
    assert alone * (1 - 1e-9) <= total_epsilon([event, PureEpsilon(1e-4)], 1e-6) <= alone * 1.05 + 1e-3
    with pytest.raises(CannotAccount):
        total_epsilon([event, Gaussian.of_rows(1.0)], 1e-6, ADD)


def test_the_total_never_exceeds_budgets_added_up_and_falls_with_delta() -> None:
    budgets: list[Event | Budget] = [Budget(0.2 * k, 1e-7) for k in range(1, 8)]
    total = total_epsilon(budgets, 1e-6)
    assert total <= sum(0.2 * k for k in range(1, 8)) + 1e-12
    assert total_epsilon(budgets, 1e-3) < total
    assert total_epsilon(budgets, 1e-7) == math.inf, "seven deltas of 1e-7 do not fit into 1e-7"
    assert total_epsilon([], 1e-6) == 0


@pytest.mark.parametrize(("epsilon", "count"), [(1e-3, 1000), (800.0, 1), (1e-6, 5)])
def test_extreme_budgets_stay_finite(epsilon: float, count: int) -> None:
    total = total_epsilon([Budget(epsilon)] * count + [Gaussian(1e-3)], 1e-6)
    assert epsilon * 0.99 <= total <= epsilon * count * 1.001 + 0.01


def test_profiles_are_convex_and_at_least_the_truth() -> None:
    """Points above a chord are dropped; a profile between two points is a line in e^epsilon."""
    hull = heterogeneous._convex([(0.0, 0.5), (1.0, 0.45), (2.0, 0.1), (3.0, 0.2), (4.0, 0.05)])
    assert hull.epsilons == (0.0, 2.0, 4.0)
    pure = of_budget(Budget(1.0))
    x = np.array([0.0, 0.4, 1.0, 2.0])
    np.testing.assert_allclose(pure.at(x), np.maximum(0, (math.e - np.exp(x)) / (1 + math.e)), atol=1e-15)
    assert Profile((0.0, 900.0), (1.0, 0.0)).at(np.array([0.0, 450.0, 900.0])).tolist() == pytest.approx([1.0, 1.0, 0.0])


@pytest.mark.parametrize("relation", Neighbouring)
def test_events_go_to_dp_accounting_and_back(relation: Neighbouring) -> None:
    events: list[Event | Budget] = [
        Gaussian.of_rows(1.0, 2.5) if relation is ADD else Gaussian(1.0, 2.5),
        PureEpsilon(0.5),
        Repeated(Gaussian.of_rows(1.0, 4.0) if relation is ADD else Gaussian(1.0, 4.0), 7),
    ]
    events.append(Composed((events[0], events[2])))  # type: ignore[arg-type]
    if relation is ADD:
        events.append(Repeated(Sampled(Gaussian.of_rows(1.0, 1.5), 0.01), 10))
    for event in events:
        back = from_dp_event(to_dp_event(event, relation), relation)
        assert back == event or (isinstance(back, PureEpsilon) and back.epsilon == pytest.approx(0.5))
    with pytest.raises(CannotAccount):
        to_dp_event(Budget(0.5, 1e-6), relation)
    with pytest.raises(CannotAccount):
        to_dp_event(Mixture((0.1, 0.2), (0.5, 0.5), 0.3), relation)
    with pytest.raises(CannotAccount):
        from_dp_event(dp_accounting.NonPrivateDpEvent(), relation)
    if relation is not ADD:
        with pytest.raises(CannotAccount):
            to_dp_event(SGD, relation)
