"""Bounds from counts against known answers."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from dpviz.privacy import audit_bounds as ab
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

DELTA = 1e-5


def test_clopper_pearson_reference_values() -> None:
    assert float(ab.clopper_pearson_upper(0, 1000)) == pytest.approx(1 - 0.025 ** (1 / 1000), rel=1e-9)
    assert float(ab.clopper_pearson_upper(1000, 1000)) == 1.0
    assert float(ab.clopper_pearson_lower(0, 1000)) == 0.0
    for k, n in ((3, 50), (20, 50), (700, 1000)):
        # the definition: at the bound, as few successes have probability 2.5 %
        assert binom.cdf(k, n, float(ab.clopper_pearson_upper(k, n))) == pytest.approx(0.025, rel=1e-8)
        assert binom.sf(k - 1, n, float(ab.clopper_pearson_lower(k, n))) == pytest.approx(0.025, rel=1e-8)


def test_bounds_cover_the_truth() -> None:
    # exact coverage at every threshold, summed over all counts: below 5 % for both bounds
    n, eps = 60, 1.0
    mu = gaussian_mu(Budget(eps, 0.05))
    k = np.arange(n + 1)
    for cut in (-0.5, mu / 2, 1.5):
        weight = np.outer(binom.pmf(k, n, norm.sf(cut)), binom.pmf(k, n, norm.cdf(cut - mu)))
        bound = ab.epsilon_lower_bound(k[:, None], k[None, :], n, 0.05)
        assert weight[bound > eps].sum() <= 0.05
        mus = np.array([[ab.Counts(i, j, n).mu_lower_bound() for j in k] for i in k])
        assert weight[mus > mu].sum() <= 0.05


def test_p_value_is_valid_and_sees_what_the_bound_does_not() -> None:
    n, mu = 5000, gaussian_mu(Budget(2.0, DELTA))
    rng = np.random.default_rng(1)

    def play(true_mu: float, cut: float) -> float:
        return ab.Counts(rng.binomial(n, norm.sf(cut)), rng.binomial(n, norm.cdf(cut - true_mu)), n).p_value(mu)

    honest = np.array([play(mu, cut) for cut in (mu / 2, 0.0, 1.0) for _ in range(300)])
    assert (honest < 0.05).mean() <= 0.06
    weak = np.array([play(mu / 0.8, mu / 1.6) for _ in range(100)])
    assert (weak < 0.05).mean() >= 0.99


def test_noise_measured_around_known_centres_covers_and_is_sharp() -> None:
    n, m, mu, shift = 400, 3, 0.4, 0.7
    rng = np.random.default_rng(6)
    sigma = shift / mu
    drawn = [ab.Residuals(shift, float(((sigma * rng.standard_normal((2 * n, m))) ** 2).sum()), 2 * n * m) for _ in range(1000)]
    assert np.mean([r.mu_lower_bound(0.9) > mu for r in drawn]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([r.p_value(mu) < 0.1 for r in drawn]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([r.mu_lower_bound(0.9) for r in drawn]) == pytest.approx(mu, rel=0.05)
    assert all((r.p_value(mu) < 0.1) == (r.mu_lower_bound(0.9) > mu) for r in drawn)
    assert ab.Residuals(0.0, 1.0, 10).p_value(mu) == 1.0
    assert ab.Residuals(0.0, 1.0, 10).epsilon_lower_bound(DELTA) == 0.0


def test_threshold_on_ties_and_constants() -> None:
    same = np.zeros(50)
    assert ab.best_threshold(same, same, trials=50, delta=0.0) == (0.0, 0.0)
    cut, bound = ab.best_threshold(np.zeros(50), np.ones(50), trials=50, delta=0.0)
    assert 0 < cut < 1
    assert bound == pytest.approx(math.log((0.025 ** (1 / 50)) / (1 - 0.025 ** (1 / 50))))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_both_errors_share_the_error_probability_that_is_asked_for(confidence: float) -> None:
    side = 1 - (1 - confidence) / 2
    fp, fn = beta.ppf(side, 4, 197), beta.ppf(side, 31, 170)  # Clopper, Pearson for 3 and 30 of 200
    counts = ab.Counts(3, 30, 200)
    assert counts.mu_lower_bound(confidence) == pytest.approx(norm.ppf(1 - fp) - norm.ppf(fn), rel=1e-9)
    expected = max(math.log((1 - 0.01 - fn) / fp), math.log((1 - 0.01 - fp) / fn))
    assert counts.epsilon_lower_bound(0.01, confidence) == pytest.approx(expected, rel=1e-9)
    assert ab.epsilon_ceiling(200, 0.3, confidence) == pytest.approx(math.log(0.7 / (1 - (1 - side) ** (1 / 200))), rel=1e-9)


def test_who_is_always_wrong_on_one_side_shows_nothing() -> None:
    for counts in (ab.Counts(10, 0, 10), ab.Counts(0, 10, 10), ab.Counts(10, 10, 10)):
        assert counts.mu_lower_bound() == 0
        assert counts.epsilon_lower_bound(DELTA) == 0


def test_a_score_on_the_threshold_is_a_guess_of_the_first() -> None:
    scores = np.array([0.0, 1.0, 2.0])
    assert ab.count_errors(scores, scores, 1.0) == ab.Counts(1, 2, 3)


def test_a_gaussian_claim_needs_a_budget_with_a_delta() -> None:
    assert ab.gaussian_claim(None) is None
    assert ab.gaussian_claim(Budget(1.0)) is None
    assert ab.gaussian_claim(Budget(1.0, DELTA)) == gaussian_mu(Budget(1.0, DELTA))


@pytest.mark.parametrize(("eps", "share", "confidence"), [(0.1, 0.1, 0.95), (1.0, 0.2, 0.8), (3.0, 0.5, 0.95)])
def test_power_by_adding_up_all_outcomes(eps: float, share: float, confidence: float) -> None:
    n, budget = 40, Budget(eps, 0.01)
    mu, k = gaussian_mu(budget) / share, np.arange(41)
    shown = ab.epsilon_lower_bound(k[:, None], k[None, :], n, 0.01, confidence) > eps
    # by the bound on false positives alone, as a strict cut has it
    side = 1 - (1 - confidence) / 2
    fp, fn = (ab.clopper_pearson_upper(k, n, side) for _ in range(2))
    strict = fn[None, :] < 1 - 0.01 - math.exp(eps) * fp[:, None]
    assert (strict <= shown).all()
    best = max(binom.pmf(k, n, norm.sf(c)) @ strict @ binom.pmf(k, n, norm.cdf(c - mu)) for c in np.linspace(-1, 6, 71))
    free, counted = ab.power(budget, n, share, confidence)
    assert free == pytest.approx(best, abs=1e-9)
    p = norm.cdf(-gaussian_mu(budget) / 2)
    refuting = [e for e in range(81) if e <= 2 * n * p - 1 and binom.cdf(e, 2 * n, p) < 1 - confidence]
    assert counted == pytest.approx(binom.cdf(max(refuting, default=-1), 2 * n, norm.cdf(-mu / 2)), abs=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_best_threshold_is_the_best_of_all(confidence: float) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal(60).round(1), (rng.standard_normal(60) + 2).round(1)
    cut, bound = ab.best_threshold(a, b, trials=80, delta=0.01, confidence=confidence)
    values = np.unique(np.concatenate([a, b]))

    def at(c: float) -> float:
        return float(ab.epsilon_lower_bound((a > c).mean() * 80, (b <= c).mean() * 80, 80, 0.01, confidence))

    assert bound == pytest.approx(max(map(at, (values[1:] + values[:-1]) / 2)), rel=1e-9)
    assert at(cut) == pytest.approx(bound, rel=1e-9)
    # where nothing can be shown it is the cut with the fewest errors
    cut, bound = ab.best_threshold(a[:6], b[:6], trials=6, delta=0.9, confidence=confidence)
    assert bound == 0
    errors = [
        (a[:6] > c).sum() + (b[:6] <= c).sum() for c in (np.unique([*a[:6], *b[:6]])[1:] + np.unique([*a[:6], *b[:6]])[:-1]) / 2
    ]
    assert (a[:6] > cut).sum() + (b[:6] <= cut).sum() == min(errors)


def test_every_point_of_the_curve_is_counted_and_has_the_limits_that_are_asked_for() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal(40).round(1), (rng.standard_normal(40) + 1).round(1)
    curve = ab.roc(a, b, 0.8, points=31)
    assert np.isin(curve.threshold[:-1], [*a, *b]).all()
    for name, scores in (("false_positive", a), ("true_positive", b)):
        hits = np.array([(scores > c).sum() for c in curve.threshold])
        np.testing.assert_allclose(curve[name], hits / 40)
        np.testing.assert_allclose(curve[f"{name}_high"], ab.clopper_pearson_upper(hits, 40, 0.9))
        np.testing.assert_allclose(curve[f"{name}_low"], ab.clopper_pearson_lower(hits, 40, 0.9))


def test_the_binomial_tail_is_used_up_to_one_below_the_mean() -> None:
    """Hoeffding's theorem holds below mean - 1; at mu = 0 the mean of 2 N = 20 trials is 10."""
    assert ab.Counts(5, 4, 10).p_value(0.0) == pytest.approx(binom.cdf(9, 20, 0.5))
    assert ab.Counts(5, 5, 10).p_value(0.0) == 1.0
    assert ab.Counts(10, 10, 10).p_value(0.0) == 1.0


def test_a_small_bound_that_can_be_shown_goes_before_few_errors() -> None:
    null, alternative = np.repeat([0.0, 1.0, 2.0], [700, 250, 50]), np.repeat([0.0, 1.0, 2.0], [300, 580, 120])
    cut, bound = ab.best_threshold(null, alternative, trials=10**8, delta=0.0)
    assert bound == pytest.approx(math.log(0.12 / 0.05), rel=1e-2)  # at 0.5 it is ln(0.7/0.3), with fewer errors
    assert cut == 1.5


def test_all_extremes_and_an_even_middle_are_tried() -> None:
    for count in (1501, 20_000):
        tried = ab._tried(count)
        assert len(tried) == 1500
        assert np.array_equal(tried[:500], np.arange(500))
        assert np.array_equal(tried[-500:], np.arange(count - 500, count))
        gaps = np.diff(tried[499:1001])
        assert gaps.max() <= (count - 1000) // 499 + 1
        assert gaps[1:-1].max() - gaps[1:-1].min() <= 1
