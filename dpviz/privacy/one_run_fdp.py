"""An audit in one run by f-DP: what right guesses about many canaries say about mu (Mahloujifar, Melis, Chaudhuri 2024).

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

from dpviz.common.validate import check_integer, check_range
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.search import smallest

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
