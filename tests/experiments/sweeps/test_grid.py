"""Grids over two settings, and what a search costs."""

import math

import numpy as np
import pytest

import dpviz
from dpviz.experiments.sweeps import grid
from dpviz.privacy.accounting.division import random_search

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, lam=0.01)


@pytest.mark.parametrize(
    ("mechanism", "first"), [("dp-gd", "step_size"), ("rsgd-ar", "step_size"), ("dp-agd", "splits"), ("non-private", None)]
)
def test_a_search_begins_with_lambda_and_what_the_rows_can_tell(mechanism: str, first: str | None) -> None:
    assert grid.first_pair(dpviz.RunSpec("teaching", mechanism=mechanism)) == (None if first is None else (first, "lam"))


def test_what_is_guaranteed_is_never_tuned() -> None:
    """The best of relation, accountant and form of noise would be the weakest guarantee."""
    for name, cls in dpviz.list_mechanisms().items():
        tuned = set(grid.declared_knobs(dpviz.RunSpec("teaching", mechanism=name)))
        assert not tuned & set("relation accountant accounting noise calibration bound slack theorem sharing".split())
        assert not tuned & {"mode", "refined", "private", "epsilon_is", "c", "lipschitz"}
        assert tuned >= {"lam", *(knob for knob, declared in cls.knobs().items() if declared.automatic)}


def test_a_grid_is_what_single_runs_give() -> None:
    made = grid.grid(SPEC, "steps", "lam", steps=3)
    assert len(made.cells) == 9
    assert len({cell.key() for _, _, cell in made.cells}) == 9
    first = [(i % 2) + (j % 2) for i, j, _ in made.cells]
    assert first == sorted(first), "a coarse picture comes first"
    tables = {k: cell.attempt() for k, (_, _, cell) in enumerate(made.cells)}
    means = made.means(tables, "accuracy")
    i, j, cell = made.cells[4]
    assert means[j, i] == pytest.approx(dpviz.run(cell.spec).accuracy.mean())
    np.testing.assert_allclose(made.draws(tables, "accuracy", i, j), dpviz.run(cell.spec).accuracy)
    assert not len(made.draws({}, "accuracy", i, j))
    assert made.at(i, j) == {"steps": cell.spec.params["steps"], "lam": cell.spec.lam}
    assert np.isnan(made.means({0: tables[0]}, "optimality_gap")).sum() == 8
    with pytest.raises(dpviz.InvalidInput):
        grid.grid(SPEC, "steps", "steps")
    with pytest.raises(dpviz.InvalidInput):
        grid.grid(SPEC, "steps", "magic")


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_random_search_bound_holds_and_is_reached(eta: float) -> None:
    """A run scores 2, 1 or 0 with probabilities a, b, 1-a-b, b << a << 1; its neighbour with a/e^eps and b e^eps.

    With f the generating function of the number of runs, P[best = 1] = f(1-a) - f(1-a-b), which moves by nearly
    e^{(2+eta) eps}: the bound holds, and nothing smaller would.
    """
    epsilon, gamma = 0.5, 1e-9

    def f(x: float) -> float:
        return gamma * x / (1 - (1 - gamma) * x) if eta else math.log(1 - (1 - gamma) * x) / math.log(gamma)

    def middle(a: float, b: float) -> float:
        return f(1 - a) - f(1 - a - b)

    worst = max(
        math.log(middle(a * math.exp(-epsilon), b * math.exp(epsilon)) / middle(a, b))
        for a in (1e-1, 1e-2, 1e-3)
        for b in (a / 10, a / 100, a / 1000)
    )
    assert worst <= random_search(epsilon, eta)
    assert worst > 0.99 * random_search(epsilon, eta)
