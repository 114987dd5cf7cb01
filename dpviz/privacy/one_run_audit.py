"""What one training run with many canaries says about epsilon (Steinke, Nasr, Jagielski, NeurIPS 2023).

m canaries are each put into the training set by a fair coin of their own. The attacker sees the output, guesses for some of
the canaries whether they were in, and abstains on the others. One run then takes the place of thousands.

If the mechanism is epsilon-DP under add/remove, each guess is right with probability at most p = e^eps/(1 + e^eps), whatever the
other coins were: given the output and the other coins, the odds of one coin are at most e^eps. So the number of right
guesses is at most a Binomial(r, p) in the usual stochastic order. For delta > 0 the paper adds a term (Theorem 5.2): up to
E further guesses are right, where E has mean at most 2 m delta.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from dpviz.common.validate import InvalidInput, in_range, whole
from dpviz.privacy.search import smallest


def one_run_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of at least `correct` right guesses that an (epsilon, delta)-DP mechanism allows.

    P[B >= v] + 2 m delta max_i P[v - i <= B < v]/i with B ~ Binomial(r, e^eps/(1 + e^eps))
    (Steinke, Nasr, Jagielski 2023, Theorem 5.2).

    Args:
        correct: v, right guesses, 0 to `guesses`.
        guesses: r, canaries on which the attacker did not abstain, 1 to `canaries`; the choice may depend on the output.
        canaries: m, each in the training set by a fair coin of its own.
        epsilon: >= 0, under add/remove.
        delta: in [0, 1).
    """
    m = whole("canaries", canaries, 1, 10**7)
    r = whole("guesses", guesses, 1, m)
    v = whole("correct", correct, 0, r)
    p = 1 / (1 + math.exp(-in_range("epsilon", epsilon, 0.0, 700.0)))
    if not 0 <= delta < 1:
        raise InvalidInput("delta", f"must lie in [0, 1), got {delta:g}", "Give the delta of the guarantee.")
    beta = float(binom.sf(v - 1, r, p))
    if delta == 0 or v == 0:
        return beta
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, p))  # P[v - i <= B < v] for i = 1..v
    return min(1.0, beta + 2 * m * delta * float((below / np.arange(1, v + 1)).max()))


def one_run_epsilon_lower_bound(correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The largest epsilon that one run refutes, with this confidence; 0 where it refutes none.

    The smallest epsilon at which `one_run_p_value` reaches 1 - confidence. The p-value grows with epsilon as long as the
    right guesses are more than the mean of B, which is where it is small.
    """
    level = 1 - in_range("confidence", confidence, 0.5, 1 - 1e-12)
    if one_run_p_value(correct, guesses, canaries, 0.0, delta) >= level:
        return 0.0

    def excess(epsilon: float) -> float:
        return level - one_run_p_value(correct, guesses, canaries, epsilon, delta)

    # steps up from a small epsilon, so that the first crossing is found
    upper = smallest(excess, math.log(1e-3), step=0.1, tolerance=1e-9, limits=(1e-9, 700.0))
    return max(0.0, upper * (1 - 4e-9))
