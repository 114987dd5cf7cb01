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
"""

import math

from dpviz.common.validate import InvalidInput, check_integer, check_range
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
