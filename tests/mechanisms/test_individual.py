"""Epsilon of one person, at the end of a training and along its iterates, against exact losses and dp_accounting; controls."""

import sys

import numpy as np
import pytest
from scipy.stats import binom
from support import assert_refused, make_problem, mostly_long
from support_individual import fitted, individual

import dpviz
from dpviz.common.random import spawn
from dpviz.influence import influence_of
from dpviz.mechanisms import IndividualBudget, Training
from dpviz.mechanisms.individual import after_objective_noise
from dpviz.models import derivatives_of
from dpviz.models.problem import Problem
from dpviz.models.solvers.many import newton
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.events import Gaussian, Sampled
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.individual import (
    ORDERS,
    PoissonPath,
    gamma_output,
    gaussian_epsilons,
    gaussian_output,
    objective_ex_post,
    objective_publishable,
)


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
def test_every_mechanism_with_individual_epsilon(mechanism: str, model_id: str) -> None:
    spec = dpviz.RunSpec("teaching", model_id, mechanism, seeds=3, lam=0.01)
    result = dpviz.run(spec)
    found = result.individual
    if found is None:
        return
    refined = {"refined": True} if "refined" in spec.build().knobs() else {}
    if refined:
        sharper = dpviz.run(dpviz.RunSpec("teaching", model_id, mechanism, seeds=3, lam=0.01, params=refined)).individual
        assert sharper.replace.max() <= spec.epsilon * (1 + 1e-6)
    n = result.setup.problem.n
    assert found.epsilon.shape in ((1, n), (3, n))
    assert np.isfinite(found.epsilon).all()
    assert (found.epsilon >= 0).all()
    assert "reveals data" in found.caveat
    if found.replace is not None:
        assert (found.replace >= found.epsilon).all()
        proved = result.calibration.proved_budget
        # no replacement costs a person more than the worst case that is proved for all rows
        assert proved is None or found.replace.max() <= proved.epsilon * (1 + 1e-6)
    if result.record is not None and result.record.path is not None:  # what the rows' gradients were depends on the rows
        assert any("without that proof" in words for words in found.conditions)
    without = dpviz.run_epsilons(spec, [1.0], instances=False)[0]
    assert without.individual is None


def test_output_values_are_exact_leave_one_out_distances() -> None:
    problem = make_problem(n=50, d=4, lam=0.05)
    truth = influence_of(problem).leave_one_out().norm
    gaussian = individual("output-gaussian", problem)
    sigma = dpviz.list_mechanisms()["output-gaussian"]().calibrate(problem.setting, Budget(1.0, 1e-5)).noise_scale
    np.testing.assert_allclose(gaussian.epsilon[0], gaussian_epsilon(1e-5, truth / sigma), rtol=1e-6)
    pure = individual("cms-output", problem)
    np.testing.assert_allclose(pure.epsilon[0], truth / (2 / (50 * 0.05)), rtol=1e-6)
    assert pure.delta == 0


def test_bound_over_replacements_holds_for_the_worst_we_can_find(model_id: str) -> None:
    problem = make_problem(n=20, d=2, lam=0.1, model=model_id)
    removal = influence_of(problem).leave_one_out([4]).norm
    reach = problem.setting.G / (problem.n * problem.lam)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    others = [problem.replace_row(4, np.array([np.cos(a), np.sin(a)]), y) for a in angle for y in (1.0, -1.0)]
    moved = max(float(np.linalg.norm(other.optimum - problem.optimum)) for other in others)
    bound = float(np.minimum(removal + reach, 2 * reach)[0])
    assert moved <= bound
    assert moved > 0.4 * bound  # a bound planted too small by the factor 2.5 would be broken


def test_large_data_uses_the_newton_step_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(n=60, d=4, lam=0.05)
    exact = individual("output-gaussian", problem)
    monkeypatch.setattr(sys.modules["dpviz.mechanisms.individual"], "_EXACT_WORK", 0)
    quick = individual("output-gaussian", problem)
    assert "exact" in exact.method
    assert "not a bound" in quick.method
    np.testing.assert_allclose(quick.epsilon, exact.epsilon, rtol=0.02)


@pytest.mark.parametrize("delta", [1e-3, 1e-10])
@pytest.mark.parametrize("largest", [1e-4, 0.1, 5.0, 40.0])
def test_many_values_at_once_agree_with_the_exact_ones(delta: float, largest: float) -> None:
    mu = largest * np.random.default_rng(0).random((3, 2000)) ** 3
    exact = gaussian_epsilon(delta, mu)
    assert np.all(np.abs(gaussian_epsilons(delta, mu) - exact) <= 1e-8 * (1 + exact))


def log_density(problem: Problem, keep: np.ndarray, theta: np.ndarray, lam_sum: float, sigma: float) -> float:
    """ln p(theta) of objective perturbation on the kept rows, by change of variables, constants left out."""
    signed, loss = problem.rows.signed_rows[keep], problem.model.loss  # type: ignore[attr-defined]
    noise = -(signed.T @ loss.slope(signed @ theta) + lam_sum * theta)
    jacobian = (signed * loss.curvature(signed @ theta)[:, None]).T @ signed + lam_sum * np.eye(len(theta))
    return float(-(noise @ noise) / (2 * sigma**2) + np.linalg.slogdet(jacobian)[1])


def test_objective_perturbation_is_the_exact_log_ratio(model_id: str) -> None:
    problem = make_problem(n=40, d=3, model=model_id, seed=2)
    lam_sum, sigma = 2.5, 3.0
    noise = sigma * np.random.default_rng(0).standard_normal((3, problem.m))
    theta = newton(problem.rows.signed_rows, problem.model.loss, lam_sum / 40, linear=noise / 40)  # type: ignore[attr-defined]
    found = after_objective_noise(problem, theta, lam_sum, sigma)
    assert found is not None
    everyone = np.ones(40, bool)
    for s in range(3):
        full = log_density(problem, everyone, theta[s], lam_sum, sigma)
        for i in range(0, 40, 7):
            ratio = full - log_density(problem, everyone & (np.arange(40) != i), theta[s], lam_sum, sigma)
            assert found.epsilon[s, i] == pytest.approx(abs(ratio), rel=1e-9, abs=1e-12)


def test_publishable_bound_covers_the_loss_as_often_as_it_says() -> None:
    problem = make_problem(n=25, d=3, seed=5)
    lam_sum, sigma, rho, runs = 2.0, 1.5, 0.2, 1000
    noise = sigma * np.random.default_rng(1).standard_normal((runs, 3))
    theta = newton(problem.rows.signed_rows, problem.model.loss, lam_sum / 25, linear=noise / 25)  # type: ignore[attr-defined]
    found = after_objective_noise(problem, theta, lam_sum, sigma, rho)
    broken = (found.epsilon > found.publishable).sum(axis=0).max()
    limit = binom.isf(1e-6 / 25, runs, rho)
    assert broken <= limit
    # the check can fail: without the Gaussian quantile the bound breaks too often
    slope, curvature = derivatives_of(problem.model).slopes(theta[0], problem.rows)
    useless = objective_publishable(slope, curvature, problem.rows.norms, lam_sum, sigma, 1.0)
    assert (found.epsilon > useless).sum(axis=0).max() > limit


def test_publishable_bound_at_rows_of_any_length_and_noise_of_any_size() -> None:
    """Against the formula by hand: 2.326347874 is the 99 % point of the normal law; the slope, not the length, is squared."""
    one = np.ones(1)
    at = objective_publishable(0.5 * one, 0.25 * one, 3.0 * one, 10.0, 0.7, 0.02)[0]
    by_hand = np.log(1 + 0.25 * 9 / 10) + 1.5**2 / (2 * 0.49) + 1.5 * 2.3263478740408408 / 0.7
    assert at == pytest.approx(by_hand, rel=1e-12)


def test_ex_post_values_of_a_row_without_gradient_are_zero() -> None:
    zero = np.zeros(1)
    assert objective_ex_post(zero, zero, np.ones(1), np.ones(1), np.ones(1), 1.0)[0] == 0
    assert gamma_output(zero, 1.0)[0][0] == 0
    assert_refused(gaussian_output, zero, 0.0, 1e-5, match="sigma")


def test_another_row_in_the_place_of_a_row_moves_the_model_by_both_but_never_beyond_the_sensitivity() -> None:
    """change + reach by the triangle inequality, capped at what no replacement exceeds; at other numbers than 1."""
    change, delta = np.array([0.1, 0.4, 0.0]), 1e-4
    for cap, moved in ((9.0, change + 0.3), (0.5, [0.4, 0.5, 0.3])):
        alone, replaced = gaussian_output(change, 0.2, delta, 0.3, cap)
        np.testing.assert_allclose(replaced, gaussian_epsilon(delta, np.array(moved) / 0.2), rtol=1e-9)
        np.testing.assert_allclose(alone, gaussian_epsilon(delta, change / 0.2), rtol=1e-9)
        pure, replaced = gamma_output(change, 0.2, 0.3, cap)
        np.testing.assert_allclose(replaced, np.array(moved) / 0.2, rtol=1e-12)
        np.testing.assert_allclose(pure, change / 0.2, rtol=1e-12)


@pytest.mark.parametrize("name", [k for k, c in dpviz.list_mechanisms().items() if issubclass(c, IndividualBudget)])
def test_without_noise_nobody_has_an_epsilon(name: str) -> None:
    problem = make_problem(n=40, d=3, lam=0.05)
    built = dpviz.list_mechanisms()[name]()
    quiet = built.calibrate(problem.setting, Budget(1.0, 0.0 if built.pure else 1e-5)).noiseless()
    fit = built.fit(Training(problem, [quiet], spawn(0, 2)))
    found = built.individual(problem, quiet, fit.theta[0], fit.record.select(0))
    assert found is None or not np.isfinite(found.epsilon).any()


def test_each_budget_keeps_its_own_path() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2)
    low, high = dpviz.run_epsilons(spec, [0.1, 5.0])
    alone = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=5.0))
    np.testing.assert_allclose(high.individual.epsilon, alone.individual.epsilon, rtol=1e-5)
    assert low.individual.epsilon.max() < high.individual.epsilon.min()


def test_poisson_path_grows_with_gradients_and_rounds_up() -> None:
    one_row = PoissonPath(Sampled(Gaussian.of_rows(1.0, 1.0), 0.05))
    length = np.repeat(np.linspace(0, 1, 11)[:, None], 200, axis=1)
    found = rdp.epsilons(one_row.divergence(length), 1e-6, ORDERS)
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
    exact, found = rdp.epsilons(1458 * np.stack([spent, rare.divergence(small[None])[0]]), 1e-6, ORDERS)
    assert exact * (1 - 1e-9) <= found <= 1.02 * exact
    for bad in (
        lambda: one_row.divergence(1.1 * np.ones((2, 3))),
        lambda: one_row.divergence(-np.ones((2, 3))),
        lambda: one_row.divergence(np.full((2, 3), np.nan)),
        lambda: one_row.divergence(np.ones(3)),
        lambda: PoissonPath(Sampled(Gaussian.of_rows(1.0, 1.0), 0.0)).divergence(np.ones((2, 3))),
        lambda: PoissonPath(Sampled(Gaussian.of_rows(1.0, 0.0), 0.05)).divergence(np.ones((2, 3))),
    ):
        assert_refused(bad)


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
    found = built.individual(problem, cal, fit.theta[0], fit.record.select(0))
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
        assert built.individual(problem, cal, fit.theta[0], fit.record.select(0)) is None


def test_filtered_rows_spend_their_budget_and_no_more() -> None:
    problem = make_problem(n=30, d=3)
    built, cal, fit = fitted("renyi-filter", problem, full_steps=5, stretch=6.0)
    record = fit.record.select(0)
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
        assert (built.individual(problem, declared, fit.theta[0], fit.record.select(0)) is not None) is followed


def test_a_networks_row_costs_svrg_what_its_gradients_allow() -> None:
    """Gradients of a network's row at two points may point anywhere: their lengths add up, and 2C bounds what a row adds.

    By one row at a time, with gradients by finite differences and the Rényi sums of `rdp`.
    """
    problem = make_problem(n=8, d=3, lam=0.05, seed=3, model="mlp-2")
    built, cal, fit = fitted("dp-svrg", problem, 1, rounds=2, inner_steps=3, clip_norm=0.4)
    found = built.individual(problem, cal, fit.theta[0], fit.record.select(0))
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
        by_hand = float(rdp.epsilons(curve, 1e-5, ORDERS))
        assert by_hand * (1 - 1e-5) <= found.epsilon[0, i] <= by_hand * 1.01


def test_path_energy_is_what_the_rows_contributed() -> None:
    problem = make_problem(n=30, d=3, lam=0.05)
    built, cal, fit = fitted("dp-gd", problem, steps=7, clip_norm=0.3, step_size=1.0)
    shorter = [built.stopped_after(k).fit(Training(problem, [cal], spawn(0, 2), record=False)) for k in range(1, 7)]
    lengths = [problem.model.gradient_norms(at, problem.rows) for at in (np.zeros((2, 3)), *(run.theta[0] for run in shorter))]
    energy = (np.minimum(lengths, 0.3) ** 2).sum(axis=0).T
    np.testing.assert_allclose(fit.record.gradient_energy[0], energy, rtol=1e-5)
    found = built.individual(problem, cal, fit.theta[0], fit.record.select(0))
    np.testing.assert_allclose(found.epsilon, gaussian_epsilon(1e-5, np.sqrt(energy) / (30 * cal.noise_scale)), rtol=1e-5)
    assert shorter[0].record.gradient_energy is None


def test_the_path_is_the_one_that_was_released() -> None:
    problem = make_problem(n=30, d=3)
    longer, cal, fit = fitted("dp-sgd", problem, sampling_rate=0.2, epochs=3.0)
    path, shorter = fit.record.path, type(longer)(sampling_rate=0.2, epochs=2.0)
    assert path.shape == (1, 2, 15, 3)
    np.testing.assert_array_equal(path[0, :, 0], 0)
    np.testing.assert_array_equal(path[0, :, 10], shorter.fit(Training(problem, [cal], spawn(0, 2))).theta[0])
