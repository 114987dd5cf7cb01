"""Bounds on epsilon from one training run with many canaries (Steinke, Nasr, Jagielski, NeurIPS 2023).

m canaries are each put into the training set by a fair coin of their own. The attacker sees the output, guesses for some of
the canaries whether they were in, and abstains on the others. One run then takes the place of thousands.

Let y_0, y_1, ... solve Stein's equation of B ~ Binomial(r, p) with p = e^eps/(1 + e^eps),

    k y_k - e^eps (r - k) y_(k+1) = 1[k >= v] - P[B >= v]    for k = 0, ..., r,

which is y_k = P[B >= v] P[B < k]/(k P[B = k]) up to k = v and P[B < v] P[B >= k]/(k P[B = k]) from there on: never negative, and
largest at k = v, because binomials are log-concave. Let W be the right guesses among r, M(t|s) the probability of the guesses t
at coins s, and s^i the coins with coin i turned. Where i is guessed right at s it is guessed wrong at s^i, with one right guess
less, so

    P[W >= v] - P[B >= v] = E[W y_W - e^eps (r - W) y_(W+1)]
                          = sum_i 2^-m sum_(s, t: i right) y_(W(t,s)) (M(t|s) - e^eps M(t|s^i))  <=  m delta y_v,

as each inner sum is at most y_v delta under (epsilon, delta)-DP for one coin. Hence [ours]

    P[W >= v] <= P[B >= v] + m delta P[B >= v] P[B < v] / (v P[B = v]).

With delta = 0 this is the paper's bound for pure privacy. For delta > 0 the paper (Theorem 5.2, Corollary 5.4), and its published
code, have 2 m delta max_i P[v - i <= B < v]/i instead, which is larger where v is above the mean, and too small far below it: for
m = r = 2, v = 1, randomised response that corrects one of two wrong guesses now and then exceeds it (see the tests). The bound
above is attained, by linear programming over all
mechanisms (tests). It holds for the relation of the two forms that a coin decides between, whatever that is: in or out, or one of
two rows.

An audit in one run by f-DP: what right guesses about many canaries say about mu (Mahloujifar, Melis, Chaudhuri 2024).

m canaries are each put into the training set by a fair coin of their own; the attacker guesses r of them, W of them right.
Let B(x) = 1 - f(x) be the most detections at x false alarms for one coin, a concave function, and a_k = P[W = k]. Where coin i is
turned, a right guess of it becomes a wrong one and W falls by 1. So f-DP for the event "i right, W >= j", averaged over coins and
canaries (Jensen), gives

    r_j <= B(h_(j-1)),    r_j = sum_(k>=j) k a_k / m,    h_j = sum_(k>=j) (r - k) a_k / m.

For P[W >= v] = t the total probability is least where all of t lies on W = v (r_v = t v/m, h_v = t (r - v)/m) and below it

    h_i = max(h_(i+1), B^-1(r_(i+1))),    r_i = r_(i+1) + i (h_i - h_(i+1))/(r - i),    i = v - 1, ..., 0,

because r_i and h_i grow with h_i, and because a larger r_v with the same t only raises what follows. If then r_0 + h_0 > r/m, the
probabilities add up to more than 1: P[W >= v] < t for every mechanism with this f [derived here; the paper's `audit_rh_with_cap`,
as PrivacyGuard and jax-privacy have it, is the same recursion].
"""

import math
from collections.abc import Callable

from scipy.special import ndtr, ndtri

from dpviz.common.validate import InvalidInput, check_integer, check_range
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.search import smallest


def one_run_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of at least `correct` right guesses that an (epsilon, delta)-DP mechanism allows.

    P[B >= v] + m delta P[B >= v] P[B < v]/(v P[B = v]) with B ~ Binomial(r, e^eps/(1 + e^eps)), see above.

    Args:
        correct: v, right guesses, 0 to `guesses`.
        guesses: r, canaries on which the attacker did not abstain, 1 to `canaries`; the choice may depend on the output.
        canaries: m, each in the training set by a fair coin of its own.
        epsilon: >= 0, for two datasets that differ in one coin.
        delta: in [0, 1).
    """
    from scipy.stats import binom  # a quarter of a second, which the first page does not need

    m = check_integer("canaries", canaries, 1, 10**7)
    r = check_integer("guesses", guesses, 1, m)
    v = check_integer("correct", correct, 0, r)
    p = 1 / (1 + math.exp(-check_range("epsilon", epsilon, 0.0, 700.0)))
    if not 0 <= delta < 1:
        raise InvalidInput("delta", f"must lie in [0, 1), got {delta:g}", "Give the delta of the guarantee.")
    above = float(binom.sf(v - 1, r, p))
    if delta == 0 or v == 0 or above >= 1:
        return above
    # by logarithms, because far out both P[B >= v] and P[B = v] underflow
    ratio = math.exp(min(700.0, float(binom.logsf(v - 1, r, p) - binom.logpmf(v, r, p))))
    return min(1.0, above + m * delta * ratio * float(binom.cdf(v - 1, r, p)) / v)


def one_run_epsilon_lower_bound(correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The largest epsilon that one run refutes, with this confidence; 0 where it refutes none.

    The smallest epsilon at which `one_run_p_value` reaches 1 - confidence. The p-value grows with epsilon as long as the
    right guesses are more than the mean of B, which is where it is small.
    """
    level = 1 - check_range("confidence", confidence, 0.5, 1 - 1e-12)
    if one_run_p_value(correct, guesses, canaries, 0.0, delta) >= level:
        return 0.0

    def excess(epsilon: float) -> float:
        return level - one_run_p_value(correct, guesses, canaries, epsilon, delta)

    # steps up from a small epsilon, so that the first crossing is found
    upper = smallest(excess, math.log(1e-3), step=0.1, tolerance=1e-9, limits=(1e-9, 700.0))
    return max(0.0, upper * (1 - 4e-9))


_ROUNDING = 1e-9  # relative excess of the total that is rounding; in favour of the mechanism


def possible(correct: int, guesses: int, canaries: int, chance: float, inverse: Callable[[float], float]) -> bool:
    """True where f-DP allows at least `correct` right guesses with this probability; where it does not, they refute it.

    Args:
        correct: v, 0 to `guesses`.
        guesses: r, canaries on which the attacker did not abstain, 1 to `canaries`; the choice may depend on the output.
        canaries: m, each with a fair coin of its own.
        chance: t, in (0, 1).
        inverse: B^-1: the fewest false alarms with which so many detections are possible.
    """
    m = check_integer("canaries", canaries, 1, 10**7)
    r = check_integer("guesses", guesses, 1, m)
    v = check_integer("correct", correct, 0, r)
    right, wrong = chance * v / m, chance * (r - v) / m
    for i in range(v - 1, -1, -1):
        more = inverse(right) - wrong
        if more > 0:
            wrong += more
            right += i * more / (r - i)
        if right + wrong > r / m * (1 + _ROUNDING):
            return False
    return True


def one_run_mu_lower_bound(correct: int, guesses: int, canaries: int, confidence: float = 0.95) -> float:
    """The largest mu of Gaussian differential privacy that one run refutes with this confidence; 0 where it refutes none.

    For a fair coin between two forms of each canary; B^-1(x) = Phi(Phi^-1(x) - mu) (Dong, Roth, Su 2022, eq. (6)).
    """
    level = 1 - check_range("confidence", confidence, 0.5, 1 - 1e-12)

    def refuted(mu: float) -> bool:
        return not possible(correct, guesses, canaries, level, lambda x: float(ndtr(ndtri(x) - mu)))

    if not refuted(0.0):
        return 0.0
    # a step function: 1 where mu is refuted, and -1 where it is not
    edge = smallest(lambda mu: 1.0 if refuted(mu) else -1.0, math.log(0.1), step=0.2, tolerance=1e-5, limits=(1e-6, 100.0))
    return edge * (1 - 3e-5)


def one_run_gaussian_epsilon(correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """Lower bound on epsilon at a delta in (0, 1) if the trade-off is Gaussian; 0 where the guesses show none."""
    mu = one_run_mu_lower_bound(correct, guesses, canaries, confidence)
    return float(gaussian_epsilon(delta, mu)) if mu > 0 else 0.0
