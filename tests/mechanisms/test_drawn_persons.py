"""DP-SGD that draws persons: each with all rows, which count as one row. Exact pairs, and mistakes that must be seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm
from support import make_problem

from dpviz.common.random import generator, person_batches, poisson_batches, spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training, protection
from dpviz.mechanisms.attack import strongest_attack
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

K, BUDGET = 4, Budget(1.0, 1e-5)
WHO = np.repeat(np.arange(50), np.arange(50) % K + 1)  # 123 rows of 50 persons, who have 1 to 4


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


def rows_of(sign: float, n: int = 40) -> Rows:
    """All rows are 0 but the K of one person, with labels `sign`."""
    x, y = np.zeros((n, 1)), np.where(np.arange(n) % 2, 1.0, -1.0)
    x[:K], y[:K] = 1.0, sign
    return Rows(x, y, K, persons=np.maximum(np.arange(n), K - 1))


def steps(q: float, averaged: bool = True) -> set[float]:
    """What one step sums up of the person in units of C, over batches that hold and do not hold them."""
    mechanism = DPSGD(sampling_rate=q, clip_norm=0.25, batches="persons")
    problem = Problem(rows_of(1.0), get_model("logistic"), 0.1)
    if not averaged:
        problem.rows.averaged = lambda: problem.rows  # type: ignore[method-assign]
    found = [float(mechanism.query(problem, np.zeros((1, 1)), [stream])[0, 0]) for stream in spawn(0, 40)]
    return {round(abs(step) * q * 40 / 0.25, 5) for step in found}


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_worst_person_is_within_the_noise_exactly_and_the_mistakes_are_not(q: float) -> None:
    """One step: the sum holds C with chance q, against 0 or -C, in Gaussian noise; delta by quadrature of the mixtures."""

    def delta(relation: str, contribution: float, chance: float) -> float:
        mechanism = DPSGD(sampling_rate=q, epochs=q, clip_norm=0.25, batches="persons", relation=relation)
        cal = protection.calibrate(mechanism, Problem(rows_of(1.0), get_model("logistic"), 0.1).setting, BUDGET)
        z = cal.noise_scale * q * 40 / 0.25
        grid = np.linspace(-contribution - 12 * z, contribution + 12 * z, 400_001)
        with_person, other = (
            (1 - chance) * norm.pdf(grid, 0, z) + chance * norm.pdf(grid, s * contribution, z)
            for s in (1, -1 if relation == "replace-one" else 0)
        )
        return float(np.trapezoid(np.maximum(with_person - math.exp(BUDGET.epsilon) * other, 0), grid))

    assert steps(q) == {0.0, 1.0}
    assert steps(q, averaged=False) == {0.0, float(K)}
    assert delta("replace-one", 1.0, q) <= BUDGET.delta
    assert 0.99 * BUDGET.delta < delta("add-remove", 1.0, q) <= BUDGET.delta  # attained
    assert delta("add-remove", float(K), q) > BUDGET.delta  # rows of a person added up
    assert delta("add-remove", 1.0, 1 - (1 - q) ** K) > BUDGET.delta  # persons of rows that were drawn


def test_the_guarantee_is_that_of_one_row_and_says_so() -> None:
    person = Problem(rows_of(1.0), get_model("logistic"), 0.1).setting
    mechanism = DPSGD(batches="persons")
    cal, row = (protection.calibrate(mechanism, replace(person, person_rows=k), BUDGET) for k in (K, 0))
    rows_drawn = protection.calibrate(DPSGD(), person, BUDGET)
    assert (cal.person_rows, cal.proved_budget) == (K, BUDGET)
    assert cal.noise_scale == row.noise_scale < rows_drawn.noise_scale / (K - 0.5)
    assert protection.released_event(mechanism, person, cal) == protection.released_event(mechanism, person, row) is not None
    assert protection.releases(mechanism, person) == protection.releases(mechanism, replace(person, person_rows=0))
    assert protection.sensitivity_bounds(mechanism, person)[0].value == cal.sensitivity
    assert any("together count as one row" in note for note in cal.notes)
    attack = strongest_attack(mechanism, person, cal)
    assert attack.accuracy == strongest_attack(mechanism, replace(person, person_rows=0), row).accuracy  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="batches"):
        protection.calibrate(mechanism, replace(get_model("mlp-2").setting(40, 2, 0.1), person_rows=K), BUDGET)


def test_who_is_not_known_is_refused_and_rows_of_single_persons_are_drawn_as_rows() -> None:
    mechanism = DPSGD(batches="persons")
    plain = make_problem(n=60, d=3, lam=0.05)
    unknown = Problem(Rows(plain.rows.X, plain.rows.y, K), plain.model, 0.05)
    with pytest.raises(ValueError, match="whose they are"):
        mechanism.fit(Training(unknown, [protection.calibrate(mechanism, unknown.setting, BUDGET)], spawn(0, 1)))
    models = [
        m.fit(Training(plain, [protection.calibrate(m, plain.setting, BUDGET)], spawn(0, 1), record=False)).theta
        for m in (mechanism, DPSGD())
    ]
    assert np.array_equal(*models)
