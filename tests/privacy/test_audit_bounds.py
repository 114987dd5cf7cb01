"""Bounds from counts against known answers; audits with one run against linear programs and exact mechanisms, with mistakes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom, norm

import dpviz
from dpviz.auditing import audit_one_run
from dpviz.auditing.one_run import axis_canaries
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy import audit_bounds as ab
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.one_run_audit import (
    one_run_epsilon_lower_bound,
    one_run_gaussian_epsilon,
    one_run_mu_lower_bound,
    one_run_p_value,
    possible,
)

DELTA = 1e-5


def test_clopper_pearson_reference_values() -> None:
    assert float(ab.clopper_pearson_upper(0, 1000)) == pytest.approx(1 - 0.025 ** (1 / 1000), rel=1e-9)
    assert (float(ab.clopper_pearson_lower(0, 1000)), float(ab.clopper_pearson_upper(1000, 1000))) == (0.0, 1.0)
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
    assert [ab.gaussian_claim(budget) for budget in (None, Budget(1.0))] == [None, None]
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


def test_the_bound_is_where_the_p_value_reaches_the_level() -> None:
    bound = one_run_epsilon_lower_bound(95, 100, 1000, 1e-6)
    assert 1.5 < bound < math.log(95 / 5)
    assert one_run_p_value(95, 100, 1000, bound, 1e-6) == pytest.approx(0.05, rel=1e-6)
    assert one_run_p_value(95, 100, 1000, bound, 1e-6) <= 0.05
    assert one_run_epsilon_lower_bound(95, 100, 1000, 1e-6, confidence=0.99) < bound
    assert one_run_epsilon_lower_bound(95, 100, 1000, 1e-4) < bound, "a larger delta explains more"
    assert one_run_epsilon_lower_bound(52, 100, 1000) == 0.0
    # all of r right: P[B >= r] = p^r
    whole = one_run_epsilon_lower_bound(100, 100, 100)
    assert whole == pytest.approx(-math.log(0.05 ** (-1 / 100) - 1), rel=1e-7)


def largest_probability(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest P[right guesses >= correct] over ALL (epsilon, delta)-DP mechanisms, by linear programming.

    A mechanism and its attacker together map coins to guesses. Averaging over permutations and flips of the coins keeps
    (epsilon, delta) (the divergence is jointly convex) and the probability, so only the law Q_k of the number of right guesses
    among r is free. Flipping one coin leaves the m - r unguessed alone and turns k right guesses into k - 1 or k + 1:
    sum_k (k Q_k - e^eps (r-k+1) Q_(k-1))_+ + sum_k ((r-k) Q_k - e^eps (k+1) Q_(k+1))_+ <= m delta.
    """
    r, grow = guesses, math.exp(epsilon)
    k = np.arange(1, r + 1)
    size = r + 1
    rows = np.zeros((2 * r, size + 2 * r))
    rows[k - 1, k], rows[k - 1, k - 1] = k, -grow * (r - k + 1)
    rows[r + k - 1, k - 1], rows[r + k - 1, k] = r - k + 1, -grow * k
    rows[np.arange(2 * r), size + np.arange(2 * r)] = -1.0
    total = np.concatenate([np.zeros(size), np.ones(2 * r)])
    goal = -np.concatenate([(np.arange(size) >= correct).astype(float), np.zeros(2 * r)])
    found = linprog(
        goal,
        A_ub=np.vstack([rows, total]),
        b_ub=np.append(np.zeros(2 * r), canaries * delta),
        A_eq=np.concatenate([np.ones(size), np.zeros(2 * r)])[None],
        b_eq=[1.0],
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize(("r", "m"), [(10, 40), (40, 40)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_p_value_is_the_largest_probability_of_any_mechanism(r: int, m: int, epsilon: float) -> None:
    for v in (r // 2, round(r / (1 + math.exp(-epsilon))), r - r // 10, r):
        for delta in (0.0, 1e-6, 1e-4):
            truth, ours = largest_probability(v, r, m, epsilon, delta), one_run_p_value(v, r, m, epsilon, delta)
            assert truth == pytest.approx(ours, rel=1e-6, abs=1e-8)
        # a delta so large that everything may be revealed
        assert largest_probability(v, r, m, epsilon, 0.02) <= one_run_p_value(v, r, m, epsilon, 0.02) * (1 + 1e-6)


Inverse = Callable[[float], float]


def gaussian(mu: float) -> Inverse:
    return lambda x: float(ndtr(ndtri(x) - mu))


def lines(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """(slope, height) of the lines of which 1 - f is the least, under (epsilon, delta)-DP (Dong, Roth, Su 2022, eq. (3))."""
    e = math.exp(epsilon)
    return [(e, delta), (1 / e, 1 - (1 - delta) / e)]


def inverse_of(epsilon: float, delta: float) -> Inverse:
    return lambda x: max(0.0, *((x - height) / slope for slope, height in lines(epsilon, delta)))


def largest(v: int, r: int, m: int, inverse: Inverse) -> float:
    """The largest probability of v right guesses that `possible` allows."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(v, r, m, middle, inverse) else (low, middle)
    return low


def by_linear_program(v: int, r: int, m: int, epsilon: float, delta: float) -> float:
    """max sum_(k>=v) a_k over distributions with r_j <= B(h_(j-1)) for all j."""
    k, rows, limits = np.arange(r + 1), [], []
    for j in range(1, r + 1):
        right, wrong = np.where(k >= j, k, 0) / m, np.where(k >= j - 1, r - k, 0) / m
        for slope, height in lines(epsilon, delta):
            rows.append(right - slope * wrong)
            limits.append(height)
    found = linprog(-(k >= v).astype(float), A_ub=rows, b_ub=limits, A_eq=[np.ones(r + 1)], b_eq=[1.0])
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.01), (2.0, 0.1)])
@pytest.mark.parametrize(("r", "m"), [(3, 3), (5, 8), (8, 8)])
def test_the_recursion_is_the_optimum_of_the_linear_program(epsilon: float, delta: float, r: int, m: int) -> None:
    for v in range(1, r + 1):
        exact = by_linear_program(v, r, m, epsilon, delta)
        assert min(1.0, largest(v, r, m, inverse_of(epsilon, delta))) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_what_an_exact_gaussian_mechanism_does_is_possible(mu: float) -> None:
    """All coins guessed by the sign of N(+-mu/2, 1): W is binomial with chance Phi(mu/2)."""
    m = 40
    for v in range(m + 1):
        chance = float(binom.sf(v - 1, m, ndtr(mu / 2)))
        if 1e-12 < chance < 1:
            assert possible(v, m, m, chance, gaussian(mu))


def test_guesses_no_better_than_coins_show_nothing() -> None:
    assert one_run_mu_lower_bound(50, 100, 1000) == 0.0
    assert one_run_gaussian_epsilon(50, 100, 1000, 1e-5) == 0.0
    assert one_run_mu_lower_bound(0, 10, 10) == 0.0
    assert one_run_mu_lower_bound(100, 100, 100) > 1.5


def test_methods_with_declared_gaussian_noise_have_it_and_others_do_not() -> None:
    budget = Budget(4.0, 1e-5)
    mechanism = OutputGaussian()
    result = audit_one_run(mechanism, axis_canaries(mechanism, get_model("svm"), budget, 300, 0.1), budget)
    assert result.calibration.mu == pytest.approx(gaussian_mu(budget))
    assert result.gaussian_epsilon_lower == one_run_gaussian_epsilon(result.correct, result.guesses, 300, 1e-5)
    assert result.epsilon_lower < result.gaussian_epsilon_lower < 4  # type: ignore[operator]
    other = dpviz.list_mechanisms()["cms-output"]()
    pure = audit_one_run(other, axis_canaries(other, get_model("svm"), budget, 50, 0.1), budget)
    assert pure.gaussian_epsilon_lower is None


@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(80, 100, 1000), (38, 40, 40), (9, 10, 100)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_bound_on_mu_is_where_so_many_right_guesses_become_possible(
    correct: int, guesses: int, canaries: int, confidence: float
) -> None:
    """With the error probability that is left: a little less mu refutes them, a little more does not."""
    bound = one_run_mu_lower_bound(correct, guesses, canaries, confidence)
    for factor, known in ((0.99, False), (1.01, True)):
        assert possible(correct, guesses, canaries, 1 - confidence, gaussian(factor * bound)) is known
