"""Gradient perturbation one method at a time: DP-AGD, DP-SVRG, noisy SGD with smoothing, Song's and Bassily's as published."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binomtest
from support import make_problem, neighbour

import dpviz
from dpviz.common.random import generator, poisson_batches, shuffled_batches, spawn, substreams
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Training, get_mechanism
from dpviz.mechanisms.gradient import dp_lssgd
from dpviz.mechanisms.gradient.bassily_sgd import BassilySGD
from dpviz.mechanisms.gradient.song_sgd import SongSGD
from dpviz.models import Rows, get_model, line_losses_of
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget


def agd(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["dp-agd"].from_params({"clip_norm": 1.0} | params)


def reference(problem: Problem, cal: dpviz.Calibration, stream: np.random.SeedSequence, knobs: dpviz.Mechanism) -> tuple:
    """One run, written straight from the algorithm: (parameters, steps, payments)."""
    _, noise, choice = (generator(s) if k else s for k, s in enumerate(substreams(stream, 3)))
    rho, price, paid, steps, chosen = cal.details["rho_total"], cal.details["rho_ng"], [], 0, []
    longest = knobs.longest
    v, n, lam, loss = problem.rows.signed_rows, problem.n, problem.lam, problem.model.loss  # type: ignore[attr-defined]
    w = np.zeros(problem.m)

    def can_pay(cost: float) -> bool:
        nonlocal rho
        if rho < cost:
            return False
        rho -= cost
        paid.append(cost)
        return True

    while can_pay(price):
        exact = (loss.slope(v @ w)[:, None] * v).sum(axis=0)
        noisy = exact + 2.0 / math.sqrt(2 * price) * noise.standard_normal(problem.m)
        while True:
            if not can_pay(cal.details["rho_nmax"]):
                return w, steps, paid
            direction = noisy / n + lam * w
            length = np.linalg.norm(direction)
            direction = direction / length
            grid = np.linspace(0, longest, knobs.candidates + 1)
            scores = [
                np.minimum(loss.value(v @ (w - a * direction)), 3.0).sum() + n * lam / 2 * ((w - a * direction) ** 2).sum()
                for a in grid
            ]
            # exponential mechanism: epsilon_n = sqrt(8 rho), sensitivity 3, not monotone
            scale = 2 * 3.0 / math.sqrt(8 * cal.details["rho_nmax"])
            k = int(np.argmin(np.array(scores) - scale * choice.gumbel(size=len(grid))))
            if k > 0:
                w, steps = w - grid[k] * direction, steps + 1
                chosen.append(grid[k])
                if steps % 10 == 0:
                    longest, chosen = min(1.1 * max(chosen), knobs.longest), []
                break
            if knobs.shrink < 1 and length**2 >= 2 * problem.m * (2.0 / math.sqrt(2 * price) / n) ** 2:
                longest *= knobs.shrink
                continue
            if not can_pay(0.1 * price):
                return w, steps, paid
            second = exact + 2.0 / math.sqrt(2 * 0.1 * price) * noise.standard_normal(problem.m)
            noisy, price = (noisy + 0.1 * second) / 1.1, 1.1 * price
    return w, steps, paid


@pytest.mark.parametrize(("epsilon", "longest", "shrink"), [(0.5, 2.0, 0.5), (8.0, 2.0, 1.0), (8.0, 50.0, 0.5)])
def test_replicas_match_a_straight_run(model_id: str, epsilon: float, longest: float, shrink: float) -> None:
    problem = make_problem(n=300, d=3, model=model_id)
    built = agd(splits=20, gamma=0.1, candidates=20, longest=longest, shrink=shrink)
    cals = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (epsilon, 2.0)]
    fit = built.fit(Training(problem, cals, spawn(3, 3)))
    w, steps, paid = reference(problem, cals[0], spawn(3, 3)[2], built)
    np.testing.assert_allclose(fit.theta[0, 2], w, rtol=1e-5, atol=1e-6)
    assert fit.record.visits[0, 2, 0] == steps
    assert steps >= 10
    assert sum(paid) <= cals[0].details["rho_total"]


def test_scores_of_neighbours_stay_in_the_range_that_is_paid_for(model_id: str) -> None:
    rng, widest = np.random.default_rng(6), 0.0
    for k in range(300):
        problem = make_problem(n=15, d=3, model=model_id, seed=k % 7)
        other = neighbour(problem, rng)
        theta, direction = rng.standard_normal((2, 1, 3)) * rng.choice([1.0, 10.0], size=(2, 1, 1))
        here, there = (line_losses_of(p.model)(theta, direction, np.full(1, 2.0), 21, p.rows, clip=0.7) for p in (problem, other))
        widest = max(widest, float(np.ptp(here - there)))
    assert widest <= 2 * 0.7 * (1 + 1e-5)
    assert widest > 0.7  # the one-sided range of add-remove is not enough for replacements


def svrg(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["dp-svrg"].from_params({"step_size": 1.0, "clip_norm": 1.0} | params)


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_a_row_adds_no_more_than_the_inner_noise_is_sized_for(model_id: str, clip: float) -> None:
    built, rng, worst = svrg(clip_norm=clip), np.random.default_rng(4), 0.0
    for k in range(500):
        direction = rng.standard_normal(3)
        problem = Problem(Rows((direction / np.linalg.norm(direction))[None], np.ones(1)), get_model(model_id), 0.1)
        anchor = rng.standard_normal((1, 3)) * rng.choice([0.5, 3.0])
        x = anchor + (direction if k % 2 else rng.standard_normal(3)) * 10.0 ** rng.uniform(-2, 1.5)
        moved = np.linalg.norm(built._difference(problem, x[None], anchor[None], [np.arange(1)]))  # type: ignore[attr-defined]
        limit = min(2 * clip, problem.setting.beta * float(np.linalg.norm(x - anchor)))
        assert moved <= limit * (1 + 1e-12) + 1e-15
        worst = max(worst, float(moved / limit) if limit > 1e-3 else 0.0)
    assert worst > 0.5  # half the limit is broken


@pytest.mark.parametrize("noise", ["accounted", "published"])
def test_noiseless_run_reaches_the_minimum(model_id: str, noise: str) -> None:
    problem = make_problem(n=100, d=3, lam=0.1, model=model_id)
    built = svrg(rounds=60, inner_steps=20, step_size=0.5, noise=noise)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    theta = built.fit(Training(problem, [cal], spawn(0, 2))).theta[0]
    np.testing.assert_allclose(theta, np.broadcast_to(problem.optimum, theta.shape), atol=2e-3)


def test_visits_count_full_gradients_and_batches() -> None:
    problem = make_problem(n=2000)
    for noise, mean in (("accounted", 4 + 4 * 25 * 0.2), ("published", 4 + 100 / 2000)):
        built = svrg(rounds=4, inner_steps=25, sampling_rate=0.2, noise=noise)
        visits = built.fit(Training(problem, [built.calibrate(problem.setting, Budget(1.0, 1e-6))], spawn(0, 3))).record.visits
        assert visits.mean() == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_noiseless_training_is_the_recursion(smoothing: float) -> None:
    """Against a plain double-precision loop over the recorded batches."""
    problem = make_problem(n=300, d=6)
    mechanism = dp_lssgd.DPLSSGD(sampling_rate=0.1, epochs=3.0, clip_norm=0.4, smoothing=smoothing, step_size=1.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    fit = mechanism.fit(Training(problem, [cal], spawn(5, 1)))
    draw = poisson_batches(300, 0.1)(generator(substreams(spawn(5, 1)[0], 2)[0]))
    theta, visits = np.zeros(6), np.zeros(300)
    for t in range(mechanism.step_count(problem.setting)):
        index = draw(t)
        visits[index] += 1
        gradient = np.zeros(6)
        for i in index:
            z = problem.rows.signed_rows[i]
            g = -z / (1 + math.exp(z @ theta))
            gradient += g * min(1.0, 0.4 / max(np.linalg.norm(g), 1e-300))
        direction = gradient / 30 + problem.lam * theta
        matrix = np.eye(6) * (1 + 2 * smoothing) - smoothing * (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0))
        theta = theta - problem.setting.unit_step * np.linalg.solve(matrix, direction)
    np.testing.assert_allclose(fit.theta[0, 0], theta, atol=1e-5)
    np.testing.assert_array_equal(fit.record.visits[0, 0], visits)


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 300])
def test_long_and_short_gradients_are_smoothed_alike(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = np.random.default_rng(1).standard_normal((2, 3, m)), []
    for short in (0, 1000):
        monkeypatch.setattr(dp_lssgd, "_SHORT", short)
        found.append(dp_lssgd.smooth(rows, 0.7))
    assert found[0].shape == rows.shape
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13)


ALPHA = 1e-6


def test_song_batches_are_disjoint_and_never_short() -> None:
    problem = make_problem(n=107)
    mechanism = SongSGD(batch=25, passes=3, step_size=1.0, clip_norm=1.0)
    sizes = np.diff(mechanism.edges(problem.setting))
    assert sizes.sum() == 107
    assert sizes.min() >= 25
    assert np.ptp(sizes) <= 1
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    fit = mechanism.fit(Training(problem, [cal], spawn(0, 2)))
    assert fit.record.visits is not None
    assert np.all(fit.record.visits == 3)


def test_song_releases_the_mean_of_its_second_half() -> None:
    """Five steps by hand: the mean of the last three iterates, or the last one."""
    problem, (stream,) = make_problem(n=50), spawn(3, 1)
    budget, ends = Budget(1.0, 1e-5), []
    mean, last = (SongSGD(batch=10, step_size=2.0, clip_norm=1.0, average=average) for average in (True, False))
    batches = shuffled_batches(mean.edges(problem.setting))(generator(substreams(stream, 2)[0]))
    theta = np.zeros((1, problem.m))
    for t in range(5):
        gradient = problem.model.sum_gradient(theta, problem.rows.batch(batches(t))) / 10 + problem.lam * theta
        theta = theta - 2.0 * problem.setting.unit_step / np.sqrt(t + 1) * gradient
        ends.append(theta[0])
    for built, expected in ((mean, np.mean(ends[2:], axis=0)), (last, ends[-1])):
        clean = built.calibrate(problem.setting, budget).noiseless()
        found = built.fit(Training(problem, [clean], [stream])).theta[0, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
        assert built.calibrate(problem.setting, budget).noise_scale == mean.calibrate(problem.setting, budget).noise_scale


def test_the_rule_of_song_knows_time_and_noise_of_the_mean() -> None:
    """A and B from the iterates of four unit steps, written out: each draw is in all iterates from its own step on."""
    lengths = 1 / np.sqrt(np.arange(1, 5))
    iterates = np.tril(np.ones((4, 4))) * lengths
    for average, kept in ((True, 2), (False, 1)):
        released = iterates[-kept:].mean(axis=0)
        assert SongSGD(average=average)._weights(4) == pytest.approx((released.sum(), np.linalg.norm(released)), rel=1e-12)


@pytest.mark.parametrize("rule", ["convex", "strongly-convex"])
def test_bassily_faithful_run(rule: str) -> None:
    problem = make_problem(n=30, d=3, lam=0.1)
    mechanism = BassilySGD(mode="faithful", rule=rule, radius=2.0)
    cals = [mechanism.calibrate(problem.setting, Budget(e, 1e-5)) for e in (1.0, 1e5)]
    fit = mechanism.fit(Training(problem, cals, spawn(2, 3)))
    assert np.all(np.linalg.norm(fit.theta, axis=2) <= 2.0 + 1e-9)
    record = fit.record
    assert np.all(record.visits.sum(axis=-1) == 900)
    assert np.array_equal(record.times_noised[0], record.visits[0])
    # mean length of a standard draw in three dimensions, times the noise scale
    mean = record.noise_norm[0].sum() / (3 * 900 * cals[0].noise_scale)
    assert mean == pytest.approx(math.sqrt(8 / math.pi), rel=0.05)
    clean = mechanism.fit(Training(problem, [c.noiseless() for c in cals], spawn(2, 3))).theta
    gap = problem.objective(clean[0]) - problem.optimal_value
    assert gap.max() < 0.3


def test_bassily_steps_are_those_of_its_theorem() -> None:
    """|C|/sqrt(t (G^2 + d sigma^2)) of Theorem 2.1 with |C| = 2 R, and 1/(lam t) of Theorem 2.4."""
    setting, t = get_model("logistic").setting(50, 7, 0.1), np.arange(1, 4)
    mechanism = BassilySGD(mode="faithful", radius=3.0, clip_norm=0.5)
    for sigma, lengths in zip((0.0, 0.2, 4.0), mechanism.step_sizes(setting, np.array([0.0, 0.2, 4.0]), 3), strict=True):
        np.testing.assert_allclose(lengths, 6 / np.sqrt(t * (0.25 + 7 * sigma**2)), rtol=1e-12)
    published = dataclasses.replace(mechanism, rule="strongly-convex").step_sizes(setting, np.zeros(1), 3)
    np.testing.assert_allclose(published, [1 / (0.1 * t)], rtol=1e-12)


def test_rows_that_the_faithful_form_never_draws_are_counted_as_such() -> None:
    problem, mechanism = make_problem(n=4, d=3, lam=0.1), BassilySGD(mode="faithful", radius=2.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    visits = mechanism.fit(Training(problem, [cal], spawn(2, 300))).record.visits
    assert (visits.sum(axis=-1) == 16).all()
    assert (visits[..., -1] == 0).any()


def test_the_faithful_query_is_that_of_one_uniform_row() -> None:
    problem, streams = make_problem(n=20, d=3), spawn(6, 2000)
    mechanism, theta = BassilySGD(mode="faithful", clip_norm=0.1), np.zeros((2000, 3))
    declared = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5)).sensitivity
    other = problem.replace_row(7, -problem.rows.X[7], float(problem.rows.y[7]))
    moved = np.linalg.norm(mechanism.query(problem, theta, streams) - mechanism.query(other, theta, streams), axis=1)
    assert moved.max() == pytest.approx(declared, rel=1e-6), "clipped gradients of opposite rows are as far apart as any"
    drawn = int((moved > 0).sum())
    assert binomtest(drawn, 2000, 1 / 20).pvalue > ALPHA
    assert binomtest(drawn, 2000, 2 / 20).pvalue < ALPHA, "the control"


CLIP, STEPS = 0.4, 5
CENSUS_BUDGET = Budget(1.0, 1e-5)


def trained_on_census(mechanism: str, record: bool = True, model: str = "logistic", **knobs: object) -> dpviz.mechanisms.Fit:
    spec = dpviz.RunSpec("census-500", mechanism=mechanism, model=model)
    problem, built = setup_for(spec).problem, get_mechanism(mechanism).from_params(knobs)
    calibration = built.calibrate(problem.setting, CENSUS_BUDGET)
    return built.fit(Training(problem, [calibration], spawn(0, 2), record=record))


def shares(path: np.ndarray) -> np.ndarray:
    """(n,) shares of the gradients at (T, m) iterates that are longer than the clip norm, from the formula of the gradient."""
    problem = setup_for(dpviz.RunSpec("census-500", mechanism="dp-gd")).problem
    margins = problem.rows.y * (path @ problem.rows.X.T)
    norms = np.linalg.norm(problem.rows.X, axis=1) / (1 + np.exp(margins))
    return np.asarray((norms > CLIP).mean(axis=0))


def test_dp_sgd_counts_them_in_its_batches() -> None:
    found = trained_on_census("dp-sgd", sampling_rate=1.0, epochs=STEPS, clip_norm=CLIP)
    path, clipped = found.record.path, found.record.clipped
    np.testing.assert_allclose(clipped[0], [shares(p) for p in path[0]], atol=1e-6)
    sampled = trained_on_census("dp-sgd", sampling_rate=0.1, epochs=1.0, clip_norm=CLIP).record
    assert sampled.visits is not None
    np.testing.assert_array_equal(np.isnan(sampled.clipped), np.broadcast_to(sampled.visits == 0, sampled.clipped.shape))


@pytest.mark.parametrize(
    "mechanism", ["dp-gd", "dp-sgd", "dp-lssgd", "song-sgd", "bassily-sgd", "renyi-filter", "dp-agd", "dp-svrg"]
)
def test_recording_changes_no_model_and_nothing_is_counted_unasked(mechanism: str) -> None:
    knobs = {"clip_norm": CLIP}
    seen, unseen = trained_on_census(mechanism, **knobs), trained_on_census(mechanism, record=False, **knobs)
    np.testing.assert_array_equal(seen.theta, unseen.theta)
    assert unseen.record.clipped is None
    clipped = seen.record.clipped
    known = clipped[np.isfinite(clipped)]
    assert 0 <= known.min() <= known.max() <= 1
    assert known.max() > 0
