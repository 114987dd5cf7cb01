"""Confidence bounds on epsilon from counts of an attacker's errors, with and without a Gaussian assumption.

The attacker sees one output and guesses which of two neighbouring datasets made it. A false positive is the guess
"second" when it was the first, a false negative the other way round. Nothing here knows how outputs are made.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, chdtr, chdtri, ndtr, ndtri

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_integer, check_range, number
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget

_CANDIDATES = 1500  # thresholds that are tried


def clopper_pearson_upper(count: ArrayLike, trials: int, confidence: float = 0.975) -> Floats:
    """One-sided upper confidence bound on a probability (Clopper, Pearson 1934).

    Args:
        count: successes, any shape, 0 <= count <= trials; expected counts need not be whole.
        trials: independent trials, >= 1.
        confidence: one-sided, in (0, 1).

    Returns:
        Bounds in (0, 1], the shape of count: the beta quantile of (count + 1, trials - count), 1 at count = trials.

    >>> clopper_pearson_upper([0, 100], 100).round(4).tolist()
    [0.0362, 1.0]
    """
    k = np.asarray(count, float)
    full = k >= trials
    return np.where(full, 1.0, betaincinv(k + 1, np.where(full, 1.0, trials - k), _confidence(confidence)))


def clopper_pearson_lower(count: ArrayLike, trials: int, confidence: float = 0.975) -> Floats:
    """One-sided lower confidence bound on a probability; see `clopper_pearson_upper`."""
    return 1.0 - clopper_pearson_upper(trials - np.asarray(count, float), trials, confidence)


@dataclass(frozen=True)
class Counts:
    """An attacker's errors at one threshold that was fixed without looking at these runs.

    Attributes:
        false_positives: guesses "second" among `trials` runs on the first dataset.
        false_negatives: guesses "first" among `trials` runs on the second dataset.
        trials: counted runs on each side, >= 1.
    """

    false_positives: float
    false_negatives: float
    trials: int

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1, 10**12)
        for field in ("false_positives", "false_negatives"):
            value = number(field, getattr(self, field))
            if not 0 <= value <= self.trials:
                raise InvalidInput(field, f"{value:g} of {self.trials} runs is not possible", "Count again.")

    def epsilon_lower_bound(self, delta: float, confidence: float = 0.95) -> float:
        """Lower bound on epsilon at this delta, free of assumptions; see `epsilon_lower_bound`."""
        return float(epsilon_lower_bound(self.false_positives, self.false_negatives, self.trials, delta, confidence))

    def mu_lower_bound(self, confidence: float = 0.95) -> float:
        """Lower bound on the mu of Gaussian differential privacy.

        mu-GDP leaves FN >= Phi(Phi^-1(1 - FP) - mu) to every test (Dong, Roth, Su 2022, eq. (6)), so
        mu >= Phi^-1(1 - FP) - Phi^-1(FN); each error at half of 1 - confidence.
        """
        side = 1 - (1 - _confidence(confidence)) / 2
        fp = clopper_pearson_upper(self.false_positives, self.trials, side)
        fn = clopper_pearson_upper(self.false_negatives, self.trials, side)
        return max(0.0, float(ndtri(1 - fp) - ndtri(fn)))  # -inf where either is 1

    def gaussian_epsilon_lower_bound(self, delta: float, confidence: float) -> float:
        """Lower bound on epsilon at this delta if the trade-off is that of a Gaussian mechanism.

        The assumption buys the step from errors that can be counted to a delta that cannot. It holds for Gaussian noise
        on a fixed query and its compositions; for other mechanisms this number means nothing.
        """
        return float(gaussian_epsilon(delta, self.mu_lower_bound(confidence)))

    def p_value(self, mu: float) -> float:
        """Probability of as few errors or fewer under mu-GDP: small values speak against the claim.

        Under mu-GDP, FP + FN >= 2 Phi(-mu/2) for every test. The number of errors among 2 N independent runs with a
        given mean has its largest lower tail, below mean - 1, when all have the same probability (Hoeffding 1956,
        Theorem 4), so a binomial tail with p = Phi(-mu/2) is an upper bound. One tail instead of two bounds sees
        deviations that `mu_lower_bound` does not.
        """
        p, errors = float(ndtr(-mu / 2)), self.false_positives + self.false_negatives
        if errors > 2 * self.trials * p - 1:
            return 1.0
        return float(bdtr(math.floor(errors), 2 * self.trials, p))


@dataclass(frozen=True)
class Residuals:
    """Noise measured around two known centres, for outputs that are centre + N(0, sigma^2 I) with one sigma on both sides.

    With the centres known no run is spent on finding their distance, only sigma is uncertain: a relative error of
    1/sqrt(2 freedom). Errors that are counted see a mu of 0.14 only to 0.03 at 5,000 runs a side, and no better test of
    the same runs can if the centres have to be found as well.

    Attributes:
        distance: between the centres, >= 0.
        squares: sum of the squared coordinates of all outputs minus their centre, > 0.
        freedom: how many coordinates were summed, >= 1.
    """

    distance: float
    squares: float
    freedom: int

    def mu_lower_bound(self, confidence: float = 0.95) -> float:
        """Lower bound on distance / sigma: squares / sigma^2 is chi-squared with `freedom` degrees of freedom."""
        return float(self.distance * math.sqrt(chdtri(self.freedom, _confidence(confidence)) / self.squares))

    def epsilon_lower_bound(self, delta: float, confidence: float = 0.95) -> float:
        """Lower bound on epsilon at this delta: that of a Gaussian mechanism with this mu (Balle, Wang 2018, Theorem 8)."""
        return float(gaussian_epsilon(delta, self.mu_lower_bound(confidence)))

    def p_value(self, mu: float) -> float:
        """Probability of noise as small as this or smaller if sigma >= distance / mu, as mu-GDP demands."""
        if self.distance == 0:
            return 1.0
        return float(chdtr(self.freedom, self.squares * (mu / self.distance) ** 2))


def epsilon_lower_bound(
    false_positives: ArrayLike, false_negatives: ArrayLike, trials: int, delta: float, confidence: float = 0.95
) -> Floats:
    """Lower bounds on epsilon from counted errors, free of assumptions on the mechanism.

    (eps, delta)-DP forces FN >= 1 - delta - e^eps FP and FP >= 1 - delta - e^eps FN (Kairouz, Oh, Viswanath 2015,
    Theorem 2.1); with upper confidence bounds on both errors, eps >= max(ln((1 - delta - FN)/FP), ln((1 - delta - FP)/FN)).

    Args:
        false_positives, false_negatives: counts out of `trials` each; shapes broadcast.
        trials: counted runs on each side.
        delta: in [0, 1).
        confidence: of the bound; each of the two errors gets half of 1 - confidence.

    Returns:
        Bounds >= 0; 0 where nothing can be said.
    """
    side = 1 - (1 - _confidence(confidence)) / 2
    fp = clopper_pearson_upper(false_positives, trials, side)
    fn = clopper_pearson_upper(false_negatives, trials, side)
    return np.maximum.reduce([np.log(np.maximum(1 - delta - b, 1e-300) / a) for a, b in ((fp, fn), (fn, fp))] + [0 * fp * fn])


def epsilon_ceiling(trials: int, delta: float, confidence: float = 0.95) -> float:
    """The largest bound that `trials` counted runs a side can give, reached when one kind of error never happens.

    The rarer error is at most 1 - a^(1/N) with a = (1 - confidence)/2. The other error is let go to zero here; with
    none of either counted the bound is below this by about 1 - a^(1/N).

    >>> round(epsilon_ceiling(1000, delta=1e-5), 2)
    5.6
    """
    return float(np.log((1 - delta) / clopper_pearson_upper(0, trials, 1 - (1 - _confidence(confidence)) / 2)))


def power(budget: Budget, trials: int, share: float, confidence: float = 0.95) -> tuple[float, float]:
    """The power of an audit: its chance to refute a Gaussian mechanism that adds `share` of the noise that the budget needs.

    For the best attacker there is: the exact likelihood ratio (Neyman, Pearson 1933), with the threshold that refutes
    most often. At share 0.8, 5,000 trials and 95 % the bound that is free of assumptions refutes in less than 1 % of audits
    at every epsilon, since a Gaussian mechanism spends its epsilon where errors are too rare to be counted; errors under
    the Gaussian assumption do in 40 % at epsilon = 0.5 and 84 % at 1 (delta = 1e-5). No threshold or confidence split
    changes that; more trials do, and so does measuring the noise (`Residuals`).

    Args:
        budget: with delta > 0.
        trials: counted runs on each side, >= 1.
        share: in (0, 1].

    Returns:
        probabilities that `epsilon_lower_bound` exceeds epsilon, and that `Counts.p_value` is below 1 - confidence.
    """
    from scipy.stats import binom  # a quarter of a second, which the first page does not need

    claim = gaussian_mu(budget)
    mu = claim / check_range("share", share, 1e-3, 1.0)
    errors = binom.ppf(1 - _confidence(confidence), 2 * trials, ndtr(-claim / 2)) - 1  # the largest count that refutes
    counted = float(binom.cdf(errors, 2 * trials, ndtr(-mu / 2)))
    side = 1 - (1 - confidence) / 2
    best = 0.0
    for cut in np.linspace(-1.0, 6.0, 71):  # in standard deviations of the score under the first dataset
        rate = float(ndtr(-cut))
        low, high = binom.ppf([1e-12, 1 - 1e-12], trials, rate).astype(int)
        false = np.arange(low, high + 1)
        allowed = 1 - budget.delta - np.exp(min(budget.epsilon, 700.0)) * clopper_pearson_upper(false, trials, side)
        # an upper limit lies below `allowed` where as few misses at that rate are rarer than 1 - side
        most = np.where(allowed > 0, binom.ppf(1 - side, trials, np.clip(allowed, 0.0, 1.0)) - 1, -1)
        best = max(best, float((binom.pmf(false, trials, rate) * binom.cdf(most, trials, ndtr(cut - mu))).sum()))
    return best, counted


def count_errors(null: Floats, alternative: Floats, threshold: float) -> Counts:
    """Errors of the rule "second if score > threshold".

    Args:
        null: (N,) scores of runs on the first dataset.
        alternative: (N,) scores of runs on the second.
    """
    if len(null) != len(alternative):
        raise InvalidInput("scores", f"{len(null)} and {len(alternative)} runs", "Give as many runs on each side.")
    return Counts(int((null > threshold).sum()), int((alternative <= threshold).sum()), len(null))


def best_threshold(
    null: Floats, alternative: Floats, *, trials: int, delta: float, confidence: float = 0.95
) -> tuple[float, float]:
    """The threshold that promises the largest bound when `trials` other runs a side are counted.

    Args:
        null, alternative: (N,) scores of runs that are kept for choosing; a bound counted on them would be biased.
        trials: runs a side that will be counted.

    Returns:
        threshold, and the bound expected there.
    """
    a, b = np.sort(null), np.sort(alternative)
    values = np.unique(np.concatenate([a, b]))
    if len(values) < 2:
        return float(values[0]), 0.0
    cuts = values[:-1] + (values[1:] - values[:-1]) / 2
    cuts = cuts[_tried(len(cuts))]
    fp = 1 - np.searchsorted(a, cuts, side="right") / len(a)
    fn = np.searchsorted(b, cuts, side="right") / len(b)
    bounds = epsilon_lower_bound(fp * trials, fn * trials, trials, delta, confidence)
    at = int(np.argmax(bounds))
    if bounds[at] <= 0:  # nothing can be shown: the cut with the fewest errors
        at = int(np.argmin(fp + fn))
    return float(cuts[at]), float(bounds[at])


def _tried(count: int) -> NDArray[np.intp]:
    """The cuts to try: all of the extremes, where one count decides, and of a long middle evenly spaced ones."""
    third = _CANDIDATES // 3
    if count <= _CANDIDATES:
        return np.arange(count)
    middle = np.linspace(third, count - third - 1, third).astype(np.intp)
    return np.concatenate([np.arange(third), middle, np.arange(count - third, count)])


def roc(null: Floats, alternative: Floats, confidence: float = 0.95, points: int = 201) -> pd.DataFrame:
    """The attacker's curve with pointwise Clopper-Pearson limits, for a picture; no bound may be read off its best point.

    Returns:
        Columns threshold, false_positive, true_positive and their limits *_low, *_high (two-sided, each rate by
        itself), from the strictest threshold to the loosest.
    """
    n = len(null)
    pooled = np.sort(np.concatenate([null, alternative]))
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, points), method="lower"))[::-1]
    cuts = np.concatenate([cuts, [np.nextafter(pooled[0], -np.inf)]])
    table = {"threshold": cuts}
    side = 1 - (1 - _confidence(confidence)) / 2
    for name, scores in (("false_positive", null), ("true_positive", alternative)):
        count = n - np.searchsorted(np.sort(scores), cuts, side="right")
        table |= {
            name: count / n,
            f"{name}_low": clopper_pearson_lower(count, n, side),
            f"{name}_high": clopper_pearson_upper(count, n, side),
        }
    return pd.DataFrame(table)


def gaussian_claim(budget: Budget | None) -> float | None:
    """The mu at which a Gaussian mechanism meets the budget exactly; None without a budget or with delta = 0."""
    return None if budget is None or budget.delta <= 0 else gaussian_mu(budget)


def _confidence(value: float) -> float:
    if not 0 < number("confidence", value) < 1:
        raise InvalidInput("confidence", f"must lie between 0 and 1, got {value:g}", "Give for example 0.95.")
    return value
