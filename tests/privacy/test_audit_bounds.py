"""Bounds from counts against known answers."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from dpviz.common.validate import InvalidInput
from dpviz.privacy import audit_bounds as ab
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

DELTA = 1e-5

#: an exact Gaussian: true epsilon -> {N: (free bound, Gaussian bound)} from expected counts, rounded, at the best threshold
EXPECTED = {
    0.5: {1_000: (0.0, 0.0), 10_000: (0.131, 0.313)},
    1.0: {1_000: (0.125, 0.371), 10_000: (0.382, 0.799)},
    2.0: {1_000: (0.497, 1.307), 10_000: (0.931, 1.779)},
    4.0: {1_000: (1.301, 3.195), 10_000: (2.003, 3.745)},
    8.0: {1_000: (2.698, 6.991), 10_000: (3.777, 7.677)},
}
CASES = [(eps, n) for eps, row in EXPECTED.items() for n in row]


def test_clopper_pearson_reference_values() -> None:
    assert float(ab.clopper_pearson_upper(0, 1000)) == pytest.approx(0.003682083896865671, rel=1e-9)
    assert float(ab.clopper_pearson_upper(0, 1000)) == pytest.approx(1 - 0.025 ** (1 / 1000), rel=1e-9)
    assert float(ab.clopper_pearson_upper(1000, 1000)) == 1.0
    assert float(ab.clopper_pearson_lower(0, 1000)) == 0.0
    for k, n in ((3, 50), (20, 50), (700, 1000)):
        # the definition: at the bound, as few successes have probability 2.5 %
        assert binom.cdf(k, n, float(ab.clopper_pearson_upper(k, n))) == pytest.approx(0.025, rel=1e-8)
        assert binom.sf(k - 1, n, float(ab.clopper_pearson_lower(k, n))) == pytest.approx(0.025, rel=1e-8)


@pytest.mark.parametrize(("n", "ceiling"), [(1_000, 5.60), (10_000, 7.91), (100_000, 10.2)])
def test_ceiling(n: int, ceiling: float) -> None:
    assert ab.epsilon_ceiling(n, DELTA) == pytest.approx(ceiling, abs=0.01)
    assert float(ab.epsilon_lower_bound(0, 0, n, DELTA)) <= ab.epsilon_ceiling(n, DELTA)


@pytest.mark.parametrize(("eps", "n"), CASES)
def test_expected_counts_of_an_exact_gaussian(eps: float, n: int) -> None:
    mu = gaussian_mu(Budget(eps, DELTA))
    cuts = np.linspace(-6, 8, 4001)
    free = ab.epsilon_lower_bound(np.round(n * norm.sf(cuts)), np.round(n * norm.cdf(cuts - mu)), n, DELTA).max()
    half = round(n * norm.cdf(-mu / 2))
    assert (free, ab.Counts(half, half, n).gaussian_epsilon_lower_bound(DELTA)) == pytest.approx(EXPECTED[eps][n], abs=0.01)


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


@pytest.mark.parametrize(("eps", "free", "counted"), [(0.5, 0.0026, 0.40), (1.0, 0.0025, 0.84), (2.0, 0.0015, 0.999)])
def test_power_against_four_fifths_of_the_noise(eps: float, free: float, counted: float) -> None:
    """The ceiling of any attacker at 5,000 runs a side, as documented; few runs are added up outcome by outcome below."""
    assert ab.power(Budget(eps, DELTA), 5000, 0.8) == pytest.approx((free, counted), abs=0.01)
    assert ab.power(Budget(eps, DELTA), 5000, 1.0)[1] <= 0.05


def test_threshold_on_ties_and_constants() -> None:
    same = np.zeros(50)
    assert ab.best_threshold(same, same, trials=50, delta=0.0) == (0.0, 0.0)
    cut, bound = ab.best_threshold(np.zeros(50), np.ones(50), trials=50, delta=0.0)
    assert 0 < cut < 1
    assert bound == pytest.approx(math.log((0.025 ** (1 / 50)) / (1 - 0.025 ** (1 / 50))))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_refuses_confidences_that_mean_nothing(confidence: float) -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        ab.epsilon_ceiling(100, DELTA, confidence)


def test_refuses_impossible_counts() -> None:
    with pytest.raises(InvalidInput, match="false_positives"):
        ab.Counts(11, 0, 10)
    with pytest.raises(InvalidInput, match="scores"):
        ab.count_errors(np.zeros(3), np.zeros(4), 0.0)


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


def test_bounds_keep_the_confidence_that_is_asked_for() -> None:
    for confidence in (0.6, 0.9, 0.999):
        assert float(ab.clopper_pearson_lower(7, 40, confidence)) == pytest.approx(beta.ppf(1 - confidence, 7, 34))
    measured = ab.Residuals(1.0, 50.0, 60)
    assert measured.mu_lower_bound() == measured.mu_lower_bound(0.95)
    assert measured.mu_lower_bound(0.99) < measured.mu_lower_bound()


def test_the_binomial_tail_is_used_up_to_one_below_the_mean() -> None:
    """Hoeffding's theorem holds below mean - 1; at mu = 0 the mean of 2 N = 20 trials is 10."""
    assert ab.Counts(5, 4, 10).p_value(0.0) == pytest.approx(binom.cdf(9, 20, 0.5))
    assert ab.Counts(5, 5, 10).p_value(0.0) == 1.0
    assert ab.Counts(10, 10, 10).p_value(0.0) == 1.0


def test_a_threshold_lies_half_way_between_two_scores() -> None:
    cut, _ = ab.best_threshold(np.array([0.0, 1.0]), np.array([2.0, 4.0]), trials=1000, delta=0.0)
    assert cut == 1.5


def test_a_small_bound_that_can_be_shown_goes_before_few_errors() -> None:
    null, alternative = np.repeat([0.0, 1.0, 2.0], [700, 250, 50]), np.repeat([0.0, 1.0, 2.0], [300, 580, 120])
    cut, bound = ab.best_threshold(null, alternative, trials=10**8, delta=0.0)
    assert bound == pytest.approx(math.log(0.12 / 0.05), rel=1e-2)  # at 0.5 it is ln(0.7/0.3), with fewer errors
    assert cut == 1.5


def test_all_extremes_and_an_even_middle_are_tried() -> None:
    assert np.array_equal(ab._tried(1500), np.arange(1500))
    for count in (1501, 20_000):
        tried = ab._tried(count)
        assert len(tried) == 1500
        assert np.array_equal(tried[:500], np.arange(500))
        assert np.array_equal(tried[-500:], np.arange(count - 500, count))
        gaps = np.diff(tried[499:1001])
        assert gaps.max() <= (count - 1000) // 499 + 1
        assert gaps[1:-1].max() - gaps[1:-1].min() <= 1
    # the cut between the sides is found among many
    scores = np.linspace(0, 1, 9001)
    cut, _ = ab.best_threshold(scores[:4500], scores[4500:], trials=9000, delta=0.0)
    assert ab.count_errors(scores[:4500], scores[4500:9000], cut).false_positives <= 20


def test_a_curve_has_its_points_and_goes_from_strict_to_loose() -> None:
    rng = np.random.default_rng(0)
    null, alternative = rng.standard_normal((2, 1000))
    for table, points in ((ab.roc(null, alternative), 201), (ab.roc(null, alternative, points=11), 11)):
        assert len(table) == points + 1
        assert (np.diff(table["threshold"]) < 0).all()
        assert table["threshold"].iloc[0] == max(null.max(), alternative.max())
        assert table["threshold"].iloc[-2] == min(null.min(), alternative.min())
        assert table["false_positive"].iloc[-1] == table["true_positive"].iloc[-1] == 1.0
        shares = np.diff((table["false_positive"] + table["true_positive"]) / 2)
        assert shares[:-1].max() < 1.5 / (points - 1)
