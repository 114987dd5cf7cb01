"""Local reports: the exact laws of reports and of the sums of their noise, guarantees, and what training may use."""

import math

import numpy as np
import pytest
from scipy import stats
from support import assert_refused, make_problem, mostly_long

import dpviz
from dpviz.common.random import single_normals, spawn
from dpviz.mechanisms import Training
from dpviz.mechanisms.local.ldp_duchi import randomise, report_norm
from dpviz.mechanisms.local.local_reports import NoiseSums
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.accounting.shuffle import shuffled_epsilon
from dpviz.privacy.budget import Budget, Status

ALPHA = 1e-6


def build(name: str, **params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()[name].from_params(params)


def reports(epsilon: float, size: float, k: int = 400_000, d: int = 6, seed: int = 0) -> np.ndarray:
    """(k, d) reports of people who all hold size * e1."""
    direction = np.tile(np.eye(1, d, dtype=np.float32), (k, 1))
    coins, directions = np.random.SeedSequence(seed).spawn(2)
    sources = np.random.default_rng(coins), single_normals(directions)
    weights, sphere = randomise(direction, np.full((1, k), size), np.array([epsilon]), *sources, np.empty((1, k)))
    return weights[0][:, None] * sphere


def test_duchi_length() -> None:
    # d = 1 is randomised response: B = coth(eps/2)
    assert report_norm(0.7, 1) == pytest.approx(1 / math.tanh(0.35), rel=1e-12)
    assert report_norm(math.inf, 10) == pytest.approx(report_norm(1.0, 10) * math.tanh(0.5), rel=1e-12)
    assert math.isfinite(report_norm(1.0, 10**6))


def test_duchi_is_uniform_within_a_half_sphere_and_unbiased() -> None:
    z, d, b = reports(1.0, 0.7), 6, report_norm(1.0, 6)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), b, rtol=1e-5)
    # uniform on the sphere up to the sign of the first coordinate
    law = stats.beta((d - 1) / 2, (d - 1) / 2)
    for k in range(d):
        u = np.abs(z[:, k]) / b
        assert stats.kstest(u, lambda t: 2 * law.cdf((1 + t) / 2) - 1).pvalue > ALPHA
    error = b / math.sqrt(d * len(z))
    target = np.eye(1, d)[0] * 0.7
    assert np.abs(z.mean(axis=0) - target).max() < 6 * error
    # the control: 5 % shorter reports are biased
    assert np.abs(0.95 * z.mean(axis=0) - target).max() > 6 * error
    # no covariance: the second moment is that of the whole sphere
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(d) * b**2 / d, atol=6 * b**2 / math.sqrt(len(z)))


@pytest.mark.parametrize(("share", "same"), [(0.8, True), (0.6, False)])
def test_duchi_gives_all_the_larger_class_where_the_other_is_not_similar_enough(share: float, same: bool) -> None:
    """Rows (1, 0) and (0.6, 0.8): the smaller class is 1/0.6 times as similar to its own rows, p/(1 - p) is 4 or 1.5."""
    n = 20_000
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    problem = Problem(Rows(np.where(y[:, None] > 0, [1.0, 0.0], [0.6, 0.8]), y), get_model("logistic"), 0.1)
    cal = build("ldp-duchi").calibrate(problem.setting, Budget(10.0))
    theta = build("ldp-duchi").fit(Training(problem, [cal], spawn(1, 3), record=False)).theta[0]
    assert (theta @ [1.0, 0.0] > 0).all()
    assert list(theta @ [0.6, 0.8] > 0) == [same] * 3


@pytest.mark.parametrize("name", ["ldp-duchi", "ldp-gaussian"])
def test_local_and_central_budgets(name: str) -> None:
    setting = get_model("logistic").setting(39073, 109, 1e-3)
    budget = Budget(1.0, 1e-6)
    local = build(name).calibrate(setting, budget)
    central = build(name, epsilon_is="central by shuffling").calibrate(setting, budget)
    assert (local.status, local.proved_budget) == (Status.PROVED, Budget(1.0) if name == "ldp-duchi" else budget)
    assert (central.status, central.proved_budget) == (Status.PROVED_IF, budget)
    assert (local.conversion, "Feldman" in central.conversion) == ("", True)
    assert central.details["local_epsilon"] > 3
    assert central.details["central_epsilon"] <= 1 + 1e-9
    assert local.details["central_epsilon"] < 0.5
    assert central.noise_scale < local.noise_scale
    if name == "ldp-duchi":
        assert local.details["central_epsilon"] == pytest.approx(shuffled_epsilon(1.0, 39073, 1e-6))
    else:
        assert local.noise_scale == pytest.approx(2 / gaussian_mu(budget))
        # what the theorem is given of one report: an (epsilon, delta) that its noise has
        one = {part: central.details[f"theorem_local_{part}"] for part in ("epsilon", "delta")}
        assert 0 < one["delta"] < budget.delta
        assert one["epsilon"] == pytest.approx(float(gaussian_epsilon(one["delta"], 2 / central.noise_scale)), rel=1e-6)
    # few people: shuffling proves nothing, and that is said
    few = build(name, epsilon_is="central by shuffling").calibrate(get_model("logistic").setting(100, 5, 1e-3), budget)
    assert (few.details["amplified"], few.details["local_epsilon"]) == (0, pytest.approx(1.0))
    assert any("nothing better" in note for note in few.notes)


@pytest.mark.parametrize("training", ["surrogate", "plain"])
@pytest.mark.parametrize("name", ["ldp-duchi", "ldp-gaussian"])
def test_shown_rows_are_the_reports_that_trained_the_model(name: str, training: str) -> None:
    problem = make_problem(n=9000, d=3)  # more than one block of rows
    built = build(name, training=training)
    cal = built.calibrate(problem.setting, Budget(2.0, 1e-5))
    streams = spawn(6, 2)
    fit = built.fit(Training(problem, [cal], streams))
    shown = built.noisy_rows(problem, cal, streams[1])
    np.testing.assert_allclose(np.linalg.norm(shown - problem.rows.X, axis=1), fit.record.noise_norm[0, 1], rtol=1e-4)
    # the control: another replica's rows did not train this model
    other = built.noisy_rows(problem, cal, streams[0])
    assert not np.allclose(np.linalg.norm(other - problem.rows.X, axis=1), fit.record.noise_norm[0, 1], rtol=1e-2)
    assert "label" in built.rows_in_words(make_problem().setting)


@pytest.mark.parametrize("name", ["ldp-duchi", "ldp-gaussian"])
def test_reported_gradients_are_no_rows_and_say_so(name: str) -> None:
    problem, built = make_problem(), build(name, release="gradient")
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    assert built.noisy_rows(problem, cal, spawn(0, 1)[0]) is None
    assert "gradient" in built.rows_in_words(make_problem().setting)


@pytest.mark.parametrize("name", ["ldp-gaussian", "ldp-duchi"])
def test_a_network_learns_from_reported_features_and_labels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every person has the same record, so that the reports show their law."""
    x, n = np.array([0.6, -0.3, 0.2]), 40_000
    problem = Problem(Rows(np.tile(x, (n, 1)), np.ones(n)), get_model("mlp"), 0.01)
    built = build(name)
    seen: list[np.ndarray] = []

    def learn(self: object, problem: Problem, reports: np.ndarray, stream: object) -> np.ndarray:
        seen.append(reports)
        return np.zeros(problem.m)

    monkeypatch.setattr(type(built), "learn", learn)
    calibration = built.calibrate(problem.setting, Budget(2.0, 1e-6))
    assert calibration.sensitivity == pytest.approx(2 * 2**0.5)
    fit = built.fit(Training(problem, [calibration], spawn(0, 1)))
    (reports,) = seen
    record = np.append(x, 1.0)
    error = reports.mean(axis=0) - record
    size = calibration.noise_scale / n**0.5
    assert np.abs(error).max() < 4 * size
    assert np.abs(reports.mean(axis=0) / 2**0.5 - record).max() > 4 * size, "a forgotten scale would be seen"
    if name == "ldp-gaussian":
        spread = (reports - record).std()
        assert abs(spread / calibration.noise_scale - 1) < 0.01
        assert abs(0.95 * spread / calibration.noise_scale - 1) > 0.01
    else:
        np.testing.assert_allclose(np.linalg.norm(reports, axis=1), calibration.details["B"], rtol=1e-6)
    np.testing.assert_allclose(fit.record.noise_norm[0, 0], np.linalg.norm(reports - record, axis=1), rtol=1e-4)
    rows = built.noisy_rows(problem, calibration, spawn(0, 1)[0])
    np.testing.assert_allclose(rows, reports[:, :-1], rtol=1e-5, atol=1e-6)
    assert_refused(build(name, release="gradient").calibrate, problem.setting, Budget(2.0, 1e-6), match="release")


@pytest.mark.parametrize("model", ["logistic", "mlp-3"])
def test_what_is_learnt_depends_on_the_reports_alone(model: str) -> None:
    """Other people with the same reports give the same model; a reported label that is turned gives another one."""
    here, there = (make_problem(n=30, d=3, model=model, seed=seed) for seed in (0, 1))
    assert (here.rows.y != there.rows.y).any()
    built, stream = build("ldp-gaussian"), spawn(0, 1)[0]
    reports = built.signed_records(here) + np.random.default_rng(2).standard_normal(built.signed_records(here).shape)
    learnt = built.learn(here, reports, stream)
    np.testing.assert_array_equal(built.learn(there, reports, stream), learnt)
    turned = reports.copy()
    turned[:15] *= -1
    assert not np.allclose(built.learn(here, turned, stream), learnt, atol=1e-3)


def test_what_is_protected_is_each_rows_own_gradient() -> None:
    problem = make_problem(n=30, d=3)
    built = build("ldp-gaussian", release="gradient")
    theta = np.random.default_rng(2).standard_normal((2, problem.m))
    told = built.query(problem, theta, spawn(1, 1)).reshape(2, 30, -1)
    for k in range(30):
        row = Rows(problem.rows.X[k : k + 1], problem.rows.y[k : k + 1])
        np.testing.assert_allclose(told[:, k], problem.model.sum_gradient(theta, row), rtol=1e-10, atol=1e-14)


#: rows and features; more rows than features, as many, fewer, and one
SHAPES = mostly_long([(12, 3), (5, 4), (4, 4), (3, 5), (1, 2)], (5, 4), (1, 2))
DRAWS = 4000


def table(n: int, d: int) -> np.ndarray:
    """(n, d) rows; the last feature repeats the first one, so that the columns have a rank below their number."""
    rows = np.random.default_rng(1).standard_normal((n, d)) / np.sqrt(d)
    rows[:, -1] = rows[:, 0]
    return rows


def functionals(rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Numbers that hang on the sums together: (11,) of noise (n, d)."""
    return of_sums(noise.sum(axis=0), rows.T @ noise, noise.T @ noise)


def of_sums(total: np.ndarray, cross: np.ndarray, square: np.ndarray) -> np.ndarray:
    first, *_, last = np.linalg.eigvalsh(square)
    ends = [total[0], total @ cross[0], cross[0, -1], cross[-1, 0], np.abs(cross).sum(), total @ square @ total, first, last]
    return np.array([*ends, square[0, -1], square[0, 0] - square[-1, -1], np.linalg.eigvalsh(cross + cross.T + square)[-1]])


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_sums_have_the_joint_law_of_noise_drawn_row_by_row(n: int, d: int) -> None:
    rows, rng = table(n, d), np.random.default_rng(2)
    sums = NoiseSums(rows, rows.T @ rows)
    drawn = np.array([of_sums(*sums.draw(stream)) for stream in spawn(3, DRAWS)])
    plain = np.array([functionals(rows, rng.standard_normal((n, d))) for _ in range(DRAWS)])
    drawn[np.abs(drawn) < 1e-12], plain[np.abs(plain) < 1e-12] = 0.0, 0.0  # eigenvalues that are 0 but for rounding
    for mine, theirs in zip(drawn.T, plain.T, strict=True):
        assert stats.ks_2samp(mine, theirs).pvalue > 1e-5
    wrong = np.array([functionals(rows, 1.07 * rng.standard_normal((n, d))) for _ in range(DRAWS)])
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(wrong.T, plain.T, strict=True)) < 1e-5, "the control"


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_rows_have_these_sums_and_are_standard_normal(n: int, d: int) -> None:
    rows = table(n, d)
    sums, streams = NoiseSums(rows, rows.T @ rows), spawn(4, DRAWS)
    noise = np.array([sums.rows(stream) for stream in streams])
    for one, stream in zip(noise[:20], streams, strict=False):
        total, cross, square = sums.draw(stream)
        np.testing.assert_allclose(one.sum(axis=0), total, atol=1e-9)
        np.testing.assert_allclose(rows.T @ one, cross, atol=1e-9)
        np.testing.assert_allclose(one.T @ one, square, atol=1e-9)
    flat = noise.reshape(DRAWS, n * d)
    directions = np.concatenate([np.eye(n * d)[[0, -1]], np.random.default_rng(5).standard_normal((6, n * d))])
    for direction in directions:
        assert stats.kstest(flat @ direction / np.linalg.norm(direction), "norm").pvalue > 1e-5
    assert stats.kstest((flat**2).sum(axis=1), stats.chi2(n * d).cdf).pvalue > 1e-5
    assert stats.kstest(1.12 * flat.ravel(), "norm").pvalue < 1e-5, "the control"
    np.testing.assert_allclose(flat.T @ flat / DRAWS, np.eye(n * d), atol=6 / np.sqrt(DRAWS))


@pytest.mark.parametrize(("n", "apart"), [(20_000, 0.0), (200_000, 0.0), (200_000, 1e-4)])
def test_many_rows(n: int, apart: float) -> None:
    """In double precision where they are not many, or two columns nearly equal."""
    rows, exact = table(n, 6), n == 20_000 or apart > 0
    rows[:, -1] += apart * np.random.default_rng(7).standard_normal(n)
    sums, stream = NoiseSums(rows, rows.T @ rows), spawn(6, 1)[0]
    noise = sums.rows(stream)
    assert (noise.dtype == np.float64) == exact
    noise, atol = noise.astype(float), 1e-7 if exact else 1e-5 * n**0.5
    for found, expected in zip((noise.sum(axis=0), rows.T @ noise, noise.T @ noise), sums.draw(stream), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-5, atol=atol)
    assert stats.kstest(noise.ravel()[:100_000], "norm").pvalue > 1e-3
    between = (rows[:, -1] - rows[:, 0]) @ noise if apart else noise.sum(axis=0)
    assert stats.kstest(between / (n**0.5 * (apart or 1.0)), "norm").pvalue > 1e-3
