"""Grids over two settings, and what a search costs."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import dpviz
from dpviz.experiments.sweeps import grid
from dpviz.privacy.accounting.selection import composed, random_search

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, lam=0.01)


@pytest.mark.parametrize(
    ("mechanism", "first"), [("dp-gd", "step_size"), ("rsgd-ar", "step_size"), ("dp-agd", "splits"), ("non-private", None)]
)
def test_a_search_begins_with_lambda_and_what_the_rows_can_tell(mechanism: str, first: str | None) -> None:
    assert grid.first_pair(dpviz.RunSpec("teaching", mechanism=mechanism)) == (None if first is None else (first, "lam"))


def test_values_surround_the_present_one() -> None:
    knobs = grid.declared(SPEC)
    assert knobs["steps"].around(50, grid.STEPS) == (6, 12, 25, 50, 100, 200, 400)
    assert dpviz.list_mechanisms()["dp-gd"].knobs()["noise"].around("exact", grid.STEPS) == ("exact", "published")
    assert knobs["lam"].around(1e-8, grid.STEPS)[0] == 1e-8
    assert knobs["lam"].around(1e-3, grid.STEPS)[0] < 1e-3 / 50, "rare classes need a small lambda"
    assert all(knobs["step_size"].check("step_size", v) == v for v in knobs["step_size"].around(9.0, grid.STEPS))
    assert 9.0 in knobs["step_size"].around(9.0, grid.STEPS)
    assert dpviz.list_mechanisms()["rsgd-ar"].knobs()["averaging"].around(True, grid.STEPS) == (False, True)
    linear = dpviz.list_mechanisms()["bolt-on-psgd"].knobs()["decay"].around(0.5, grid.STEPS)
    assert 0.5 in linear
    assert linear == tuple(sorted(linear))


def test_what_is_guaranteed_is_never_tuned() -> None:
    """The best of relation, accountant and form of noise would be the weakest guarantee."""
    for name, cls in dpviz.list_mechanisms().items():
        tuned = set(grid.declared(dpviz.RunSpec("teaching", mechanism=name)))
        assert not tuned & set("relation accountant accounting noise calibration bound slack theorem sharing".split())
        assert not tuned & {"mode", "refined", "private", "epsilon_is", "c", "lipschitz"}
        assert tuned >= {"lam", *(knob for knob, declared in cls.knobs().items() if declared.automatic)}


MANY = [name for name in dpviz.list_mechanisms() if grid.first_pair(dpviz.RunSpec("teaching", mechanism=name)) is not None]


@pytest.mark.parametrize("mechanism", MANY)
def test_every_mechanism_with_numbers_has_a_grid(mechanism: str) -> None:
    assert len(MANY) > 15
    spec = dpviz.RunSpec("teaching", mechanism=mechanism, seeds=2)
    first = next(iter(grid.declared(spec)))
    made = grid.grid(spec, first, "lam", steps=3)
    assert made.cells
    assert any(dpviz.resolve(cell.spec).key() == dpviz.resolve(spec).key() for _, _, cell in made.cells), (
        "the present settings are in the grid"
    )


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


@pytest.mark.parametrize(("epsilon", "delta", "k"), [(0.1, 1e-6, 49), (1.0, 1e-6, 25), (0.5, 0.0, 10), (2.0, 1e-5, 3)])
def test_composition_agrees_with_loss_distributions(epsilon: float, delta: float, k: int) -> None:
    """dp_accounting composes the dominating pair of (eps, delta)-DP numerically; both are exact."""
    plain = composed(dpviz.Budget(epsilon, delta), k)
    assert plain.epsilon == pytest.approx(k * epsilon)
    assert plain.delta == pytest.approx(1 - (1 - delta) ** k, abs=1e-12)
    tight = composed(dpviz.Budget(epsilon, delta), k, slack=1e-4)
    assert tight.epsilon <= plain.epsilon
    pair = pld.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=epsilon / 1000
    )
    assert pair.self_compose(k).get_delta_for_epsilon(tight.epsilon) == pytest.approx(tight.delta, rel=1e-3, abs=1e-10)


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
