"""Epsilon of one person along the iterates of a training, against dp_accounting, with controls."""

import sys

import numpy as np
import pytest
from support import make_problem, mostly_long
from support_individual import fitted, individual

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Training
from dpviz.models.problem import Problem
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.events import Gaussian, Sampled
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.rdp import epsilons
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import ORDERS, PoissonPath


def test_path_energy_is_what_the_rows_contributed() -> None:
    problem = make_problem(n=30, d=3, lam=0.05)
    built = dpviz.list_mechanisms()["dp-gd"].from_params({"steps": 7, "clip_norm": 0.3, "step_size": 1.0})
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    streams = spawn(4, 1)
    fit = built.fit(Training(problem, [cal], streams))
    # the same path again, step by step
    rng = np.random.Generator(np.random.PCG64(streams[0]))
    theta, energy = np.zeros((1, 3)), np.zeros(30)
    for _ in range(7):
        energy += np.minimum(problem.model.gradient_norms(theta, problem.rows)[:, 0], 0.3) ** 2
        gradient = problem.model.sum_gradient(theta, problem.rows, clip_norm=0.3) / 30
        theta = theta - problem.setting.unit_step * (gradient + cal.noise_scale * rng.standard_normal(3) + 0.05 * theta)
    np.testing.assert_allclose(theta[0], fit.theta[0, 0], rtol=1e-9)
    np.testing.assert_allclose(fit.record.gradient_energy[0, 0], energy, rtol=1e-5)
    found = built.individual(problem, cal, fit.theta[0], fit.record.at(0))
    np.testing.assert_allclose(found.epsilon[0], gaussian_epsilon(1e-5, np.sqrt(energy) / (30 * cal.noise_scale)), rtol=1e-5)
    assert built.fit(Training(problem, [cal], streams, record=False)).record.gradient_energy is None


def test_each_budget_keeps_its_own_path() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2)
    low, high = dpviz.run_epsilons(spec, [0.1, 5.0])
    alone = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=5.0))
    np.testing.assert_allclose(high.individual.epsilon, alone.individual.epsilon, rtol=1e-5)
    assert low.individual.epsilon.max() < high.individual.epsilon.min()


def test_poisson_path_grows_with_gradients_and_rounds_up() -> None:
    one_row = PoissonPath(Sampled(Gaussian.of_rows(1.0, 1.0), 0.05))
    length = np.repeat(np.linspace(0, 1, 11)[:, None], 200, axis=1)
    found = epsilons(one_row.divergence(length), 1e-6, ORDERS)
    assert found[0] == 0
    assert np.all(np.diff(found) > 0)
    drawn = np.random.default_rng(0).random((3, 40))
    exact = np.array([sum(rdp.sampled_gaussian(0.05, 1 / u, ORDERS) for u in row) for row in drawn])
    rounded = one_row.divergence(drawn)
    assert np.all(rounded >= exact * (1 - 1e-12))
    best = np.abs(np.array(ORDERS) - 20).argmin()
    assert np.all(rounded[:, best] <= 1.01 * exact[:, best])
    # small gradients at a low rate: chords between knots lie above the exact sum
    rare, small = PoissonPath(Sampled(Gaussian.of_rows(1.0, 0.68), 0.0065)), np.array([0.002, 0.0005, 0.001, 0.003])
    spent = sum(rdp.sampled_gaussian(0.0065, 0.68 / u, ORDERS) for u in small)
    exact, found = epsilons(1458 * np.stack([spent, rare.divergence(small[None])[0]]), 1e-6, ORDERS)
    assert exact * (1 - 1e-9) <= found <= 1.02 * exact
    for bad in (
        lambda: one_row.divergence(1.1 * np.ones((2, 3))),
        lambda: one_row.divergence(-np.ones((2, 3))),
        lambda: one_row.divergence(np.full((2, 3), np.nan)),
        lambda: one_row.divergence(np.ones(3)),
        lambda: PoissonPath(Sampled(Gaussian.of_rows(1.0, 1.0), 0.0)).divergence(np.ones((2, 3))),
        lambda: PoissonPath(Sampled(Gaussian.of_rows(1.0, 0.0), 0.05)).divergence(np.ones((2, 3))),
    ):
        with pytest.raises(dpviz.InvalidInput):
            bad()


POISSON = [
    ("dp-sgd", {"sampling_rate": 0.2, "epochs": 4.0}),
    ("dp-sgd", {"sampling_rate": 1.0, "epochs": 6.0, "relation": "add-remove"}),
    ("dp-sgd", {"sampling_rate": 0.1, "epochs": 3.0, "clip_norm": 0.3, "relation": "add-remove", "accountant": "rdp"}),
    ("dp-lssgd", {"sampling_rate": 0.1, "epochs": 3.0, "clip_norm": 0.3}),
    ("bassily-sgd", {"sampling_rate": 0.3, "epochs": 5.0}),
    ("dp-svrg", {"rounds": 3, "inner_steps": 4, "relation": "add-remove"}),
    ("dp-svrg", {"rounds": 2, "inner_steps": 5, "clip_norm": 0.3, "snapshot": "average"}),
    ("dp-svrg", {"rounds": 4, "inner_steps": 1}),
]


def along_by_hand(
    problem: Problem, mechanism: str, params: dict[str, object], theta: np.ndarray, rows: np.ndarray, noise: float = 1.0
) -> np.ndarray:
    """Epsilon of some rows at delta = 1e-5 by dp_accounting, step by step and row by row along iterates (T, m)."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    built = dpviz.list_mechanisms()[mechanism].from_params(params)
    details = built.calibrate(problem.setting, Budget(1.0, 1e-5)).details
    clip, q = built.clip_norm or 0.5, built.sampling_rate  # type: ignore[attr-defined]
    x, y = problem.rows.X, problem.rows.y

    def gradient(i: int, at: np.ndarray) -> np.ndarray:
        g = -y[i] * x[i] / (1 + np.exp(y[i] * x[i] @ at))
        return g * min(1.0, clip / np.linalg.norm(g))

    out = []
    for i in rows:
        accountant = RdpAccountant([a for a in ORDERS if a <= 128])
        anchor = theta[0]
        for t in range(len(theta)):
            whole, z, unit, sent = q == 1, details.get("noise_multiplier", 0.0), min(clip, 1.0), gradient(i, theta[t])
            if mechanism == "dp-svrg":
                if t % built.inner_steps == 0:  # type: ignore[attr-defined]
                    anchor, whole, z = theta[t], True, details["noise_multiplier_full"]
                else:
                    z, sent = details["noise_multiplier_inner"], sent - gradient(i, anchor)
                    unit = min(2 * unit, 0.25 * np.linalg.norm(theta[t] - anchor))
            length = float(np.linalg.norm(sent))
            if length > 0:
                event = GaussianDpEvent(noise * z * unit / length)
                accountant.compose(event if whole else PoissonSampledDpEvent(q, event))
        out.append(accountant.get_epsilon(1e-5))
    return np.array(out)


@pytest.mark.parametrize(("mechanism", "params"), mostly_long(POISSON, POISSON[1], POISSON[6]))
def test_poisson_batches_cost_a_row_what_dp_accounting_says(mechanism: str, params: dict[str, object]) -> None:
    problem = make_problem(n=12, d=3, lam=0.05, seed=3)
    built, cal, fit = fitted(mechanism, problem, **params)
    found = built.individual(problem, cal, fit.theta[0], fit.record.at(0))
    path, own = fit.record.path[0, 1], found.epsilon[1]
    # no row costs more than the worst case by the mechanism's own accountant, which is tighter: those rows are left out
    rows = np.flatnonzero(own < own.max())[:4]
    by_hand = along_by_hand(problem, mechanism, params, path, rows)
    np.testing.assert_allclose(own[rows], by_hand, rtol=0.02)
    assert np.all(own[rows] >= by_hand * (1 - 1e-9))
    # the control: 5 % less noise is detected
    less = along_by_hand(problem, mechanism, params, path, rows, noise=0.95)
    assert not np.any(np.isclose(own[rows], less, rtol=0.02))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["dp-sgd", "dp-lssgd", "bassily-sgd", "dp-svrg"])
def test_no_row_costs_more_than_the_mechanism_promises(mechanism: str, relation: str, model_id: str) -> None:
    problem = make_problem(n=30, d=3, model=model_id)
    params = {"relation": relation, "clip_norm": 0.05}  # every gradient is clipped, so every row pays in full
    found = individual(mechanism, problem, **params)
    assert found.epsilon.max() <= 1.0 + 1e-6
    if mechanism != "dp-svrg":
        assert found.epsilon.max() > (0.9 if relation == "add-remove" else 0.4)


def test_the_path_is_the_one_that_was_released() -> None:
    problem = make_problem(n=30, d=3)
    built = dpviz.list_mechanisms()["dp-sgd"].from_params({"sampling_rate": 0.2, "epochs": 3.0})
    longer = dpviz.list_mechanisms()["dp-sgd"].from_params({"sampling_rate": 0.2, "epochs": 2.0})
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    path = built.fit(Training(problem, [cal], spawn(5, 3))).record.path
    assert path.shape == (1, 3, 15, 3)
    np.testing.assert_array_equal(path[0, :, 0], 0)
    np.testing.assert_array_equal(path[0, :, 10], longer.fit(Training(problem, [cal], spawn(5, 3))).theta[0])


def test_long_runs_look_at_fewer_paths_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, shared = make_problem(n=30, d=3), sys.modules["dpviz.mechanisms.individual"]
    everything = individual("dp-sgd", problem)
    assert everything.epsilon.shape == (2, 30)
    monkeypatch.setattr(shared, "_NORMS", 30 * 200)
    one = individual("dp-sgd", problem)
    np.testing.assert_array_equal(one.epsilon, everything.epsilon[:1])
    assert "first 1 of 2 noise draws" in one.method
    monkeypatch.setattr(shared, "_PATH_BYTES", 100)
    built, cal, fit = fitted("dp-sgd", problem)
    assert fit.record.path is None
    assert built.individual(problem, cal, fit.theta[0], fit.record) is None


def test_published_single_row_steps_have_no_individual_epsilon() -> None:
    problem = make_problem(n=20, d=3)
    for mechanism, params in (("bassily-sgd", {"mode": "faithful"}), ("dp-svrg", {"noise": "published"})):
        built, cal, fit = fitted(mechanism, problem, 1, **params)
        assert built.individual(problem, cal, fit.theta[0], fit.record.at(0)) is None


def test_filtered_rows_spend_their_budget_and_no_more() -> None:
    problem = make_problem(n=30, d=3)
    built, cal, fit = fitted("renyi-filter", problem, full_steps=5, stretch=6.0)
    record = fit.record.at(0)
    assert record.gradient_energy.max() <= 5 * (1 + 1e-9)
    stopped = record.visits < len(record.timeline[0, 0])  # type: ignore[index]
    assert stopped.any()
    found = built.individual(problem, cal, fit.theta[0], record)
    assert found.replace.max() <= 1.0 + 1e-6
    exact = gaussian_epsilon(1e-5, np.sqrt(record.gradient_energy[0]) / (30 * cal.noise_scale))
    np.testing.assert_allclose(found.epsilon, exact, rtol=1e-6)


@pytest.mark.parametrize("mechanism", ["dp-sgd", "dp-svrg"])
def test_rows_of_later_blocks_are_those_of_the_first(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at in blocks of 64 at least; what is said of a row does not depend on where it stands."""
    problem, knobs = make_problem(n=150), {"epochs": 3.0} if mechanism == "dp-sgd" else {"rounds": 2, "inner_steps": 4}
    whole = individual(mechanism, problem, **knobs).epsilon
    monkeypatch.setattr("dpviz.mechanisms.individual._BLOCK", 1)
    np.testing.assert_allclose(individual(mechanism, problem, **knobs).epsilon, whole, rtol=1e-9)
    assert whole.shape[-1] == 150


def test_a_path_that_nobody_would_wait_for_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(n=40, d=3, lam=0.05)
    built, declared, fit = fitted("dp-sgd", problem)
    for most, followed in ((10**9, True), (100, False)):
        monkeypatch.setattr("dpviz.mechanisms.individual._MOST_NORMS", most)
        assert (built.individual(problem, declared, fit.theta[0], fit.record.at(0)) is not None) is followed


def test_a_networks_row_costs_svrg_what_its_gradients_allow() -> None:
    """Gradients of a network's row at two points may point anywhere: their lengths add up, and 2C bounds what a row adds.

    By one row at a time, with gradients by finite differences and the Rényi sums of `rdp`.
    """
    problem = make_problem(n=8, d=3, lam=0.05, seed=3, model="mlp-2")
    built, cal, fit = fitted("dp-svrg", problem, 1, rounds=2, inner_steps=3, clip_norm=0.4)
    found = built.individual(problem, cal, fit.theta[0], fit.record.at(0))
    path, details = fit.record.path[0, 0], cal.details

    def loss(i: int, theta: np.ndarray) -> float:
        score = problem.model.scores(theta[None], problem.rows.take(slice(i, i + 1)))[0, 0]
        return float(np.logaddexp(0.0, -problem.rows.y[i] * score))

    def length(i: int, theta: np.ndarray) -> float:
        steps = 1e-6 * np.eye(problem.m)
        return float(np.linalg.norm([(loss(i, theta + e) - loss(i, theta - e)) / 2e-6 for e in steps]))

    for i in range(problem.n):
        curve, clip = np.zeros(len(ORDERS)), 0.4
        for t, theta in enumerate(path):
            sent = min(length(i, theta), clip)
            if t % 3 == 0:
                anchor = sent
                curve += rdp.gaussian(sent / clip / details["noise_multiplier_full"], ORDERS)
            else:
                share = (sent + anchor) / (2 * clip)  # what a row may add is public: 2C, for a network has no bound on curvature
                curve += rdp.sampled_gaussian(details["sampling_rate"], details["noise_multiplier_inner"] / share, ORDERS)
        by_hand = float(epsilons(curve, 1e-5, ORDERS))
        assert by_hand * (1 - 1e-5) <= found.epsilon[0, i] <= by_hand * 1.01
