"""Methods that let rows pass without noise: their rules as printed, against independent code, and what they come to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support import make_problem

import dpviz
from dpviz.common.random import generator, spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import HasRule, Training, get_mechanism, list_mechanisms
from dpviz.mechanisms.gradient import pidp_sgd_rule
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.published_noise import largest_log_ratio, pidp_passes, pidp_threshold, ratio_norm

BUDGET = Budget(1.0, 1e-5)


def telling_radius(problem: Problem, budget: Budget, **params: object) -> float:
    """A radius r, in units of G/lam, at which PIDP's rule noise is of the size of its threshold, so that rows differ."""
    at = get_mechanism("pidp-sgd").from_params(params).calibrate(problem.setting, budget).details
    return 1.2 * at["sigma_c"] / at["threshold"]


def printed_lines_9_and_10(c: np.ndarray, r: float, eps: float, delta: float, kappa: float | None = None) -> np.ndarray:
    """(k,) Kang-PIDP Algorithm 1, lines 9 and 10, word for word for c (k, m)."""
    k = math.exp(eps) if kappa is None else kappa
    jump = (np.abs(c) >= 2 * r * k * delta / (k - 1)).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(2 * r * k * delta / (2 * r * k * delta - (k - 1) * np.sign(c) * c))
        return ~jump & (left <= eps + math.log(k)).all(axis=1)


def random_settings(count: int, per: int = 1000, m: int = 4):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    for _ in range(count):
        eps, delta, r = (float(10 ** rng.uniform(*span)) for span in ((-3, 1.3), (-9, -1), (-2, 4)))
        entries = rng.uniform(-1, 1, (per, m)) * 10 ** rng.uniform(-1.5, 1.5, (per, 1))
        yield eps, delta, r, entries, float(math.exp(rng.uniform(0.01, 5)))


def test_lines_9_and_10_are_one_threshold() -> None:
    mismatches = misses_of_line_9 = passes = total = 0
    for eps, delta, r, entries, kappa in random_settings(220):
        threshold = pidp_threshold(r, eps, delta)
        c = threshold * entries
        literal = printed_lines_9_and_10(c, r, eps, delta)
        largest = np.abs(c).max(axis=1)
        mismatches += int((literal != (largest <= threshold)).sum()) + int((literal != pidp_passes(c, r, eps, delta)).sum())
        general = pidp_threshold(r, eps, delta, kappa=kappa)
        mismatches += int(
            (
                printed_lines_9_and_10(general * entries, r, eps, delta, kappa)
                != (np.abs(general * entries).max(axis=1) <= general)
            ).sum()
        )
        # control: line 9's bound, which looks like the threshold, is another rule
        misses_of_line_9 += int((literal != (largest < 2 * r * delta / -math.expm1(-eps))).sum())
        passes, total = passes + int(literal.sum()), total + len(c)
    assert total >= 200_000
    assert 0.2 < passes / total < 0.8
    assert mismatches == 0
    assert misses_of_line_9 > 1000


def test_threshold_falls_with_epsilon_and_kappa_gives_any_value() -> None:
    assert pidp_threshold(10, 0.75, 1e-5) == pytest.approx(0.000294473310548203, rel=1e-12)
    assert pidp_threshold(10, 0.75, 1e-5, kappa=math.exp(0.75)) == pytest.approx(0.000294473310548203, rel=1e-12)
    values = [pidp_threshold(1.0, eps, 1e-5) for eps in (1e-6, 0.1, 1.0, 3.0, 50.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(4e-5, rel=1e-5)
    assert values[-1] == pytest.approx(2e-5)
    assert pidp_threshold(1.0, 1.0, 1e-5, kappa=1e9) == pytest.approx(2e-5)
    assert pidp_threshold(1.0, 1.0, 1e-5, kappa=1 + 1e-9) > 1e3
    assert pidp_passes(np.zeros((1, 3)), 1.0, 1e5, 1e-5).all()  # no epsilon overflows


def test_pidp_calibration() -> None:
    cal = dpviz.calibrate("pidp-sgd", n=45222, d=104, epsilon=1, delta=2e-5, lam=1e-3, rounds=1)
    assert cal.details["sigma_c"] == pytest.approx(0.8570704988908743, rel=1e-9)
    assert cal.details["threshold"] == pytest.approx(0.0294473310548203, rel=1e-9)
    assert cal.details["log10_pass_bound"] == pytest.approx(-162.4, abs=0.1)
    assert cal.details["epsilon_1"] + cal.details["epsilon_2"] == 1.0
    assert cal.details["delta_1"] + cal.details["delta_2"] == 2e-5
    assert cal.details["line_9_bound"] > cal.details["threshold"]
    assert cal.claimed_budget == Budget(1.0, 2e-5)
    assert (cal.status, cal.proved_budget) == (Status.CLAIM, None)
    assert any("10^-162" in note for note in cal.notes)
    assert any("starts at the non-private minimiser" in note for note in cal.notes)
    at = dpviz.calibrate("pidp-sgd", n=45222, d=104, epsilon=1, delta=2e-5, lam=0.01).details
    assert at["taylor_error"] == pytest.approx(4.949809064198106e-05, rel=1e-9)
    for reading in ("threshold", "fraction"):
        cal = dpviz.calibrate("pidp-sgd", n=45222, d=104, epsilon=1, delta=2e-5, rule=reading)
        assert (cal.status, cal.proved_budget, cal.claimed_budget) == (Status.NONE, None, None)
    svm = dpviz.calibrate("pidp-sgd", n=45222, d=104, epsilon=1, delta=2e-5, model="svm")
    assert svm.details["taylor_error"] == math.inf
    assert any("no E" in note for note in svm.notes)


@pytest.mark.parametrize("name", ["pidp-sgd", "dbdp-pi"])
def test_pure_budgets_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        get_mechanism(name)().calibrate(make_problem().setting, Budget(1.0))


# --- DBDP's rule ----------------------------------------------------------------------------------------------------


def test_ratio_rules_by_hand() -> None:
    model, c = np.array([[1.0, -2.0, 0.0]]), np.array([[0.1, 0.2, 0.0]])
    assert ratio_norm(model, c)[0] == pytest.approx(math.sqrt(1.1**2 + 0.9**2 + 1))
    assert largest_log_ratio(model, c)[0] == pytest.approx(-math.log(0.9))
    for change in ([-1.0, 0, 0], [-3.0, 0, 0], [0, 0, 1e-9]):  # a vanishing, a negative and an undefined ratio
        assert largest_log_ratio(model, np.array([change]))[0] == math.inf


@pytest.mark.parametrize("m", [2, 10, 104])
def test_written_rule_flips_at_half_log_m_whatever_the_influence(m: int) -> None:
    rng = np.random.default_rng(0)
    model = rng.choice([-1, 1], m) * rng.uniform(0.5, 2, m)
    small = model * rng.uniform(-1e-3, 1e-3, (500, m)) * rng.uniform(0, 1, (500, 1))
    norm, flip = ratio_norm(model, small), 0.5 * math.log(m)
    assert not (norm <= math.exp(0.99 * flip - 1e-3)).any()
    assert (norm <= math.exp(1.01 * flip + 1e-3)).all()
    # as intended, the very same rows are told apart, at an epsilon far below
    assert 0.1 < (largest_log_ratio(model, small) <= 5e-4).mean() < 0.9
    assert dpviz.calibrate("dbdp-pi", n=1000, d=m, epsilon=1).details["rule_flip_epsilon"] == pytest.approx(flip)


def test_flip_shows_in_runs() -> None:
    problem = make_problem(n=4000, d=6, lam=0.05)
    assert np.abs(problem.optimum).min() > 0.01
    built, flip = get_mechanism("dbdp-pi")(rounds=2, step_size=0.01), 0.5 * math.log(6)
    cals = [built.calibrate(problem.setting, Budget(e, 1e-6)) for e in (0.9 * flip, 1.1 * flip)]
    record = built.fit(Training(problem, cals, spawn(0, 3))).record
    assert record.times_noised is not None
    assert record.passed is not None
    assert record.times_noised[0].sum() == 60
    assert record.passed[0].sum() == 0
    assert record.times_noised[1].sum() == 0
    assert record.rule_margin is not None
    assert (record.rule_margin[0] > 0).all()
    assert (record.rule_margin[1] < 0).all()


# --- against code that follows the printed steps one by one ----------------------------------------------------------


def hessian(problem: Problem, theta: np.ndarray) -> np.ndarray:
    X, y, loss = problem.rows.X, problem.rows.y, problem.model.loss  # type: ignore[attr-defined]
    return (X.T * loss.curvature(y * (X @ theta))) @ X / problem.n + problem.lam * np.eye(X.shape[1])


def row_gradient(problem: Problem, theta: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    loss = problem.model.loss  # type: ignore[attr-defined]
    return y * float(loss.slope(np.array(y * (x @ theta)))) * x + problem.lam * theta


def dbdp_by_steps(problem, built, epsilon, sigma, stream):  # type: ignore[no-untyped-def]
    """Kang-DBDP Algorithm 2 for one replica: (theta, noised per row, passed per row, D_priv)."""
    n, d = problem.rows.X.shape
    rng = generator(stream)
    index, noise = rng.integers(n, size=built.steps), rng.standard_normal((1, built.steps, d))[0]
    pre = problem.optimum if built.start == "non-private" else np.zeros(d)
    H = hessian(problem, problem.optimum)
    outer, local = pre.copy(), pre.copy()
    noised, passed, published = np.zeros(n), np.zeros(n), problem.rows.X.copy()
    k = 0
    for _ in range(built.rounds):
        for _ in range(built.local_steps):
            i, b = index[k], noise[k]
            x, y = problem.rows.X[i], problem.rows.y[i]
            c = np.linalg.solve(H, row_gradient(problem, outer, x, y)) / n
            if built.rule == "as-written":
                small = math.exp(-epsilon) <= np.linalg.norm((c + outer) / outer) <= math.exp(epsilon)
            else:
                ratio = (c + outer) / outer
                small = bool(((math.exp(-epsilon) <= ratio) & (ratio <= math.exp(epsilon))).all())
            if small:
                passed[i] += 1
                local = local - built.step_size / problem.setting.L * row_gradient(problem, local, x, y)
            else:
                noised[i] += 1
                loss, margin = problem.model.loss, y * (x @ local)
                M = y * float(loss.slope(np.array(margin))) * np.eye(d)
                M += float(loss.curvature(np.array(margin))) * np.outer(x, local)
                w = max(np.linalg.norm(M, 2), 1e-6)
                published[i] = x + sigma / (math.sqrt(w) if built.scaling == "root" else w) * b
                local = local - built.step_size / problem.setting.L * row_gradient(problem, local, published[i], y)
            k += 1
        outer = local.copy()
    return outer, noised, passed, published


@pytest.mark.parametrize("scaling", ["root", "linear"])
@pytest.mark.parametrize(("reading", "epsilons"), [("as-written", (0.3, 0.7, 2.0)), ("as-intended", (0.01, 0.1, 1.0))])
def test_dbdp_pi_follows_algorithm_2(reading: str, epsilons: tuple[float, ...], scaling: str, model_id: str) -> None:
    problem = make_problem(n=60, d=4, lam=0.1, model=model_id)
    built = get_mechanism("dbdp-pi")(rounds=3, local_steps=7, rule=reading, scaling=scaling)
    cals = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in epsilons]
    streams = spawn(3, 2)
    fit = built.fit(Training(problem, cals, streams))
    seen = []
    for e, cal in enumerate(cals):
        for s, stream in enumerate(streams):
            theta, noised, passed, published = dbdp_by_steps(problem, built, epsilons[e], cal.noise_scale, stream)
            np.testing.assert_allclose(fit.theta[e, s], theta, rtol=1e-7, atol=1e-9)
            assert np.array_equal(fit.record.times_noised[e, s], noised)  # type: ignore[index]
            assert np.array_equal(fit.record.passed[e, s], passed)  # type: ignore[index]
            np.testing.assert_allclose(built.noisy_rows(problem, cal, stream), published, rtol=1e-7, atol=1e-9)
            untouched = noised == 0
            assert np.array_equal(published[untouched], problem.rows.X[untouched])  # line 18 publishes raw rows
            seen.append(noised.sum() / 21)
    assert min(seen) < 0.7
    assert max(seen) > 0.3


def pidp_by_steps(problem, built, cal, stream):  # type: ignore[no-untyped-def]
    """Kang-PIDP Algorithm 1 for one replica, with the two readings of its intention: (theta, noised, passed)."""
    n, m = problem.rows.X.shape
    rng = generator(stream)
    index, draws = rng.integers(n, size=built.steps), rng.standard_normal((2, built.steps, m))
    at = cal.details
    outer = problem.optimum.copy() if built.start == "non-private" else np.zeros(m)
    local, noised, passed, k = outer.copy(), np.zeros(n), np.zeros(n), 0
    error = at["taylor_error"] if math.isfinite(at["taylor_error"]) else 0.0

    def influences(theta: np.ndarray) -> np.ndarray:
        gradients = np.array([row_gradient(problem, theta, x, y) for x, y in zip(problem.rows.X, problem.rows.y, strict=True)])
        return np.linalg.solve(hessian(problem, theta), gradients.T).T / n

    first = np.abs(influences(outer)).max(axis=1)
    top = set(np.argsort(-first, kind="stable")[: round(built.fraction * n)].tolist())
    for _ in range(built.rounds):
        every = influences(outer)
        for _ in range(built.local_steps):
            i = int(index[k])
            c = every[i]
            if built.rule == "literal":
                c = 2 * np.where(c < 0, -1, 1) * (np.abs(c) + error) + at["sigma_c"] * draws[1, k]
                small = bool(printed_lines_9_and_10(c[None], at["radius"], at["epsilon_1"], at["delta_1"])[0])
            elif built.rule == "threshold":
                small = np.abs(c).max() <= built.threshold / (n * problem.lam)
            else:
                small = i not in top
            b = np.zeros(m) if small else cal.noise_scale * draws[0, k]
            passed[i], noised[i] = passed[i] + small, noised[i] + (not small)
            step = built.step_size / problem.setting.L
            local = local - step * (row_gradient(problem, local, problem.rows.X[i], problem.rows.y[i]) + b)
            k += 1
        outer = local.copy()
    return outer, noised, passed


@pytest.mark.parametrize("start", ["non-private", "zero"])
@pytest.mark.parametrize("reading", ["literal", "threshold", "fraction"])
def test_pidp_follows_algorithm_1(reading: str, start: str, model_id: str) -> None:
    problem = make_problem(n=60, d=2, lam=0.1, model=model_id)
    radius = telling_radius(problem, Budget(1.0, 1e-3), rounds=3)
    built = get_mechanism("pidp-sgd")(
        rounds=3, local_steps=7, rule=reading, start=start, radius=radius, threshold=0.1, fraction=0.4
    )
    cals = [built.calibrate(problem.setting, Budget(e, 1e-3)) for e in (0.5, 2.0)]
    streams = spawn(3, 2)
    fit = built.fit(Training(problem, cals, streams))
    share = []
    for e, cal in enumerate(cals):
        for s, stream in enumerate(streams):
            theta, noised, passed = pidp_by_steps(problem, built, cal, stream)
            np.testing.assert_allclose(fit.theta[e, s], theta, rtol=1e-7, atol=1e-9)
            assert np.array_equal(fit.record.times_noised[e, s], noised)  # type: ignore[index]
            assert np.array_equal(fit.record.passed[e, s], passed)  # type: ignore[index]
            share.append(passed.sum() / 21)
    assert max(share) > 0.1
    assert min(share) < 0.9


def test_pidp_refuses_early_only_what_the_rule_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, budgets = make_problem(n=200, d=4), [Budget(e, 1e-3) for e in (0.5, 1.0, 4.0)]
    radius = telling_radius(problem, budgets[1], rounds=4)
    built = get_mechanism("pidp-sgd")(radius=radius, rounds=4)
    calibrations, streams = [built.calibrate(problem.setting, b) for b in budgets], spawn(3, 40)
    original, early = pidp_sgd_rule.refused, []

    def watched(*arguments):  # type: ignore[no-untyped-def]
        early.append(original(*arguments))
        return early[-1]

    monkeypatch.setattr(pidp_sgd_rule, "refused", watched)
    fast = built.fit(Training(problem, calibrations, streams))
    monkeypatch.setattr(pidp_sgd_rule, "refused", lambda g, *_: np.zeros(len(g), bool))
    slow = built.fit(Training(problem, calibrations, streams))
    passed = slow.record.passed
    assert passed is not None
    assert 0 < passed.sum() < passed.size  # the rule says both, and some of its answers come early
    assert 0.01 < np.mean(early) < 0.99
    np.testing.assert_array_equal(fast.theta, slow.theta)
    # control: refusing everything would be seen
    monkeypatch.setattr(pidp_sgd_rule, "refused", lambda g, *_: np.ones(len(g), bool))
    assert not np.array_equal(built.fit(Training(problem, calibrations, streams)).theta, slow.theta)


def test_literal_pidp_never_skips_noise() -> None:
    problem = make_problem(n=3000, d=20, lam=1e-3)
    built = get_mechanism("pidp-sgd")()
    cals = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (0.1, 1.0, 10.0)]
    record = built.fit(Training(problem, cals, spawn(0, 20))).record
    assert record.passed is not None
    assert record.passed.sum() == 0
    assert max(c.details["log10_pass_bound"] for c in cals) < -6


# --- the story, the views ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"),
    [("pidp-sgd", {"radius": 300.0}), ("pidp-sgd", {"rule": "fraction"}), ("dbdp-pi", {"rule": "as-intended"})],
)
def test_story_adds_up(name: str, params: dict[str, object]) -> None:
    problem = make_problem(n=40, d=3)
    built = get_mechanism(name).from_params({**params, "rounds": 4, "local_steps": 6})
    cals = [built.calibrate(problem.setting, Budget(e, 1e-3)) for e in (0.3, 3.0)]
    record = built.fit(Training(problem, cals, spawn(0, 3))).record
    visits, noised, passed = record.visits, record.times_noised, record.passed
    assert visits is not None
    assert noised is not None
    assert passed is not None
    assert record.timeline is not None
    assert record.noise_norm is not None
    assert np.array_equal(np.broadcast_to(visits, noised.shape), noised + passed)
    assert (visits.sum(axis=2) == 24).all()
    assert record.timeline.shape == (2, 3, 4)
    assert np.array_equal(record.timeline.sum(axis=2), noised.sum(axis=2))
    assert np.array_equal(record.noise_norm > 0, noised > 0)
    silenced = built.fit(Training(problem, [c.noiseless() for c in cals], spawn(0, 3)))
    assert silenced.record.noise_norm is not None
    assert silenced.record.noise_norm.sum() == 0
    assert np.array_equal(silenced.theta[0], silenced.theta[1])
    bare = built.fit(Training(problem, cals, spawn(0, 3), record=False))
    assert bare.record.visits is None
    np.testing.assert_array_equal(bare.theta, built.fit(Training(problem, cals, spawn(0, 3))).theta)


def test_gradient_noise_has_its_declared_scale() -> None:
    """One step from the minimiser of rows that are all 0: what moves is the noise alone."""
    problem = make_problem(n=50, d=5)
    still = Problem(type(problem.rows)(np.zeros((50, 5)), problem.rows.y), problem.model, 0.05)
    built = get_mechanism("pidp-sgd")(rounds=1, local_steps=1)
    cal = built.calibrate(still.setting, BUDGET)
    moved = built.fit(Training(still, [cal], spawn(1, 5000))).theta[0] * -still.setting.L / cal.noise_scale
    for draws, fine in ((moved, True), (0.95 * moved, False)):
        tail = stats.chi2.cdf((draws**2).sum(), draws.size)
        assert bool(5e-7 < tail < 1 - 5e-7) is fine


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("pidp-sgd", {}),
        ("pidp-sgd", {"rule": "threshold", "threshold": 0.2}),
        ("pidp-sgd", {"rule": "fraction", "fraction": 0.25}),
        ("dbdp-pi", {}),
        ("dbdp-pi", {"rule": "as-intended"}),
    ],
)
def test_views_show_the_rule_that_was_used(name: str, params: dict[str, object], model_id: str) -> None:
    problem = make_problem(n=80, d=4, lam=0.1, model=model_id)
    built = get_mechanism(name).from_params(params)
    cal = built.calibrate(problem.setting, Budget(0.15, 1e-5))
    views = built.rule_views(problem, cal)
    assert views is not None
    assert {v.name for v in views} == {"as written", "as intended"}
    assert [v.used for v in views] == [True, False]
    margin = built.fit(Training(problem, [cal], spawn(0, 1))).record.rule_margin
    assert margin is not None
    assert np.array_equal(views[0].passes, margin[0, 0] <= 0)
    for view in views:
        assert np.array_equal(view.passes, (view.low <= view.statistic) & (view.statistic <= view.high))
    if params.get("rule") == "fraction":
        assert (~views[0].passes).sum() == 20


def test_rules_are_only_where_rules_are() -> None:
    assert {name for name, cls in list_mechanisms().items() if issubclass(cls, HasRule)} == {"dbdp-pi", "pidp-sgd"}


def test_pass_probability_against_sampling() -> None:
    problem = make_problem(n=30, d=2, lam=0.2)
    built = get_mechanism("pidp-sgd")(radius=telling_radius(problem, Budget(1.0, 1e-3), rounds=1), rounds=1)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-3))
    view = built.rule_views(problem, cal)[0]  # type: ignore[index]
    gradients = np.array(
        [row_gradient(problem, problem.optimum, x, y) for x, y in zip(problem.rows.X, problem.rows.y, strict=True)]
    )
    c = np.linalg.solve(hessian(problem, problem.optimum), gradients.T).T / 30
    c = 2 * np.where(c < 0, -1, 1) * (np.abs(c) + cal.details["taylor_error"])
    rng, draws = np.random.default_rng(0), 40_000
    at = cal.details
    assert view.log10_pass is not None
    for i in range(0, 30, 6):
        noisy = c[i] + at["sigma_c"] * rng.standard_normal((draws, 2))
        count = int(printed_lines_9_and_10(noisy, at["radius"], at["epsilon_1"], at["delta_1"]).sum())
        p = 10 ** view.log10_pass[i]
        assert 0.001 < p < 0.999
        assert stats.binomtest(count, draws, p).pvalue > 1e-6
        assert stats.binomtest(count, draws, min(1.0, 1.2 * p)).pvalue < 1e-6  # control: a wrong probability is seen
    assert (view.log10_pass <= at["log10_pass_bound"] + 1e-12).all()
