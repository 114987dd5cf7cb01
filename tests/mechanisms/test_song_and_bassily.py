"""Song's and Bassily's noisy SGD as published."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binomtest
from support import make_problem

from dpviz.common.random import generator, shuffled_batches, spawn, substreams
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training
from dpviz.mechanisms.gradient.bassily_sgd import BassilySGD
from dpviz.mechanisms.gradient.song_sgd import SongSGD
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

ALPHA = 1e-6


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


def test_bassily_says_what_it_would_need() -> None:
    setting = get_model("logistic").setting(1001, 10, 1e-3)
    with pytest.raises(InvalidInput, match="1,002,001 steps"):
        BassilySGD(mode="faithful").calibrate(setting, Budget(1.0, 1e-5))
    small = get_model("logistic").setting(50, 3, 1e-3)
    with pytest.raises(InvalidInput, match="relation"):
        BassilySGD(mode="faithful", relation="add-remove").calibrate(small, Budget(1.0, 1e-5))


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
