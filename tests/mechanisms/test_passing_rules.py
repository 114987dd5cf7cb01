"""Rows that train without noise and budgets of their own: training replayed, the chance of passing, never overspent."""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from support import make_problem

import dpviz
from dpviz.common.random import generator, spawn, substreams
from dpviz.influence import error_bound
from dpviz.mechanisms import Calibration, Training
from dpviz.mechanisms.capabilities import ChoosesStart
from dpviz.mechanisms.gradient.pidp_sgd_rule import Rule, log10_pass
from dpviz.models import Rows, feature_noise_of, get_model
from dpviz.models.problem import Problem
from dpviz.models.row_budget import RowBudget
from dpviz.privacy.budget import Budget

N, LAM, STREAMS = 14, 0.3, spawn(4, 3)
PROBLEM = make_problem(n=N, d=3, lam=LAM)
#: of two budgets, so that a step that takes one for the other is seen; large, so that the rule's noise does not decide alone
BUDGETS = (Budget(60.0, 1e-2), Budget(200.0, 1e-2))


def gradient(theta: np.ndarray, row: int, X: np.ndarray | None = None) -> np.ndarray:
    """(m,) of the logistic loss at one row, its regulariser included."""
    v = PROBLEM.rows.y[row] * (PROBLEM.rows.X[row] if X is None else X)
    return -v / (1 + math.exp(v @ theta)) + LAM * theta


def contribution(theta: np.ndarray, row: int, at: np.ndarray) -> np.ndarray:
    """(m,) H^{-1} grad/n with the Hessian at `at`."""
    s = 1 / (1 + np.exp(-PROBLEM.rows.X @ at))
    hessian = (PROBLEM.rows.X.T * (s * (1 - s))) @ PROBLEM.rows.X / N + LAM * np.eye(3)
    return np.linalg.solve(hessian, gradient(theta, row)) / N


def built(name: str, **params: Any) -> tuple[Any, list[Calibration]]:
    mechanism = dpviz.list_mechanisms()[name].from_params({"rounds": 3, "local_steps": 4, "step_size": 0.5} | params)
    return mechanism, [mechanism.calibrate(PROBLEM.setting, budget) for budget in BUDGETS]


def draws(stream: np.random.SeedSequence, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """(T,) rows and (kinds, T, 3) standard draws of one replica of twelve steps."""
    rows, normal = (generator(part) for part in substreams(stream, 2))
    return rows.integers(N, size=12), normal.standard_normal((kinds, 12, 3))


def start(mechanism: Any) -> np.ndarray:
    return np.zeros(3) if mechanism.start == "zero" else PROBLEM.optimum


def compare(mechanism: Any, cals: list[Calibration], replay: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    """Parameters, visits, and how often each row passed and received noise, against the replay of every replica."""
    fit = mechanism.fit(Training(PROBLEM, cals, STREAMS))
    shares = []
    for e, cal in enumerate(cals):
        for s, stream in enumerate(STREAMS):
            theta, passed = replay(cal, stream)
            index = draws(stream, 1)[0]
            np.testing.assert_allclose(fit.theta[e, s], theta, rtol=1e-7, atol=1e-9)
            np.testing.assert_array_equal(fit.record.visits[0, s], np.bincount(index, minlength=N))
            np.testing.assert_array_equal(fit.record.passed[e, s], np.bincount(index, passed, minlength=N))
            np.testing.assert_array_equal(fit.record.times_noised[e, s], np.bincount(index, ~passed, minlength=N))
            np.testing.assert_array_equal(fit.record.timeline[e, s], (~passed).reshape(3, 4).sum(axis=1))
            shares.append(passed.mean())
    assert 0 < np.mean(shares) < 1, "both ways are taken"


@pytest.mark.parametrize("begin", ["zero", "non-private"])
@pytest.mark.parametrize(("rule", "size"), [("literal", 1), ("threshold", 1), ("fraction", 1), ("literal", 2), ("threshold", 4)])
def test_pidp_trains_as_its_algorithm_says(rule: str, size: int, begin: str) -> None:
    knobs = {"radius": 25.0, "threshold": 0.1, "fraction": 0.4, "batch_size": size, "local_steps": 4 // size}
    mechanism, cals = built("pidp-sgd", rule=rule, start=begin, **knobs)
    most = 0.1 * PROBLEM.setting.G / (N * LAM)
    first = start(mechanism)
    sizes = np.array([np.abs(contribution(first, i, first)).max() for i in range(N)])
    chosen = set(np.argsort(-sizes, kind="stable")[: round(0.4 * N)].tolist())
    error = error_bound(PROBLEM.setting)

    def replay(cal: Calibration, stream: np.random.SeedSequence) -> tuple[np.ndarray, np.ndarray]:
        index, noise = draws(stream, 2)
        local, outer, passed = first.copy(), first.copy(), np.zeros(12, bool)
        for k, row in enumerate(index):
            if rule == "fraction":
                passed[k] = row not in chosen
            else:
                c = contribution(outer, row, outer)
                doubled = 2 * np.sign(c) * (np.abs(c) + error) + cal.details["sigma_c"] * noise[1, k]
                passed[k] = np.abs(c).max() <= most if rule == "threshold" else np.abs(doubled).max() <= cal.details["threshold"]
            if (k + 1) % size == 0:  # the batch is complete
                batch = index[k + 1 - size : k + 1]
                mean = sum(gradient(local, i) for i in batch) / size
                important = (~passed[k + 1 - size : k + 1]).sum()
                added = cal.noise_scale * important * noise[0, k // size] / size
                local = local - 0.5 * PROBLEM.setting.unit_step * (mean + added)
            outer = local if (k + 1) % 4 == 0 else outer
        return outer, passed

    compare(mechanism, cals, replay)
    assert (cals[0].claimed_budget is None) == (rule != "literal" or size > 1), "the paper states no theorem on batches"
    fit = mechanism.fit(Training(PROBLEM, cals, STREAMS))
    bound = {"literal": cals[1].details["threshold"], "threshold": most, "fraction": np.sort(sizes)[: -len(chosen)].max()}[rule]
    compared = 2 * (sizes + error) if rule == "literal" else sizes
    np.testing.assert_allclose(np.broadcast_to(fit.record.rule_margin, (2, 3, N))[1, 0], compared - bound, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("scaling", ["linear", "root"])
@pytest.mark.parametrize("rule", ["as-written", "as-intended"])
def test_dbdp_trains_as_its_algorithm_says(rule: str, scaling: str) -> None:
    mechanism, _ = built("dbdp-pi", rule=rule, start="non-private", scaling=scaling)
    tight = {"as-written": (0.55, 0.8), "as-intended": (0.3, 1.0)}[rule]
    cals = [mechanism.calibrate(PROBLEM.setting, Budget(epsilon, 1e-2)) for epsilon in tight]

    def replay(cal: Calibration, stream: np.random.SeedSequence) -> tuple[np.ndarray, np.ndarray]:
        index, noise = draws(stream, 1)
        local, outer, passed = PROBLEM.optimum.copy(), PROBLEM.optimum.copy(), np.zeros(12, bool)
        for k, row in enumerate(index):
            ratio = 1 + contribution(outer, row, PROBLEM.optimum) / outer
            size = (
                np.abs(np.log(np.linalg.norm(ratio))) if rule == "as-written" else np.abs(np.log(np.maximum(ratio, 1e-300))).max()
            )
            passed[k] = size <= cal.budget.epsilon
            weight = feature_noise_of(PROBLEM.model).data_weights(local[None], PROBLEM.rows.take(np.array([row])))[0]
            scale = cal.noise_scale / (np.sqrt(weight) if scaling == "root" else weight)
            X = PROBLEM.rows.X[row] + (0.0 if passed[k] else scale * noise[0, k])
            local = local - 0.5 * PROBLEM.setting.unit_step * gradient(local, row, X)
            outer = local if (k + 1) % 4 == 0 else outer
        return outer, passed

    compare(mechanism, cals, replay)


def test_the_chance_of_passing_is_that_of_simulated_noise() -> None:
    rng, doubled, trials = np.random.default_rng(2), np.array([[0.0, 0.3, -0.5], [1.2, 0.1, 0.0], [0.0, 0.0, 0.0]]), 40_000
    chances = 10 ** log10_pass(doubled, 0.8, 0.6)
    for c, chance in zip(doubled, chances, strict=True):
        hits = int((np.abs(c + 0.6 * rng.standard_normal((trials, 3))) <= 0.8).all(axis=1).sum())
        assert binomtest(hits, trials, chance).pvalue > 1e-6
        assert binomtest(hits, trials, 1.1 * chance).pvalue < 1e-6, "the control"


def test_below_the_bound_of_line_9_the_logarithm_of_line_10_exists() -> None:
    for cal in built("pidp-sgd", rule="literal", share=0.01)[1]:
        first, delta = 0.01 * cal.budget.epsilon, cal.budget.delta / 2
        radius = cal.details["threshold"] / (2 * delta * (1 + math.exp(-first)))
        rest = 2 * radius * math.exp(first) * delta - math.expm1(first) * cal.details["line_9_bound"] * np.array([0.999, 1.001])
        assert rest[0] > 0 > rest[1]


@pytest.mark.parametrize("rule", ["literal", "threshold", "fraction"])
def test_what_is_shown_of_a_rule_is_what_it_compares(rule: str) -> None:
    mechanism, (cal, _) = built("pidp-sgd", rule=rule, start="zero", radius=25.0, fraction=0.4)
    views = mechanism.rule_views(PROBLEM, cal)
    assert [view.used for view in views] == [True, False]
    written, intended = sorted(views, key=lambda view: view.name != "as written")
    c = np.array([contribution(np.zeros(3), i, np.zeros(3)) for i in range(N)])
    twice = 2 * np.sign(c) * (np.abs(c) + error_bound(PROBLEM.setting))
    np.testing.assert_allclose(written.statistic, np.abs(twice).max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(intended.statistic, np.abs(c).max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(written.log10_pass, log10_pass(twice, cal.details["threshold"], cal.details["sigma_c"]), rtol=1e-5)
    assert written.high == cal.details["threshold"]
    most = log10_pass(np.zeros((1, 3)), cal.details["threshold"], cal.details["sigma_c"])[0]
    assert cal.details["log10_pass_bound"] == pytest.approx(most, rel=1e-9), "centred noise stays in a box most often"
    assert intended.passes.sum() == (N - round(0.4 * N) if rule == "fraction" else (intended.statistic <= intended.high).sum())
    for view in views:
        np.testing.assert_array_equal(view.passes, (view.low <= view.statistic) & (view.statistic <= view.high))


@pytest.mark.parametrize("rule", ["as-written", "as-intended"])
def test_what_is_shown_of_the_rule_of_dbdp_is_what_it_compares(rule: str) -> None:
    mechanism, _ = built("dbdp-pi", rule=rule, start="non-private")
    at = PROBLEM.optimum
    ratio = 1 + np.array([contribution(at, i, at) for i in range(N)]) / at
    length, largest = np.linalg.norm(ratio, axis=1), np.where(ratio > 0, np.abs(np.log(np.abs(ratio))), np.inf).max(axis=1)
    epsilon = float(np.median(largest))
    cal = mechanism.calibrate(PROBLEM.setting, Budget(epsilon, 1e-2))
    views = mechanism.rule_views(PROBLEM, cal)
    assert [(view.name.replace(" ", "-") == rule, view.used) for view in views] == [(True, True), (False, False)]
    written, intended = sorted(views, key=lambda view: view.name != "as written")
    np.testing.assert_allclose(written.statistic, length, rtol=1e-6)
    np.testing.assert_allclose(intended.statistic, largest, rtol=1e-6)
    np.testing.assert_allclose([written.low, written.high], np.exp([-epsilon, epsilon]))
    assert (intended.low, intended.high) == (-math.inf, epsilon)
    for view in views:
        np.testing.assert_array_equal(view.passes, (view.low <= view.statistic) & (view.statistic <= view.high))
    assert 0 < intended.passes.sum() < N
    compared = np.abs(np.log(length)) if rule == "as-written" else largest
    margin = mechanism.fit(Training(PROBLEM, [cal], STREAMS)).record.rule_margin
    np.testing.assert_allclose(np.broadcast_to(margin, (1, 3, N))[0, 0], compared - epsilon, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ["pidp-sgd", "dbdp-pi"])
def test_a_start_is_public_or_the_published_one_as_asked_for(name: str) -> None:
    cls = dpviz.list_mechanisms()[name]
    assert issubclass(cls, ChoosesStart)
    for public in (True, False):
        chosen = cls.from_params(cls.starting(public))
        assert chosen.public_start is public
        starts = chosen.starting_points(PROBLEM, STREAMS)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(starts, np.tile(np.zeros(3) if public else PROBLEM.optimum, (3, 1)))


def test_of_equally_influential_rows_the_first_ones_receive_noise() -> None:
    rule = Rule("fraction", PROBLEM.setting, 0.0, 0.3)
    assert np.array_equal(np.flatnonzero(~rule.passes_fraction(np.ones(1000))), np.arange(300))
    odd = np.arange(1000) % 2.0  # equal ones among others: numpy's own order of these is another
    assert np.array_equal(np.flatnonzero(~rule.passes_fraction(odd)), np.arange(1, 600, 2))
    assert np.array_equal(rule.passes_fraction(np.arange(10.0)), np.arange(10) < 7)


def test_rows_are_published_as_they_were_used_last() -> None:
    """D_priv of DBDP-ERM PI: rows that were never drawn, or passed when they were drawn last, are the person's own."""
    mechanism, cals = built("dbdp-pi", start="non-private")
    published = mechanism.noisy_rows(PROBLEM, cals[0], STREAMS[0])
    changed = np.flatnonzero((published != PROBLEM.rows.X).any(axis=1))
    fit = mechanism.fit(Training(Problem(Rows(PROBLEM.rows.X, PROBLEM.rows.y), PROBLEM.model, LAM), cals[:1], STREAMS[:1]))
    assert set(changed) <= set(np.flatnonzero(fit.record.times_noised[0, 0]))


BUDGET = Budget(1.0, 1e-5)


def build(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["renyi-filter"].from_params({"step_size": 1.0} | params)


def row_gradients(problem: Problem, theta: np.ndarray, clip: float) -> np.ndarray:
    """(n, m) clipped gradients, one row at a time and without the engine's sums."""
    v = problem.rows.signed_rows
    slope = problem.model.loss.slope(v @ theta)  # type: ignore[attr-defined]
    g = slope[:, None] * v
    return g * np.minimum(1.0, clip / np.maximum(np.linalg.norm(g, axis=1), 1e-300))[:, None]


def contributions(g: np.ndarray, spent: np.ndarray, budget: float) -> np.ndarray:
    """(n, m) what each row adds to one step by the published rule; `spent` grows by its cost."""
    spent += (g**2).sum(axis=1)
    return g * (spent <= budget * (1 + 1e-12))[:, None]


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_matches_a_row_by_row_run(model_id: str, clip: float) -> None:
    problem = make_problem(n=60, d=3, model=model_id)
    built = build(full_steps=2, stretch=10.0, clip_norm=clip)
    cal = built.calibrate(problem.setting, BUDGET)
    t = int(cal.details["steps"])
    # slopes at 0: 1/2 for the logistic loss, 1 for the hinge; a row of length 1 affords (C/slope)^2 as many steps
    assert t == {("logistic", 1.0): 80, ("logistic", 0.3): 20, ("svm", 1.0): 20, ("svm", 0.3): 20}[model_id, clip]
    fit = built.fit(Training(problem, [cal], spawn(4, 2)))
    stream = spawn(4, 2)[1]
    noise = generator(substreams(stream, 2)[1])
    theta, step, budget = np.zeros(3), problem.setting.unit_step, 2 * clip**2
    spent, visits, timeline = np.zeros(60), np.zeros(60), []
    for _ in range(t):
        used = contributions(row_gradients(problem, theta, clip), spent, budget)
        active = (used != 0).any(axis=1)
        visits += active
        timeline.append(active.sum())
        theta = theta - step * (used.mean(axis=0) + cal.noise_scale * noise.standard_normal(3) + problem.lam * theta)
    np.testing.assert_allclose(fit.theta[0, 1], theta, rtol=1e-7, atol=1e-9)
    record = fit.record
    assert record.visits is not None
    assert record.timeline is not None
    np.testing.assert_allclose(record.rule_margin[0, 1], spent / budget - 1, atol=1e-9)
    np.testing.assert_array_equal(record.visits[0, 1], visits)
    np.testing.assert_array_equal(record.timeline[0, 1], timeline)
    assert (visits < t).any()
    np.testing.assert_array_equal(record.rule_margin[0, 1] > 1e-9, visits < t)


@pytest.mark.parametrize("paid", [7, 256])
def test_no_row_overspends_in_single_precision(paid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, model = np.random.default_rng(3), get_model("svm")

    def most() -> float:
        """The largest share of its budget that a row contributes whose gradients are all clipped."""
        spent = []
        for _ in range(100 if paid < 10 else 8):
            clip, steps = float(rng.uniform(0.05, 0.9)), paid
            x = rng.standard_normal((1, 4))
            row = Rows(x / np.linalg.norm(x), np.ones(1))
            theta = (-4.0 * row.X).astype(np.float32)
            budget = steps * clip**2
            rule = RowBudget(1, 1, budget, slack=1e-6, free=steps, precision=np.float32)
            sums, visits = [], 0.0
            for _ in range(steps + 3):
                sums.append(model.sum_gradient(theta, row, clip_norm=clip, rule=rule)[0])
                visits += rule.end_step()[0]
            assert visits >= steps
            spent.append(sum(float(s @ s) for s in sums) / budget)
        return max(spent)

    assert 1 - 1e-5 < most() <= 1
    monkeypatch.setattr(import_module("dpviz.models.linear"), "_SHRINK", 1.0)  # the control: rounding alone goes beyond
    assert most() > 1


@pytest.mark.parametrize("free", [0, 1])
def test_the_rows_that_took_part_are_counted_over_all_blocks_of_a_step(free: int) -> None:
    rule = RowBudget(10, 2, 1.0, slack=1e-12, free=free)
    costs = np.zeros((2, 10))
    costs[0, :4] = costs[1, 4] = 4.0  # four and one rows demand more than they have
    costs[:, 9] = 1.0  # demands all it has
    for step in range(2):
        for block in (slice(4, 10), slice(0, 4)):
            rule(block, np.sqrt(costs[:, block]))
        expected = [10, 10] if step < free else [6, 9] if step == 0 else [5, 8]
        np.testing.assert_array_equal(rule.end_step(), expected)


@pytest.mark.parametrize("n", [40, 5000])
def test_no_row_takes_part_in_a_step_that_its_budget_does_not_pay_for(n: int) -> None:
    """Rows whose gradients hardly change: k of them cost 0.5 % more, or 0.5 % less, than the budget of T0 C^2.

    A slack of 1 % would let the first kind take part once more. In double precision for few rows, in single for many.
    """
    full, steps = 3, 8  # the budget is 3, and a gradient of length |x|/2 costs |x|^2/4
    length = np.sqrt(4 * full / steps * np.array([1.005, 0.995]))
    assert (length <= 2).all()
    X = np.zeros((n, 2))
    X[:, 0] = np.where(np.arange(n) % 2 == 0, *length)
    problem = Problem(Rows(X, np.where(np.arange(n) % 4 < 2, 1.0, -1.0)), get_model("logistic"), 1e-3)
    built = build(full_steps=full, stretch=4.0, clip_norm=1.0, step_size=0.01)
    cal = built.calibrate(problem.setting, Budget(1e6, 1e-5))
    assert cal.details["steps"] > steps + 2
    fit = built.fit(Training(problem, [cal], spawn(0, 1)))
    assert np.abs(fit.theta).max() < 1e-3, "slopes stay 1/2 to 0.1 %"
    visits = np.broadcast_to(fit.record.visits, (1, 1, n))[0, 0]
    assert (set(visits[::2]), set(visits[1::2])) == ({steps - 1}, {steps})
