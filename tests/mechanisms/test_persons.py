"""Guarantees for persons with several rows: exact worst pairs that change all rows of one, with controls."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Mechanism, Training, get_mechanism, list_mechanisms, protection
from dpviz.mechanisms.attack import strongest_attack
from dpviz.mechanisms.persons import budget_of_group, budget_of_row, privacy_unit
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import scaled
from dpviz.privacy.accounting.gaussian import gaussian_delta
from dpviz.privacy.budget import Budget

BUDGET = Budget(1.0, 1e-5)
K = 3


def pair(lam: float, k: int = K, n: int = 60) -> tuple[Problem, Problem]:
    """All rows are 0 but the k of one person, whose labels are flipped in the second problem."""
    x, labels = np.zeros((n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    x[:k, 0] = 1.0
    return tuple(
        Problem(Rows(x, np.r_[np.full(k, sign), labels[k:]], person_rows=k), get_model("logistic"), lam) for sign in (1.0, -1.0)
    )  # type: ignore[return-value]


def moved(first: Problem, second: Problem) -> float:
    return float(np.linalg.norm(first.optimum - second.optimum))


def for_a_row(mechanism: Mechanism, problem: Problem) -> float:
    """The noise of the planted mistake: k is forgotten."""
    return protection.calibrate(mechanism, replace(problem.setting, person_rows=0), BUDGET).noise_scale


@pytest.mark.parametrize("k", [3, 6])
def test_gaussian_output_noise_covers_all_rows_of_a_person(k: int) -> None:
    first, second = pair(1.0, k)
    mechanism = get_mechanism("output-gaussian")()
    cal = protection.calibrate(mechanism, first.setting, BUDGET)
    assert moved(first, second) <= cal.sensitivity
    assert gaussian_delta(BUDGET.epsilon, moved(first, second) / cal.noise_scale) <= BUDGET.delta
    assert gaussian_delta(BUDGET.epsilon, moved(first, second) / for_a_row(mechanism, first)) > BUDGET.delta


def test_pure_output_noise_covers_all_rows_of_a_person() -> None:
    first, second = pair(1.0)
    mechanism = get_mechanism("cms-output")()
    cal = protection.calibrate(mechanism, first.setting, Budget(1.0))
    assert cal.proved_budget == Budget(1.0)
    assert moved(first, second) / cal.noise_scale <= 1.0  # log-ratio of gamma-sphere densities, at most
    assert (
        moved(first, second) / protection.calibrate(mechanism, replace(first.setting, person_rows=0), Budget(1.0)).noise_scale
        > 1.0
    )


def test_clipped_gradients_of_a_person_move_the_sum_exactly_as_far_as_the_noise_is_for() -> None:
    """Gradients longer than the clipping norm on one line: DP-GD's worst case is attained in every step, T Gaussians in all."""
    first, second = pair(0.1)
    mechanism = get_mechanism("dp-gd")(steps=7, clip_norm=0.25)
    cal = protection.calibrate(mechanism, first.setting, BUDGET)
    theta, streams = np.zeros((1, 2)), spawn(0, 1)
    step = float(np.linalg.norm(mechanism.query(first, theta, streams) - mechanism.query(second, theta, streams)))
    assert step == pytest.approx(2 * K * 0.25 / first.n) == pytest.approx(cal.sensitivity)
    reached = float(gaussian_delta(BUDGET.epsilon, math.sqrt(7) * step / cal.noise_scale))
    assert BUDGET.delta * (1 - 1e-5) < reached <= BUDGET.delta
    assert gaussian_delta(BUDGET.epsilon, math.sqrt(7) * step / for_a_row(mechanism, first)) > 100 * BUDGET.delta


def test_random_batches_hold_some_rows_of_a_person() -> None:
    """One step of DP-SGD: of k rows in clear Poisson batches, a binomial number is in; the pair is a mixture, by quadrature."""
    first, _ = pair(0.1, n=400)
    mechanism = get_mechanism("dp-sgd")(sampling_rate=0.1, epochs=0.1, clip_norm=0.25)
    cal = protection.calibrate(mechanism, first.setting, BUDGET)

    def delta(noise: float) -> float:
        z = noise * 0.1 * first.n / 0.25  # in units of what one row contributes to the sum of a batch
        grid = np.linspace(-4 - 12 * z, 4 + 12 * z, 400_001)
        share = binom.pmf(np.arange(K + 1), K, 0.1)
        p, q = (sum(s * norm.pdf(grid, sign * j, z) for j, s in enumerate(share)) for sign in (1, -1))
        return float(np.trapezoid(np.maximum(p - math.exp(BUDGET.epsilon) * q, 0), grid))

    assert cal.row_calibration is not None
    assert delta(cal.noise_scale) <= BUDGET.delta
    assert delta(for_a_row(mechanism, first)) > BUDGET.delta


@pytest.mark.parametrize("k", [2, 3, 10])
def test_group_privacy_is_met_exactly_by_the_worst_chain(k: int) -> None:
    """P(A) grows by p -> e^eps p + delta with every row: (eps, delta)-DP between neighbours, and at the bound for k rows."""
    row = budget_of_row(BUDGET, k)
    assert budget_of_group(row, k).epsilon == pytest.approx(BUDGET.epsilon)
    p = 0.0
    for _ in range(k):
        p = math.exp(row.epsilon) * p + row.delta
    assert p == pytest.approx(BUDGET.delta, rel=1e-12)
    assert budget_of_group(row, k).delta == pytest.approx(p, rel=1e-12)
    assert k * row.delta < p  # plain addition of deltas would claim too much


def test_group_privacy_is_a_budget_beyond_double_precision() -> None:
    assert budget_of_group(Budget(400.0, 1e-200), 2).delta == pytest.approx(math.exp(400 - 200 * math.log(10)), rel=1e-9)
    assert budget_of_group(Budget(1e3, 1e-5), 2).delta == 1 - 1e-16
    assert budget_of_group(Budget(1e3, 0.0), 2).delta == 0


def test_of_row_holds_at_the_ends() -> None:
    assert budget_of_row(Budget(1e-9, 1e-5), 4).delta == pytest.approx(2.5e-6)
    assert budget_of_row(Budget(2.0), 4) == Budget(0.5)
    assert budget_of_row(Budget(1e6, 1e-5), 4).delta == 0.0


@pytest.mark.parametrize("name", list_mechanisms())
def test_every_mechanism_is_calibrated_and_trained_for_the_person(name: str) -> None:
    """The model for a person is that of one row at the budget of one row; what is stated about it is about the person."""
    mechanism = get_mechanism(name)()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    rows = Rows(x / np.linalg.norm(x, axis=1)[:, None], np.where(x[:, 0] > 0, 1.0, -1.0), person_rows=K)
    person = Problem(rows, get_model("logistic"), 0.1)
    budget = Budget(2.0) if mechanism.pure else Budget(2.0, 1e-4)
    try:
        cal = protection.calibrate(mechanism, person.setting, budget)
    except InvalidInput:
        pytest.skip("the method refuses so small a table")
    alone = cal.row_calibration
    assert (cal.person_rows, cal.budget) == (K, budget)
    if cal.mu is None:
        assert alone.budget.epsilon == pytest.approx(budget.epsilon / K)
    else:
        assert cal.mu == pytest.approx(K * alone.mu)
    assert cal.noise_scale == alone.noise_scale
    if alone.proved_budget is not None:
        assert cal.proved_budget.epsilon >= budget.epsilon * (1 - 1e-9)
        person_attack, row_attack = (strongest_attack(mechanism, person.setting, c) for c in (cal, alone))
        assert row_attack.accuracy < person_attack.accuracy <= person_attack.accuracy_by_budget
    single = Problem(Rows(rows.X, rows.y), person.model, 0.1)
    thetas = [
        mechanism.fit(Training(problem, [c], spawn(1, 2), record=False)).theta for problem, c in ((person, cal), (single, alone))
    ]
    assert np.array_equal(*thetas, equal_nan=True)


def test_too_large_an_epsilon_is_one_error_where_no_gaussian_helps() -> None:
    first, _ = pair(0.1)
    with pytest.raises(InvalidInput, match="group privacy"):
        protection.calibrate(get_mechanism("objective-tight")(), first.setting, Budget(2000.0, 1e-5))
    assert protection.calibrate(get_mechanism("output-gaussian")(), first.setting, Budget(1e5, 1e-5)).mu > 400


def test_one_row_a_person_costs_nothing() -> None:
    first, _ = pair(0.1, 1)
    mechanism = get_mechanism("dp-sgd")()
    cal, row = (protection.calibrate(mechanism, replace(first.setting, person_rows=k), BUDGET) for k in (1, 0))
    assert cal.noise_scale == row.noise_scale
    assert protection.released_event(mechanism, first.setting, cal) == protection.released_event(mechanism, first.setting, row)  # type: ignore[attr-defined]
    assert "person" in privacy_unit(cal.person_rows)
    assert privacy_unit(row.person_rows) == "one row"


@pytest.mark.parametrize("name", ["output-gaussian", "dp-gd", "cms-output"])
def test_what_is_stated_of_a_person_follows_a_noise_that_was_changed(name: str) -> None:
    first, _ = pair(0.1)
    mechanism = get_mechanism(name)()
    cal = protection.calibrate(mechanism, first.setting, Budget(1.0) if mechanism.pure else BUDGET)
    twice = replace(cal, noise_scale=2 * cal.noise_scale)
    event, weaker = (protection.released_event(mechanism, first.setting, each) for each in (cal, twice))  # type: ignore[arg-type]
    assert weaker == scaled(event, 2.0)
    assert twice.for_row().noise_scale == 2 * cal.for_row().noise_scale
    assert protection.released_event(mechanism, first.setting, cal.noiseless()) is None  # type: ignore[arg-type]
