"""Noisy SGD: batches and noise against their laws, training against double precision, Song and Bassily as published."""

import dataclasses
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, chi2
from support import LIMIT, make_problem

from dpviz.common.random import PoissonBatches, generator, normals_in_step, shuffled_batches, spawn, substreams
from dpviz.common.threads import map_streams, processors
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training
from dpviz.mechanisms.gradient import dp_lssgd
from dpviz.mechanisms.gradient.bassily_sgd import BassilySGD
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.gradient.dp_lssgd import DPLSSGD, smooth
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.mechanisms.gradient.noisy_sgd import ROUNDING
from dpviz.mechanisms.gradient.song_sgd import SongSGD
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget

ALPHA = 1e-6


def blank(n: int = 40, d: int = 5) -> Problem:
    """Rows of zeros, whose gradients are zero: parameters are noise and nothing else."""
    return Problem(Rows(np.zeros((n, d)), np.tile([1.0, -1.0], n // 2)), get_model("logistic"), 1e-12)


# batches ----------------------------------------------------------------------------------------------------


def batch_matrix(rate: float, n: int, draws: int, seed: int) -> np.ndarray:
    draw = PoissonBatches(n, rate)(generator(spawn(seed, 1)[0]))
    out = np.zeros((draws, n), bool)
    for t in range(draws):
        index = draw(t)
        assert np.all(np.diff(index) > 0)
        out[t, index] = True
    return out


def p_values(rate: float, included: np.ndarray) -> list[float]:
    """Total count, spread of the batch sizes, spread over rows: two-sided against the Poisson-sampling law."""
    draws, n = included.shape
    total = included.sum()
    count = 2 * min(binom.cdf(total, draws * n, rate), binom.sf(total - 1, draws * n, rate))
    spreads = []
    for axis, trials, groups in ((1, n, draws), (0, draws, n)):
        statistic = ((included.sum(axis) - trials * rate) ** 2 / (trials * rate * (1 - rate))).sum()
        spreads.append(2 * min(chi2.cdf(statistic, groups), chi2.sf(statistic, groups)))
    return [count, *spreads]


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.1, 0.5])
def test_batches_follow_poisson_sampling(rate: float) -> None:
    included = batch_matrix(rate, 1000, 1500, seed=4)
    assert min(p_values(rate, included)) > ALPHA
    # batches are not repeated from one step to the next
    both = (included[:-1] & included[1:]).sum()
    assert 2 * min(binom.cdf(both, included[1:].size, rate**2), binom.sf(both - 1, included[1:].size, rate**2)) > ALPHA


def test_the_batch_test_can_fail() -> None:
    included = batch_matrix(0.1, 1000, 1500, seed=4)
    assert p_values(0.105, included)[0] < ALPHA
    # shuffled batches of a fixed size are not Poisson batches
    fixed = np.zeros((1500, 1000), bool)
    rng = np.random.default_rng(0)
    for row in fixed:
        row[rng.permutation(1000)[:100]] = True
    assert p_values(0.1, fixed)[1] < ALPHA


def test_every_row_is_in_a_full_batch() -> None:
    assert np.array_equal(PoissonBatches(7, 1.0)(generator(spawn(0, 1)[0]))(0), np.arange(7))


# batches of a fresh order every epoch ------------------------------------------------------------------------


def test_a_fresh_order_uses_every_row_once_an_epoch_and_orders_are_uniform() -> None:
    edges = np.array([0, 3, 6, 10])
    draw = shuffled_batches(edges)(generator(spawn(3, 1)[0]))
    epochs = [[draw(3 * e + k) for k in range(3)] for e in range(4000)]
    for batches in epochs:
        assert [len(b) for b in batches] == [3, 3, 4]
        assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(10))
    first = np.array([np.isin(np.arange(10), batches[0]) for batches in epochs])
    assert chi2.sf(((first.sum(axis=0) - 1200) ** 2 / (4000 * 0.3 * 0.7)).sum() * 0.9, 9) > ALPHA
    # two rows share the first batch with chance 3/10 x 2/9, and what one epoch drew says nothing about the next
    for together, chance in ((first[:, 0] & first[:, 1], 1 / 15), (first[1:, 0] & first[:-1, 0], 0.09)):
        count = int(together.sum())
        assert min(binom.cdf(count, len(together), chance), binom.sf(count - 1, len(together), chance)) > ALPHA
    # the control: the same order in every epoch
    again = np.tile(first[:1], (4000, 1))
    assert binom.sf(int((again[1:, np.argmax(first[0])] & again[:-1, np.argmax(first[0])]).sum()) - 1, 3999, 0.09) < ALPHA


def moved_by_a_row(mechanism: DPSGD, streams: int = 5) -> np.ndarray:
    """(S,) sums over steps of the squared shift that one flipped row causes, in standard deviations of the noise.

    All other rows are zero and the clip norm is small, so the flipped row's gradients have full length and opposite
    directions. Both sides share orders and noise.
    """
    problem = blank(40, 3)
    first, second = (problem.replace_row(7, np.array([1.0, 0.0, 0.0]), y) for y in (1.0, -1.0))
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    eta = cal.details["step_size"] * problem.setting.unit_step
    paths = []
    for side in (first, second):
        fit = mechanism.fit(Training(side, [cal], spawn(2, streams)))
        path = np.concatenate([fit.record.path[0], fit.theta[0][:, None]], axis=1)
        paths.append((path[:, :-1] - path[:, 1:]) / eta - problem.lam * path[:, :-1])
    shift = np.linalg.norm(paths[0] - paths[1], axis=2) / cal.noise_scale
    return np.asarray((shift**2).sum(axis=1))


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_reshuffled_batches_cost_one_gaussian_release_an_epoch(accountant: str) -> None:
    """Whatever the order, the squared distances of all steps add up to mu^2, and mu is what the budget allows."""
    mechanism = DPSGD(sampling_rate=0.3, epochs=4.0, clip_norm=0.01, step_size=0.1, batches="reshuffled", accountant=accountant)
    assert mechanism.steps == 12
    cal = mechanism.calibrate(blank(40, 3).setting, Budget(1.0, 1e-5))
    assert np.allclose(moved_by_a_row(mechanism), cal.details["mu"] ** 2, rtol=1e-4)
    mu = gaussian_mu(Budget(1.0, 1e-5))
    assert cal.details["mu"] == pytest.approx(mu, rel=1e-12) if accountant == "pld" else cal.details["mu"] < mu
    assert cal.proved_budget == Budget(1.0, 1e-5)
    # the controls: the noise of Poisson batches is less than that, and two epochs' noise is not enough for four
    poisson = DPSGD(sampling_rate=1 / 3, epochs=4.0, clip_norm=0.01, step_size=0.1, accountant=accountant)
    other = poisson.calibrate(blank(40, 3).setting, Budget(1.0, 1e-5))
    assert other.noise_scale < 0.8 * cal.noise_scale
    fewer = dataclasses.replace(mechanism, epochs=2.0).calibrate(blank(40, 3).setting, Budget(1.0, 1e-5))
    assert fewer.noise_scale == pytest.approx(cal.noise_scale / math.sqrt(2), rel=2e-5)


def test_nothing_that_is_said_of_reshuffled_batches_is_about_poisson_ones() -> None:
    def texts(**knobs: Any) -> str:
        cal = DPSGD(**knobs).calibrate(blank(40, 3).setting, Budget(1.0, 1e-5))
        return " ".join(map(str, (cal.query, cal.sensitivity_source, cal.conversion, *cal.notes)))

    said = {batches: texts(batches=batches) for batches in ("poisson", "reshuffled")}
    assert "Poisson" in said["poisson"]
    assert "Poisson" not in said["reshuffled"]
    assert "Replace-one:" in said["poisson"], "how a sampled batch is accounted"
    assert "Replace-one:" not in said["reshuffled"]
    assert "secret is not counted" in said["reshuffled"]
    for text in said.values():
        assert "Every iterate may be published" in text
        assert ROUNDING in text


def test_reshuffled_batches_say_what_they_cannot_do() -> None:
    with pytest.raises(InvalidInput, match="relation"):
        DPSGD(batches="reshuffled", relation="add-remove").calibrate(blank().setting, Budget(1.0, 1e-5))
    with pytest.raises(InvalidInput, match="epochs"):
        DPSGD(batches="reshuffled", sampling_rate=1e-4, epochs=1000).calibrate(blank().setting, Budget(1.0, 1e-5))
    few = blank(4)
    mechanism = DPSGD(batches="reshuffled", sampling_rate=0.1, epochs=1)  # more batches than rows: some are empty
    theta = mechanism.fit(Training(few, [mechanism.calibrate(few.setting, Budget(1.0, 1e-5))], spawn(0, 2))).theta
    assert np.isfinite(theta).all()


# noise ------------------------------------------------------------------------------------------------------


# training ---------------------------------------------------------------------------------------------------


def test_single_precision_and_batches_give_the_same_gradient(model_id: str) -> None:
    problem = make_problem(n=700, d=6, model=model_id)
    rng = np.random.default_rng(0)
    theta = 3 * rng.standard_normal((5, 6))
    index = np.sort(rng.choice(700, 300, replace=False))
    for clip in (math.inf, 0.3):
        exact = problem.model.sum_gradient(theta, problem.rows.take(index), clip_norm=clip)
        np.testing.assert_array_equal(problem.model.sum_gradient(theta, problem.rows.batch(index), clip_norm=clip), exact)
        single = problem.model.sum_gradient(theta.astype(np.float32), problem.rows.batch(index), clip_norm=clip)
        assert single.dtype == np.float64
        shorter = 1 - 2.0**-20  # of every contribution, so that rounding makes none longer than the clip norm
        assert 0 < np.linalg.norm(single - shorter * exact) < 2e-7 * len(index)
        assert np.linalg.norm(single) < np.linalg.norm(exact)
    batch = problem.rows.batch(index)
    assert len(batch) == 300
    np.testing.assert_array_equal(batch.X, problem.rows.X[index])
    np.testing.assert_array_equal(batch.signed, problem.rows.signed[index])
    np.testing.assert_array_equal(batch.norms, problem.rows.norms[index])


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_noiseless_training_is_the_recursion(smoothing: float) -> None:
    """Against a plain double-precision loop over the recorded batches."""
    problem = make_problem(n=300, d=6)
    mechanism = DPLSSGD(sampling_rate=0.1, epochs=3.0, clip_norm=0.4, smoothing=smoothing, step_size=1.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    fit = mechanism.fit(Training(problem, [cal], spawn(5, 1)))
    from dpviz.common.random import substreams

    draw = PoissonBatches(300, 0.1)(generator(substreams(spawn(5, 1)[0], 2)[0]))
    theta, visits = np.zeros(6), np.zeros(300)
    for t in range(mechanism.steps):
        index = draw(t)
        visits[index] += 1
        gradient = np.zeros(6)
        for i in index:
            z = problem.rows.signed[i]
            g = -z / (1 + math.exp(z @ theta))
            gradient += g * min(1.0, 0.4 / max(np.linalg.norm(g), 1e-300))
        direction = gradient / 30 + problem.lam * theta
        matrix = np.eye(6) * (1 + 2 * smoothing) - smoothing * (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0))
        theta = theta - problem.setting.unit_step * np.linalg.solve(matrix, direction)
    np.testing.assert_allclose(fit.theta[0, 0], theta, atol=1e-5)
    np.testing.assert_array_equal(fit.record.visits[0, 0], visits)


def test_full_batches_are_gradient_descent_with_exact_noise() -> None:
    problem = make_problem(n=200, d=4)
    mechanism = DPSGD(sampling_rate=1.0, epochs=30.0, step_size=1.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    from dpviz.mechanisms.gradient.dp_gd import DPGD

    assert cal.noise_scale == pytest.approx(
        DPGD(steps=30, step_size=1.0).calibrate(problem.setting, Budget(1.0, 1e-5)).noise_scale, rel=2e-5
    )
    clean = mechanism.fit(Training(problem, [cal.noiseless()], spawn(0, 1))).theta[0, 0]
    gd = DPGD(steps=30, step_size=1.0)
    fit = gd.fit(Training(problem, [gd.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()], spawn(0, 1)))
    np.testing.assert_allclose(clean, fit.theta[0, 0], atol=1e-5)
    np.testing.assert_array_equal(fit.record.visits, np.full((1, 1, 200), 30.0), strict=True)


def test_removing_a_row_moves_the_sum_by_at_most_one_contribution() -> None:
    problem = make_problem(n=30)
    mechanism = DPSGD(relation="add-remove", clip_norm=0.5, sampling_rate=0.5)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    theta = np.random.default_rng(0).standard_normal((1, problem.m))
    moved = []
    for k in range(200):
        gone = problem.replace_row(k % 30, np.zeros(problem.m), 1.0)  # a row of zeros contributes nothing
        moved.append(np.linalg.norm(mechanism.query(problem, theta, spawn(k, 1)) - mechanism.query(gone, theta, spawn(k, 1))))
    assert max(moved) <= cal.sensitivity * (1 + 1e-9)
    assert max(moved) > cal.sensitivity * 0.5


def test_too_many_steps_are_refused_before_they_start() -> None:
    with pytest.raises(InvalidInput, match="epochs"):
        DPSGD(sampling_rate=1e-4, epochs=1000.0, step_size=1.0).calibrate(make_problem().setting, Budget(1.0, 1e-5))


# smoothing --------------------------------------------------------------------------------------------------


def test_smoothing_inverts_the_circulant_laplacian() -> None:
    impulse = np.eye(6)[0]
    np.testing.assert_allclose(smooth(impulse, 1.0), [0.45, 0.175, 0.075, 0.05, 0.075, 0.175], rtol=1e-12)
    kept = DPLSSGD().calibrate(get_model("logistic").setting(1000, 101, 1e-3), Budget(1.0, 1e-5)).details["noise_power_kept"]
    assert kept == pytest.approx(3 / 5**1.5, rel=1e-6)
    odd = np.random.default_rng(0).standard_normal((3, 7))
    matrix = 3 * np.eye(7) - np.roll(np.eye(7), 1, 0) - np.roll(np.eye(7), -1, 0)
    np.testing.assert_allclose(smooth(odd, 1.0) @ matrix, odd, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 300])
def test_long_and_short_gradients_are_smoothed_alike(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = np.random.default_rng(1).standard_normal((2, 3, m)), []
    for short in (0, 1000):
        monkeypatch.setattr(dp_lssgd, "_SHORT", short)
        found.append(smooth(rows, 0.7))
    assert found[0].shape == rows.shape
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13)


# Song -------------------------------------------------------------------------------------------------------


def test_song_batches_are_disjoint_and_never_short() -> None:
    problem = make_problem(n=107)
    mechanism = SongSGD(batch=25, passes=3, step_size=1.0, clip_norm=1.0)
    sizes = np.diff(mechanism.edges(problem.setting))
    assert sizes.sum() == 107
    assert sizes.min() >= 25
    assert np.ptp(sizes) <= 1
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    assert cal.noise_scale == pytest.approx(3 * 2 / sizes.min())
    assert cal.proved_budget == Budget(1.0)
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


# Bassily ----------------------------------------------------------------------------------------------------


def test_bassily_published_noise_and_what_it_is_worth() -> None:
    setting = get_model("logistic").setting(1000, 10, 1e-3)
    cal = BassilySGD(mode="faithful", clip_norm=1.0).calibrate(setting, Budget(1.0, 1e-5))
    assert cal.noise_scale == pytest.approx(82379.78867059777, rel=1e-9)
    assert cal.claimed_budget == Budget(1.0, 1e-5)
    assert 0 < cal.proved_budget.epsilon < 0.2
    # close to a Gaussian of mu = q sqrt(T) 2/z = 2/z, which is what many tiny steps become
    from dpviz.privacy.accounting.gaussian import gaussian_epsilon

    limit = float(gaussian_epsilon(1e-5, 2 / cal.details["noise_multiplier"]))
    assert cal.proved_budget.epsilon == pytest.approx(limit, rel=0.05)


def test_bassily_says_what_it_would_need() -> None:
    setting = get_model("logistic").setting(1001, 10, 1e-3)
    with pytest.raises(InvalidInput, match="1,002,001 steps"):
        BassilySGD(mode="faithful").calibrate(setting, Budget(1.0, 1e-5))
    with pytest.raises(InvalidInput, match="relation"):
        BassilySGD(mode="faithful", relation="add-remove").calibrate(
            get_model("logistic").setting(50, 3, 1e-3), Budget(1.0, 1e-5)
        )


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
    alone = mechanism.fit(Training(problem, cals[1:], spawn(2, 3)[1:2])).theta[0, 0]
    np.testing.assert_allclose(fit.theta[1, 1], alone, rtol=1e-9, atol=1e-12)
    clean = mechanism.fit(Training(problem, [c.noiseless() for c in cals], spawn(2, 3))).theta
    gap = problem.objective(clean[0]) - problem.optimal_value
    assert gap.max() < 0.3


def test_bassily_steps_are_those_of_its_theorem() -> None:
    """|C|/sqrt(t (G^2 + d sigma^2)) of Theorem 2.1 with |C| = 2 R, and 1/(lam t) of Theorem 2.4."""
    setting, t = get_model("logistic").setting(50, 7, 0.1), np.arange(1, 4)
    mechanism = BassilySGD(mode="faithful", radius=3.0, clip_norm=0.5)
    for sigma, lengths in zip((0.0, 0.2, 4.0), mechanism.lengths(setting, np.array([0.0, 0.2, 4.0]), 3), strict=True):
        np.testing.assert_allclose(lengths, 6 / np.sqrt(t * (0.25 + 7 * sigma**2)), rtol=1e-12)
    published = dataclasses.replace(mechanism, rule="strongly-convex").lengths(setting, np.zeros(1), 3)
    np.testing.assert_allclose(published, [1 / (0.1 * t)], rtol=1e-12)


def test_rows_that_the_faithful_form_never_draws_are_counted_as_such() -> None:
    problem, mechanism = make_problem(n=4, d=3, lam=0.1), BassilySGD(mode="faithful", radius=2.0)
    cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
    visits = mechanism.fit(Training(problem, [cal], spawn(2, 300))).record.visits
    assert (visits.sum(axis=-1) == 16).all()
    assert (visits[..., -1] == 0).any()


def test_progress_of_budgets_with_different_batches_never_goes_back() -> None:
    problem, mechanism, seen = make_problem(n=400), SongSGD(), list[float]()
    cals = [mechanism.calibrate(problem.setting, Budget(epsilon, 1e-5)) for epsilon in (0.05, 50.0)]
    assert cals[0].details["batches"] != cals[1].details["batches"]
    mechanism.fit(Training(problem, cals, spawn(0, 1), monitor=seen.append))
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.5 < seen[-1] <= 1


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


# threads ----------------------------------------------------------------------------------------------------


def test_streams_keep_their_order_and_report_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 3)
    seen: list[float] = []
    for parallel in (True, False):
        out = map_streams(lambda s, tick: (tick(0.5), s)[1], 7, seen.append, parallel=parallel)
        assert out == list(range(7))
    assert all(0 <= share <= 1 for share in seen)


def test_no_more_streams_at_once_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 8)

    def busiest(most: int | None, together: int) -> int:
        """The most streams at work at once, where each waits until `together` of them are."""
        meeting, lock, now, peak = threading.Barrier(together), threading.Lock(), [0], [0]

        def work(s: int, tick: object) -> None:
            with lock:
                now[0] += 1
                peak[0] = max(peak[0], now[0])
            meeting.wait(LIMIT)
            with lock:
                now[0] -= 1

        map_streams(work, 8, lambda done: None, most=most)
        return peak[0]

    assert busiest(2, together=2) == 2
    assert busiest(None, together=8) == 8


@pytest.mark.parametrize("parallel", [True, False])
def test_a_monitor_that_raises_stops_the_work(parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 2)

    class Stop(Exception):
        pass

    def endless(s: int, tick: object) -> None:
        while True:
            tick(0.1)  # type: ignore[operator]

    def monitor(done: float) -> None:
        raise Stop

    with pytest.raises(Stop):
        map_streams(endless, 4, monitor, parallel=parallel)  # type: ignore[arg-type]


def test_workers_pause_while_the_monitor_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: 2)
    ticks, moved = [0, 0], []
    enough = threading.Event()

    def work(s: int, tick: Callable[[float], None]) -> None:
        while not enough.is_set():
            ticks[s] += 1
            time.sleep(0.001)
            tick(0.5)

    def monitor(done: float) -> None:
        before = sum(ticks)
        time.sleep(0.2)
        moved.append(sum(ticks) - before)
        worked = sum(ticks) > sum(moved)  # between two calls
        if (len(moved) >= 2 and worked) or time.monotonic() > end:
            enough.set()

    end = time.monotonic() + LIMIT
    map_streams(work, 2, monitor)
    assert max(moved[:-1]) <= 2, "each worker ends the step that it is at"
    assert sum(ticks) > sum(moved), "and they work between two calls"


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_comes_out_and_stops_the_others(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.common.threads.processors", lambda: workers)

    def bad(s: int, tick: Callable[[float], None]) -> None:
        if s == 0:
            raise ZeroDivisionError
        while True:
            tick(0.1)

    with pytest.raises(ZeroDivisionError):
        map_streams(bad, 3, lambda done: None)
    assert processors() >= 1


def test_blas_threads_are_given_back() -> None:
    """In a process of its own: the number is the process's, and here it is 1 from the start."""
    script = (
        "import numpy, threadpoolctl\n"
        "from dpviz.common.threads import one_blas_thread\n"
        "def number(): return {lib['num_threads'] for lib in threadpoolctl.threadpool_info() if lib['user_api'] == 'blas'}\n"
        "threadpoolctl.threadpool_limits(2, 'blas')\n"
        "with one_blas_thread():\n"
        "    with one_blas_thread(): inside = number()\n"
        "    between = number()\n"
        "print(inside, between, number())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["{1}", "{1}", "{2}"], ran.stderr


def test_what_descent_foretells_is_the_recursion_of_its_steps() -> None:
    """One step leaves 1 - mu eta (2 - L eta) of the excess and adds L eta^2 d scale^2/2: the bound after T of them."""
    setting, built = make_problem(n=500, d=4, lam=0.1).setting, DPGD(steps=7, step_size=0.5, clip_norm=1.0)
    eta, start, left, scale = 0.5 * setting.unit_step, 0.4, 0.4, 0.02
    bound = start
    for _ in range(7):
        bound *= 1 - setting.mu * eta * (2 - setting.L * eta)
        left *= 1 - setting.mu * eta * (2 - setting.L * eta)
        bound += setting.L * eta**2 * setting.m * scale**2 / 2
    theory = built.excess_theory(setting, scale, start, np.full(setting.m, setting.L))
    assert theory["bound"] == pytest.approx(bound, rel=1e-12)
    assert theory["of the bound, start not yet forgotten"] == pytest.approx(left, rel=1e-12)
    r = 1 - eta * setting.L  # along curvature L in every direction
    variance = (eta * scale) ** 2 * (1 - r**14) / (1 - r**2)
    assert theory["near the minimum"] == pytest.approx(setting.m * setting.L * variance / 2, rel=1e-12)
    assert DPGD(steps=7, step_size=0.5, clip_norm=setting.G / 2).excess_theory(setting, scale, start, np.ones(setting.m)) == {}


def test_without_noise_every_seed_of_descent_gets_the_one_model_there_is() -> None:
    problem, built = make_problem(n=60, d=3, lam=0.1), DPGD(steps=5, step_size=0.5, clip_norm=1.0)
    quiet = [built.calibrate(problem.setting, Budget(e, 1e-5)).noiseless() for e in (1.0, 5.0)]
    theta = built.fit(Training(problem, quiet, spawn(4, 3), record=False)).theta
    assert theta.shape == (2, 3, problem.m)
    assert (theta == theta[:1, :1]).all()
    here = np.zeros((1, problem.m))
    for _ in range(5):
        slope = problem.model.sum_gradient(here, problem.rows) / problem.n + 0.1 * here
        here = here - 0.5 * problem.setting.unit_step * slope
    np.testing.assert_allclose(theta[0, 0], here[0], rtol=1e-9)


def test_a_tie_of_the_upper_bits_is_decided_to_the_last_value() -> None:
    """Of 65,536 lower halves those below `fine` are in the batch, and no more: the chance is never above the rate."""
    rate = 0.3
    coarse, fine = divmod(int(rate * 2**32), 2**16)

    class Drawn:
        """A generator of which every row ties, and whose second draws are just below, at and just above the limit."""

        bit_generator = property(lambda self: self)

        def random_raw(self, count: int) -> np.ndarray:
            return np.full(4 * count, coarse, np.uint16).view(np.uint64)

        def integers(self, low: int, high: int, count: int) -> np.ndarray:
            return np.array([fine - 1, fine, fine + 1])

    assert PoissonBatches(3, rate)(Drawn())(0).tolist() == [0]  # type: ignore[arg-type]


@pytest.mark.parametrize("epochs", [0.3, 1.4, 1.6, 2.5, 7.0])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_a_fresh_order_is_paid_for_as_often_as_it_is_gone_through(epochs: float, accountant: str) -> None:
    """Whole epochs: what is trained and what is accounted for are the same number, which is not the one that was asked for."""
    built = DPSGD.from_params({"batches": "reshuffled", "epochs": epochs, "sampling_rate": 0.25, "accountant": accountant})
    problem = make_problem(n=40)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    fit = built.fit(Training(problem, [cal], spawn(0, 3)))
    (passes,) = set(np.ravel(fit.record.visits).tolist())
    assert passes == max(1, round(epochs))
    # replacing a row moves one sum of every epoch by 2C; all of them together are a Gaussian of this mu (Dong et al. 2022)
    mu = math.sqrt(passes) * cal.sensitivity / cal.noise_scale
    reached = float(gaussian_epsilon(1e-5, mu))
    assert reached <= 1.0 * (1 + 1e-6)
    if accountant == "pld":
        assert reached == pytest.approx(1.0, rel=1e-6), "exact"
    assert float(gaussian_epsilon(1e-5, math.sqrt(passes + 1) * cal.sensitivity / cal.noise_scale)) > 1.0 or accountant == "rdp"


def test_numbers_drawn_ahead_are_those_of_single_draws() -> None:
    streams = [np.random.SeedSequence(k) for k in range(3)]
    draw = normals_in_step([generator(stream) for stream in streams], 7)
    found = np.stack([draw().copy() for _ in range(101)])
    expected = np.stack([generator(stream).standard_normal((101, 7)) for stream in streams], axis=1)
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found.reshape(303, 7), axis=0)) == 303
