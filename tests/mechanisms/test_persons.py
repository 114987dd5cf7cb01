"""Guarantees for persons with several rows, whose rows are trained on or drawn together: exact worst pairs, with controls."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm
from support import assert_refused, make_problem

from dpviz.common.random import generator, person_batches, poisson_batches, spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Mechanism, Training, get_mechanism, list_mechanisms, protection
from dpviz.mechanisms.attack import strongest_attack
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.mechanisms.persons import budget_of_group, budget_of_row, privacy_unit
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import scale_noise
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


def for_a_row(mechanism: Mechanism, problem: Problem, budget: Budget = BUDGET) -> float:
    """The noise of the planted mistake: k is forgotten."""
    return protection.calibrate(mechanism, replace(problem.setting, person_rows=0), budget).noise_scale


@pytest.mark.parametrize(("name", "k"), [("output-gaussian", 3), ("output-gaussian", 6), ("cms-output", 3)])
def test_output_noise_covers_all_rows_of_a_person(name: str, k: int) -> None:
    first, second = pair(1.0, k)
    mechanism = get_mechanism(name)()
    budget = Budget(1.0) if mechanism.pure else BUDGET
    cal, apart = protection.calibrate(mechanism, first.setting, budget), moved(first, second)
    assert cal.proved_budget == budget
    assert apart <= cal.sensitivity or mechanism.pure
    for scale, kept in ((cal.noise_scale, True), (for_a_row(mechanism, first, budget), False)):
        # the log-ratio of gamma-sphere densities, at most, or delta at epsilon
        within = apart / scale <= 1.0 if mechanism.pure else gaussian_delta(1.0, apart / scale) <= budget.delta
        assert within == kept


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
    assert [budget_of_group(Budget(1e3, delta), 2).delta for delta in (1e-5, 0.0)] == [1 - 1e-16, 0]


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
    assert_refused(
        protection.calibrate, get_mechanism("objective-tight")(), first.setting, Budget(2000.0, 1e-5), match="group privacy"
    )
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
    assert weaker == scale_noise(event, 2.0)
    assert twice.for_row().noise_scale == 2 * cal.for_row().noise_scale
    assert protection.released_event(mechanism, first.setting, cal.noiseless()) is None  # type: ignore[arg-type]


MOST, BUDGET = 4, Budget(1.0, 1e-5)
WHO = np.repeat(np.arange(50), np.arange(50) % MOST + 1)  # 123 rows of 50 persons, who have 1 to 4


def together(draw: object, draws: int = 1500) -> tuple[bool, np.ndarray]:
    """(whether all rows of a person are always in a batch together, how often each person is in one)."""
    whole, seen = True, np.zeros(50)
    for t in range(draws):
        batch = draw(t)  # type: ignore[operator]
        assert (np.diff(batch) > 0).all()
        drawn = np.unique(WHO[batch])
        whole &= len(batch) == np.isin(WHO, drawn).sum()
        seen[drawn] += 1
    return bool(whole), seen


def test_persons_are_drawn_with_all_of_their_rows_at_the_rate_that_is_accounted_for() -> None:
    """The planted mistakes: rows drawn singly, and the persons of rows that were drawn singly, who come too often."""
    rate, rng = 0.1, generator(spawn(3, 1)[0])
    whole, seen = together(person_batches(WHO, rate)(rng))
    limit = binom.ppf([1e-7, 1 - 1e-7], 1500, rate)
    assert whole
    assert (limit[0] <= seen.min()) & (seen.max() <= limit[1])
    singly = poisson_batches(len(WHO), rate)(rng)
    assert not together(singly)[0]
    completed = together(lambda t: np.flatnonzero(np.isin(WHO, WHO[singly(t)])))
    assert completed[0]
    assert completed[1].max() > limit[1]


def rows_of_one(sign: float, n: int = 40) -> Rows:
    """All rows are 0 but the MOST of one person, with labels `sign`."""
    x, y = np.zeros((n, 1)), np.where(np.arange(n) % 2, 1.0, -1.0)
    x[:MOST], y[:MOST] = 1.0, sign
    return Rows(x, y, MOST, persons=np.maximum(np.arange(n), MOST - 1))


def steps(q: float, averaged: bool = True) -> set[float]:
    """What one step sums up of the person in units of C, over batches that hold and do not hold them."""
    mechanism = DPSGD(sampling_rate=q, clip_norm=0.25, batches="persons")
    problem = Problem(rows_of_one(1.0), get_model("logistic"), 0.1)
    if not averaged:
        problem.rows.average_persons = lambda: problem.rows  # type: ignore[method-assign]
    found = [float(mechanism.query(problem, np.zeros((1, 1)), [stream])[0, 0]) for stream in spawn(0, 40)]
    return {round(abs(step) * q * 40 / 0.25, 5) for step in found}


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_worst_person_is_within_the_noise_exactly_and_the_mistakes_are_not(q: float) -> None:
    """One step: the sum holds C with chance q, against 0 or -C, in Gaussian noise; delta by quadrature of the mixtures."""

    def delta(relation: str, contribution: float, chance: float) -> float:
        mechanism = DPSGD(sampling_rate=q, epochs=q, clip_norm=0.25, batches="persons", relation=relation)
        cal = protection.calibrate(mechanism, Problem(rows_of_one(1.0), get_model("logistic"), 0.1).setting, BUDGET)
        z = cal.noise_scale * q * 40 / 0.25
        grid = np.linspace(-contribution - 12 * z, contribution + 12 * z, 400_001)
        with_person, other = (
            (1 - chance) * norm.pdf(grid, 0, z) + chance * norm.pdf(grid, s * contribution, z)
            for s in (1, -1 if relation == "replace-one" else 0)
        )
        return float(np.trapezoid(np.maximum(with_person - math.exp(BUDGET.epsilon) * other, 0), grid))

    assert steps(q) == {0.0, 1.0}
    assert steps(q, averaged=False) == {0.0, float(MOST)}
    assert delta("replace-one", 1.0, q) <= BUDGET.delta
    assert 0.99 * BUDGET.delta < delta("add-remove", 1.0, q) <= BUDGET.delta  # attained
    assert delta("add-remove", float(MOST), q) > BUDGET.delta  # rows of a person added up
    assert delta("add-remove", 1.0, 1 - (1 - q) ** MOST) > BUDGET.delta  # persons of rows that were drawn


def test_the_guarantee_is_that_of_one_row_and_says_so() -> None:
    person = Problem(rows_of_one(1.0), get_model("logistic"), 0.1).setting
    mechanism = DPSGD(batches="persons")
    cal, row = (protection.calibrate(mechanism, replace(person, person_rows=k), BUDGET) for k in (MOST, 0))
    rows_drawn = protection.calibrate(DPSGD(), person, BUDGET)
    assert (cal.person_rows, cal.proved_budget) == (MOST, BUDGET)
    assert cal.noise_scale == row.noise_scale < rows_drawn.noise_scale / (MOST - 0.5)
    assert protection.released_event(mechanism, person, cal) == protection.released_event(mechanism, person, row) is not None
    assert protection.releases(mechanism, person) == protection.releases(mechanism, replace(person, person_rows=0))
    assert protection.sensitivity_bounds(mechanism, person)[0].value == cal.sensitivity
    assert any("together count as one row" in note for note in cal.notes)
    attack = strongest_attack(mechanism, person, cal)
    assert attack.accuracy == strongest_attack(mechanism, replace(person, person_rows=0), row).accuracy  # type: ignore[union-attr]
    assert_refused(
        protection.calibrate,
        mechanism,
        replace(get_model("mlp-2").setting(40, 2, 0.1), person_rows=MOST),
        BUDGET,
        match="batches",
    )


def test_who_is_not_known_is_refused_and_rows_of_single_persons_are_drawn_as_rows() -> None:
    mechanism = DPSGD(batches="persons")
    plain = make_problem(n=60, d=3, lam=0.05)
    unknown = Problem(Rows(plain.rows.X, plain.rows.y, MOST), plain.model, 0.05)
    with pytest.raises(ValueError, match="whose they are"):
        mechanism.fit(Training(unknown, [protection.calibrate(mechanism, unknown.setting, BUDGET)], spawn(0, 1)))
    models = [
        m.fit(Training(plain, [protection.calibrate(m, plain.setting, BUDGET)], spawn(0, 1), record=False)).theta
        for m in (mechanism, DPSGD())
    ]
    assert np.array_equal(*models)
